"""Check Voronoi cells against the NumPy reference where chunks are pruned and principal axes give the first bounds."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from isokern import IsolationKernel, _core
from isokern.partitionings import principal_axes


def make_points(kind, n, d):
    """Return rows of which few directions explain most, in many clusters."""
    rng = np.random.default_rng(0)
    spread = 0.7 ** np.arange(min(d, 40))
    X = rng.normal(size=(n, len(spread))) * spread @ rng.normal(size=(len(spread), d)) / np.sqrt(d)
    X += 3 * rng.normal(size=(30, d))[rng.integers(30, size=n)]
    if kind == "tied":
        X = np.round(X)
    elif kind == "offset":
        X = 1e6 + 1e-3 * X
    elif kind == "repeated":
        X = X[rng.integers(n // 10, size=n)]
    elif kind == "one large column":
        X[:, 3] *= 1e5
    elif kind in ("pixels", "single pixels"):
        X = np.clip(np.round(128 + 40 * X), 0, 255) / 255
    elif kind == "counts from afar":
        X = 1e9 + np.clip(np.round(10 * X), -99, 99)
    return X.astype(np.float32) if kind.startswith("single") else X


KINDS = ["clustered", "tied", "offset", "repeated", "one large column", "single"]
KINDS += ["pixels", "single pixels", "counts from afar"]


@pytest.mark.parametrize("d", [5, 24, 130, 400])
@pytest.mark.parametrize("kind", KINDS)
def test_cells_among_many_chunks_equal_the_numpy_twin(kind, d):
    X = make_points(kind, 2600, d)
    kernel = IsolationKernel("voronoi", 12, 260, random_state=0).fit(X)
    rows = np.vstack([X[:150], (X[:50] + X[50:100]) / 2, X[:5] + 1e3])
    points, samples = kernel.map_.partitionings.points, kernel.map_.partitionings.samples
    expected = twin(rows, np.asarray(points), samples)
    np.testing.assert_array_equal(kernel.apply(rows), expected)
    np.testing.assert_array_equal(kernel.apply(sparse.csr_array(rows)), expected)
    np.testing.assert_array_equal(kernel.apply(X[:150]), expected[:150])
    singly = np.vstack([kernel.apply(rows[k : k + 1]) for k in range(0, 150, 30)])
    np.testing.assert_array_equal(singly, expected[:150:30])


@pytest.mark.parametrize("d", [5, 24])
def test_rows_beyond_float32_are_mapped_among_others(d):
    X = make_points("clustered", 2600, d)
    kernel = IsolationKernel("voronoi", 12, 260, random_state=0).fit(X)
    rows = X[:150].copy()
    rows[::7] *= 1e100
    rows[3::11, 2:] *= -1e45
    points, samples = kernel.map_.partitionings.points, kernel.map_.partitionings.samples
    np.testing.assert_array_equal(kernel.apply(rows), twin(rows, np.asarray(points), samples))


def twin(rows, points, samples):
    """Return the first of the nearest points of each sample, distances summed in the order of columns."""
    rows, points = rows.astype(np.float64), points.astype(np.float64)
    distances = np.zeros((len(rows), len(points)))
    for j in range(rows.shape[1]):
        distances += np.square(rows[:, j, None] - points[None, :, j])
    return np.stack([distances[:, sample].argmin(axis=1) for sample in samples], axis=1)


def test_axes_do_not_change_cells():
    X = make_points("tied", 2000, 100)
    samples = (
        np.random.default_rng(1).permuted(np.tile(np.arange(2000, dtype=np.int32), (8, 1)), axis=1)[:, :300].copy()
    )
    found = []
    for n_axes in (0, 1, 16, 17, 60, 100):
        axes = np.linalg.qr(np.random.default_rng(n_axes).normal(size=(100, n_axes)))[0]
        cells = np.empty((500, 8), dtype=np.uint16)
        _core.VoronoiMap(X, samples, [300], lambda axes=axes: np.ascontiguousarray(axes)).apply(X[:500], [cells], 2)
        found.append(cells)
    for cells in found[1:]:
        np.testing.assert_array_equal(cells, found[0])


def test_axes_that_are_not_orthonormal_are_refused():
    samples = np.zeros((1, 1), dtype=np.int32)
    for axes in (np.ones((3, 2)), np.full((3, 1), np.nan), np.eye(3, 4), 2 * np.eye(3)):
        with pytest.raises(ValueError, match="axes must be orthonormal"):
            _core.VoronoiMap(np.zeros((2, 3)), samples, [1], lambda axes=axes: axes)


def test_principal_axes_are_taken_where_few_explain_most():
    rng = np.random.default_rng(0)
    few = rng.normal(size=(3000, 30)) @ rng.normal(size=(30, 200))
    assert 16 < principal_axes(few, 256).shape[1] <= 30
    assert principal_axes(few, 8).shape == (200, 16)
    assert principal_axes(rng.normal(size=(3000, 200)), 256).shape == (200, 16)
    assert principal_axes(rng.normal(size=(3000, 5)), 256).shape == (5, 0)
    assert principal_axes(np.zeros((3000, 200)), 256).shape == (200, 0)
    assert principal_axes(1e300 * rng.normal(size=(3000, 200)), 256).shape == (200, 0)
