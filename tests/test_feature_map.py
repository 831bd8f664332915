"""The kernel as an estimator: what it returns, what it refuses, how it is copied and kept."""

from __future__ import annotations

import copy
import pickle
import warnings

import joblib
import numpy as np
import pytest
import sklearn
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from isokern import IsolationKernel

PARTITIONINGS = ["tree", "voronoi"]
METHODS = ["apply", "transform", "similarity", "get_feature_names_out"]

small_tables = arrays(
    np.float64,
    st.tuples(st.integers(2, 15), st.integers(1, 4)),
    elements=st.sampled_from([0.0, 0.0, 1.0, -1.0]) | st.floats(-1e6, 1e6),
)
parameters = st.fixed_dictionaries(
    {
        "partitioning": st.sampled_from(PARTITIONINGS),
        "n_partitionings": st.integers(1, 30),
        "n_cells": st.just(2) | st.just("auto"),
        "random_state": st.integers(0, 1000),
    }
)


@pytest.fixture
def X():
    return np.random.default_rng(0).normal(size=(90, 3))


@parametrize_with_checks(
    [
        IsolationKernel("tree", n_partitionings=10, random_state=0),
        IsolationKernel("voronoi", n_partitionings=10, random_state=0),
    ]
)
def test_scikit_learn_s_estimator_checks_pass(estimator, check):
    check(estimator)


# Properties of the map and the kernel


@given(rows=small_tables, parameters=parameters)
def test_every_row_has_exactly_one_value_for_each_partitioning(rows, parameters):
    features = IsolationKernel(**parameters).fit_transform(rows)
    np.testing.assert_array_equal(np.diff(features.indptr), parameters["n_partitionings"])


@given(rows=small_tables, parameters=parameters)
def test_every_value_is_one_over_the_root_of_the_number_of_partitionings(rows, parameters):
    features = IsolationKernel(**parameters).fit_transform(rows)
    assert set(features.data) == {1 / np.sqrt(parameters["n_partitionings"])}


@given(rows=small_tables, parameters=parameters)
def test_the_kernel_is_symmetric(rows, parameters):
    K = IsolationKernel(**parameters).fit(rows).similarity(rows)
    np.testing.assert_array_equal(K, K.T)


@given(rows=small_tables, parameters=parameters)
def test_the_similarity_of_a_row_to_itself_is_exactly_one(rows, parameters):
    K = IsolationKernel(**parameters).fit(rows).similarity(rows)
    np.testing.assert_array_equal(np.diag(K), 1.0)


@given(rows=small_tables, parameters=parameters)
def test_a_row_is_never_more_similar_to_another_than_to_itself(rows, parameters):
    K = IsolationKernel(**parameters).fit(rows).similarity(rows)
    assert K.max() == 1.0


@given(rows=small_tables, parameters=parameters)
def test_the_kernel_is_positive_semi_definite(rows, parameters):
    K = IsolationKernel(**parameters).fit(rows).similarity(rows)
    assert np.linalg.eigvalsh(K).min() > -1e-9


@given(rows=small_tables, parameters=parameters)
def test_dense_and_csr_rows_fall_into_the_same_cells(rows, parameters):
    kernel = IsolationKernel(**parameters).fit(rows)
    np.testing.assert_array_equal(kernel.apply(sparse.csr_array(rows)), kernel.apply(rows))


@given(rows=small_tables, parameters=parameters)
def test_similarity_is_the_share_of_cells_in_common(rows, parameters):
    kernel = IsolationKernel(**parameters).fit(rows)
    cells = kernel.apply(rows)
    shares = (cells[:, None, :] == cells[None, :, :]).mean(axis=2)
    np.testing.assert_allclose(kernel.similarity(rows), shares, rtol=0, atol=1e-15)


# apply


