"""Test IsolationKernel as an estimator: its results, its errors, and copies of it."""

from __future__ import annotations

import copy
import functools
import pickle

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
every_partitioning = pytest.mark.parametrize("partitioning", PARTITIONINGS)
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


@parametrize_with_checks([IsolationKernel(name, n_partitionings=10, random_state=0) for name in PARTITIONINGS])
def test_scikit_learn_s_estimator_checks_pass(estimator, check):
    check(estimator)


# Properties of the map and the kernel


def shares_of(cells, others):
    """Return for each pair of rows the share of partitionings in which they are in the same cell."""
    return (cells[:, None] == others[None, :]).mean(axis=2)


@given(rows=small_tables, parameters=parameters)
def test_features_are_the_one_hot_cells_over_the_root_of_the_number_of_partitionings(rows, parameters):
    kernel = IsolationKernel(**parameters).fit(rows)
    cells, t = kernel.apply(rows), parameters["n_partitionings"]
    expected = np.zeros((len(rows), t * kernel.n_cells_))
    np.put_along_axis(expected, cells + kernel.n_cells_ * np.arange(t), 1 / np.sqrt(t), axis=1)
    np.testing.assert_array_equal(kernel.transform(rows).toarray(), expected)


@given(rows=small_tables, parameters=parameters)
def test_the_kernel_is_symmetric_positive_semi_definite_and_one_on_the_diagonal(rows, parameters):
    K = IsolationKernel(**parameters).fit(rows).similarity(rows)
    np.testing.assert_array_equal(K, K.T)
    np.testing.assert_array_equal(np.diag(K), 1.0)
    assert np.linalg.eigvalsh(K).min() > -1e-9


@given(rows=small_tables, parameters=parameters)
def test_similarity_is_the_share_of_partitionings_with_the_same_cell(rows, parameters):
    kernel = IsolationKernel(**parameters).fit(rows)
    cells = kernel.apply(rows)
    np.testing.assert_allclose(kernel.similarity(rows), shares_of(cells, cells), rtol=0, atol=1e-15)


# apply


@every_partitioning
@pytest.mark.parametrize(
    ("n_cells", "dtype"), [(2, np.uint8), (256, np.uint8), (257, np.uint16), (400, np.uint16), (66_000, np.uint32)]
)
def test_cells_are_numbered_from_zero_in_the_smallest_unsigned_type(n_cells, dtype, partitioning):
    n_columns = 1 if n_cells > 1000 else 3
    X = np.random.default_rng(0).normal(size=(n_cells, n_columns))
    cells = IsolationKernel(partitioning, 2, n_cells, random_state=0).fit(X).apply(X)
    assert cells.dtype == dtype
    np.testing.assert_array_equal(np.sort(cells, axis=0), np.repeat(np.arange(n_cells)[:, None], 2, axis=1))


# transform


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dense_features_equal_sparse_ones(dtype, X):
    kernel = IsolationKernel("tree", 6, 8, random_state=0).fit(X)
    stored = kernel.transform(X.astype(dtype)).toarray()
    dense = kernel.set_params(sparse_output=False).transform(X.astype(dtype))
    assert isinstance(dense, np.ndarray)
    assert dense.dtype == stored.dtype
    np.testing.assert_array_equal(dense, stored)


def test_sparse_features_are_canonical_and_indexed_by_32_bits(X):
    features = IsolationKernel(n_cells=8).fit_transform(X)
    assert features.indices.dtype == features.indptr.dtype == np.int32
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


def test_feature_names_give_partitioning_and_cell(X):
    kernel = IsolationKernel("tree", 2, 3).fit(X)
    assert list(kernel.get_feature_names_out()) == [f"partitioning{i}_cell{j}" for i in range(2) for j in range(3)]
    with pytest.raises(ValueError, match="input_features should have length equal"):
        kernel.get_feature_names_out(["a", "b"])


@pytest.mark.parametrize("sparse_output", [True, False])
def test_too_many_stored_values_are_an_error_that_points_to_apply(sparse_output, X, monkeypatch):
    kernel = IsolationKernel(n_partitionings=10, n_cells=2, sparse_output=sparse_output).fit(X)
    monkeypatch.setattr("isokern.feature_map._INT32_MAX", 899)
    with pytest.raises(ValueError, match=r"fewer than 2\^31 values.*got 90 rows x 10 partitionings.*Use apply"):
        kernel.transform(X)
    monkeypatch.setattr("isokern.feature_map._INT32_MAX", 900)
    assert np.count_nonzero(kernel.transform(X).sum(axis=1)) == 90


