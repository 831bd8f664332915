"""Check isolation trees of rows with missing values and categories against the NumPy reference."""

from __future__ import annotations

import numpy as np
import pytest

from isokern import _core
from isokern.partitionings import IsolationTrees
from reference import tree_cells

SEED = 12345


def make_rows(n, d, categorical, missing, dtype=np.float64):
    """Return rows with ties, columns of categories, and a share of missing values."""
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(n, d)), 1)
    for column in categorical:
        X[:, column] = rng.choice(rng.integers(1, 2**32, size=5), size=n)
    X[rng.random(X.shape) < missing] = np.nan
    X[n // 2] = np.nan
    X[n // 3] = X[n // 4]
    return X.astype(dtype)


def cells_of(X, D, n_cells, categorical, max_depth=None, t=7):
    samples = _core.draw_samples(len(D), t, n_cells, SEED).reshape(t, n_cells)
    trees = IsolationTrees.learn(D, samples, SEED, 2, max_depth=max_depth, categorical=categorical)
    cells = np.empty((len(X), t), np.uint16)
    trees.apply(X, cells, 2)
    return cells


@pytest.mark.parametrize("max_depth", [None, 4])
@pytest.mark.parametrize("missing", [0.0, 0.1, 0.6])
@pytest.mark.parametrize("categorical", [(), (0,), (1, 3), (0, 1, 2, 3)])
def test_cells_equal_the_reference(categorical, missing, max_depth):
    D = make_rows(150, 4, categorical, missing)
    X = make_rows(100, 4, categorical, 0.3)
    X[:, categorical] = np.where(np.random.default_rng(1).random((100, len(categorical))) < 0.2, 77, X[:, categorical])
    found = cells_of(X, D, 64, categorical, max_depth)
    np.testing.assert_array_equal(found, tree_cells(X, D, 7, 64, SEED, max_depth, categorical))


@pytest.mark.parametrize("d", [3, 4500])
def test_float32_rows_and_many_columns_equal_the_reference(d):
    D, X = make_rows(60, d, (), 0.2, np.float32), make_rows(40, d, (), 0.2, np.float32)
    np.testing.assert_array_equal(cells_of(X, D, 32, ()), tree_cells(X, D, 7, 32, SEED))


def test_categories_of_many_columns_equal_the_reference():
    D, X = make_rows(60, 4200, (0, 4100), 0.2), make_rows(40, 4200, (0, 4100), 0.2)
    np.testing.assert_array_equal(cells_of(X, D, 32, (0, 4100)), tree_cells(X, D, 7, 32, SEED, None, (0, 4100)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("missing", [0.0, 0.1])
@pytest.mark.parametrize("categorical", [(), (0, 2)])
def test_many_rows_equal_the_reference(categorical, missing, dtype):
    D, X = (make_rows(n, 4, categorical, missing, dtype) for n in (300, 1027))
    X[:5, 1], X[5:300, 3] = -0.0, D[:295, 3]
    np.testing.assert_array_equal(
        cells_of(X, D, 64, categorical, t=9), tree_cells(X, D, 9, 64, SEED, None, categorical)
    )


@pytest.mark.parametrize("spread", [1.0, 1e-6])  # around 100, where float32 numbers are 1e-5 apart
@pytest.mark.parametrize("missing", [0.0, 0.1])
@pytest.mark.parametrize("categorical", [(), (0, 1, 2, 3)])
def test_many_rows_fall_into_the_cells_of_large_trees_that_few_rows_fall_into(categorical, missing, spread):
    X = make_rows(6000, 4, categorical, missing)
    X[:, 1] = X[:, 1] if 1 in categorical else 100 + spread * np.random.default_rng(1).normal(size=6000)
    few = [cells_of(X[begin : begin + 60], X, 5000, categorical, t=9) for begin in range(0, 6000, 60)]
    np.testing.assert_array_equal(cells_of(X, X, 5000, categorical, t=9), np.concatenate(few))


def test_missing_values_split_from_a_constant_column():
    D = np.array([[1.0], [np.nan], [1.0], [np.nan]])
    cells = cells_of(D, D, 4, ())
    assert (cells[0] == cells[2]).all()
    assert (cells[1] == cells[3]).all()
    assert (cells[0] != cells[1]).all()
