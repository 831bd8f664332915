"""DaskIsolationKernel: the same map as on one machine, however the rows lie."""

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


def as_csr(rows):
    return rows.map_blocks(sparse.csr_matrix, dtype=rows.dtype, meta=sparse.csr_matrix((0, 0), dtype=rows.dtype))


def of_unknown_length(rows):
    return rows[rows[:, 0] > -np.inf]


def as_frame(rows):
    return dd.from_pandas(pd.DataFrame(np.asarray(rows), columns=["a", "b", "c"]), npartitions=3)


FORMS = {
    "array": lambda rows: rows,
    "cut columns": lambda rows: rows.rechunk((30, 2)),
    "unknown lengths": of_unknown_length,
    "frame": as_frame,
}


def blocks(chunks=(25, 25, 25, 25), dtype=float):
    return da.from_array(X.astype(dtype), chunks=(chunks, 3))


@pytest.mark.parametrize("options", [{}, {"scale": "minmax"}, {"partitioning": "voronoi", "scale": "maxabs"}], ids=str)
@pytest.mark.parametrize("chunks", CHUNKS.values(), ids=CHUNKS)
def test_the_map_is_that_of_one_machine_however_rows_are_partitioned(chunks, options):
    local = IsolationKernel(**SMALL, **options).fit(X)
    kernel = DaskIsolationKernel(**SMALL, **options).fit(blocks(chunks))
    assert pickle.dumps(kernel.kernel_.map_.partitionings) == pickle.dumps(local.map_.partitionings)
    assert np.array_equal(kernel.kernel_.apply(X), local.apply(X))


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_the_map_is_that_of_one_machine_in_whatever_form_rows_come(form):
    local = IsolationKernel(**SMALL).fit(X)
    rows = form(blocks())
    assert np.array_equal(DaskIsolationKernel(**SMALL).fit(rows).apply(rows).compute(), local.apply(X))


@pytest.mark.parametrize("options", [{}, {"scale": "maxabs"}, {"partitioning": "voronoi"}], ids=str)
def test_the_map_of_sparse_blocks_is_that_of_one_machine(options):
    local = IsolationKernel(**SMALL, **options).fit(sparse.csr_matrix(X))
    rows = as_csr(blocks(CHUNKS["with empty ones"]))
    assert np.array_equal(DaskIsolationKernel(**SMALL, **options).fit(rows).apply(rows).compute(), local.apply(X))


def test_the_standard_scaling_is_that_of_one_machine_but_for_rounding():
    local = IsolationKernel(**SMALL, scale="standard").fit(X)
    scaling = DaskIsolationKernel(**SMALL, scale="standard").fit(blocks(CHUNKS["uneven"])).kernel_.map_.scaling
    np.testing.assert_allclose(scaling.offset, local.map_.scaling.offset, rtol=1e-12)
    np.testing.assert_allclose(scaling.divisor, local.map_.scaling.divisor, rtol=1e-12)


def test_the_number_of_cells_follows_all_rows():
    rows = da.from_array(np.random.default_rng(1).normal(size=(300, 2)), chunks=(50, 2))
    kernel = DaskIsolationKernel(random_state=0).fit(rows)
    assert kernel.n_cells_ == IsolationKernel().fit(rows.compute()).n_cells_ == 8
    assert kernel.n_features_in_ == 2


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sparse_output", [True, False])
@pytest.mark.parametrize("chunks", [CHUNKS["uneven"], CHUNKS["with empty ones"]], ids=str)
def test_what_is_lazy_says_beforehand_what_it_will_be(chunks, sparse_output, dtype):
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


def test_rows_of_unknown_length_give_cells_of_unknown_length():
    kernel = DaskIsolationKernel(**SMALL).fit(blocks())
    cells = kernel.apply(of_unknown_length(blocks()))
    assert np.isnan(cells.shape[0])
    assert cells.compute().shape == (100, 6)


def test_a_data_frame_s_columns_are_known_by_name():
    kernel = DaskIsolationKernel(**SMALL).fit(as_frame(X))
    assert kernel.to_local().feature_names_in_.tolist() == ["a", "b", "c"]
    with pytest.raises(ValueError, match='in their order; got "b" for "a"'):
        kernel.apply(as_frame(X)[["b", "a", "c"]])


def test_names_of_features_are_those_of_the_kernel():
    kernel = DaskIsolationKernel(**SMALL).fit(blocks())
    assert kernel.get_feature_names_out().tolist() == kernel.kernel_.get_feature_names_out().tolist()


def test_a_pickled_kernel_maps_as_before():
    kernel = DaskIsolationKernel(**SMALL).fit(blocks())
    expected = kernel.apply(blocks()).compute()
    assert np.array_equal(pickle.loads(pickle.dumps(kernel)).apply(blocks()).compute(), expected)


def test_a_clone_has_the_same_client_and_nothing_learned():
    kernel = DaskIsolationKernel(**SMALL, client=object())
    assert clone(kernel).client is kernel.client
    assert not hasattr(clone(kernel), "kernel_")


# Mistakes


def test_rows_that_are_no_dask_collection_are_refused():
    with pytest.raises(TypeError, match=r"X must be a Dask array or a Dask data frame; got ndarray\. For rows of one"):
        DaskIsolationKernel().fit(X)


def test_a_partitioning_of_one_s_own_is_refused():
    class Own:
        def fit(self, X, rng): ...
        def apply(self, X): ...

    with pytest.raises(ValueError, match='partitioning must be "tree" or "voronoi" for Dask'):
        DaskIsolationKernel(Own()).fit(blocks())


def test_a_value_that_is_not_finite_is_found_in_its_partition():
    bad = X.copy()
    bad[60, 1] = np.nan
    rows = da.from_array(bad, chunks=(25, 3))
    with pytest.raises(ValueError, match=r"partition 2: X must be finite; got NaN in column 1, first in row 10"):
        DaskIsolationKernel(**SMALL).fit(rows)
    with pytest.raises(ValueError, match=r"partition 2: X must be finite"):
        DaskIsolationKernel(**SMALL).fit(blocks()).apply(rows).compute()


def test_rows_must_be_there():
    with pytest.raises(ValueError, match="all of its partitions are empty"):
        DaskIsolationKernel().fit(blocks()[:0])


def test_other_columns_than_those_fitted_are_refused_at_once():
    with pytest.raises(ValueError, match="X must have the 3 columns that were fitted; got 2"):
        DaskIsolationKernel(**SMALL).fit(blocks()).apply(blocks()[:, :2])


def test_rows_must_have_two_dimensions():
    with pytest.raises(ValueError, match="X must have 2 dimensions; got 1"):
        DaskIsolationKernel().fit(blocks()[:, 0])
