"""The solver of IKSVC: the core equals its NumPy twin, the twin's optimum is one, and LIBLINEAR finds the same."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.svm import LinearSVC

import reference
from isokern import IKSVC, IsolationKernel, _core
from learning import make_kernel, make_rows, make_stream

PROBLEMS = {
    "squared hinge": {"is_squared": True, "intercept": 1.0},
    "squared hinge, no intercept": {"is_squared": True, "intercept": 0.0},
    "hinge": {"is_squared": False, "intercept": 1.0},
    "hinge, no intercept": {"is_squared": False, "intercept": 0.0},
    "hinge, a scaled intercept": {"is_squared": False, "intercept": 9.0},
}
every_problem = pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)


def make_cells(n=60, t=7, n_cells=5, dtype=np.uint8, seed=0):
    """Return cells, the starts of partitionings and noisy labels -1 and +1."""
    rng = np.random.default_rng(seed)
    cells = rng.integers(n_cells, size=(n, t)).astype(dtype)
    return cells, np.arange(t + 1) * n_cells, np.where(cells[:, 0] + rng.normal(size=n) > n_cells / 2 - 0.5, 1, -1)


def solve(cells, starts, y, weights=None, *, cost=1.0, tolerance=1e-3, max_iter=500, seed=5, threads=1, **problem):
    """Return what the core gives for one machine: weights, intercept, number of passes."""
    rule = _core.SvmRule(problem["is_squared"], cost, problem["intercept"], tolerance, max_iter, seed)
    targets = np.where(y > 0, 0, -1).astype(np.int32)
    w, b, n_iter = _core.solve_svm(cells, starts, targets, weights, 1, rule, threads)
    return w, b[0], n_iter[0]


def twin(cells, starts, y, weights=None, *, cost=1.0, tolerance=1e-3, max_iter=500, seed=5, **problem):
    costs = cost * (np.ones(len(y)) if weights is None else weights)
    return reference.solve_svm(cells, starts, y, costs, tolerance=tolerance, max_iter=max_iter, seed=seed, **problem)


def scores(cells, starts, w, b):
    return w[starts[:-1] + cells].mean(axis=1) + b


def primal(cells, starts, y, costs, w, b, problem):
    """Return the objective that is minimised."""
    losses = np.maximum(0, 1 - y * scores(cells, starts, w, b)) ** (2 if problem["is_squared"] else 1)
    size = w @ w / cells.shape[1] + (b**2 / problem["intercept"] if problem["intercept"] else 0.0)
    return size / 2 + costs @ losses


def dual(cells, y, costs, alpha, problem):
    """Return its dual, from the kernel's matrix."""
    K = (cells[:, None, :] == cells[None, :, :]).mean(axis=2) + problem["intercept"]
    signed = alpha * y
    diagonal = alpha**2 @ (0.5 / costs) if problem["is_squared"] else 0.0
    return alpha.sum() - (signed @ K @ signed + diagonal) / 2


@every_problem
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32])
def test_the_core_equals_its_twin(dtype, problem):
    data = make_cells(dtype=dtype)
    w, b, _, n_iter = twin(*data, **problem)
    actual = solve(*data, **problem)
    assert np.array_equal(actual[0], w)
    assert actual[1:] == (b, n_iter)


@every_problem
@pytest.mark.parametrize("cost", [0.01, 100.0])
def test_the_core_equals_its_twin_for_weighted_rows(cost, problem):
    data, weights = make_cells(), np.random.default_rng(1).uniform(0, 3, 60) * (np.arange(60) % 7 > 0)
    w, b, _, n_iter = twin(*data, weights, cost=cost, **problem)
    actual = solve(*data, weights, cost=cost, **problem)
    assert np.array_equal(actual[0], w)
    assert actual[1:] == (b, n_iter)


@every_problem
def test_the_core_equals_its_twin_for_partitionings_of_different_sizes(problem):
    cells, _, y = make_cells(n_cells=4)
    starts = np.array([0, 4, 9, 13, 17, 30, 34, 38])
    w, b, _, n_iter = twin(cells, starts, y, **problem)
    actual = solve(cells, starts, y, **problem)
    assert np.array_equal(actual[0], w)
    assert actual[1:] == (b, n_iter)


@every_problem
def test_the_duality_gap_closes(problem):
    cells, starts, y = make_cells(150)
    costs = np.ones(150)
    w, b, alpha, n_iter = twin(cells, starts, y, tolerance=1e-4, max_iter=5000, **problem)
    gap = primal(cells, starts, y, costs, w, b, problem) - dual(cells, y, costs, alpha, problem)
    assert n_iter < 5000
    assert -1e-9 < gap < 1e-3


