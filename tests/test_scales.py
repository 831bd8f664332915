"""Test the cells and the kernel at several scales against the NumPy twin."""

from __future__ import annotations

import numpy as np
import pytest

import reference
import tables
from isokern import IsolationKernel, _core
from isokern.partitionings import most_scales

T, N_CELLS, N_SCALES = 4, 48, 3
TREES = [method for method in tables.METHODS if method != "voronoi"]


def make_kernel(method, **options):
    parameters = {"n_partitionings": T, "n_cells": N_CELLS, "n_scales": "auto", "random_state": tables.SEED}
    return IsolationKernel(**parameters | tables.METHODS[method] | options)


def expected_cells(kernel, X, categorical=()):
    """Return the cells of rows and the number of cells, by walking the arrays of a kernel's trees."""
    trees = kernel.map_.partitionings
    return reference.tree_scales(trees.arrays, np.asarray(X), trees.n_cells, kernel.n_scales_, categorical)


# The number of scales


@pytest.mark.parametrize(
    ("n_cells", "n_scales"),
    [(1, 1), (2, 1), (4, 1), (5, 2), (16, 2), (17, 3), (64, 3), (65, 4), (4**7, 7)],
)
def test_there_are_at_most_as_many_scales_as_the_logarithm_of_the_cells_to_base_four(n_cells, n_scales):
    assert most_scales(n_cells) == n_scales


@pytest.mark.parametrize(("given", "n_scales"), [(1, 1), (2, 2), (3, 3), (4, 3), (1000, 3), ("auto", 3)])
@pytest.mark.parametrize("method", tables.METHODS)
def test_a_larger_number_of_scales_is_limited(method, given, n_scales):
    X = np.random.default_rng(0).normal(size=(50, 2))
    assert make_kernel(method, n_scales=given).fit(X).n_scales_ == n_scales


@pytest.mark.parametrize("n_scales", [0, -1, 1.5, True, None, "all"])
def test_a_bad_number_of_scales_is_an_error(n_scales):
    with pytest.raises(ValueError, match='n_scales must be "auto" or an integer of at least 1; got '):
        IsolationKernel(n_scales=n_scales).fit(np.eye(3))


# Trees


@pytest.mark.parametrize("method", TREES)
@pytest.mark.parametrize("name", tables.TABLES)
def test_nodes_hold_the_sampled_points_that_reach_them(name, method):
    D, _ = tables.table(name)
    kernel = make_kernel(method).fit(D)
    arrays, samples = kernel.map_.partitionings.arrays, reference.draw_samples(50, T, N_CELLS, reference.seed_of(3))
    for i, sample in enumerate(samples):
        tree = {key: values[slice(*arrays["starts"][i : i + 2])] for key, values in arrays.items() if key != "starts"}
        visited = np.concatenate([reference.tree_path(tree, row) for row in D[sample]])
        np.testing.assert_array_equal(np.bincount(visited), tree["n_points"])


@pytest.mark.parametrize("n_scales", [2, N_SCALES])
@pytest.mark.parametrize("form", tables.FORMS)
@pytest.mark.parametrize("method", TREES)
@pytest.mark.parametrize("name", tables.TABLES)
def test_cells_of_trees_equal_the_numpy_twin(name, method, form, n_scales):
    D, X = tables.table(name)
    kernel = make_kernel(method, n_scales=n_scales).fit(tables.FORMS[form](D))
    expected, sizes = expected_cells(kernel, X)
    np.testing.assert_array_equal(kernel.apply(tables.FORMS[form](X)), expected)
    np.testing.assert_array_equal(np.diff(kernel.map_.starts).reshape(sizes.shape), sizes)


@pytest.mark.parametrize("n_cells", [2, 17, 256, 257])
def test_cells_of_trees_of_any_size_equal_the_numpy_twin(n_cells):
    X = np.random.default_rng(0).normal(size=(300, 3)).round(1)
    kernel = make_kernel("tree", n_cells=n_cells).fit(X)
    np.testing.assert_array_equal(kernel.apply(X[:100]), expected_cells(kernel, X[:100])[0])


def test_cells_of_single_rows_and_of_any_number_of_threads_are_the_same():
    X = np.random.default_rng(0).normal(size=(700, 3))
    kernel = make_kernel("tree", n_cells=300, n_jobs=1).fit(X)
    cells = kernel.apply(X)
    np.testing.assert_array_equal(kernel.set_params(n_jobs=3).apply(X), cells)
    np.testing.assert_array_equal(np.concatenate([kernel.apply(X[k : k + 1]) for k in range(20)]), cells[:20])
    assert kernel.apply(X[:1]).shape == (1, T * 5)


@pytest.mark.parametrize("max_depth", [None, 3])
def test_cells_of_missing_values_and_categories_equal_the_numpy_twin(max_depth):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4)).round(1)
    X[:, [0, 2]] = rng.integers(0, 9, size=(200, 2))
    X[rng.random(X.shape) < 0.2] = np.nan
    kernel = make_kernel("tree", n_cells=100, max_depth=max_depth, categorical_features=[0, 2]).fit(X[:150])
    codes = X.copy()
    for column in (0, 2):
        names = [None if np.isnan(value) else str(int(value)) for value in X[:, column]]
        codes[:, column] = _core.category_codes(names, lambda name: name)
    np.testing.assert_array_equal(kernel.apply(X), expected_cells(kernel, codes, (0, 2))[0])


# Voronoi cells


@pytest.mark.parametrize("n_scales", [2, N_SCALES])
@pytest.mark.parametrize("form", tables.FORMS)
@pytest.mark.parametrize("name", tables.TABLES)
def test_voronoi_cells_equal_the_numpy_twin(name, form, n_scales):
    D, X = tables.table(name)
    kernel = make_kernel("voronoi", n_scales=n_scales).fit(tables.FORMS[form](D))
    expected = reference.voronoi_scales(X, D, T, N_CELLS, n_scales, reference.seed_of(tables.SEED))
    np.testing.assert_array_equal(kernel.apply(tables.FORMS[form](X)), expected)
    assert list(np.diff(kernel.map_.starts)) == T * [3, 12, 48][-n_scales:]


# All partitionings


@pytest.mark.parametrize("method", tables.METHODS)
def test_the_finest_scale_has_the_cells_of_a_kernel_with_one(method):
    X = np.random.default_rng(0).normal(size=(90, 3)).round(1)
    kernel = make_kernel(method).fit(X)
    plain = make_kernel(method, n_scales=1).fit(X)
    assert kernel.n_cells_ == plain.n_cells_ == N_CELLS
    np.testing.assert_array_equal(kernel.apply(X)[:, N_SCALES - 1 :: N_SCALES], plain.apply(X))


def test_codes_of_trees_are_leaves_and_expand_to_cells():
    X = np.random.default_rng(0).normal(size=(90, 3))
    kernel = make_kernel("tree").fit(X)
    codes = kernel.map_.codes(X, 1)
    np.testing.assert_array_equal(codes, make_kernel("tree", n_scales=1).fit(X).apply(X))
    np.testing.assert_array_equal(kernel.map_.expand(codes, 2), kernel.apply(X))


def test_scale_weights_grow_from_coarse_to_fine_and_their_squares_sum_to_one():
    weights = make_kernel("tree").fit(np.random.default_rng(0).normal(size=(90, 3))).map_.scale_weights
    np.testing.assert_allclose(weights[1:] / weights[:-1], 1.25)
    assert np.sum(weights**2) == pytest.approx(1)
