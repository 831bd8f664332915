"""Test column weights: trees that split some columns more often than others, and weights learned from targets."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

import isokern
import reference
from isokern import (
    IKSVC,
    AdaptiveIKClassifier,
    AdaptiveIKRegressor,
    IKOGDClassifier,
    IKOGDRegressor,
    IsolationKernel,
    _core,
)
from isokern.learners.column_weights import StreamWeights, _error, as_numbers_by_rows, learned_weights
from isokern.partitionings import IsolationTrees
from test_growth import rows_of

T, N_CELLS = 5, 12
KINDS = ("plain", "offset", "missing", "categories", "sparse")
WEIGHTS = np.array([1.0, 0.5, 0.0, 0.02])
SMALL = {"n_partitionings": 20, "random_state": 0}


def fitted(D, categorical, weights, **how):
    mask = np.isin(np.arange(D.shape[1]), categorical) if categorical else None
    kernel = IsolationKernel(n_partitionings=T, n_cells=N_CELLS, column_weights=weights, random_state=0, **how)
    return kernel.fit_rows(D, mask)


def noisy(n=3000, d=30, seed=0):
    """Return rows whose first two columns tell the class, but only together."""
    X = np.random.default_rng(seed).normal(size=(n, d))
    return X, X[:, 0] * X[:, 1] > 0


# Trees


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("max_depth", [None, 3])
def test_weighted_trees_equal_their_twin(kind, max_depth):
    D, categorical = rows_of(kind, 60)
    rows = sparse.csr_array(D) if kind == "sparse" else D
    kernel = fitted(rows, categorical, WEIGHTS, max_depth=max_depth)
    how = {"max_depth": max_depth, "categorical": categorical, "column_weights": WEIGHTS}
    expected = reference.tree_cells(D, D, T, N_CELLS, reference.seed_of(0), **how)
    np.testing.assert_array_equal(kernel.apply_rows(rows), expected)


def test_dense_and_sparse_rows_give_the_same_weighted_trees():
    D, _ = rows_of("sparse", 60)
    dense, other = fitted(D, (), WEIGHTS), fitted(sparse.csr_array(D), (), WEIGHTS)
    np.testing.assert_array_equal(dense.apply(D), other.apply(sparse.csr_array(D)))


@pytest.mark.parametrize("kind", KINDS)
def test_equal_weights_give_the_trees_of_no_weights(kind):
    D, categorical = rows_of(kind, 60)
    cells = [fitted(D, categorical, weights).apply_rows(D) for weights in (None, np.full(4, 7.0))]
    np.testing.assert_array_equal(*cells)


def test_columns_are_split_in_proportion_to_their_weights():
    X = np.random.default_rng(0).normal(size=(2000, 4))
    kernel = IsolationKernel(n_cells=500, column_weights=[8, 4, 0, 1e-9], random_state=0).fit(X)
    arrays = kernel.map_.partitionings.arrays
    counts = np.bincount(arrays["column"][arrays["left"] >= 0], minlength=4)
    np.testing.assert_allclose(counts / counts.sum(), [2 / 3, 1 / 3, 0, 0], atol=0.02)


def test_points_that_differ_in_columns_of_weight_0_alone_share_a_leaf():
    X = np.array([[0.0, 1.0], [0.0, 2.0], [1.0, 3.0]])
    cells = IsolationKernel(n_cells=3, column_weights=[1, 0], random_state=0).fit(X).apply(X)
    assert (cells[0] == cells[1]).all()
    assert (cells[0] != cells[2]).all()


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ("some", "column_weights must be None or numbers"),
        ([1.0, -1.0], "at least 0"),
        ([0.0, 0.0], "of which one is positive"),
        ([1.0, np.nan], "column_weights must be None or numbers"),
        ([1.0, 1.0, 1.0], "one entry for each of the 2 columns; got 3"),
    ],
)
def test_wrong_weights_are_refused(weights, message):
    X, y = np.random.default_rng(0).normal(size=(50, 2)), np.arange(50) % 2
    for model in (IsolationKernel(column_weights=weights), IKOGDClassifier(column_weights=weights)):
        with pytest.raises(ValueError, match=message):
            model.fit(X, y)


def test_voronoi_cells_have_no_weights():
    with pytest.raises(ValueError, match="unless the partitioning is a tree"):
        IsolationKernel("voronoi", column_weights=[1, 2]).fit(np.eye(2))
    X, y = noisy(1000, 4)
    assert IKOGDClassifier("voronoi", **SMALL).fit(X, y).kernel_.column_weights is None


def test_the_core_refuses_weights_that_it_would_draw_forever():
    rows, samples = np.eye(3), np.arange(3)[None]
    for weights in (np.array([1.0, 1e-9, 1.0]), np.array([2.0, 1.0, 1.0]), np.array([1.0, np.nan, 1.0]), np.ones(2)):
        with pytest.raises(ValueError, match="column_weights"):
            _core.grow_trees(rows, samples, -1, 0, np.empty(0, dtype=np.int32), 1, None, weights)


# Gains


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_targets", [1, 3])
def test_gains_equal_their_twin(kind, n_targets):
    D, categorical = rows_of(kind, 60)
    targets = np.random.default_rng(1).normal(size=(60, n_targets))
    kernel = fitted(D, categorical, None)
    trees: IsolationTrees = kernel.map_.partitionings
    nodes = (trees.arrays[name] for name in ("column", "left", "starts"))
    found = _core.split_gains(*nodes, trees.n_cells, 4, kernel.apply_rows(D), targets)
    expected = reference.split_gains(trees.arrays, D, targets, 4, categorical)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_gains_refuse_leaves_and_nodes_that_do_not_exist():
    column, left, starts = np.zeros(3, np.int32), np.array([1, -1, -2], np.int32), np.array([0, 3])
    leaves, targets = np.array([[0], [1]], np.uint8), np.zeros((2, 1))
    _core.split_gains(column, left, starts, 2, 1, leaves, targets)
    for wrong in (
        (column, left, starts, 1, 1, leaves, targets),
        (column + 1, left, starts, 2, 1, leaves, targets),
        (column, left + np.array([2, 0, 0], np.int32), starts, 2, 1, leaves, targets),
        (column, left, starts, 2, 1, leaves + np.uint8(1), targets),
        (column, left, starts, 2, 1, leaves, targets[:1]),
        (column[:2], left, starts, 2, 1, leaves, targets),
    ):
        with pytest.raises(ValueError, match="must"):
            _core.split_gains(*wrong)


# Weights learned from targets


@pytest.mark.parametrize("form", ["classes", "numbers", "words"])
def test_columns_that_tell_the_target_weigh_most(form):
    X, y = noisy()
    targets = {"classes": y, "numbers": X[:, :1] * X[:, 1:2], "words": np.where(y, "yes", "no")}[form]
    weights = learned_weights(X, targets, None, 0, 1)
    assert weights[:2].min() > 4 * weights[2:].max()
    assert weights.max() == 1.0
    assert weights.min() > 0.0


def test_columns_that_tell_the_same_have_no_weights():
    X = np.random.default_rng(0).normal(size=(3000, 20))
    assert learned_weights(X, X.sum(axis=1) > 0, None, 0, 1) is None


@pytest.mark.parametrize("are_classes", [True, False])
def test_the_error_is_that_of_predictions_by_the_other_rows_of_a_leaf(are_classes):
    rng = np.random.default_rng(0)
    leaves, targets = rng.integers(0, 8, size=(12, 3)).astype(np.uint8), rng.normal(size=(12, 2))
    leaves[0] = 9  # alone everywhere
    predicted = []
    for i in range(12):
        others = [np.flatnonzero(column == column[i]) for column in leaves.T]
        means = [targets[rows[rows != i]].mean(axis=0) for rows in others if len(rows) > 1]
        predicted.append(np.mean(means, axis=0) if means else targets.mean(axis=0))
    wrong = np.argmax(predicted, axis=1) != targets.argmax(axis=1)
    expected = wrong.mean() if are_classes else ((np.array(predicted) - targets) ** 2).mean()
    assert _error(leaves, targets, are_classes=are_classes) == pytest.approx(expected)


def test_targets_that_are_constant_give_no_weights():
    X, _ = noisy(200)
    assert learned_weights(X, np.zeros(200), None, 0, 1) is None
    assert learned_weights(X, np.zeros((200, 1)), None, 0, 1) is None


def test_more_classes_than_are_told_apart_give_weights():
    X = np.random.default_rng(0).normal(size=(2000, 5))
    classes = np.unique(X[:, 0].round(2), return_inverse=True)[1]
    assert classes.max() > 256
    assert learned_weights(X, classes, None, 0, 1).argmax() == 0


@pytest.mark.parametrize("make", [IKOGDClassifier, IKSVC])
def test_irrelevant_columns_cost_little_accuracy(make):
    X, y = noisy()
    plain, focused = (make(column_weights=weights, **SMALL).fit(X[:2000], y[:2000]) for weights in (None, "auto"))
    assert focused.score(X[2000:], y[2000:]) > plain.score(X[2000:], y[2000:]) + 0.2


def test_irrelevant_columns_cost_the_regressor_little():
    X, _ = noisy()
    y = 100 * X[:, 0] * X[:, 1] + 1e6
    plain, focused = (
        IKOGDRegressor(column_weights=weights, **SMALL).fit(X[:2000], y[:2000]) for weights in (None, "auto")
    )
    assert focused.score(X[2000:], y[2000:]) > plain.score(X[2000:], y[2000:]) + 0.2


def test_sparse_rows_and_any_number_of_threads_give_the_same_model():
    X, y = noisy(1200)
    X[np.abs(X) < 0.5] = 0
    forms = ((X, 1), (sparse.csr_array(X), 1), (X, 2))
    scores = [IKOGDClassifier(n_jobs=n, **SMALL).fit(rows, y).decision_function(rows) for rows, n in forms]
    np.testing.assert_array_equal(scores[0], scores[1])
    np.testing.assert_array_equal(scores[0], scores[2])


def test_a_model_without_a_race_has_no_weights():
    X, y = noisy(1000)
    assert IKOGDClassifier(schedule="adagrad", **SMALL).fit(X, y).kernel_.column_weights is None
    assert IKSVC(C=1.0, n_scales=1, linear=False, **SMALL).fit(X, y).kernel_.column_weights is None


def test_a_fixed_map_of_a_stream_learns_weights_from_its_first_rows():
    X, y = noisy(1200)
    model = IKOGDClassifier(growth=False, **SMALL)
    for begin in range(0, 1200, 300):
        model.partial_fit(X[begin : begin + 300], y[begin : begin + 300])
    assert set(np.argsort(model.kernel_.column_weights)[-2:]) == {0, 1}


@pytest.mark.parametrize(("n", "d"), [(1000, 1), (1000, 5000), (999, 30)])
def test_wide_rows_single_columns_and_few_rows_have_no_weights(n, d):
    X = np.random.default_rng(0).normal(size=(n, d))
    assert IKOGDClassifier(**SMALL).fit(X, X[:, 0] > 0).kernel_.column_weights is None


def test_given_weights_are_kept_through_clone_and_files(tmp_path):
    X, y = noisy(1000, 4)
    model = IKOGDClassifier(column_weights=[1, 1, 0, 0], **SMALL).fit(X, y)
    assert clone(model).column_weights == [1, 1, 0, 0]
    for one in (model, IKOGDClassifier(**SMALL).fit(X, y)):
        isokern.save(one, tmp_path / "model.isokern")
        loaded = isokern.load(tmp_path / "model.isokern")
        np.testing.assert_array_equal(loaded.kernel_.column_weights, one.kernel_.column_weights)
        np.testing.assert_array_equal(loaded.decision_function(X), one.decision_function(X))


def test_weights_must_not_be_given_along_with_a_kernel():
    X, y = noisy(300, 4)
    with pytest.raises(ValueError, match="column_weights must not be given along with kernel"):
        IKOGDClassifier(kernel=IsolationKernel(), column_weights=[1, 1, 0, 0]).fit(X, y)


# Weights along a stream


def heaviest(weights, n=2):
    return set(np.argsort(weights)[-n:].tolist())


@pytest.mark.parametrize("kind", ["classifier", "regressor"])
def test_a_map_that_grows_learns_weights_from_the_rows_that_it_keeps(kind):
    X, y = noisy(1100)
    make, targets = {"classifier": (IKOGDClassifier, y), "regressor": (IKOGDRegressor, X[:, 0] * X[:, 1])}[kind]
    model = make(**SMALL).partial_fit(X[:1024], targets[:1024])
    assert model.kernel_.column_weights is None
    model.partial_fit(X[1024:], targets[1024:])
    assert heaviest(model.kernel_.column_weights) == {0, 1}
    assert make(column_weights=None, **SMALL).partial_fit(X, targets).kernel_.column_weights is None


def test_a_map_that_grows_splits_columns_by_given_weights():
    X, y = noisy(1100, 3)
    model = IKOGDClassifier(column_weights=[0, 2, 0], **SMALL).partial_fit(X, y)
    arrays = model.kernel_.map_.partitionings.arrays
    assert set(arrays["column"][arrays["left"] >= 0]) == {1}


@pytest.mark.parametrize("kind", ["classifier", "regressor", "sparse"])
def test_redrawn_trees_split_the_columns_that_tell_the_target_now(kind):
    X = np.random.default_rng(0).normal(size=(10_000, 8))
    signs = np.concatenate([X[:5000, 0] * X[:5000, 1], X[5000:, 2] * X[5000:, 3]])
    make, targets = (AdaptiveIKRegressor, signs) if kind == "regressor" else (AdaptiveIKClassifier, signs > 0)
    rows = sparse.csr_array(X) if kind == "sparse" else X
    model = make(**SMALL)
    for begin, expected in ((0, {0, 1}), (5000, {2, 3})):
        model.partial_fit(rows[begin : begin + 5000], targets[begin : begin + 5000])
        weights = model.ladder_.columns.weights
        assert heaviest(weights) == expected
        assert weights.min() >= 1 / 8


@pytest.mark.parametrize("make", [AdaptiveIKClassifier, AdaptiveIKRegressor])
def test_weights_along_a_stream_do_not_depend_on_its_calls_and_files(make, tmp_path):
    X, y = noisy(3500, 5)
    whole, cut = make(**SMALL).partial_fit(X, y), make(**SMALL)
    for begin in range(0, 3500, 700):
        cut.partial_fit(X[begin : begin + 700], y[begin : begin + 700])
        isokern.save(cut, tmp_path / "model.isokern")
        cut = isokern.load(tmp_path / "model.isokern")
    for name in ("period", "weights", "gains", "visits"):
        np.testing.assert_array_equal(getattr(cut.ladder_.columns, name), getattr(whole.ladder_.columns, name))
    np.testing.assert_array_equal(cut.predict(X), whole.predict(X))


@pytest.mark.parametrize("form", ["classes", "words", "many classes", "numbers"])
def test_gains_of_some_rows_do_not_depend_on_the_targets_of_others(form):
    rng = np.random.default_rng(0)
    targets = rng.integers(0, 900 if form == "many classes" else 5, 1000)
    targets = {"words": targets.astype(str), "numbers": np.column_stack([targets, -(targets**2)])}.get(form, targets)
    trees = IsolationTrees.learn(rng.normal(size=(1000, 3)), np.arange(40)[None], 0, 1, max_depth=None)
    rows, leaves = slice(500, 800), rng.integers(0, 40, (300, 1)).astype(np.uint8)
    nodes = (trees.arrays[name] for name in ("column", "left", "starts"))
    nodes = (*nodes, trees.n_cells, 3, leaves)
    found, expected = (
        _core.split_gains(*nodes, numbers)
        for numbers in (as_numbers_by_rows(targets)(rows), as_numbers_by_rows(targets[rows])(slice(None)))
    )
    np.testing.assert_array_equal(found, expected)


def test_streams_of_wide_rows_and_single_columns_have_no_weights():
    assert StreamWeights.begun(1) is None
    assert StreamWeights.begun(5000) is None


def test_forged_weights_along_a_stream_are_refused():
    ones = np.ones(3)
    StreamWeights(1, ones, ones, ones).check()
    forged = [
        ({"weights": np.zeros(3)}, "weights must be above 0"),
        ({"weights": np.ones(2)}, "one per column"),
        ({"gains": np.full(3, np.nan)}, "gains must be finite"),
        ({"visits": np.ones(2)}, "one number per column"),
    ]
    for fields, rule in forged:
        with pytest.raises(ValueError, match=rule):
            StreamWeights(**{"period": 1, "weights": ones, "gains": ones, "visits": ones} | fields).check()
