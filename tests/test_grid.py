"""Voronoi cells of rows on a grid, as bytes: those of the twin; other rows and points are left to the other map."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from isokern import IsolationKernel, _core
from isokern.rows import core_rows
from test_voronoi import twin

needs_bytes = pytest.mark.skipif(
    _core.instruction_set() != "avx512vnni", reason=f"no products of bytes with {_core.instruction_set()}"
)

VALUES = {
    "zeros and ones": lambda q: (q > 170).astype(float),
    "counts": lambda q: q // 30 * 1.0,
    "pixels": lambda q: q / 255,
    "single pixels": lambda q: (q / 255).astype(np.float32),
    "raw pixels": lambda q: q * 1.0,
    "tenths": lambda q: q % 11 * 0.1 - 0.5,
    "far away": lambda q: 1e9 - q,
    "tiny": lambda q: q * 1e-130,
    "huge": lambda q: q * 1e130,
}


def make_rows(kind, n, d):
    """Return rows in clusters, some of them equal, one empty."""
    rng = np.random.default_rng(0)
    q = rng.integers(0, 256, (20, d))[rng.integers(20, size=n)] + rng.integers(-20, 21, (n, d))
    X = VALUES[kind](np.clip(q, 0, 255))
    X[-n // 10 :] = X[: n // 10]
    X[5] = X.min()
    return X


def map_of(X, n_cells, t=33):
    samples = np.stack([np.random.default_rng(i).permutation(X.shape[0])[:n_cells] for i in range(t)]).astype(np.int32)
    return _core.find_grid_map(core_rows(X, 0, X.shape[0]), samples), samples


def apply(grid_map, X, samples, threads=2):
    cells = np.full((X.shape[0], len(samples)), 9999, np.uint16)
    return grid_map.apply(core_rows(X, 0, X.shape[0]), cells, threads), cells


@needs_bytes
@pytest.mark.parametrize(("d", "n_cells"), [(1, 4), (3, 256), (50, 300), (131, 600)])
@pytest.mark.parametrize("kind", VALUES)
def test_cells_equal_the_numpy_twin(kind, d, n_cells):
    X = make_rows(kind, 900, d)
    grid_map, samples = map_of(X, n_cells)
    expected = twin(X, X, samples)
    for rows in (X, sparse.csr_array(X)):
        is_done, cells = apply(grid_map, rows, samples)
        assert is_done
        np.testing.assert_array_equal(cells, expected)
    for k in (0, 5, 899):
        np.testing.assert_array_equal(apply(grid_map, X[k : k + 1], samples, 1)[1], expected[k : k + 1])
    sparse_map, _ = map_of(sparse.csr_array(X), n_cells)
    np.testing.assert_array_equal(apply(sparse_map, X, samples)[1], expected)


@pytest.mark.parametrize(
    "values",
    [
        np.random.default_rng(0).normal(size=(300, 60)),
        np.random.default_rng(0).integers(0, 300, (300, 60)) * 1.0,
        np.random.default_rng(0).choice([0.0, 1.0, np.pi], (300, 60)),
        np.ones((300, 60)),
        np.random.default_rng(0).integers(0, 2, (300, 60)) * 1e200,
        np.random.default_rng(0).integers(0, 2, (300, 60)) * 1e-200,
    ],
    ids=["real", "too many", "uneven", "one", "too large", "too small"],
)
def test_points_off_any_grid_have_no_such_map(values):
    assert map_of(values, 64)[0] is None
    assert map_of(sparse.csr_array(values), 64)[0] is None


def test_few_columns_and_many_cells_are_left_to_chunks():
    X = make_rows("counts", 900, 20)
    assert map_of(X, 300)[0] is None


@needs_bytes
def test_rows_off_the_grid_are_left_to_the_other_map():
    X = make_rows("pixels", 900, 60)
    grid_map, samples = map_of(X, 300)
    for rows in (X[:50] + 0.1 / 255, X[:50] + 2, X[:50] - 2, np.vstack([X[:50], X[:1] / 3]), X[:5] * 1e300):
        is_done, cells = apply(grid_map, rows, samples)
        assert not is_done
        assert (cells == 9999).all()
    kernel = IsolationKernel("voronoi", 20, 300, random_state=0).fit(X)
    rows = np.vstack([X[:50], (X[:50] + X[50:100]) / 2, X[:5] + 9])
    points, samples = kernel.map_.partitionings.points, kernel.map_.partitionings.samples
    np.testing.assert_array_equal(kernel.apply(rows), twin(rows, np.asarray(points), samples))


@needs_bytes
def test_rows_nearly_on_the_grid_are_compared_as_they_are():
    X = make_rows("raw pixels", 900, 60)
    grid_map, samples = map_of(X, 300)
    rows = X[:200] + np.random.default_rng(1).uniform(-0.01, 0.01, (200, 60))
    is_done, cells = apply(grid_map, rows, samples)
    assert is_done
    np.testing.assert_array_equal(cells, twin(rows, X, samples))


@needs_bytes
def test_bad_arguments_are_refused():
    X = make_rows("counts", 900, 60)
    grid_map, samples = map_of(X, 64)
    with pytest.raises(ValueError, match="another number of columns"):
        apply(grid_map, X[:, :59], samples)
    with pytest.raises(ValueError, match="a column for each partitioning"):
        apply(grid_map, X, samples[:3])
    with pytest.raises(ValueError, match="numbers of points"):
        _core.find_grid_map(X, np.full((3, 4), 900, np.int32))