def test_too_many_columns_are_an_error_that_points_to_apply(X, monkeypatch):
    kernel = IsolationKernel(n_partitionings=10, n_cells=50).fit(X)
    monkeypatch.setattr("isokern.feature_map._INT32_MAX", 499)
    with pytest.raises(ValueError, match=r"500 columns\. Use apply"):
        kernel.transform(X[:1])


# similarity


@pytest.mark.parametrize(
    ("n_partitionings", "n_cells"), [(3, 8), (3, 300), (3, 66_000), (191, 2), (192, 2), (193, 2), (1000, 2)]
)
def test_similarity_counts_cells_of_every_width_and_number(n_partitionings, n_cells):
    X = np.random.default_rng(0).normal(size=(max(300, n_cells), 1))
    kernel = IsolationKernel("tree", n_partitionings, n_cells, random_state=0).fit(X)
    cells = kernel.apply(X[:300])
    expected = shares_of(cells[:270], cells[200:])
    np.testing.assert_allclose(kernel.similarity(X[:270], X[200:300]), expected, rtol=0, atol=1e-15)


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
def test_auto_cells_are_a_32nd_of_the_rows_rounded_to_a_power_of_two(n_rows, n_cells):
    X = np.arange(n_rows, dtype=np.float32)[:, None]
    assert IsolationKernel("tree", 1).fit(X).n_cells_ == n_cells


@every_partitioning
def test_more_cells_than_rows_use_all_rows_with_a_warning_at_the_caller(partitioning, X):
    kernel = IsolationKernel(partitioning, 3, 91)
    with pytest.warns(UserWarning, match="n_cells=91 is more than the 90 rows; all rows are used") as caught:
        kernel.fit(X)
    assert caught[0].filename == __file__
    assert kernel.n_cells_ == 90


def test_n_cells_may_be_a_numpy_integer(X):
    assert IsolationKernel(n_cells=np.int32(7)).fit(X).n_cells_ == 7


@every_partitioning
def test_two_rows_are_enough(partitioning, X):
    cells = IsolationKernel(partitioning, 5).fit(X[:2]).apply(X[:2])
    assert (cells[0] != cells[1]).all()


@every_partitioning
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
        ({"n_partitionings": 0}, "n_partitionings must be an integer from 1 to 1,000,000; got 0"),
        ({"n_partitionings": 1.5}, "n_partitionings must be an integer from 1 to 1,000,000; got 1.5"),
        ({"n_partitionings": "x"}, "n_partitionings must be an integer from 1 to 1,000,000; got 'x'"),
        ({"n_partitionings": 2**63}, "n_partitionings must be an integer from 1 to 1,000,000; got 9223372036854775808"),
        ({"max_depth": 0}, 'max_depth must be None, "log2" or an integer of at least 1; got 0'),
        ({"max_depth": 2.5}, 'max_depth must be None, "log2" or an integer of at least 1; got 2.5'),
        ({"max_depth": "log"}, "max_depth must be None, \"log2\" or an integer of at least 1; got 'log'"),
        (
            {"max_depth": 3, "partitioning": "voronoi"},
            "max_depth must be None unless the partitioning is a tree; got 3",
        ),
        ({"scale": "robust"}, 'scale must be None, "minmax", "standard".* "maxabs"; got .robust.'),
        ({"device": "abacus"}, "device must be None, \"cpu\" or a PyTorch device.*; got 'abacus'"),
        ({"n_jobs": 0}, "n_jobs must be"),
    ],
    ids=str,
)
def test_a_bad_parameter_is_an_error_that_says_what_it_must_be(parameters, message, X):
    with pytest.raises(ValueError, match=message):
        IsolationKernel(**parameters).fit(X)


def test_the_device_cpu_is_the_compiled_core(X):
    kernel = IsolationKernel(device="cpu", random_state=0).fit(X)
    np.testing.assert_array_equal(kernel.apply(X), IsolationKernel(random_state=0).fit(X).apply(X))


@pytest.mark.parametrize("method", METHODS)
def test_methods_of_an_unfitted_kernel_raise_not_fitted(method, X):
    arguments = [] if method == "get_feature_names_out" else [X]
    with pytest.raises(NotFittedError, match="IsolationKernel instance is not fitted yet"):
        getattr(IsolationKernel(), method)(*arguments)


# Copies


@pytest.fixture(params=PARTITIONINGS)
def fitted(request, X):
    return IsolationKernel(request.param, 10, 8, scale="standard", random_state=0).fit(X)


