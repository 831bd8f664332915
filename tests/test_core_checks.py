"""Check that the core rejects arrays that do not fit together, before it reads or writes out of bounds."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import sparse

from isokern import _core
from isokern.partitionings import voronoi_map
from isokern.rows import CsrRows

T, PSI = 3, 4  # partitionings, and cells of each
CELLS, STARTS = np.zeros((2, T), dtype=np.uint8), np.arange(T + 1) * PSI
TARGETS, RULE = np.zeros(2, dtype=np.int32), _core.Rule("hinge", 0.0, "constant", 1.0, 0.0, [0])


def make_trees(**changes):
    """Return one tree: a split of column 1 and two leaves."""
    arrays = {
        "split": np.array([0.5, 0.0, 0.0]),
        "column": np.array([1, 0, 0], dtype=np.int32),
        "left": np.array([1, -1, -2], dtype=np.int32),
        "missing_right": np.zeros(3, dtype=np.uint8),
        "n_points": np.array([2, 1, 1], dtype=np.int32),
        "starts": np.array([0, 3]),
        "categorical": np.empty(0, dtype=np.int32),
        "n_columns": 2,
        "n_cells": 2,
    }
    return _core.TreeMap(**arrays | changes)


def test_a_valid_tree_maps_rows():
    cells = np.empty((2, 1), dtype=np.uint8)
    make_trees().apply(np.array([[0.0, 0.4], [0.0, 0.6]]), cells, 1)
    assert cells.tolist() == [[0], [1]]


BAD_TREES = {
    "a leaf's column outside": {"column": np.array([1, 2**31 - 1, 0], dtype=np.int32)},
    "a leaf's column below 0": {"column": np.array([1, -5, 0], dtype=np.int32)},
    "a split's column outside": {"column": np.array([2, 0, 0], dtype=np.int32)},
    "the largest number as a child": {"left": np.array([2**31 - 1, -1, -2], dtype=np.int32)},
    "a child beyond the tree": {"left": np.array([2, -1, -2], dtype=np.int32)},
    "a child that is its parent": {"left": np.array([0, -1, -2], dtype=np.int32)},
    "a child of two nodes": {
        "split": np.zeros(6),
        "column": np.zeros(6, dtype=np.int32),
        "left": np.array([1, 2, 4, -1, -1, -1], dtype=np.int32),
        "starts": np.array([0, 6]),
    },
    "a cell outside": {"left": np.array([1, -1, -3], dtype=np.int32)},
    "nodes without a parent": {
        "left": np.array([-1, -2, -3], dtype=np.int32),
        "n_points": np.ones(3, dtype=np.int32),
        "n_cells": 3,
    },
    "no cells": {"n_cells": 0},
    "no columns": {"n_columns": 0},
    "starts that descend": {"starts": np.array([0, 4, 3])},
    "starts beyond the nodes": {"starts": np.array([0, 4])},
    "a tree without nodes": {"starts": np.array([0, 0, 3])},
    "too few counts of points": {"n_points": np.array([2, 1], dtype=np.int32)},
    "a node without points": {"n_points": np.array([1, 1, 0], dtype=np.int32)},
    "children with more points than their parent": {"n_points": np.array([2, 1, 2], dtype=np.int32)},
    "children whose points overflow": {"n_points": np.array([-2, 2**31 - 1, 2**31 - 1], dtype=np.int32)},
}


@pytest.mark.parametrize("changes", BAD_TREES.values(), ids=BAD_TREES)
def test_invalid_trees_are_rejected(changes):
    with pytest.raises(ValueError, match=r"tree|forest"):
        make_trees(**changes)


def apply_trees(trees, X):
    """Return the cells of rows in one tree; assert that they are the same for dense and sparse rows."""
    table = sparse.csr_array(X)
    dense, from_csr = np.empty((2, len(X), 1), dtype=np.uint8)
    trees.apply(X, dense, 1)
    trees.apply(CsrRows(table.data, table.indices, table.indptr.astype(np.int64), X.shape[1]), from_csr, 1)
    np.testing.assert_array_equal(dense, from_csr)
    return dense[:, 0]


def rows_with(values, n_columns):
    """Return rows with the given values in column 1 and zeros elsewhere."""
    X = np.zeros((len(values), n_columns))
    X[:, 1] = values
    return X


@pytest.mark.parametrize("n_columns", [100, 3000])
@pytest.mark.parametrize("split", [0.5, 0.0, -0.0, -0.5, np.inf, -np.inf, np.nan])
def test_values_below_a_split_go_left_in_dense_and_sparse_rows(split, n_columns):
    trees = make_trees(split=np.array([split, 0.0, 0.0]), n_columns=n_columns)
    values = np.array([0.0, -0.0, 0.5, -0.5, 0.6, -0.6, 5e-324, -5e-324])
    np.testing.assert_array_equal(apply_trees(trees, rows_with(values, n_columns)), ~(values < split))


def test_a_nan_split_sends_all_rows_right_and_later_splits_still_apply():
    trees = make_trees(
        split=np.array([np.nan, 0.0, -0.5, 0.0, 0.0]),
        column=np.array([1, 0, 1, 0, 0], dtype=np.int32),
        left=np.array([1, -1, 3, -2, -3], dtype=np.int32),
        missing_right=np.zeros(5, dtype=np.uint8),
        n_points=np.array([3, 1, 2, 1, 1], dtype=np.int32),
        starts=np.array([0, 5]),
        n_columns=3000,
        n_cells=3,
    )
    assert apply_trees(trees, rows_with([-1.0, -0.5, 0.0, 1.0], 3000)).tolist() == [1, 2, 2, 2]


LINKS = {
    "left": np.array([1, -1, -2], dtype=np.int32),
    "n_points": np.array([2, 1, 1], dtype=np.int32),
    "starts": np.array([0, 3]),
}
BAD_LINKS = {
    "a child beyond the tree": {"left": np.array([2, -1, -2], dtype=np.int32)},
    "a child that is its parent": {"left": np.array([0, -1, -2], dtype=np.int32)},
    "a cell outside": {"left": np.array([1, -1, -3], dtype=np.int32)},
    "too few counts of points": {"n_points": np.array([2, 1], dtype=np.int32)},
    "starts beyond the nodes": {"starts": np.array([0, 4])},
    "starts that descend": {"starts": np.array([0, 4, 3])},
}


@pytest.mark.parametrize("changes", BAD_LINKS.values(), ids=BAD_LINKS)
def test_scales_of_invalid_trees_are_rejected(changes):
    with pytest.raises(ValueError, match=r"tree|forest"):
        _core.count_scale_cells(**LINKS | changes, n_cells=2, n_scales=2)
    with pytest.raises(ValueError, match=r"tree|forest"):
        _core.find_paths(**LINKS | changes, paths=np.empty((1, 2, 2), dtype=np.uint8))


@pytest.mark.parametrize("shape", [(2, 2, 2), (1, 257, 2), (1, 2, 0), (1, 2, 32), (1, 0, 2)], ids=str)
def test_paths_of_another_shape_are_rejected(shape):
    with pytest.raises(ValueError, match=r"paths must|n_cells must"):
        _core.find_paths(**LINKS, paths=np.empty(shape, dtype=np.uint8))


@pytest.mark.parametrize(
    ("leaves", "cells"),
    [
        (np.array([[2]], dtype=np.uint8), np.empty((1, 3), dtype=np.uint8)),
        (np.array([[0, 0]], dtype=np.uint8), np.empty((1, 3), dtype=np.uint8)),
        (np.array([[0]], dtype=np.uint8), np.empty((1, 2), dtype=np.uint8)),
        (np.array([[0]], dtype=np.uint8), np.empty((2, 3), dtype=np.uint8)),
        (np.array([[0]], dtype=np.uint16), np.empty((1, 3), dtype=np.uint8)),
    ],
    ids=["a leaf outside", "two trees", "two scales", "two rows", "another dtype"],
)
def test_leaves_that_do_not_fit_the_paths_are_rejected(leaves, cells):
    with pytest.raises(ValueError, match="leaves"):
        _core.expand_leaves(leaves, np.zeros((1, 2, 3), dtype=np.uint8), cells, 1)


@pytest.mark.parametrize("n_weights", [0, 2, 4])
def test_scales_that_do_not_divide_the_columns_are_rejected(n_weights):
    with pytest.raises(ValueError, match="first must have equally many columns for each of the weights"):
        _core.match_cells(CELLS, CELLS, np.empty((2, 2)), 1, np.ones(n_weights))


BAD_SAMPLES = {
    "a point outside": [[0, 2]],
    "a point below 0": [[0, -1]],
    "no cells": [[]],
}


@pytest.mark.parametrize("samples", BAD_SAMPLES.values(), ids=BAD_SAMPLES)
def test_samples_outside_the_points_are_rejected(samples):
    with pytest.raises(ValueError, match=r"(samples must be numbers of points|sizes must ascend)"):
        voronoi_map(np.zeros((2, 3)), np.array(samples, dtype=np.int32).reshape(1, -1), [len(samples[0])])


BAD_CSR = {
    "a column outside": ([0, 5], [0, 1, 2]),
    "columns that descend": ([1, 0], [0, 2, 2]),
    "starts that descend": ([0, 1], [0, 2, 1]),
    "starts beyond the values": ([0, 1], [0, 1, 9]),
    "a start below 0": ([0, 1], [-3, 1, 2]),
    "no starts": ([0, 1], []),
}


@pytest.mark.parametrize(("columns", "starts"), BAD_CSR.values(), ids=BAD_CSR)
def test_invalid_csr_arrays_are_rejected(columns, starts):
    points = (np.ones(2), np.array(columns, dtype=np.int32), np.array(starts, dtype=np.int64), 5)
    with pytest.raises(ValueError, match="the columns of a CSR row must ascend and lie within the table"):
        voronoi_map(points, np.zeros((1, 1), dtype=np.int32), [1])


BAD_STARTS = {
    "none": [],
    "one": [0],
    "too few": [0, 4, 8],
    "descending": [0, 8, 4, 12],
    "repeated": [0, 4, 4, 12],
    "below 0": [-4, 0, 4, 8],
    "not from 0": [4, 8, 12, 16],
}


@pytest.mark.parametrize("starts", BAD_STARTS.values(), ids=BAD_STARTS)
@pytest.mark.parametrize(
    "function", ["score_primal", "score_dual", "learn_primal", "learn_dual", "are_cells", "sum_by_cell"]
)
def test_starts_must_ascend_from_0(function, starts):
    weights, scores, clock = np.zeros((T * PSI, 1)), np.empty((2, 1)), _core.Clock()
    arguments = {
        "score_primal": (weights, None, clock, False, scores, 1),
        "score_dual": (CELLS, 2, weights, None, clock, scores, 1),
        "learn_primal": (TARGETS, None, RULE, False, weights, None, None, clock, scores),
        "learn_dual": (TARGETS, None, RULE, np.zeros_like(CELLS), 0, weights, None, clock, scores),
        "are_cells": (),
        "sum_by_cell": (scores, weights),
    }
    with pytest.raises(ValueError, match="partitioning"):
        getattr(_core, function)(CELLS, np.array(starts, dtype=np.int64), *arguments[function])


BAD_WEIGHTS = {"too few rows": (T * PSI - 1, 1), "no columns": (T * PSI, 0)}


@pytest.mark.parametrize("shape", BAD_WEIGHTS.values(), ids=BAD_WEIGHTS)
def test_weights_must_have_a_row_per_cell_and_a_column(shape):
    with pytest.raises(ValueError, match="weights must have a row for each cell or support vector"):
        _core.score_primal(CELLS, STARTS, np.zeros(shape), None, _core.Clock(), False, np.empty((2, shape[1])), 1)


@pytest.mark.parametrize(
    "shapes", [((3, 1), (T * PSI, 1)), ((2, 1), (T * PSI - 1, 1)), ((2, 2), (T * PSI, 1))], ids=str
)
def test_sums_by_cell_must_have_the_shape_of_cells_and_values(shapes):
    with pytest.raises(ValueError, match="must have"):
        _core.sum_by_cell(CELLS, STARTS, *map(np.zeros, shapes))


@pytest.mark.parametrize("n", [-1, 3, 2**63 - 1])
def test_support_vectors_must_have_room_for_all_rows(n):
    room, clock = np.zeros((4, T), dtype=np.uint8), _core.Clock()
    with pytest.raises(ValueError, match="there must be room for all rows"):
        _core.learn_dual(CELLS, STARTS, TARGETS, None, RULE, room, n, np.zeros((4, 1)), None, clock, None)


BAD_CLOCKS = {
    "rounds below 0": (-1, 0, 1.0, 0.0),
    "too many rounds": (2**62, 0, 1.0, 0.0),
    "support vectors below 0": (5, -1, 1.0, 0.0),
    "more support vectors than rounds": (5, 6, 1.0, 0.0),
    "a scale of 0": (5, 0, 0.0, 0.0),
    "a scale above 1": (5, 0, 1.5, 0.0),
    "a scale of NaN": (5, 0, float("nan"), 0.0),
    "a sum below 0": (5, 0, 1.0, -1.0),
    "a sum above the rounds": (5, 0, 1.0, 5.5),
}


@pytest.mark.parametrize("numbers", BAD_CLOCKS.values(), ids=BAD_CLOCKS)
def test_invalid_clocks_are_rejected(numbers):
    with pytest.raises(ValueError, match="a clock must have"):
        _core.Clock(*numbers)


@pytest.mark.parametrize("rounds", [-1, 2**63 - 1])
def test_adaraker_rejects_an_invalid_number_of_rounds(rounds):
    model = _core.AdaRaker(
        np.ones(1), np.zeros((1, 2, 1, 4), np.float32), np.zeros((1, 2, 1)), np.zeros((1, 2)), 0.5, 0.0, False
    )
    with pytest.raises(ValueError, match="rounds must not be negative"):
        model.score(np.zeros((3, 2)), rounds, np.empty((3, 1)), 1)
    with pytest.raises(ValueError, match="rounds must not be negative"):
        model.learn(np.zeros((3, 2)), np.zeros(3, dtype=np.int32), None, rounds)


def test_samples_that_exceed_memory_are_rejected():
    with pytest.raises(ValueError, match="must be fewer than"):
        _core.draw_samples(100, 2**61, 8, 0)
    with pytest.raises((ValueError, MemoryError)):
        _core.draw_samples(100, 2**58, 8, 0)


def test_a_million_threads_are_capped_and_give_the_same_cells(run_script):
    found = run_script("""