@every_problem
def test_weights_and_intercept_are_those_of_the_dual_s_solution(problem):
    cells, starts, y = make_cells()
    w, b, alpha, _ = twin(cells, starts, y, **problem)
    expected = np.zeros_like(w)
    np.add.at(expected, starts[:-1] + cells, (alpha * y)[:, None])
    np.testing.assert_allclose(w, expected, atol=1e-12)
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
@pytest.mark.parametrize("options", MACHINES.values(), ids=MACHINES)
def test_scores_are_those_of_liblinear_on_the_map(options, n_classes):
    X, y, weights = make_stream(150, n_classes)
    kernel = make_kernel(X, n_partitionings=40)
    options = {"tol": 1e-6, "max_iter": 100_000, "random_state": 0} | options
    model = IKSVC(kernel=kernel, **options).fit(X, y, weights)
    peer = LinearSVC(dual=True, **options).fit(kernel.transform(X), y, weights)
    np.testing.assert_allclose(model.decision_function(X), peer.decision_function(kernel.transform(X)), atol=2e-4)
    np.testing.assert_allclose(model.coef_, peer.coef_, atol=1e-4)
    np.testing.assert_allclose(model.intercept_, peer.intercept_, atol=1e-4)


def objective(model, X, y, C):
    """Return what a linear machine with hinge loss minimises, on the map."""
    margins = (2 * y - 1) * (X @ model.coef_[0] + model.intercept_[0])
    return (model.coef_[0] @ model.coef_[0] + model.intercept_[0] ** 2) / 2 + C * np.maximum(0, 1 - margins).sum()


@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
def test_the_objective_is_liblinear_s(C):
    X, y = make_rows(400)
    kernel = IsolationKernel(n_partitionings=30, n_cells=16, random_state=0).fit(X)
    features = kernel.transform(X)
    options = {"C": C, "loss": "hinge", "tol": 1e-3, "max_iter": 100_000, "random_state": 0}
    ours = objective(IKSVC(kernel=kernel, **options).fit(X, y), features, y, C)
    theirs = objective(LinearSVC(dual=True, **options).fit(features, y), features, y, C)
    assert ours == pytest.approx(theirs, rel=1e-3)


def test_each_class_is_a_machine_of_its_own_and_threads_change_nothing():
    cells, starts, _ = make_cells(90, dtype=np.uint16)
    classes = np.random.default_rng(2).integers(12, size=90).astype(np.int32)
    rule = _core.SvmRule(True, 1.0, 1.0, 1e-3, 500, 5)
    one, many = (_core.solve_svm(cells, starts, classes, None, 12, rule, threads) for threads in (1, 4))
    assert all(np.array_equal(a, b) for a, b in zip(one, many, strict=True))
    y = np.where(classes == 11, 1, -1)
    w, b, _, n_iter = twin(cells, starts, y, **PROBLEMS["squared hinge"], column=11)
    assert np.array_equal(one[0].reshape(12, -1)[11], w)
    assert (one[1][11], one[2][11]) == (b, n_iter)


def test_a_seed_is_an_order_of_rows():
    data = make_cells()
    first, again, other = (solve(*data, **PROBLEMS["hinge"], seed=seed, tolerance=0.1)[0] for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_two_rows_of_opposite_classes_in_other_cells_get_opposite_scores():
    cells, starts = np.array([[0], [1]], dtype=np.uint8), np.array([0, 2])
    w, b, _ = solve(cells, starts, np.array([-1, 1]), tolerance=1e-9, **PROBLEMS["hinge, no intercept"])
    assert w.tolist() == [-1.0, 1.0]
    assert b == 0.0


def test_a_row_without_weight_is_as_if_it_were_not_there():
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


@pytest.mark.parametrize("changes", BAD_ARGUMENTS.values(), ids=BAD_ARGUMENTS)
def test_arrays_that_do_not_fit_are_refused(changes):
    cells, starts, y = make_cells()
    targets, rule = (y < 0).astype(np.int32), _core.SvmRule(True, 1.0, 1.0, 1e-3, 10, 0)
    arguments = {"cells": cells, "starts": starts, "targets": targets, "row_weights": None, "n_columns": 1}
    with pytest.raises(ValueError, match=r"must"):
        _core.solve_svm(**arguments | changes, rule=rule, threads=1)