@pytest.mark.parametrize("partitioning", PARTITIONINGS)
@pytest.mark.parametrize(("n_cells", "dtype"), [(2, np.uint8), (256, np.uint8), (257, np.uint16)])
def test_cells_have_the_smallest_unsigned_type_that_fits(n_cells, dtype, partitioning):
    X = np.random.default_rng(0).normal(size=(300, 2))
    assert IsolationKernel(partitioning, 2, n_cells).fit(X).apply(X).dtype == dtype


def test_cells_beyond_65536_are_32_bits_wide():
    X = np.arange(70_000.0)[:, None]
    cells = IsolationKernel("tree", 1, 66_000, random_state=0).fit(X).apply(X)
    assert cells.dtype == np.uint32
    assert cells.max() == 65_999


@pytest.mark.parametrize("partitioning", PARTITIONINGS)
def test_cells_beyond_256_are_all_in_use(partitioning):
    X = np.random.default_rng(0).normal(size=(400, 3))
    cells = IsolationKernel(partitioning, 2, 400, random_state=0).fit(X).apply(X)
    np.testing.assert_array_equal(np.sort(cells, axis=0), np.repeat(np.arange(400)[:, None], 2, axis=1))


@pytest.mark.parametrize("partitioning", PARTITIONINGS)
def test_there_is_one_cell_for_each_row_and_partitioning(partitioning, X):
    assert IsolationKernel(partitioning, 7).fit(X).apply(X[:5]).shape == (5, 7)


@pytest.mark.parametrize("partitioning", PARTITIONINGS)
def test_cells_are_numbered_from_zero(partitioning, X):
    cells = IsolationKernel(partitioning, 20, 8, random_state=0).fit(X).apply(X)
    assert (cells.min(axis=0) == 0).all()
    assert (cells.max(axis=0) == 7).all()


# transform


def test_features_stand_in_the_columns_of_the_cells(X):
    kernel = IsolationKernel("tree", 6, 8, random_state=0).fit(X)
    expected = np.zeros((90, 48))
    np.put_along_axis(expected, kernel.apply(X) + 8 * np.arange(6), 1 / np.sqrt(6), axis=1)
    np.testing.assert_array_equal(kernel.transform(X).toarray(), expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dense_features_equal_sparse_ones(dtype, X):
    kernel = IsolationKernel("tree", 6, 8, random_state=0).fit(X)
    stored = kernel.transform(X.astype(dtype)).toarray()
    dense = kernel.set_params(sparse_output=False).transform(X.astype(dtype))
    assert isinstance(dense, np.ndarray)
    assert dense.dtype == stored.dtype
    np.testing.assert_array_equal(dense, stored)


@pytest.mark.parametrize("name", ["indices", "indptr"])
def test_sparse_features_are_indexed_by_32_bits(name, X):
    assert getattr(IsolationKernel().fit_transform(X), name).dtype == np.int32


def test_sparse_features_are_canonical(X):
    features = IsolationKernel(n_cells=8).fit_transform(X)
    rebuilt = sparse.csr_array((features.data, features.indices, features.indptr), shape=features.shape)
    assert rebuilt.has_canonical_format


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize(
    ("given_type", "dtype"),
    [(np.float32, np.float32), (np.float64, np.float64), (np.int64, np.float64), (np.uint8, np.float64)],
)
def test_features_are_float32_for_float32_rows_else_float64(given_type, dtype, form, X):
    assert IsolationKernel(n_cells=4).fit_transform(form(np.abs(X).astype(given_type))).dtype == dtype


@pytest.mark.parametrize(("setting", "kind"), [("sparray", sparse.csr_array), ("spmatrix", sparse.csr_matrix)])
def test_scikit_learn_s_sparse_interface_setting_is_respected(setting, kind, X):
    with sklearn.config_context(sparse_interface=setting):
        assert type(IsolationKernel().fit_transform(X)) is kind


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_set_output_gives_data_frames_with_named_columns(library, X):
    frames = pytest.importorskip(library)
    kernel = IsolationKernel("tree", 2, 3, sparse_output=False, random_state=0).set_output(transform=library)
    frame = kernel.fit_transform(X)
    assert isinstance(frame, frames.DataFrame)
    assert list(frame.columns) == list(kernel.get_feature_names_out())


def test_set_output_keeps_the_index_of_a_data_frame(X):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["a", "b", "c"], index=np.arange(90) + 1000)
    kernel = IsolationKernel("tree", 2, 3, sparse_output=False).set_output(transform="pandas")
    assert list(kernel.fit_transform(frame).index) == list(frame.index)


