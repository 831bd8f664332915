"""Check the properties of the Isolation Kernel: it adapts to density, falls with distance, and has known contours."""

from __future__ import annotations

import functools
import itertools

import numpy as np
import pytest

from isokern import IsolationKernel

CENTRE = np.array([0.5, 0.5])
AXES = np.array([[1, 0], [-1, 0], [0, 1], [0, -1]])
DIAGONALS = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]])
METHODS = {
    "tree": {"partitioning": "tree"},
    "tree of log2 depth": {"partitioning": "tree", "max_depth": "log2"},
    "voronoi": {"partitioning": "voronoi"},
}
TREES = ["tree", "tree of log2 depth"]


@functools.cache
def uniform_kernel(method):
    X = np.random.default_rng(0).random((20_000, 2))
    return IsolationKernel(n_partitionings=2000, n_cells=256, random_state=0, **METHODS[method]).fit(X)


def similarity_to_centre(method, points):
    return uniform_kernel(method).similarity(points, CENTRE[None])[:, 0]


@pytest.mark.parametrize("method", METHODS)
def test_points_at_the_same_distance_are_more_similar_where_data_are_sparse(method):
    rng = np.random.default_rng(0)
    dense, sparse = rng.random((1000, 2)), 10 + 5 * rng.random((1000, 2))
    kernel = IsolationKernel(n_partitionings=500, n_cells=64, random_state=0, **METHODS[method])
    kernel.fit(np.concatenate([dense, sparse]))

    def similarity_at(centres):
        return np.mean([kernel.similarity(x[None], x[None] + [0.1, 0.0]) for x in centres])

    inner = 0.2 + 0.6 * rng.random((20, 2))
    assert similarity_at(10 + 5 * inner) > similarity_at(inner) + 0.2


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("direction", [*AXES, *DIAGONALS], ids=str)
def test_similarity_falls_with_distance(direction, method):
    steps = np.array([0.0, 0.005, 0.01, 0.02, 0.04])
    similarities = similarity_to_centre(method, CENTRE + steps[:, None] * direction)
    assert (np.diff(similarities) < 0).all()


@pytest.mark.parametrize(
    ("method", "distance"), [*itertools.product(TREES, [0.05, 0.1, 0.2]), ("voronoi", 0.05), ("voronoi", 0.1)]
)
def test_contours_are_diamonds_for_trees_and_circles_for_voronoi_cells(method, distance):
    on_axes = similarity_to_centre(method, CENTRE + distance * AXES).mean()
    on_diamond = similarity_to_centre(method, CENTRE + distance / 2 * DIAGONALS).mean()
    on_circle = similarity_to_centre(method, CENTRE + distance / np.sqrt(2) * DIAGONALS).mean()
    is_diamond = abs(on_axes - on_diamond) < abs(on_axes - on_circle)
    assert is_diamond == (method in TREES)


def best_lambda(method):
    """Return the lambda of the Laplacian kernel exp(-lambda |x - y|_1) closest to this one, and the RMS error."""
    ticks = np.linspace(0.02, 0.98, 49)
    points = np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2)
    similarities = similarity_to_centre(method, points)
    distances = np.abs(points - CENTRE).sum(axis=1)
    lambdas = np.arange(0.5, 60.0, 0.05)
    errors = [np.sqrt(np.mean((np.exp(-value * distances) - similarities) ** 2)) for value in lambdas]
    return lambdas[np.argmin(errors)], min(errors)


def test_on_uniform_data_a_laplacian_kernel_approximates_that_of_trees():
    (tree, tree_error), (log2, log2_error) = (best_lambda(method) for method in TREES)
    assert max(tree_error, log2_error) < 0.05
    assert tree > log2  # trees that isolate every point are sharper
    paper = np.log(256) / 2
    assert 0.5 < log2 / paper < tree / paper < 20


@pytest.mark.parametrize("partitioning", ["tree", "voronoi"])
def test_more_cells_make_the_kernel_sharper(partitioning):
    X = np.random.default_rng(0).random((5000, 2))
    means = [
        IsolationKernel(partitioning, 200, n_cells, random_state=0).fit(X).similarity(X[:100]).mean()
        for n_cells in (4, 16, 64, 256)
    ]
    assert (np.diff(means) < 0).all()


def test_noise_falls_with_the_square_root_of_the_number_of_partitionings():
    X = np.random.default_rng(0).random((2000, 2))

    def spread(n_partitionings):
        kernels = (IsolationKernel("tree", n_partitionings, 16, random_state=seed).fit(X) for seed in range(40))
        return np.std([kernel.similarity(X[:30]) for kernel in kernels], axis=0).mean()

    assert spread(25) / spread(400) == pytest.approx(4, rel=0.15)
