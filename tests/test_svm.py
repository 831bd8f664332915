"""Check the solver of IKSVC: it equals the NumPy reference, reaches the optimum, and agrees with LIBLINEAR."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.svm import LinearSVC

import reference
from isokern import IKSVC, _core
from isokern.rows import CsrRows
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


def solve(
    cells,
    starts,
    y,
    weights=None,
    *,
    cost=1.0,
    tolerance=1e-3,
    gain=0.0,
    max_iter=500,
    seed=5,
    shares=(1.0,),
    linear=None,
    which=None,
    start=None,
    dtype=np.float64,
    **problem,
):
    """Return the core's weights, intercept, dual variables and number of passes for one problem."""
    rule = _core.SvmRule(problem["is_squared"], cost, problem["intercept"], tolerance, gain, max_iter, seed)
    targets, n_weights = (
        np.where(y > 0, 0, -1).astype(np.int32),
        starts[-1] + (0 if linear is None else linear.shape[1]),
    )
    w, b, alpha = (np.zeros(n_weights), 0.0, np.zeros(len(y))) if start is None else start
    w, b, alpha = w[None].astype(dtype), np.array([[b]]), alpha[None].copy()
    which = np.asarray(range(len(y)) if which is None else which, dtype=np.int32)
    known = (cells, starts) if cells.shape[1] else (None, None)
    rows = (*known, np.array(shares, dtype=np.float32), linear, which)
    n_iter = _core.solve_svm(*rows, targets, weights, rule, w, b, alpha, 1)
    return w[0], b[0, 0], alpha[0], n_iter[0]


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
    assert np.array_equal(actual[0], reference[0])
    assert np.array_equal(actual[2], reference[2])
    assert (actual[1], actual[3]) == (reference[1], reference[3])


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
    options = {"C": 1.0, "tol": 1e-6, "max_iter": 100_000, "random_state": 0} | options
    model = IKSVC(kernel=kernel, linear=False, **options).fit(X, y, weights)
    peer = LinearSVC(dual=True, **options).fit(kernel.transform(X), y, weights)
    np.testing.assert_allclose(model.decision_function(X), peer.decision_function(kernel.transform(X)), atol=2e-4)
    np.testing.assert_allclose(model.cell_weights_, peer.coef_, atol=1e-4)
    np.testing.assert_allclose(model.intercept_, peer.intercept_, atol=1e-4)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_each_class_is_an_independent_problem_and_threads_change_nothing(dtype):
    cells, starts, _ = make_cells(90, dtype=np.uint16)
    classes = np.random.default_rng(2).integers(12, size=90).astype(np.int32)
    rule = _core.SvmRule(True, 1.0, 1.0, 1e-3, 0.0, 500, 5)
    everything, share, solutions = np.arange(90, dtype=np.int32), np.ones(1, dtype=np.float32), []
    for threads in (1, 4):
        solution = np.zeros((12, starts[-1]), dtype=dtype), np.zeros((1, 12)), np.zeros((12, 90))
        rows = (cells, starts, share, None, everything, classes, None)
        solutions.append((*solution, _core.solve_svm(*rows, rule, *solution, threads)))
    one, many = solutions
    assert all(np.array_equal(a, b) for a, b in zip(one, many, strict=True))
    y = np.where(classes == 11, 1, -1)
    last = one[0][11], one[1][0, 11], one[2][11], one[3][11]
    assert_equal(last, expected(cells, starts, y, **PROBLEMS["squared hinge"], column=11, dtype=dtype))