def test_feature_names_tell_partitioning_and_cell(X):
    names = IsolationKernel("tree", 2, 3).fit(X).get_feature_names_out()
    expected = [f"partitioning{i}_cell{j}" for i in range(2) for j in range(3)]
    assert list(names) == expected


def test_feature_names_are_refused_for_other_columns(X):
    kernel = IsolationKernel().fit(X)
    with pytest.raises(ValueError, match="input_features should have length equal"):
        kernel.get_feature_names_out(["a", "b"])


@pytest.mark.parametrize("sparse_output", [True, False])
def test_too_many_stored_values_are_an_error_that_points_to_apply(sparse_output, X, monkeypatch):
    kernel = IsolationKernel(n_partitionings=10, n_cells=2, sparse_output=sparse_output).fit(X)
    monkeypatch.setattr("isokern.feature_map._INT32_MAX", 899)
    with pytest.raises(ValueError, match=r"fewer than 2\^31 values.*got 90 rows x 10 partitionings.*Use apply"):
        kernel.transform(X)


def test_as_many_stored_values_as_fit_are_returned(X, monkeypatch):
    kernel = IsolationKernel(n_partitionings=10, n_cells=2).fit(X)
    monkeypatch.setattr("isokern.feature_map._INT32_MAX", 900)
    assert kernel.transform(X).nnz == 900


def test_too_many_columns_are_an_error_that_points_to_apply(X, monkeypatch):
    kernel = IsolationKernel(n_partitionings=10, n_cells=50).fit(X)
    monkeypatch.setattr("isokern.feature_map._INT32_MAX", 499)
    with pytest.raises(ValueError, match=r"500 columns\. Use apply"):
        kernel.transform(X[:1])


# similarity


@pytest.mark.parametrize("partitioning", PARTITIONINGS)
def test_similarity_equals_the_product_of_features(partitioning, X):
    kernel = IsolationKernel(partitioning, random_state=0).fit(X)
    products = (kernel.transform(X[:40]) @ kernel.transform(X[30:]).T).toarray()
    np.testing.assert_allclose(kernel.similarity(X[:40], X[30:]), products, rtol=0, atol=1e-12)


@pytest.mark.parametrize("n_cells", [8, 300, 66_000])
def test_similarity_counts_equal_cells_of_every_width(n_cells):
    X = np.random.default_rng(0).normal(size=(max(700, n_cells), 1))
    kernel = IsolationKernel("tree", 3, n_cells, random_state=0).fit(X)
    cells = kernel.apply(X[:600])
    expected = (cells[:, None] == cells[None, :250]).mean(axis=2)
    np.testing.assert_allclose(kernel.similarity(X[:600], X[:250]), expected, rtol=0, atol=1e-15)


@pytest.mark.parametrize("n_partitionings", [191, 192, 193, 1000])
def test_similarity_counts_equal_cells_of_many_partitionings(n_partitionings, X):
    kernel = IsolationKernel("tree", n_partitionings, 2, random_state=0).fit(X)
    cells = kernel.apply(X)
    expected = (cells[:, None] == cells[None, :]).mean(axis=2)
    np.testing.assert_allclose(kernel.similarity(X), expected, rtol=0, atol=1e-15)


def test_similarity_of_other_rows_has_a_row_and_a_column_for_each(X):
    assert IsolationKernel().fit(X).similarity(X[:4], X[:7]).shape == (4, 7)


def test_similarity_compares_dense_with_sparse_rows(X):
    kernel = IsolationKernel(random_state=0).fit(X)
    np.testing.assert_array_equal(kernel.similarity(X, sparse.csr_array(X)), kernel.similarity(X))