def by_joblib(kernel, path, **options):
    joblib.dump(kernel, path)
    return joblib.load(path, **options)


COPIES = {
    "copy": lambda kernel, path: copy.copy(kernel),
    "deepcopy": lambda kernel, path: copy.deepcopy(kernel),
    "first pickle protocol": lambda kernel, path: pickle.loads(pickle.dumps(kernel, 0)),
    "last pickle protocol": lambda kernel, path: pickle.loads(pickle.dumps(kernel, pickle.HIGHEST_PROTOCOL)),
    "joblib": by_joblib,
    "memory-mapped by joblib": functools.partial(by_joblib, mmap_mode="r"),
}


@pytest.mark.parametrize("copied", COPIES)
def test_a_copy_gives_the_same_cells(copied, fitted, X, tmp_path):
    np.testing.assert_array_equal(COPIES[copied](fitted, tmp_path / "kernel").apply(X), fitted.apply(X))


@every_partitioning
def test_a_pickled_kernel_fitted_to_sparse_rows_gives_the_same_cells(partitioning):
    X = sparse.random_array((90, 4000), density=0.01, rng=0, format="csr")
    kernel = IsolationKernel(partitioning, 10, 8, random_state=0).fit(X)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(kernel)).apply(X), kernel.apply(X))


def test_a_clone_is_not_fitted_but_fits_to_the_same_cells(fitted, X):
    cloned = clone(fitted)
    with pytest.raises(NotFittedError):
        cloned.apply(X)
    np.testing.assert_array_equal(cloned.fit(X).apply(X), fitted.apply(X))


def test_only_the_first_three_parameters_are_positional():
    with pytest.raises(TypeError, match="positional"):
        IsolationKernel("tree", 100, "auto", None)


def test_fitting_again_equals_fitting_a_new_kernel(X):
    again = IsolationKernel(random_state=0).fit(np.ones((10, 7))).fit(X)
    np.testing.assert_array_equal(again.apply(X), IsolationKernel(random_state=0).fit(X).apply(X))


def _with_infinity(X):
    bad = np.hstack([X, X])
    bad[3, 2] = np.inf
    return bad


def test_a_failed_first_fit_leaves_the_kernel_unfitted(X):
    kernel = IsolationKernel()
    with pytest.raises(ValueError, match="finite"):
        kernel.fit(_with_infinity(X))
    with pytest.raises(NotFittedError):
        kernel.apply(_with_infinity(X)[10:])


@pytest.mark.parametrize(
    ("parameters", "bad_rows"),
    [
        ({"n_cells": 1}, np.asarray),
        ({"n_jobs": 0}, np.asarray),
        ({}, lambda X: X[:1]),
        ({}, _with_infinity),
    ],
    ids=["a bad parameter", "n_jobs=0", "one row", "infinity in rows of another width"],
)
def test_a_failed_fit_does_not_change_a_fitted_kernel(parameters, bad_rows, X):
    kernel = IsolationKernel(random_state=0).fit(X)
    before = kernel.apply(X)
    with pytest.raises(ValueError, match=r"n_cells|n_jobs|sample|finite"):
        kernel.set_params(**parameters).fit(bad_rows(X))
    kernel.set_params(n_cells="auto", n_jobs=None)
    np.testing.assert_array_equal(kernel.apply(X), before)


@every_partitioning
@pytest.mark.parametrize(
    ("name", "value"),
    {"n_partitionings": 30, "n_cells": 64, "max_depth": 1, "n_scales": 2, "scale": "minmax", "random_state": 1}.items(),
)
def test_a_parameter_set_after_fit_does_not_change_the_map(name, value, partitioning, X):
    kernel = IsolationKernel(partitioning, 10, 8, random_state=0).fit(X)
    before = kernel.transform(X).toarray()
    np.testing.assert_array_equal(kernel.set_params(**{name: value}).transform(X).toarray(), before)


# With scikit-learn


def test_a_pipeline_of_scaler_kernel_and_linear_classifier_learns():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    y = np.linalg.norm(X, axis=1) > 1.2
    model = make_pipeline(StandardScaler(), IsolationKernel(n_cells=32, random_state=0), LinearSVC())
    assert model.fit(X[:300], y[:300]).score(X[300:], y[300:]) > 0.9


def test_y_is_ignored(X):
    with_y = IsolationKernel(random_state=0).fit(X, np.arange(90)).apply(X)
    np.testing.assert_array_equal(with_y, IsolationKernel(random_state=0).fit(X).apply(X))
