"""Check the solver of IKSVC: it equals the NumPy reference, reaches the optimum, and agrees with LIBLINEAR."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.svm import LinearSVC

import reference
from isokern import IKSVC, _core
from learning import every, make_kernel, make_stream

PROBLEMS = {
    "squared hinge": {"is_squared": True, "intercept": 1.0},
    "squared hinge, no intercept": {"is_squared": True, "intercept": 0.0},
    "hinge": {"is_squared": False, "intercept": 1.0},
    "hinge, no intercept": {"is_squared": False, "intercept": 0.0},
    "hinge, a scaled intercept": {"is_squared": False, "intercept": 9.0},
}
every_problem = every("problem", PROBLEMS)


def make_cells(n=60, t=7, n_cells=5, dtype=np.uint8, seed=0):
    """Return cells, the starts of partitionings and noisy labels -1 and +1."""
    rng = np.random.default_rng(seed)
    cells = rng.integers(n_cells, size=(n, t)).astype(dtype)
    return cells, np.arange(t + 1) * n_cells, np.where(cells[:, 0] + rng.normal(size=n) > n_cells / 2 - 0.5, 1, -1)


def solve(cells, starts, y, weights=None, *, cost=1.0, tolerance=1e-3, max_iter=500, seed=5, threads=1, **problem):
    """Return the core's weights, intercept and number of passes for one problem."""
    rule = _core.SvmRule(problem["is_squared"], cost, problem["intercept"], tolerance, max_iter, seed)
    targets = np.where(y > 0, 0, -1).astype(np.int32)
    w, b, n_iter = _core.solve_svm(cells, starts, targets, weights, 1, rule, threads)
    return w, b[0], n_iter[0]


def expected(cells, starts, y, weights=None, *, cost=1.0, tolerance=1e-3, max_iter=500, seed=5, **problem):
    """Return the weights, intercept, dual variables and number of passes of the reference."""
    costs = cost * (np.ones(len(y)) if weights is None else weights)
    return reference.solve_svm(cells, starts, y, costs, tolerance=tolerance, max_iter=max_iter, seed=seed, **problem)


def scores(cells, starts, w, b):
    return w[starts[:-1] + cells].mean(axis=1) + b


def primal(cells, starts, y, costs, w, b, problem):
    """Return the primal objective."""
    losses = np.maximum(0, 1 - y * scores(cells, starts, w, b)) ** (2 if problem["is_squared"] else 1)
    size = w @ w / cells.shape[1] + (b**2 / problem["intercept"] if problem["intercept"] else 0.0)
    return size / 2 + costs @ losses


def dual(cells, y, costs, alpha, problem):
    """Return the dual objective, from the kernel matrix."""
    K = (cells[:, None, :] == cells[None, :, :]).mean(axis=2) + problem["intercept"]
    signed = alpha * y
    diagonal = alpha**2 @ (0.5 / costs) if problem["is_squared"] else 0.0
    return alpha.sum() - (signed @ K @ signed + diagonal) / 2


def assert_equal(actual, reference):
    """Check that the core's result is the reference's, bit for bit."""
    w, b, _, n_iter = reference
    assert np.array_equal(actual[0], w)
    assert actual[1:] == (b, n_iter)


@every_problem
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32])
def test_the_solver_equals_the_reference(dtype, problem):
    data = make_cells(dtype=dtype)
    assert_equal(solve(*data, **problem), expected(*data, **problem))


@every_problem
@pytest.mark.parametrize("cost", [0.01, 100.0])
def test_the_solver_equals_the_reference_for_weighted_rows(cost, problem):
    data, weights = make_cells(), np.random.default_rng(1).uniform(0, 3, 60) * (np.arange(60) % 7 > 0)
    assert_equal(solve(*data, weights, cost=cost, **problem), expected(*data, weights, cost=cost, **problem))


@every_problem
def test_the_solver_equals_the_reference_for_partitionings_of_different_sizes(problem):
    cells, _, y = make_cells(n_cells=4)
    starts = np.array([0, 4, 9, 13, 17, 30, 34, 38])
    assert_equal(solve(cells, starts, y, **problem), expected(cells, starts, y, **problem))


@every_problem
def test_the_duality_gap_closes(problem):
    cells, starts, y = make_cells(150)
    costs = np.ones(150)
    w, b, alpha, n_iter = expected(cells, starts, y, tolerance=1e-4, max_iter=5000, **problem)
    gap = primal(cells, starts, y, costs, w, b, problem) - dual(cells, y, costs, alpha, problem)
    assert n_iter < 5000
    assert -1e-9 < gap < 1e-3