@pytest.mark.parametrize(
    ("first", "second", "dtype"),
    [
        (np.float32, np.float32, np.float32),
        (np.float32, np.float64, np.float64),
        (np.float64, np.float64, np.float64),
        (np.int64, np.int64, np.float64),
    ],
)
def test_similarity_is_float32_only_for_float32_rows(first, second, dtype, X):
    assert IsolationKernel().fit(X).similarity(X.astype(first), X.astype(second)).dtype == dtype


# The number of cells


@pytest.mark.parametrize(
    ("n_rows", "n_cells"), [(2, 2), (3, 2), (64, 2), (90, 2), (128, 4), (1000, 32), (2**19, 2**14), (2**21, 2**14)]
)
def test_auto_takes_a_32nd_of_the_rows_as_a_power_of_two(n_rows, n_cells):
    X = np.arange(n_rows, dtype=np.float32)[:, None]
    assert IsolationKernel("tree", 1).fit(X).n_cells_ == n_cells


@pytest.mark.parametrize("partitioning", PARTITIONINGS)
@pytest.mark.parametrize("n_rows", [2, 3, 40])
def test_auto_is_silent_on_few_rows(n_rows, partitioning, X):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        IsolationKernel(partitioning).fit(X[:n_rows])


@pytest.mark.parametrize("partitioning", PARTITIONINGS)
def test_more_cells_than_rows_means_all_rows_and_a_warning(partitioning, X):
    kernel = IsolationKernel(partitioning, 3, 91)
    with pytest.warns(UserWarning, match="n_cells=91 is more than the 90 rows; all rows are used"):
        kernel.fit(X)
    assert kernel.n_cells_ == 90


def test_the_warning_about_too_many_cells_points_to_the_caller(X):
    with pytest.warns(UserWarning, match="n_cells=91") as caught:
        IsolationKernel(n_cells=91).fit(X)
    assert caught[0].filename == __file__


@pytest.mark.parametrize("partitioning", PARTITIONINGS)
def test_as_many_cells_as_rows_are_no_warning(partitioning, X):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert IsolationKernel(partitioning, 3, 90).fit(X).n_cells_ == 90


def test_n_cells_may_be_a_numpy_integer(X):
    assert IsolationKernel(n_cells=np.int32(7)).fit(X).n_cells_ == 7


# Degenerate data


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("partitioning", PARTITIONINGS)
@pytest.mark.parametrize("value", [0.0, 2.5])
def test_constant_data_fall_into_the_first_cell(value, partitioning, form):
    X = form(np.full((20, 3), value))
    assert not IsolationKernel(partitioning, 5, 4).fit(X).apply(X).any()


@pytest.mark.parametrize("partitioning", PARTITIONINGS)
def test_equal_rows_fall_into_the_same_cells(partitioning, X):
    doubled = np.repeat(X, 2, axis=0)
    cells = IsolationKernel(partitioning, n_cells=64).fit(doubled).apply(doubled)
    np.testing.assert_array_equal(cells[::2], cells[1::2])


@pytest.mark.parametrize("partitioning", PARTITIONINGS)
def test_two_rows_are_enough(partitioning, X):
    cells = IsolationKernel(partitioning, 5).fit(X[:2]).apply(X[:2])
    assert (cells[0] != cells[1]).all()


@pytest.mark.parametrize("partitioning", PARTITIONINGS)
def test_negative_zero_is_zero(partitioning):
    X = np.array([[0.0], [-0.0], [1.0], [-1.0]])
    cells = IsolationKernel(partitioning, 50, 3, random_state=0).fit(X).apply(X)
    np.testing.assert_array_equal(cells[0], cells[1])


