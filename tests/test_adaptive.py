"""Test learners whose map renews itself: ladder, recent rows, renewed trees, drift detection, and the estimators."""

from __future__ import annotations

import copy
import gc
import inspect
import itertools
import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone

import isokern
import reference
from isokern import AdaptiveIKClassifier, AdaptiveIKRegressor, FOGDClassifier, _core
from isokern.adaptive_trees import AdaptiveTrees, scaled_cells
from isokern.learners import ladder as ladders
from isokern.learners import renewing
from isokern.learners.commits import BLOCK
from isokern.learners.ladder import Ladder
from isokern.learners.recent import RecentRows
from isokern.learners.warm_up import Batch
from isokern.partitionings import IsolationTrees
from learning import every, feed, is_unfitted, make_rows, make_stream, signs
from test_interrupts import interrupted, plain, state_of

SMALL = {"n_partitionings": 6, "random_state": 0}
CLASSIFIERS = {
    "default": {},
    "logistic": {"loss": "logistic"},
    "balanced": {"class_weight": "balanced"},
    "trees": {"linear": False},
    "linear": {"linear": True},
}
KINDS = {"classifier": AdaptiveIKClassifier, "regressor": AdaptiveIKRegressor}


def rotating(n=4000, n_turns=2, seed=0):
    """Return a stream of two classes whose boundary turns."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    angle = np.linspace(0, 2 * np.pi * n_turns, n)
    return X, (X[:, 0] * np.cos(angle) + X[:, 1] * np.sin(angle) > 0).astype(int)


# The ladder


def kept(n, n_most=100):
    """Return recent rows of a stream of n rows."""
    return RecentRows(n_most, n, (Batch(np.zeros((min(n, 60), 1)), np.zeros(min(n, 60)), None),))


@pytest.mark.parametrize("size", [1, 7, 100, 5000])
def test_renewals_go_by_the_number_of_rows_however_a_stream_is_cut(size):
    whole, _ = Ladder.begun(5, 2, 3).planned(16, 5000, RecentRows(100, 16))
    found, ladder = [], Ladder.begun(5, 2, 3)
    for begin in range(16, 5016, size):
        n = min(size, 5016 - begin)
        recent = RecentRows(100, begin, (Batch(np.zeros((begin - 16, 1)), np.zeros(begin - 16), None),))
        due, ladder = ladder.planned(begin, n, recent)
        found += [one._replace(row=one.row + begin - 16) for one in due]
    assert found == whole


def test_no_two_trees_are_renewed_at_one_row_and_short_lives_come_more_often():
    due, _ = Ladder.begun(14, 2, 0).planned(2000, 60_000, kept(2000))
    rows = [one.row for one in due]
    assert len(set(rows)) == len(rows)
    assert rows == sorted(rows)
    counts = np.bincount([one.tree for one in due])
    for short, long in itertools.pairwise(range(6)):  # the next life is twice as long
        assert counts[short] > 1.4 * counts[long]


def test_a_young_stream_renews_its_trees_as_often_as_it_doubles():
    due, _ = Ladder.begun(1, 2, 0).planned(16, 500, kept(16))
    assert 4 <= len(due) <= 8
    assert all(one.n_rows <= 16 + one.row for one in due)


def test_a_tree_without_rows_to_be_drawn_from_waits():
    due, _ = Ladder.begun(3, 2, 0).planned(9000, 100, RecentRows(100, 9000))
    assert len(due) >= 3
    assert min(one.row for one in due) >= ladders._FEWEST_ROWS
    assert all(one.n_rows <= one.row for one in due)


# Recent rows


@pytest.mark.parametrize("sizes", [[1] * 90, [30, 30, 30], [7, 50, 33], [90]])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_recent_rows_are_the_last_ones_however_a_stream_is_cut(form, sizes):
    X, targets = np.arange(90.0)[:, None], np.arange(90)
    rows = RecentRows(20, 0)
    for begin, end in itertools.pairwise([0, *np.cumsum(sizes)]):
        rows = rows.followed_by(Batch(form(X[begin:end]), targets[begin:end], None))
        assert rows.n >= 20 or rows.n == end
    assert rows.n <= 2 * 20 + max(sizes)
    last = rows.last(20)
    table = last.table.toarray() if sparse.issparse(last.table) else last.table
    assert np.array_equal(table, X[70:])
    assert np.array_equal(last.targets, targets[70:])
    assert plain(rows) == plain(RecentRows(20, 70).followed_by(Batch(form(X[70:]), targets[70:], None)))


def test_rows_that_were_never_learned_are_dropped():
    X, targets = np.arange(9.0)[:, None], np.arange(9)
    rows = RecentRows(20, 0).followed_by(Batch(X, targets, None))
    assert np.array_equal(rows.up_to(5).last(20).targets, targets[:5])
    assert rows.up_to(0).n == 0


def test_recent_rows_are_bounded_in_bytes(monkeypatch):
    monkeypatch.setattr("isokern.learners.warm_up._MOST_BYTES", 8 * 10 * 100)
    assert RecentRows.begun(np.zeros((16, 10)), 2000).n_most == 100
    assert RecentRows.begun(sparse.csr_array(np.ones((16, 10))), 2000).n_most < 100


# Trees


def test_trees_that_are_replaced_map_rows_like_those_they_are_replaced_by():
    X, _ = make_rows(200)
    samples = np.stack([np.random.default_rng(k).permutation(200)[:30] for k in range(5)])
    first = IsolationTrees.learn(X, samples[:3], 1, 1, max_depth=None, n_cells=32)
    second = IsolationTrees.learn(X, samples[3:, :20].copy(), 2, 1, max_depth=None, n_cells=32)
    one, two = (scaled_cells(trees, X, np.uint16, 1) for trees in (first, second))
    for trees in (first, copy.deepcopy(first)):  # with paths that are known already, and without
        mixed = trees.replaced({1: (second, 1), 0: (second, 0)})
        assert np.array_equal(scaled_cells(mixed, X, np.uint16, 1), np.stack([two[:, 0], two[:, 1], one[:, 2]], axis=1))


def test_a_tree_depends_on_its_number_not_on_its_neighbours():
    X, _ = make_rows(200)
    samples = np.stack([np.random.default_rng(k).permutation(200)[:30] for k in range(4)])
    together = IsolationTrees.learn(X, samples, 1, 2, max_depth=None, numbers=np.array([7, 8, 9, 3]))
    for k, number in enumerate((7, 8, 9, 3)):
        alone = IsolationTrees.learn(X, samples[k : k + 1], 1, 1, max_depth=None, numbers=np.array([number]))
        assert np.array_equal(scaled_cells(together, X, np.uint8, 1)[:, k], scaled_cells(alone, X, np.uint8, 1)[:, 0])
    usual = IsolationTrees.learn(X, samples, 1, 1, max_depth=None)
    numbered = IsolationTrees.learn(X, samples, 1, 1, max_depth=None, numbers=np.arange(4))
    assert plain(usual) == plain(numbered)
    with pytest.raises(ValueError, match="one entry for each tree"):
        IsolationTrees.learn(X, samples, 1, 1, max_depth=None, numbers=np.arange(3))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("schedule", ["adagrad", "constant"])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("threads", [1, 3])
def test_renewed_trees_learn_what_their_numpy_twins_learn(threads, n_classes, schedule, weighted):
    rng = np.random.default_rng(0)
    n, n_past, t, n_scales, n_cells = 40, 25, 4, 2, 6
    starts = np.arange(t * n_scales + 1) * n_cells
    cells = rng.integers(0, n_cells, (n, t * n_scales)).astype(np.uint8)
    y = rng.integers(0, n_classes, n)
    columns = n_classes if n_classes > 2 else 1
    past = [(5, 1), (17, 3), (40, 0)]  # rows and trees
    past_cells = rng.integers(0, n_cells, (len(past), n_past, n_scales)).astype(np.uint8)
    past_y = rng.integers(0, n_classes, (len(past), n_past))
    past_weights = rng.uniform(0.1, 3.0, (len(past), n_past)) if weighted else [None] * len(past)

    def targets(labels):
        return (labels if n_classes > 2 else labels - 1).astype(np.int32)

    renewals = [
        _core.Renewal(row, tree * n_scales, past_cells[k], targets(past_y[k]), past_weights[k], 0.0)
        for k, (row, tree) in enumerate(past)
    ]
    weights = np.zeros((starts[-1], 1 + (schedule == "adagrad"), columns), dtype=np.float32)
    scores = np.empty((n, columns))
    rule = _core.Rule("hinge", 0.0, schedule, 1.7, 0.0, [0] * columns, True)
    shares = np.ones(1, dtype=np.float32)
    entrant = _core.Entrant(cells, starts, shares, weights, None, None, rule, _core.Clock(), scores, renewals)
    _core.learn_scales(
        [entrant],
        None,
        0.0,
        targets(y),
        None,
        _core.Clock(),
        [0] * n_classes,
        1.0,
        np.zeros(2),
        np.empty((1, n)),
        threads,
    )
    twins = [
        reference.RenewedTwin(
            row,
            slice(tree * n_scales * n_cells, (tree + 1) * n_scales * n_cells),
            (past_cells[k] + starts[tree * n_scales : (tree + 1) * n_scales])[:, :, None].astype(int),
            signs(past_y[k], n_classes),
            past_weights[k],
        )
        for k, (row, tree) in enumerate(past)
    ]
    places = (cells + starts[:-1])[:, :, None].astype(int)
    how = {"loss": "hinge", "schedule": schedule, "rate": 1.7, "renewals": twins}
    expected, expected_scores, _ = reference.learn_scales(
        places, shares, starts[-1], None, 0, signs(y, n_classes), **how
    )
    assert np.array_equal(scores, expected_scores)
    assert np.array_equal(weights[:, 0], expected.w)


@pytest.mark.parametrize(
    "change", [{"row": 0}, {"row": 3}, {"first": 3}, {"first": -1}, {"targets": np.zeros(2, np.int32)}]
)
def test_the_core_refuses_renewals_that_do_not_match(change):
    given = {"row": 1, "first": 2, "cells": np.zeros((3, 2), np.uint8), "targets": np.zeros(3, np.int32)}
    renewal = _core.Renewal(**given | change, row_weights=None, square=0.0)
    weights, scores = np.zeros((8, 1, 1), np.float32), np.empty((2, 1))
    rule = _core.Rule("hinge", 0.0, "constant", 1.0, 0.0, [0], True)
    cells, starts = np.zeros((2, 4), np.uint8), np.arange(5) * 2
    shares = np.ones(1, np.float32)
    entrant = _core.Entrant(cells, starts, shares, weights, None, None, rule, _core.Clock(), scores, [renewal])
    with pytest.raises(ValueError, match="must"):
        _core.learn_scales(
            [entrant],
            None,
            0.0,
            np.zeros(2, np.int32),
            None,
            _core.Clock(),
            [0, 0],
            1.0,
            np.zeros(2),
            np.empty((1, 2)),
            1,
        )


# Drift detection


def monitored(errors):
    """Return the state of ADWIN after a single model of one cell has made errors at these rows, and the changes."""
    monitor, n = _core.new_monitor(), len(errors)
    rule = _core.Rule("hinge", 0.0, "constant", 1e-9, 0.0, [0], True)
    weights = np.full((2, 1, 1), -0.5, dtype=np.float32)  # predicts the first class, and learns next to nothing
    cells, shares, scores = np.zeros((n, 1), np.uint8), np.ones(1, np.float32), np.empty((n, 1))
    entrant = _core.Entrant(cells, np.array([0, 2]), shares, weights, None, None, rule, _core.Clock(), scores)
    targets = np.where(errors, 0, -1).astype(np.int32)
    guard, history = _core.Clock(), np.empty((1, n))
    _core.learn_scales([entrant], None, 0.0, targets, None, guard, [0, 0], 0.998, np.zeros(2), history, 1, [], monitor)
    return _core.read_monitor(monitor)


def test_a_rise_of_the_error_is_found_soon_and_a_fall_is_not_reported():
    rng = np.random.default_rng(0)
    errors = rng.random(9000) < np.repeat([0.1, 0.4, 0.1], 3000)
    error, n_changes, changes = monitored(errors)
    assert error == errors.mean()
    assert len(changes) == n_changes == 1
    assert 3000 < changes[0] < 3300


def test_steady_errors_are_no_change():
    for seed in range(5):
        assert monitored(np.random.default_rng(seed).random(20_000) < 0.2)[1] == 0


def test_the_monitor_keeps_the_latest_changes():
    errors = np.random.default_rng(0).random(200_000) < np.tile(np.repeat([0.05, 0.6], 1000), 100)
    _, n_changes, changes = monitored(errors)
    assert len(changes) == 64 < n_changes
    assert (np.diff(changes) > 0).all()
    assert changes[-1] > 190_000


@pytest.mark.parametrize("place", [0, 2, 3, 67])
@pytest.mark.parametrize("value", [-1.0, 0.5, np.nan, 1e300])
def test_a_forged_monitor_is_refused(place, value):
    monitor = _core.new_monitor()
    monitor[place] = value
    with pytest.raises(ValueError, match="monitor"):
        _core.read_monitor(monitor)
    with pytest.raises(ValueError, match="monitor"):
        _core.read_monitor(monitor[:-1].copy())


# The estimators


@every("options", CLASSIFIERS)
def test_any_split_of_a_stream_gives_the_same_bytes(options):
    X, y, weights = make_stream(700)
    whole = AdaptiveIKClassifier(**SMALL, **options).partial_fit(X, y, sample_weight=weights)
    assert whole.ladder_.n_renewed.min() > 3
    for sizes in ([1] * 90, [16, 48, 192], [15, 50, 200, 300]):
        cut = feed(AdaptiveIKClassifier(**SMALL, **options), sizes, X, y, weights)
        assert state_of(cut) == state_of(whole)
        assert cut.decision_function(X).tobytes() == whole.decision_function(X).tobytes()


@every(
    "options", {"default": {}, "quantiles": {"loss": "quantile", "quantiles": (0.2, 0.7)}, "linear": {"linear": True}}
)
def test_any_split_of_a_stream_of_numbers_gives_the_same_bytes(options):
    X, _, weights = make_stream(700)
    y = np.sin(3 * X[:, 0]) + 100.0
    whole = AdaptiveIKRegressor(**SMALL, **options).partial_fit(X, y, sample_weight=weights)
    for sizes in ([1] * 40, [15, 50, 200, 300]):
        cut = feed(AdaptiveIKRegressor(**SMALL, **options), sizes, X, y, weights)
        assert state_of(cut) == state_of(whole)


@pytest.mark.parametrize("method", ["predict", "decision_function"])
def test_answers_are_those_of_the_loop_of_single_rows(method):
    X, y, _ = make_stream(300)
    model, found = AdaptiveIKClassifier(**SMALL), []
    for i in range(300):
        if i > 40:
            found.append(getattr(model, method)(X[i : i + 1])[0])
        model.partial_fit(X[i : i + 1], y[i : i + 1], classes=[0, 1, 2])
    together = AdaptiveIKClassifier(**SMALL)
    assert np.array_equal(found, together.partial_fit_predict(X, y, classes=[0, 1, 2], method=method)[41:])
    assert state_of(together) == state_of(model)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_do_not_change_the_model(threads):
    X, y, _ = make_stream(1500)
    expected = AdaptiveIKClassifier(**SMALL, n_jobs=1).partial_fit(X, y)
    assert state_of(AdaptiveIKClassifier(**SMALL, n_jobs=threads).partial_fit(X, y)) == state_of(expected)


def test_dense_and_sparse_streams_give_the_same_model_without_a_linear_term():
    X, y = make_rows(700, 3)
    X[X < 0.2] = 0
    dense, csr = (
        feed(AdaptiveIKClassifier(**SMALL, linear=False), [40, 100], rows, y) for rows in (X, sparse.csr_array(X))
    )
    assert plain(dense.learned_) == plain(csr.learned_)
    assert dense.decision_function(X).tobytes() == csr.decision_function(sparse.csr_array(X)).tobytes()


def test_a_boundary_that_turns_is_followed():
    X, y = rotating()
    adaptive = AdaptiveIKClassifier(30, random_state=0).partial_fit_predict(X, y)
    growing = isokern.IKOGDClassifier(n_partitionings=30, random_state=0).partial_fit_predict(X, y)
    assert (adaptive[1000:] == y[1000:]).mean() > 0.9
    assert (adaptive[1000:] == y[1000:]).mean() > (growing[1000:] == y[1000:]).mean() + 0.07


def test_targets_that_change_are_followed():
    X, _ = rotating()
    y = np.where(np.arange(4000) < 2000, X[:, 0], -X[:, 0]) + 50.0
    answers = AdaptiveIKRegressor(30, random_state=0).partial_fit_predict(X, y)
    assert np.abs(answers[-1000:] - y[-1000:]).mean() < 0.3


def test_an_abrupt_change_is_reported():
    X, y = rotating(n_turns=0)
    y[2000:] = 1 - y[2000:]
    model = AdaptiveIKClassifier(30, random_state=0)
    assert not len(model.partial_fit(X[:10], y[:10]).drifts_)
    answers = model.partial_fit_predict(X[10:], y[10:])
    assert len(model.drifts_) == 1
    assert 2000 < model.drifts_[0] < 2300
    n_wrong = (answers[6:] != y[16:]).sum()
    assert model.error_ == pytest.approx(n_wrong / (4000 - 16), abs=0.005)


@every("kind", KINDS)
@pytest.mark.parametrize("n_rows", [10, 16, 100, 690])
def test_a_saved_stream_goes_on_as_if_it_had_not_been_saved(tmp_path, n_rows, kind):
    X, y, _ = make_stream(700)
    model = kind(**SMALL).partial_fit(X[:n_rows], y[:n_rows])
    isokern.save(model, tmp_path / "model.isokern")
    twins = [isokern.load(tmp_path / "model.isokern"), pickle.loads(pickle.dumps(model)), copy.deepcopy(model)]
    model.partial_fit(X[n_rows:], y[n_rows:])
    for twin in twins:
        assert state_of(twin.partial_fit(X[n_rows:], y[n_rows:])) == state_of(model)


def test_a_file_without_rows_predicts_the_same_and_learns_on(tmp_path):
    X, y, _ = make_stream(1500)
    model = AdaptiveIKClassifier(**SMALL).partial_fit(X, y)
    isokern.save(model, tmp_path / "whole")
    isokern.save(model, tmp_path / "without", buffer=False)
    assert model.recent_.n > 0
    without = isokern.load(tmp_path / "without")
    assert without.recent_.n == 0
    assert without.growth_ is None
    assert (tmp_path / "without").stat().st_size < (tmp_path / "whole").stat().st_size - X.nbytes / 2
    assert without.decision_function(X).tobytes() == model.decision_function(X).tobytes()
    before = without.ladder_.n_renewed.sum()
    one_by_one = feed(copy.deepcopy(without), [1] * 30, X, y)
    assert state_of(without.partial_fit(X, y)) == state_of(one_by_one)
    assert without.ladder_.n_renewed.sum() > before
    assert without.score(X, y) > 0.7


@pytest.mark.parametrize("model", [AdaptiveIKClassifier(**SMALL), FOGDClassifier(gamma="data")])
def test_a_warm_up_cannot_be_saved_without_its_rows(model, tmp_path):
    model = clone(model).partial_fit(*make_rows(5))
    with pytest.raises(ValueError, match="buffer must be True"):
        isokern.save(model, tmp_path / "model", buffer=False)


def test_an_unfitted_learner_has_no_rows_to_leave_out(tmp_path):
    isokern.save(AdaptiveIKClassifier(**SMALL), tmp_path / "model", buffer=False)
    assert is_unfitted(isokern.load(tmp_path / "model"))


def test_an_interrupted_stream_goes_on_as_if_nothing_had_happened():
    X, y, _ = make_stream(80)
    first = AdaptiveIKClassifier(**SMALL).partial_fit(X[:30], y[:30])
    expected = copy.deepcopy(first).partial_fit(X[30:], y[30:])
    n_met = set()
    for k in itertools.count(1, 41):
        torn = copy.deepcopy(first)
        if not interrupted(k, lambda torn=torn: torn.partial_fit(X[30:], y[30:])):
            break
        n = torn.n_rows_seen_
        n_met.add(n)
        assert np.isfinite(torn.decision_function(X)).all()
        if n < 80:
            torn.partial_fit(X[n:], y[n:])
        assert state_of(torn) == state_of(expected), k
    assert n_met >= {30, 64}


def test_classes_that_come_late_equal_classes_that_were_told():
    X, y, _ = make_stream(600, 3)
    y = np.where(np.arange(600) < 350, np.minimum(y, 1), y)
    late = feed(AdaptiveIKClassifier(**SMALL), [20, 100], X, y)
    told = AdaptiveIKClassifier(**SMALL).partial_fit(X, y, classes=[0, 1, 2])
    assert np.array_equal(late.decision_function(X), told.decision_function(X))


def test_rows_without_a_label_are_predicted_but_not_learned():
    X, y, _ = make_stream(400)
    some = np.where(np.arange(400) % 3 == 0, np.nan, y.astype(float))
    model = AdaptiveIKClassifier(**SMALL)
    answers = model.partial_fit_predict(X[1:], some[1:])
    is_labelled = ~np.isnan(some[1:])
    expected = AdaptiveIKClassifier(**SMALL)
    told = expected.partial_fit_predict(X[1:][is_labelled], some[1:][is_labelled])
    assert np.array_equal(answers[is_labelled][1:], told[1:])
    assert state_of(model) == state_of(expected)


def test_predict_never_changes_a_model():
    X, y, _ = make_stream(300)
    for n_rows in (1, 10, 64, 300):
        model = AdaptiveIKClassifier(**SMALL).partial_fit(X[:n_rows], y[:n_rows])
        before = state_of(model)
        for method in (model.predict, model.predict_proba, model.decision_function):
            method(X)
        assert state_of(model) == before


def test_the_most_probable_class_is_the_predicted_one():
    X, y, _ = make_stream(700)
    model = AdaptiveIKClassifier(**SMALL).partial_fit(X, y)
    probabilities = model.predict_proba(X)
    assert np.array_equal(model.classes_[probabilities.argmax(axis=1)], model.predict(X))
    assert np.allclose(probabilities.sum(axis=1), 1.0)


def test_fit_forgets_and_learns_in_order():
    X, y, _ = make_stream(500)
    model = AdaptiveIKClassifier(**SMALL).partial_fit(-X, y).fit(X, y)
    assert state_of(model) == state_of(AdaptiveIKClassifier(**SMALL).partial_fit(X, y))
    with pytest.raises(ValueError, match="at least 2 classes"):
        model.fit(X, np.zeros(500))
    assert model.n_rows_seen_ == 500


def test_categories_and_missing_values_are_learned():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"word": rng.choice(["a", "b", "c", "d"], 1500), "number": rng.normal(size=1500)})
    y = frame["word"].isin(["a", "b"]).to_numpy() ^ (frame["number"] > 0).to_numpy()
    frame.loc[::9, "number"] = np.nan
    model = AdaptiveIKClassifier(20, random_state=0)
    answers = model.partial_fit_predict(frame, y)
    assert (answers[-500:] == y[-500:]).mean() > 0.85
    assert np.array_equal(model.is_categorical_, [True, False])


@every("kind", KINDS)
def test_a_single_tree_is_refused(kind):
    with pytest.raises(ValueError, match="n_partitionings must be an integer of at least 2; got 1"):
        kind(1).fit(*make_rows(20))


@every("kind", KINDS)
def test_cells_are_refused(kind):
    X, y, _ = make_stream(100)
    model = kind(**SMALL).partial_fit(X, y)
    with pytest.raises(ValueError, match="map renews itself"):
        model.partial_fit_cells(model.map_rows(X), y)
    with pytest.raises(ValueError, match="map renews itself"):
        model.predict_cells(model.map_rows(X))


def test_adaptive_models_are_not_merged():
    X, y, _ = make_stream(100)
    model = AdaptiveIKClassifier(**SMALL).partial_fit(X, y)
    with pytest.raises(TypeError, match="AdaptiveIKClassifier"):
        isokern.merge([model, model])


@pytest.mark.parametrize("n_partitionings", [2, 3, 50])
def test_two_fifths_of_the_trees_are_renewed(n_partitionings):
    X, y, _ = make_stream(100)
    trees = AdaptiveIKClassifier(n_partitionings, random_state=0).partial_fit(X, y).kernel_.map_.partitionings
    assert isinstance(trees, AdaptiveTrees)
    assert trees.ladder.n_trees + trees.lasting.n_trees == n_partitionings
    assert abs(trees.ladder.n_trees - renewing._LADDER_SHARE * n_partitionings) <= 1


def array_bytes(model):
    """Return the bytes of all arrays that a model holds, each counted once."""
    seen, waiting, n_bytes = set(), [vars(model)], 0
    while waiting:
        thing = waiting.pop()
        if (
            id(thing) not in seen
            and not isinstance(thing, type)
            and not inspect.ismodule(thing)
            and not callable(thing)
        ):
            seen.add(id(thing))
            is_own = isinstance(thing, np.ndarray) and not isinstance(thing.base, np.ndarray)
            n_bytes += thing.nbytes if is_own else 0
            waiting += gc.get_referents(thing)
    return n_bytes


def test_memory_stays_within_its_bound():
    X, y = rotating(17_000)
    model = AdaptiveIKClassifier(20, random_state=0)
    bound = model.memory_bound(n_features=2, n_classes=2)
    sizes = []
    for begin in range(0, 17_000, BLOCK):
        model.partial_fit(X[begin : begin + BLOCK], y[begin : begin + BLOCK])
        sizes.append(array_bytes(model) + model.learned_.memory.n_bytes)
    assert max(sizes) <= bound
    assert bound < 8 * max(sizes)


def weights_of(learned):
    return [getattr(model, name) for model in learned.models for name in model.in_place]


def test_the_memory_of_a_replaced_state_is_used_again_but_not_while_somebody_holds_the_state():
    X, y = rotating(6000)
    model = AdaptiveIKClassifier(20, random_state=0).partial_fit(X[:4097], y[:4097])
    held = model.learned_
    expected = pickle.dumps(weights_of(held))
    model.partial_fit(X[4097:], y[4097:])
    assert model.learned_.memory.n_bytes > 0
    assert pickle.dumps(weights_of(held)) == expected
    assert copy.deepcopy(model).learned_.memory.n_bytes == 0
