"""Test DaskIsolationKernel: its map equals that of one machine for every form of input."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from isokern import IsolationKernel

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")
from isokern.distributed import DaskIsolationKernel  # noqa: E402

SMALL = {"n_partitionings": 6, "n_cells": 8, "random_state": 0}
X = np.random.default_rng(0).normal(size=(100, 3)).round(3)

CHUNKS = {"one": (100,), "even": (25, 25, 25, 25), "uneven": (1, 60, 2, 37), "with empty ones": (0, 40, 0, 60, 0)}
FORMS = {
    "array": lambda rows: rows,
    "CSR": lambda rows: rows.map_blocks(sparse.csr_matrix, dtype=float, meta=sparse.csr_matrix((0, 0))),
    "cut columns": lambda rows: rows.rechunk((30, 2)),
    "unknown lengths": lambda rows: rows[rows[:, 0] > -np.inf],
    "frame": lambda rows: as_frame(X),
}


def as_frame(rows):
    return dd.from_pandas(pd.DataFrame(rows, columns=["a", "b", "c"]), npartitions=3)


def blocks(chunks=(25, 25, 25, 25), dtype=float):
    return da.from_array(X.astype(dtype), chunks=(chunks, 3))


@pytest.fixture(scope="module")
def kernel():
    return DaskIsolationKernel(**SMALL).fit(blocks())


@pytest.mark.parametrize(
    "options",
    [{}, {"n_scales": "auto"}, {"scale": "minmax"}, {"partitioning": "voronoi", "scale": "maxabs", "n_scales": 2}],
    ids=str,
)
@pytest.mark.parametrize("chunks", CHUNKS.values(), ids=CHUNKS)
def test_the_map_is_that_of_one_machine_for_any_partitions(chunks, options):
    local = IsolationKernel(**SMALL, **options).fit(X)
    kernel = DaskIsolationKernel(**SMALL, **options).fit(blocks(chunks))
    assert pickle.dumps(kernel.kernel_.map_.partitionings) == pickle.dumps(local.map_.partitionings)
    assert np.array_equal(kernel.kernel_.apply(X), local.apply(X))


@pytest.mark.parametrize("options", [{}, {"scale": "maxabs"}, {"partitioning": "voronoi"}], ids=str)
@pytest.mark.parametrize("form", FORMS)
def test_the_map_is_that_of_one_machine_for_any_form_of_rows(form, options):
    local = IsolationKernel(**SMALL, **options).fit(sparse.csr_matrix(X) if form == "CSR" else X)
    rows = FORMS[form](blocks(CHUNKS["with empty ones"]))
    cells = DaskIsolationKernel(**SMALL, **options).fit(rows).apply(rows)
    assert np.isnan(cells.shape[0]) == (form in {"unknown lengths", "frame"})
    assert np.array_equal(cells.compute(), local.apply(X))


def test_standard_scaling_is_that_of_one_machine_up_to_rounding():
    local = IsolationKernel(**SMALL, scale="standard").fit(X)
    scaling = DaskIsolationKernel(**SMALL, scale="standard").fit(blocks(CHUNKS["uneven"])).kernel_.map_.scaling
    np.testing.assert_allclose(scaling.offset, local.map_.scaling.offset, rtol=1e-12)
    np.testing.assert_allclose(scaling.divisor, local.map_.scaling.divisor, rtol=1e-12)


def test_the_number_of_cells_follows_from_the_number_of_all_rows():
    rows = da.from_array(np.random.default_rng(1).normal(size=(300, 2)), chunks=(50, 2))
    kernel = DaskIsolationKernel(random_state=0).fit(rows)
    assert kernel.n_cells_ == IsolationKernel().fit(rows.compute()).n_cells_ == 8
    assert kernel.n_features_in_ == 2


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sparse_output", [True, False])
@pytest.mark.parametrize("chunks", [CHUNKS["uneven"], CHUNKS["with empty ones"]], ids=str)
def test_lazy_results_have_the_right_shape_type_and_blocks(chunks, sparse_output, dtype):
    kernel = DaskIsolationKernel(**SMALL, sparse_output=sparse_output).fit(blocks(chunks, dtype))
    cells, features = kernel.apply(blocks(chunks, dtype)), kernel.transform(blocks(chunks, dtype))
    for lazy, width in ((cells, 6), (features, 48)):
        made = lazy.compute()
        assert lazy.shape == made.shape == (100, width)
        assert lazy.chunks == (chunks, (width,))
        assert lazy.dtype == made.dtype
        assert type(lazy._meta) is type(made)
    expected = kernel.to_local().transform(X.astype(dtype))
    assert abs(features.compute() - expected).max() == 0


def test_names_of_features_are_those_of_the_local_kernel(kernel):
    assert kernel.get_feature_names_out().tolist() == kernel.kernel_.get_feature_names_out().tolist()


def test_a_pickled_kernel_maps_as_before(kernel):
    expected = kernel.apply(blocks()).compute()
    assert np.array_equal(pickle.loads(pickle.dumps(kernel)).apply(blocks()).compute(), expected)


def test_a_clone_keeps_the_client_and_is_not_fitted():
    kernel = DaskIsolationKernel(**SMALL, client=object())
    assert clone(kernel).client is kernel.client
    assert not hasattr(clone(kernel), "kernel_")


# Errors


def test_columns_must_be_those_of_fit(kernel):
    with pytest.raises(ValueError, match="X must have 3 columns, as in fit; got 2"):
        kernel.apply(blocks()[:, :2])
    named = DaskIsolationKernel(**SMALL).fit(as_frame(X))
    assert named.to_local().feature_names_in_.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(
        named.apply(as_frame(X)[["b", "a", "c"]]).compute(), named.apply(as_frame(X)).compute()
    )
    with pytest.raises(ValueError, match='in the same order; got "d" for "a"'):
        named.apply(as_frame(X).rename(columns={"a": "d"}))


def test_words_and_missing_values_of_a_data_frame_give_the_cells_of_a_local_kernel():
    frame = pd.DataFrame(
        {"a": X[:, 0], "job": np.where(X[:, 1] > 0, "cook", "baker"), "group": pd.Categorical(X[:, 2] > 0)}
    )
    frame.loc[::7, "a"] = np.nan
    frame.loc[::5, "job"] = None
    for scale in (None, "minmax", "standard", "maxabs"):
        found = DaskIsolationKernel(**SMALL, scale=scale).fit(dd.from_pandas(frame, npartitions=3))
        expected = IsolationKernel(**SMALL, scale=scale).fit(frame)
        assert found.kernel_.is_categorical_.tolist() == [False, True, True]
        cells = found.apply(dd.from_pandas(frame, npartitions=2)).compute()
        np.testing.assert_array_equal(cells, expected.apply(frame))


class Own:
    def fit(self, X, rng): ...
    def apply(self, X): ...


WRONG = [
    ({}, X, TypeError, r"X must be a Dask array or a Dask data frame; got ndarray\. Use isokern\.IKOGDClassifier for"),
    ({"partitioning": Own()}, blocks(), ValueError, 'partitioning must be "tree" or "voronoi" for Dask'),
    ({}, blocks()[:0], ValueError, "X must have at least 1 row; all of its partitions are empty"),
    ({}, blocks()[:, 0], ValueError, "X must have 2 dimensions; got 1"),
]


@pytest.mark.parametrize(("options", "rows", "error", "message"), WRONG, ids=[case[-1] for case in WRONG])
def test_input_that_cannot_be_fitted_is_an_error(options, rows, error, message):
    with pytest.raises(error, match=message):
        DaskIsolationKernel(**options).fit(rows)


def test_an_error_names_the_partition_of_a_value_that_is_not_finite(kernel):
    rows = da.from_array(np.where(np.arange(300).reshape(100, 3) == 181, np.inf, X), chunks=(25, 3))
    with pytest.raises(ValueError, match=r"partition 2: X must be finite; got infinity in column 1, first in row 10"):
        DaskIsolationKernel(**SMALL).fit(rows)
    with pytest.raises(ValueError, match=r"partition 2: X must be finite"):
        kernel.apply(rows).compute()