# Parameters


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_cells": 1}, 'n_cells must be "auto" or an integer of at least 2; got 1'),
        ({"n_cells": -3}, 'n_cells must be "auto" or an integer of at least 2; got -3'),
        ({"n_cells": 2.5}, 'n_cells must be "auto" or an integer of at least 2; got 2.5'),
        ({"n_cells": "x"}, "n_cells must be \"auto\" or an integer of at least 2; got 'x'"),
        ({"n_cells": True}, 'n_cells must be "auto" or an integer of at least 2; got True'),
        ({"n_cells": None}, 'n_cells must be "auto" or an integer of at least 2; got None'),
        ({"partitioning": "ball"}, 'partitioning must be "tree".* "voronoi" or an object; got .ball.'),
        ({"partitioning": None}, "partitioning must be a name or have fit and apply; got None"),
        ({"n_partitionings": 0}, "n_partitionings must be an integer of at least 1; got 0"),
        ({"n_partitionings": 1.5}, "n_partitionings must be an integer of at least 1; got 1.5"),
        ({"n_partitionings": "x"}, "n_partitionings must be an integer of at least 1; got 'x'"),
        ({"max_depth": 0}, 'max_depth must be None, "log2" or an integer of at least 1; got 0'),
        ({"max_depth": 2.5}, 'max_depth must be None, "log2" or an integer of at least 1; got 2.5'),
        ({"max_depth": "log"}, "max_depth must be None, \"log2\" or an integer of at least 1; got 'log'"),
        (
            {"max_depth": 3, "partitioning": "voronoi"},
            "max_depth must be None unless the partitioning is a tree; got 3",
        ),
        ({"scale": "robust"}, 'scale must be None, "minmax", "standard".* "maxabs"; got .robust.'),
        ({"device": "abacus"}, "device must be None, \"cpu\" or a PyTorch device.*; got 'abacus'"),
        ({"n_jobs": 0}, "n_jobs == 0"),
    ],
    ids=str,
)
def test_a_bad_parameter_is_an_error_that_says_what_it_must_be(parameters, message, X):
    with pytest.raises(ValueError, match=message):
        IsolationKernel(**parameters).fit(X)


def test_the_device_may_be_named(X):
    kernel = IsolationKernel(device="cpu", random_state=0).fit(X)
    np.testing.assert_array_equal(kernel.apply(X), IsolationKernel(random_state=0).fit(X).apply(X))


@pytest.mark.parametrize("method", METHODS)
def test_a_kernel_that_is_not_fitted_says_so(method, X):
    arguments = [] if method == "get_feature_names_out" else [X]
    with pytest.raises(NotFittedError, match="IsolationKernel instance is not fitted yet"):
        getattr(IsolationKernel(), method)(*arguments)


# Copies


@pytest.fixture(params=PARTITIONINGS)
def fitted(request, X):
    return IsolationKernel(request.param, 10, 8, scale="standard", random_state=0).fit(X)


@pytest.mark.parametrize(
    "copied",
    [
        copy.copy,
        copy.deepcopy,
        *(lambda kernel, protocol=protocol: pickle.loads(pickle.dumps(kernel, protocol)) for protocol in range(6)),
    ],
    ids=["copy", "deepcopy", *(f"pickle protocol {protocol}" for protocol in range(6))],
)
def test_a_copy_gives_the_same_cells(copied, fitted, X):
    np.testing.assert_array_equal(copied(fitted).apply(X), fitted.apply(X))


@pytest.mark.parametrize("compress", [0, 3])
def test_a_kernel_kept_by_joblib_gives_the_same_cells(compress, fitted, X, tmp_path):
    joblib.dump(fitted, tmp_path / "kernel", compress=compress)
    np.testing.assert_array_equal(joblib.load(tmp_path / "kernel").apply(X), fitted.apply(X))


def test_a_kernel_mapped_into_memory_by_joblib_gives_the_same_cells(fitted, X, tmp_path):
    joblib.dump(fitted, tmp_path / "kernel")
    np.testing.assert_array_equal(joblib.load(tmp_path / "kernel", mmap_mode="r").apply(X), fitted.apply(X))