X = np.random.default_rng(0).normal(size=(200_000, 2))
one = IsolationKernel(n_partitionings=1, n_cells=4, random_state=0, n_jobs=1).fit(X)
many = IsolationKernel(n_partitionings=1, n_cells=4, random_state=0, n_jobs=10**6).fit(X)
print((one.apply(X) == many.apply(X)).all())
""")
    assert found == "True"


def explained_trees(**changes):
    """Return the tree of make_trees with values in its leaves."""
    arrays = {
        "split": np.array([0.5, 0.0, 0.0]),
        "column": np.array([1, 0, 0], dtype=np.int32),
        "left": np.array([1, -1, -2]),
        "missing_right": np.zeros(3, dtype=np.uint8),
        "n_points": np.array([2, 1, 1], dtype=np.int32),
        "starts": np.array([0, 3]),
        "values": np.array([[1.0], [3.0]]),
        "categorical": np.empty(0, dtype=np.int32),
        "used": np.array([1], dtype=np.int32),
        "n_columns": 2,
    }
    return _core.ExplainedTrees(**arrays | changes)


def test_a_valid_tree_is_explained():
    shapley, scores = np.zeros((2, 1, 1)), np.empty((2, 1))
    explained_trees().add_path_dependent(np.array([[0.0, 0.4], [0.0, 0.6]]), shapley, 1)
    explained_trees().sum_leaves(np.array([[0.0, 0.4], [0.0, 0.6]]), scores, 1)
    assert shapley.ravel().tolist() == [-1.0, 1.0]
    assert scores.ravel().tolist() == [1.0, 3.0]


BAD_EXPLAINED = {
    "child outside": {"left": np.array([2, -1, -2])},
    "child before": {"left": np.array([0, -1, -2])},
    "leaf outside": {"left": np.array([1, -1, -3])},
    "two parents": {
        "split": np.zeros(5),
        "column": np.array([1, 1, 1, 1, 1], dtype=np.int32),
        "left": np.array([1, 3, 3, -1, -2]),
        "missing_right": np.zeros(5, dtype=np.uint8),
        "n_points": np.array([4, 2, 2, 1, 1], dtype=np.int32),
        "starts": np.array([0, 5]),
    },
    "no parent": {
        "split": np.zeros(5),
        "column": np.array([1, 1, 1, 1, 1], dtype=np.int32),
        "left": np.array([1, -1, -2, -1, -2]),
        "missing_right": np.zeros(5, dtype=np.uint8),
        "n_points": np.array([2, 1, 1, 1, 1], dtype=np.int32),
        "starts": np.array([0, 5]),
    },
    "no points": {"n_points": np.array([1, 1, 0], dtype=np.int32)},
    "points of children": {"n_points": np.array([3, 1, 1], dtype=np.int32)},
    "column outside": {"column": np.array([2, 0, 0], dtype=np.int32)},
    "column not used": {"used": np.array([0], dtype=np.int32)},
    "used column outside": {"used": np.array([1, 2], dtype=np.int32)},
    "category outside": {"categorical": np.array([2], dtype=np.int32)},
    "empty tree": {"starts": np.array([0, 0, 3])},
    "starts": {"starts": np.array([1, 3])},
    "lengths": {"column": np.array([1, 0], dtype=np.int32)},
    "no outputs": {"values": np.empty((2, 0))},
}


@pytest.mark.parametrize("changes", BAD_EXPLAINED.values(), ids=BAD_EXPLAINED)
def test_invalid_trees_are_not_explained(changes):
    with pytest.raises(ValueError, match="must"):
        explained_trees(**changes)


@pytest.mark.parametrize("shape", [(1, 1, 1), (2, 2, 1), (2, 1, 2)])
def test_shapley_values_of_another_shape_are_rejected(shape):
    rows = np.zeros((2, 2))
    with pytest.raises(ValueError, match="shapley must have"):
        explained_trees().add_path_dependent(rows, np.zeros(shape), 1)
    with pytest.raises(ValueError, match="shapley must have"):
        explained_trees().add_interventional(rows, rows, np.zeros(shape), 1)


@pytest.mark.parametrize("n_background", [0, 1])
def test_background_rows_must_have_the_trees_columns_and_be_at_least_one(n_background):
    others = np.zeros((n_background, 2 + n_background))
    with pytest.raises(ValueError, match="must have"):
        explained_trees().add_interventional(np.zeros((2, 2)), others, np.zeros((2, 1, 1)), 1)


BAD_SEARCHES = {
    "dtype": {"rows": [np.zeros((2, 3), dtype=np.uint16)]},
    "partitionings": {"rows": [np.zeros((2, 4), dtype=np.uint8)]},
    "number of rows": {"rows": [np.zeros((3, 3), dtype=np.uint8)]},
    "rows of a panel": {"panels": [np.zeros((1, 3, 32), dtype=np.uint8)]},
    "too few panels": {"n_stored": 65},
    "fewer rows than k": {"n_stored": 1},
    "scales": {"weights": np.ones(2)},
    "a weight below 0": {"weights": np.array([-1.0])},
    "a weight of NaN": {"weights": np.array([np.nan])},
    "no weight above 0": {"weights": np.zeros(1)},
    "no scale": {"panels": [], "rows": [], "weights": np.empty(0)},
    "shapes of results": {"similarities": np.empty((2, 3))},
}


@pytest.mark.parametrize("changes", BAD_SEARCHES.values(), ids=BAD_SEARCHES)
def test_invalid_searches_are_rejected(changes):
    arguments = {
        "panels": [np.zeros((1, 3, 64), dtype=np.uint8)],
        "rows": [np.zeros((2, 3), dtype=np.uint8)],
        "weights": np.ones(1),
        "n_stored": 5,
        "indices": np.empty((2, 2), dtype=np.int64),
        "similarities": np.empty((2, 2)),
        "threads": 1,
    }
    _core.find_similar(**arguments)
    with pytest.raises(ValueError, match="must"):
        _core.find_similar(**arguments | changes)


def is_canonical(columns, starts, n_columns):
    """Return what the core's check of sparse rows must."""
    if starts[0] < 0 or (np.diff(starts) < 0).any() or starts[-1] > len(columns):
        return False
    rows = [columns[a:b] for a, b in itertools.pairwise(starts)]
    return all((row >= 0).all() and (row < n_columns).all() and (np.diff(row) > 0).all() for row in rows)


