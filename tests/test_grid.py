"""Check Voronoi cells of points on a grid, quantised to bytes, against the NumPy reference; and when bytes are used."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from isokern import _core
from isokern.partitionings import voronoi_map
from isokern.rows import core_rows
from test_voronoi import twin

needs_bytes = pytest.mark.skipif(
    _core.instruction_set() == "baseline", reason="no products of bytes with the baseline instruction set"
)
MOST_LEVELS = 256 if _core.instruction_set() in ("avx512vnni", "amx") else 128  # of a grid that every search uses

VALUES = {
    "zeros and ones": lambda q: (q > 170).astype(float),
    "counts": lambda q: q // 30 * 1.0,
    "seven bits": lambda q: np.where(q > 127, 127.0, q < 20),  # the largest sums of products in 16 bits
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


def expect_grid(grid_map, X):
    """Assert that bytes are used for X; with more levels than every search takes, they need not be."""
    assert grid_map.is_on_grid or np.unique(X).size > MOST_LEVELS


def map_of(X, n_cells, t=33):
    samples = np.stack([np.random.default_rng(i).permutation(X.shape[0])[:n_cells] for i in range(t)]).astype(np.int32)
    return voronoi_map(core_rows(X, 0, X.shape[0]), samples, [n_cells]), samples


def apply(grid_map, X, samples, threads=2):
    cells = np.empty((X.shape[0], len(samples)), np.uint16)
    grid_map.apply(core_rows(X, 0, X.shape[0]), [cells], threads)
    return cells


@needs_bytes
@pytest.mark.parametrize(("d", "n_cells"), [(1, 4), (3, 256), (50, 300), (131, 600)])
@pytest.mark.parametrize("kind", VALUES)
def test_cells_equal_the_numpy_twin(kind, d, n_cells):
    X = make_rows(kind, 900, d)
    grid_map, samples = map_of(X, n_cells)
    expect_grid(grid_map, X)
    expected = twin(X, X, samples)
    for rows in (X, sparse.csr_array(X)):
        np.testing.assert_array_equal(apply(grid_map, rows, samples), expected)
    for k in (0, 5, 899):
        np.testing.assert_array_equal(apply(grid_map, X[k : k + 1], samples, 1), expected[k : k + 1])
    sparse_map, _ = map_of(sparse.csr_array(X), n_cells)
    expect_grid(sparse_map, X)
    np.testing.assert_array_equal(apply(sparse_map, X, samples), expected)


@needs_bytes
def test_a_sample_without_any_near_points_is_searched_further_out():
    rng = np.random.default_rng(0)
    near, far = (rng.random((2000, 60)) < 0.1).astype(float), (rng.random((1000, 60)) < 0.9).astype(float)
    X = np.vstack([near, far])
    samples = np.stack([rng.permutation(2000)[:1000] for _ in range(33)]).astype(np.int32)
    samples[[7, 20]] = 2000 + np.arange(1000)
    grid_map = voronoi_map(X, samples, [400, 1000])
    assert grid_map.is_on_grid
    few, all_cells = (np.empty((500, 33), np.uint16) for _ in range(2))
    grid_map.apply(X[1800:2300], [few, all_cells], 2)
    np.testing.assert_array_equal(few, twin(X[1800:2300], X, samples[:, :400]))
    np.testing.assert_array_equal(all_cells, twin(X[1800:2300], X, samples))


@needs_bytes
@pytest.mark.parametrize(("n_cells", "t"), [(256, 1), (300, 2), (700, 2), (256, 40)])
@pytest.mark.parametrize("kind", VALUES)
def test_cells_of_many_columns_equal_the_numpy_twin_however_much_samples_overlap(kind, n_cells, t):
    X = make_rows(kind, 900, 150)
    grid_map, samples = map_of(X, n_cells, t)
    rng = np.random.default_rng(1)
    step = np.diff(np.unique(X)).min()
    between = np.where(rng.random((100, 150)) < 0.5, X[:100], X[100:200])
    shaken = X[:100] + rng.uniform(-0.005, 0.005, (100, 150)) * step
    for rows in (X, between, np.full((3, 150), X.max()), shaken.astype(X.dtype), X[::-1] + 3 * step):
        np.testing.assert_array_equal(apply(grid_map, rows, samples), twin(rows, X, samples))


@needs_bytes
def test_axes_of_many_columns_must_be_orthonormal():
    X = make_rows("pixels", 900, 150)
    with pytest.raises(ValueError, match="axes must be orthonormal"):
        _core.VoronoiMap(X, np.arange(256, dtype=np.int32)[None], [256], lambda: np.full((150, 20), 0.5))


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
def test_points_off_any_grid_do_not_use_bytes(values):
    assert not map_of(values, 64)[0].is_on_grid
    assert not map_of(sparse.csr_array(values), 64)[0].is_on_grid


def test_few_columns_and_many_cells_do_not_use_bytes_because_pruning_is_faster():
    X = make_rows("counts", 900, 20)
    assert not map_of(X, 300)[0].is_on_grid


@needs_bytes
def test_rows_off_the_grid_equal_the_reference():
    X = make_rows("pixels", 900, 60)
    grid_map, samples = map_of(X, 300)
    expect_grid(grid_map, X)
    near, between = X[:50] + 0.1 / 255, (X[:50] + X[50:100]) / 2
    for rows in (near, X[:50] + 2, X[:50] - 2, np.vstack([X[:50], between, X[:1] / 3]), X[:5] * 1e300):
        with np.errstate(over="ignore"):
            np.testing.assert_array_equal(apply(grid_map, rows, samples), twin(rows, X, samples))


@needs_bytes
def test_axes_are_computed_only_when_rows_off_the_grid_come():
    X = make_rows("tenths", 900, 60)
    n_calls = []
    samples = np.arange(64, dtype=np.int32)[None]
    one = _core.VoronoiMap(X, samples, [64], lambda: n_calls.append(1) or np.empty((60, 0)))
    apply(one, X, samples)
    assert not n_calls
    for _ in range(2):
        apply(one, X / 3, samples)
        assert n_calls == [1]


@needs_bytes
def test_an_error_in_computing_axes_is_raised_and_the_next_call_tries_again():
    X = make_rows("tenths", 900, 60)
    samples = np.arange(64, dtype=np.int32)[None]
    results = iter([np.full((60, 1), 7.0), np.empty((60, 0))])
    one = _core.VoronoiMap(X, samples, [64], lambda: next(results))
    with pytest.raises(ValueError, match="axes must be orthonormal"):
        apply(one, X / 3, samples)
    np.testing.assert_array_equal(apply(one, X / 3, samples), twin(X / 3, X, samples))


@needs_bytes
def test_rows_nearly_on_the_grid_are_compared_exactly():
    X = make_rows("raw pixels", 900, 60)
    grid_map, samples = map_of(X, 300)
    rows = X[:200] + np.random.default_rng(1).uniform(-0.01, 0.01, (200, 60))
    np.testing.assert_array_equal(apply(grid_map, rows, samples), twin(rows, X, samples))


@pytest.mark.parametrize("kind", ["pixels", "far away"])
def test_bad_arguments_are_refused(kind):
    X = make_rows(kind, 900, 60)
    grid_map, samples = map_of(X, 64)
    with pytest.raises(ValueError, match="another number of columns"):
        apply(grid_map, X[:, :59], samples)
    with pytest.raises(ValueError, match="a column for each partitioning"):
        apply(grid_map, X, samples[:3])
    with pytest.raises(ValueError, match="an array for each size"):
        grid_map.apply(X, [], 1)