def test_the_seed_decides_the_order_of_rows():
    data = make_cells()
    first, again, other = (solve(*data, **PROBLEMS["hinge"], seed=seed, tolerance=0.1)[0] for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_two_rows_of_opposite_classes_in_different_cells_get_opposite_scores():
    cells, starts = np.array([[0], [1]], dtype=np.uint8), np.array([0, 2])
    w, b, _, _ = solve(cells, starts, np.array([-1, 1]), tolerance=1e-9, **PROBLEMS["hinge, no intercept"])
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
    w, b, _, _ = solve(cells, starts, y, np.where(np.arange(60) % 2, weight, 1.0), max_iter=50, **problem)
    assert np.isfinite(w).all()
    assert np.isfinite(b)


# Several scales, a linear term, and solutions to start from


def make_scales(n=60, t=5, sizes=(3, 8), seed=0):
    """Return cells of nested scales, the starts of the partitionings and scales, and noisy labels."""
    rng = np.random.default_rng(seed)
    fine = rng.integers(sizes[1], size=(n, t))
    cells = np.stack([fine % sizes[0], fine], axis=2).reshape(n, -1).astype(np.uint16)
    starts = np.concatenate([[0], np.cumsum(sizes * t)])
    return cells, starts, np.where(fine[:, 0] + rng.normal(size=n) > sizes[1] / 2 - 0.5, 1, -1)


def make_linear(n=60, d=6, seed=1):
    values = np.random.default_rng(seed).normal(size=(n, d)) / np.sqrt(d)
    return np.where(np.abs(values) < 0.2, 0.0, values).astype(np.float32)


def no_cells():
    return np.empty((60, 0), dtype=np.uint8), np.array([0]), make_cells()[2]


def as_csr(rows):
    """Return dense rows as the core takes sparse ones."""
    matrix = sparse.csr_array(rows)
    return CsrRows(matrix.data, matrix.indices.astype(np.int32), matrix.indptr.astype(np.int64), rows.shape[1])


SHARES = (0.6, 0.8)
KINDS = {
    "two scales": (make_scales(), {"shares": SHARES}),
    "two scales and a linear term": (make_scales(), {"shares": SHARES, "linear": make_linear()}),
    "one scale and a linear term": (make_cells(), {"linear": make_linear()}),
    "a linear term alone": (no_cells(), {"linear": make_linear()}),
}
every_kind = every("kind", KINDS)


@every_problem
@every_kind
def test_machines_on_scales_and_linear_terms_equal_the_reference(kind, problem):
    data, features = kind
    assert_equal(solve(*data, **features, **problem), expected(*data, **features, **problem))


@every_problem
@every_kind
def test_machines_of_single_precision_weights_equal_the_reference(kind, problem):
    data, features = kind
    single = {"dtype": np.float32, **features, **problem}
    actual = solve(*data, **single)
    assert actual[0].dtype == np.float32
    assert_equal(actual, expected(*data, **single))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_prefetching_of_weights_beyond_the_cache_changes_nothing(dtype):
    """More than 1 MB of weights: those of the next row are prefetched, also where rows are left out."""
    cells, starts, y = make_cells(300, n_cells=60_000, dtype=np.uint16)
    large = {"dtype": dtype, "cost": 100.0, **PROBLEMS["hinge"]}
    assert starts[-1] * np.dtype(dtype).itemsize > 2**20
    assert_equal(solve(cells, starts, y, **large), expected(cells, starts, y, **large))


def test_the_features_of_scales_and_linear_terms_are_those_of_their_kernel():
    data, features = KINDS["two scales and a linear term"]
    cells, linear, t = data[0].reshape(60, -1, 2), features["linear"].astype(float), 5
    matches = (cells[:, None] == cells[None]).sum(axis=2) / t
    K = matches @ np.square(SHARES) + linear @ linear.T
    y = data[2]
    w, b, alpha, _ = solve(*data, **features, **PROBLEMS["hinge"], tolerance=1e-6, max_iter=100_000)
    scores = K @ (alpha * y) + b
    own = w[data[1][:-1] + data[0]].reshape(60, t, 2).sum(axis=(1, 2)) / t + linear @ w[data[1][-1] :] + b
    np.testing.assert_allclose(own, scores, atol=1e-6)


def test_sparse_linear_rows_give_the_solution_of_dense_ones():
    data, features = KINDS["two scales and a linear term"]
    tight = {"shares": SHARES, "tolerance": 1e-9, "max_iter": 100_000, **PROBLEMS["squared hinge"]}
    dense = solve(*data, linear=features["linear"], **tight)
    targets, rule = np.where(data[2] > 0, 0, -1).astype(np.int32), _core.SvmRule(True, 1.0, 1.0, 1e-9, 0.0, 100_000, 5)
    w, b = np.zeros((1, len(dense[0]))), np.zeros((1, 1))
    rows = (*data[:2], np.array(SHARES, dtype=np.float32), as_csr(features["linear"]), np.arange(60, dtype=np.int32))
    _core.solve_svm(*rows, targets, None, rule, w, b, None, 1)
    np.testing.assert_allclose(w[0], dense[0], atol=1e-7)


@every_problem
@every_kind
def test_a_solution_that_starts_from_another_equals_the_reference(kind, problem):
    data, features = kind
    first = expected(*data, **features, **problem, cost=0.1, which=range(0, 60, 2))
    second = {"cost": 1.0, "which": range(50), "start": first[:3]} | features | problem
    assert_equal(solve(*data, **second), expected(*data, **second))


def test_any_start_leads_to_the_same_optimum_in_fewer_passes():
    data, problem = make_cells(150), PROBLEMS["squared hinge"] | {"tolerance": 1e-8, "max_iter": 100_000}
    first = solve(*data, **problem, cost=0.9, which=range(140))
    cold, warm = (solve(*data, **problem, start=start) for start in (None, first[:3]))
    np.testing.assert_allclose(warm[0], cold[0], atol=1e-6)
    assert warm[3] < cold[3]


@every_problem
@every_kind
def test_a_small_gain_stops_as_in_the_reference(kind, problem):
    data, features = kind
    stop = {"tolerance": 0.0, "gain": 1e-2}
    actual = solve(*data, **features, **problem, **stop)
    assert_equal(actual, expected(*data, **features, **problem, **stop))
    assert actual[3] < 500


def test_the_gain_is_that_of_the_dual_objective():
    cells, starts, y = make_cells(150)
    problem, costs = PROBLEMS["squared hinge"], np.ones(150)
    n_iter = solve(cells, starts, y, **problem, tolerance=0.0, gain=1e-3)[3]
    before, last = (
        dual(cells, y, costs, solve(cells, starts, y, **problem, tolerance=0.0, max_iter=n)[2], problem)
        for n in (n_iter - 1, n_iter)
    )
    assert 0.0 < last - before < 1.1e-3 * last


def test_rows_that_take_no_part_change_nothing():
    cells, starts, y = make_cells()
    few = solve(cells[:40], starts, y[:40], **PROBLEMS["hinge"])
    some = solve(cells, starts, y, **PROBLEMS["hinge"], which=range(40))
    assert np.array_equal(some[0], few[0])
    assert not some[2][40:].any()


BAD_ARGUMENTS = {
    "too few targets": {"targets": np.zeros(3, dtype=np.int32)},
    "too few weights": {"row_weights": np.ones(3)},
    "starts that descend": {"starts": np.array([0, 9, 5, 15, 20, 25, 30, 35])},
    "cells without starts": {"starts": None},
    "neither cells nor linear rows": {"cells": None, "starts": None},
    "shares of more scales than cells": {"shares": np.ones(2, dtype=np.float32)},
    "no shares": {"shares": np.ones(0, dtype=np.float32)},
    "rows that do not exist": {"which": np.array([60], dtype=np.int32)},
    "negative rows": {"which": np.array([-1], dtype=np.int32)},
    "linear rows of others": {"linear": np.zeros((3, 2), dtype=np.float32)},
    "too few weights of cells": {"weights": np.zeros((1, 34))},
    "no columns of scores": {"weights": np.zeros((0, 35)), "intercepts": np.zeros((1, 0))},
    "too many intercepts": {"intercepts": np.zeros((1, 2))},
    "too few dual variables": {"alpha": np.zeros((1, 59))},
}


@every("changes", BAD_ARGUMENTS)
def test_arrays_that_do_not_match_are_an_error(changes):
    cells, starts, y = make_cells()
    arguments = {
        "cells": cells,
        "starts": starts,
        "shares": np.ones(1, dtype=np.float32),
        "linear": None,
        "which": np.arange(60, dtype=np.int32),
        "targets": (y < 0).astype(np.int32),
        "row_weights": None,
        "rule": _core.SvmRule(True, 1.0, 1.0, 1e-3, 0.0, 10, 0),
        "weights": np.zeros((1, 35)),
        "intercepts": np.zeros((1, 1)),
        "alpha": None,
    }
    with pytest.raises(ValueError, match=r"must"):
        _core.solve_svm(**arguments | changes, threads=1)
