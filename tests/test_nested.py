"""Check nested Voronoi cells, computed for all sizes and parts in one pass, against the NumPy reference."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import sklearn
from scipy import sparse

from isokern import IsolationKernel
from isokern.fitted_map import LateMap
from isokern.learners.nested import can_share, nested_cells
from isokern.partitionings import voronoi_map
from isokern.rows import core_rows, n_rows
from test_voronoi import KINDS, make_points, twin


def cells_of(rows, samples, sizes, threads=0):
    cells = [np.empty((n_rows(rows), len(samples)), np.min_scalar_type(size - 1)) for size in sizes]
    voronoi_map(rows, samples.astype(np.int32), sizes).apply(rows, cells, threads)
    return cells


def check_against_reference(X, samples, sizes, rows=None):
    """Check the cells of all rows, for each size, against the reference."""
    with np.errstate(over="ignore"):
        for size, cells in zip(sizes, cells_of(X if rows is None else rows, samples, sizes), strict=True):
            np.testing.assert_array_equal(cells, twin(X, X, samples[:, :size]), err_msg=f"size {size}")


def draw(n, n_samples, size):
    rng = np.random.default_rng(1)
    return np.stack([rng.permutation(n)[:size] for _ in range(n_samples)])


@pytest.mark.parametrize("d", [1, 24, 130])
@pytest.mark.parametrize("kind", KINDS)
def test_cells_of_all_sizes_equal_the_reference(kind, d):
    X = make_points(kind, 600, max(d, 4))[:, :d].copy()
    check_against_reference(X, draw(600, 19, 500), [2, 3, 16, 128, 129, 200, 500])


@pytest.mark.parametrize(
    "values",
    [
        np.zeros((300, 3)),
        np.full((300, 2), 1e200),
        np.r_[np.zeros((299, 2)), [[1e30, 1e30]]],
        np.full((300, 2), 1e-200),
    ],
    ids=["zeros", "too large", "one far", "too small"],
)
def test_values_beyond_float32_are_compared_in_float64(values):
    X = values + np.random.default_rng(0).integers(0, 3, values.shape) * values.max()
    check_against_reference(X, draw(300, 3, 200), [4, 128, 200])


@pytest.mark.parametrize("size", [1e-161, 1e-200])
def test_sparse_values_whose_squares_underflow_are_compared_by_the_exact_distance(size):
    table = sparse.random_array((80, 3000), density=0.01, rng=0, format="csr") * size
    table = sparse.vstack([table, sparse.csr_array((1, 3000))], format="csr")
    check_against_reference(table.toarray(), draw(81, 3, 60), [4, 60], core_rows(table, 0, 81))


@pytest.mark.parametrize("sizes", [[2], [300], [2, 300], [150, 151]])
def test_any_sizes_may_be_combined(sizes):
    check_against_reference(make_points("tied", 400, 6), draw(400, 17, sizes[-1]), sizes)


def test_threads_do_not_change_cells():
    X = make_points("tied", 500, 10)
    samples = draw(500, 5, 300)
    for one, two in zip(cells_of(X, samples, [8, 300], 1), cells_of(X, samples, [8, 300], 2), strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("scale", [None, "minmax"])
@pytest.mark.parametrize("columns", [None, 9, 5000], ids=["dense", "sparse", "wide"])
@pytest.mark.parametrize("working_memory", [1024, 0.001])
def test_cells_of_parts_equal_those_of_kernels_fitted_to_them(scale, columns, working_memory):
    X = make_points("clustered", 700, 9)
    table = X if columns is None else sparse.hstack([sparse.csr_array(X), sparse.csr_array((700, columns - 9))]).tocsr()
    scale = "maxabs" if columns and scale else scale
    kernel = IsolationKernel("voronoi", 7, scale=scale, random_state=3)
    parts, sizes = [np.arange(500), np.arange(100, 700), np.arange(0, 700, 2)], [4, 64, 256]
    with sklearn.config_context(working_memory=working_memory):
        found = list(nested_cells(kernel, table, parts, sizes))
    for part, cells in zip(parts, found, strict=True):
        for size, of_size in zip(sizes, cells, strict=True):
            fitted = IsolationKernel("voronoi", 7, size, scale=scale, random_state=3).fit(table[part])
            np.testing.assert_array_equal(of_size, fitted.apply(table))


def test_a_late_map_is_drawn_when_first_applied_and_then_equals_a_fitted_one():
    X = make_points("clustered", 300, 5)
    drawn = []
    fitted = IsolationKernel("voronoi", 6, 32, scale="minmax", random_state=0).fit(X[50:250]).map_
    late = LateMap(6, 32, lambda: drawn.append(1) or fitted)
    np.testing.assert_array_equal(late.starts, fitted.starts)
    assert (late.n_cells, late.cell_dtype, drawn) == (fitted.n_cells, fitted.cell_dtype, [])
    for _ in range(2):
        np.testing.assert_array_equal(late.apply(X, 1), fitted.apply(X, 1))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(late)).apply(X, 1), fitted.apply(X, 1))
    assert drawn == [1]


def test_only_several_voronoi_maps_of_few_cells_are_shared():
    table = np.zeros((100, 2))
    assert can_share(IsolationKernel("voronoi"), table, 5, [4, 8])
    assert not can_share(IsolationKernel("tree"), table, 5, [4, 8])
    assert not can_share(IsolationKernel("voronoi"), table, 2, [4])
    assert not can_share(IsolationKernel("voronoi"), table, 5, [4, 2**17])
    assert not can_share(IsolationKernel("voronoi"), np.zeros((100_000, 2)), 5, [4, 8])
    assert can_share(IsolationKernel("voronoi"), np.zeros((100_000, 100)), 5, [4, 8])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["words", "tied", "repeated", "empty rows", "large", "small", "too large"])
def test_cells_of_wide_sparse_rows_equal_the_reference(kind, dtype):
    rng = np.random.default_rng(0)
    X = sparse.random_array((400, 3000), density=0.01, rng=rng, format="csr")
    X.data = {"tied": np.ones_like, "large": lambda x: 1e6 + x, "small": lambda x: 1e-25 * x}.get(kind, abs)(X.data)
    if kind == "too large" and dtype == np.float64:
        X.data[::50] = 1e160
    if kind == "repeated":
        X = X[rng.integers(40, size=400)]
    if kind == "empty rows":
        X = sparse.vstack([X[:200], sparse.csr_array((200, 3000))]).tocsr()
    X = X.astype(dtype)
    check_against_reference(X.toarray(), draw(400, 9, 300), [4, 64, 150, 300], rows=core_rows(X, 0, 400))


@pytest.mark.parametrize(
    ("samples", "sizes"),
    [
        (np.array([[0, 1, 9]]), [3]),
        (np.array([[0, -1, 1]]), [3]),
        (np.array([[0, 1, 2]]), [2]),
        (np.array([[0, 1, 2]]), [3, 3]),
        (np.array([[0, 1, 2]]), [2, 1, 3]),
        (np.empty((0, 3)), [3]),
    ],
)
def test_invalid_samples_and_sizes_are_an_error(samples, sizes):
    with pytest.raises(ValueError, match="must"):
        cells_of(np.eye(3), samples, sizes)