@pytest.mark.parametrize("n", [1, 3, 3000])  # tiles of several threads for the last
def test_the_order_of_columns_is_checked_as_by_the_numpy_twin(n):
    rng = np.random.default_rng(n)
    X = sparse.random_array((n, 300), density=0.2, format="csr", rng=rng)
    columns, starts = X.indices.astype(np.int32), X.indptr.astype(np.int64)
    assert _core.is_canonical(columns, starts, 300)
    verdicts = set()
    for _ in range(60):
        changed, k, value = columns.copy(), rng.integers(columns.size), rng.integers(-1, 301)
        changed[k] = rng.choice([value, changed[k - 1], changed[k] + 1])
        verdicts.add(_core.is_canonical(changed, starts, 300))
        assert _core.is_canonical(changed, starts, 300) == is_canonical(changed, starts, 300)
        moved, r = starts.copy(), rng.integers(n + 1)
        moved[r] += rng.choice([-1, 1])
        assert _core.is_canonical(columns, moved, 300) == is_canonical(columns, moved, 300)
    assert verdicts == {True, False}


def test_rows_without_values_have_ordered_columns():
    assert _core.is_canonical(np.empty(0, np.int32), np.zeros(6, np.int64), 3)
    assert not _core.is_canonical(np.empty(0, np.int32), np.array([0, 1]), 3)