@every_problem
def test_weights_and_intercept_follow_from_the_dual_variables(problem):
    cells, starts, y = make_cells()
    w, b, alpha, _ = expected(cells, starts, y, **problem)
    sums = np.zeros_like(w)
    np.add.at(sums, starts[:-1] + cells, (alpha * y)[:, None])
    np.testing.assert_allclose(w, sums, atol=1e-12)
    assert b == pytest.approx(problem["intercept"] * (alpha @ y))


MACHINES = {
    "squared hinge": {},
    "hinge": {"loss": "hinge"},
    "small C": {"C": 0.01},
    "large C": {"C": 10.0},
    "no intercept": {"fit_intercept": False},
    "hinge, no intercept": {"loss": "hinge", "fit_intercept": False},
    "a scaled intercept": {"intercept_scaling": 3.0},
}


@pytest.mark.parametrize("n_classes", [2, 4])
@every("options", MACHINES)
def test_scores_agree_with_liblinear_on_the_features(options, n_classes):
    X, y, weights = make_stream(150, n_classes)
    kernel = make_kernel(X, n_partitionings=40)
    options = {"tol": 1e-6, "max_iter": 100_000, "random_state": 0} | options
    model = IKSVC(kernel=kernel, **options).fit(X, y, weights)
    peer = LinearSVC(dual=True, **options).fit(kernel.transform(X), y, weights)
    np.testing.assert_allclose(model.decision_function(X), peer.decision_function(kernel.transform(X)), atol=2e-4)
    np.testing.assert_allclose(model.cell_weights_, peer.coef_, atol=1e-4)
    np.testing.assert_allclose(model.intercept_, peer.intercept_, atol=1e-4)


def test_each_class_is_an_independent_problem_and_threads_change_nothing():
    cells, starts, _ = make_cells(90, dtype=np.uint16)
    classes = np.random.default_rng(2).integers(12, size=90).astype(np.int32)
    rule = _core.SvmRule(True, 1.0, 1.0, 1e-3, 500, 5)
    one, many = (_core.solve_svm(cells, starts, classes, None, 12, rule, threads) for threads in (1, 4))
    assert all(np.array_equal(a, b) for a, b in zip(one, many, strict=True))
    y = np.where(classes == 11, 1, -1)
    last = one[0].reshape(12, -1)[11], one[1][11], one[2][11]
    assert_equal(last, expected(cells, starts, y, **PROBLEMS["squared hinge"], column=11))


def test_the_seed_decides_the_order_of_rows():
    data = make_cells()
    first, again, other = (solve(*data, **PROBLEMS["hinge"], seed=seed, tolerance=0.1)[0] for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_two_rows_of_opposite_classes_in_different_cells_get_opposite_scores():
    cells, starts = np.array([[0], [1]], dtype=np.uint8), np.array([0, 2])
    w, b, _ = solve(cells, starts, np.array([-1, 1]), tolerance=1e-9, **PROBLEMS["hinge, no intercept"])
    assert w.tolist() == [-1.0, 1.0]
    assert b == 0.0


def test_a_row_of_weight_zero_changes_nothing():
    cells, starts, y = make_cells()
    weights = np.where(np.arange(60) < 40, 1.0, 0.0)
    tight = {"tolerance": 1e-8, "max_iter": 10_000, **PROBLEMS["squared hinge"]}
    without, zero = solve(cells[:40], starts, y[:40], **tight), solve(cells, starts, y, weights, **tight)
    np.testing.assert_allclose(zero[0], without[0], atol=1e-6)


@pytest.mark.parametrize("weight", [1e-320, 1e-300, 1e300])
@every_problem
def test_weights_of_any_size_give_finite_scores(problem, weight):
    cells, starts, y = make_cells()
    w, b, _ = solve(cells, starts, y, np.where(np.arange(60) % 2, weight, 1.0), max_iter=50, **problem)
    assert np.isfinite(w).all()
    assert np.isfinite(b)


BAD_ARGUMENTS = {
    "too few targets": {"targets": np.zeros(3, dtype=np.int32)},
    "too few weights": {"row_weights": np.ones(3)},
    "no columns": {"n_columns": 0},
    "starts that descend": {"starts": np.array([0, 9, 5, 15, 20, 25, 30, 35])},
}


@every("changes", BAD_ARGUMENTS)
def test_arrays_that_do_not_match_are_an_error(changes):
    cells, starts, y = make_cells()
    targets, rule = (y < 0).astype(np.int32), _core.SvmRule(True, 1.0, 1.0, 1e-3, 10, 0)
    arguments = {"cells": cells, "starts": starts, "targets": targets, "row_weights": None, "n_columns": 1}
    with pytest.raises(ValueError, match=r"must"):
        _core.solve_svm(**arguments | changes, rule=rule, threads=1)