@pytest.mark.parametrize("partitioning", PARTITIONINGS)
def test_a_pickled_kernel_fitted_to_sparse_rows_gives_the_same_cells(partitioning):
    X = sparse.random_array((90, 4000), density=0.01, rng=0, format="csr")
    kernel = IsolationKernel(partitioning, 10, 8, random_state=0).fit(X)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(kernel)).apply(X), kernel.apply(X))


def test_a_clone_is_not_fitted_but_fits_to_the_same_cells(fitted, X):
    cloned = clone(fitted)
    with pytest.raises(NotFittedError):
        cloned.apply(X)
    np.testing.assert_array_equal(cloned.fit(X).apply(X), fitted.apply(X))


def test_parameters_are_kept_as_given():
    given_parameters = {
        "partitioning": "voronoi",
        "n_partitionings": 3,
        "n_cells": 4,
        "max_depth": "log2",
        "scale": "minmax",
        "sparse_output": False,
        "device": "cpu",
        "n_jobs": 2,
        "random_state": 5,
    }
    assert IsolationKernel(**given_parameters).get_params() == given_parameters


def test_only_the_first_three_parameters_go_without_a_name():
    with pytest.raises(TypeError, match="positional"):
        IsolationKernel("tree", 100, "auto", None)


def test_fitting_again_forgets_what_was_fitted_before(X):
    again = IsolationKernel(random_state=0).fit(np.ones((10, 7))).fit(X)
    np.testing.assert_array_equal(again.apply(X), IsolationKernel(random_state=0).fit(X).apply(X))


def _with_nan(X):
    bad = np.hstack([X, X])
    bad[3, 2] = np.nan
    return bad


def test_a_first_fit_that_failed_leaves_the_kernel_not_fitted(X):
    kernel = IsolationKernel()
    with pytest.raises(ValueError, match="finite"):
        kernel.fit(_with_nan(X))
    with pytest.raises(NotFittedError):
        kernel.apply(_with_nan(X)[10:])


@pytest.mark.parametrize(
    ("parameters", "bad_rows"),
    [
        ({"n_cells": 1}, np.asarray),
        ({"n_jobs": 0}, np.asarray),
        ({}, lambda X: X[:1]),
        ({}, _with_nan),
    ],
    ids=["a bad parameter", "n_jobs=0", "one row", "NaN in rows of another width"],
)
def test_a_fit_that_failed_leaves_the_kernel_as_it_was(parameters, bad_rows, X):
    kernel = IsolationKernel(random_state=0).fit(X)
    before = kernel.apply(X)
    with pytest.raises(ValueError, match=r"n_cells|n_jobs|sample|finite"):
        kernel.set_params(**parameters).fit(bad_rows(X))
    kernel.set_params(n_cells="auto", n_jobs=None)
    np.testing.assert_array_equal(kernel.apply(X), before)


@pytest.mark.parametrize("partitioning", PARTITIONINGS)
@pytest.mark.parametrize(
    "parameters",
    [
        {"n_partitionings": 3},
        {"n_partitionings": 30},
        {"n_cells": 64},
        {"max_depth": 1},
        {"scale": "minmax"},
        {"random_state": 1},
    ],
    ids=str,
)
def test_a_parameter_set_after_fit_does_not_change_the_map(parameters, partitioning, X):
    kernel = IsolationKernel(partitioning, 10, 8, random_state=0).fit(X)
    before = kernel.transform(X).toarray()
    np.testing.assert_array_equal(kernel.set_params(**parameters).transform(X).toarray(), before)


# In company


def test_a_kernel_stands_in_a_pipeline_between_a_scaler_and_a_linear_classifier():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    y = np.linalg.norm(X, axis=1) > 1.2
    model = make_pipeline(StandardScaler(), IsolationKernel(n_cells=32, random_state=0), LinearSVC())
    assert model.fit(X[:300], y[:300]).score(X[300:], y[300:]) > 0.9


def test_y_is_ignored(X):
    with_y = IsolationKernel(random_state=0).fit(X, np.arange(90)).apply(X)
    np.testing.assert_array_equal(with_y, IsolationKernel(random_state=0).fit(X).apply(X))
