"""Check models on several scales with a linear term: against NumPy twins, and that what must not matter does not."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from scipy import sparse

import reference
from isokern import IKOGDClassifier, IsolationKernel, _core
from isokern.learners import scale_weights
from isokern.learners.candidates import Candidate
from isokern.learners.classes import ClassBook
from isokern.learners.features import Features
from isokern.learners.linear_term import LinearTerm
from isokern.learners.race import Race
from isokern.learners.steps import Steps
from learning import LOSSES, RATES, every, make_rows, signs

T, N_CELLS, N = 7, 16, 70  # no multiple of the four places that move at once
SMALL_WEIGHTS, LARGE_WEIGHTS = [0.0, 1e-30, 1e-3, 0.5, 1.0], [0.0, 0.3, 1.0, 3.0, 1e3, 1e12]
ROWS = {  # number of classes, weights to draw from
    "one class": (1, LARGE_WEIGHTS),
    "two classes": (2, None),
    "two classes, small weights": (2, SMALL_WEIGHTS),
    "two classes, large weights": (2, LARGE_WEIGHTS),
    "three classes, large weights": (3, LARGE_WEIGHTS),
    "five classes, small weights": (5, SMALL_WEIGHTS),
}
PARTS = {
    "all scales": ("every", False),
    "every second scale": ("all", False),
    "finest scale": ("finest", False),
    "linear": ("", True),
    "all scales and linear": ("every", True),
}


def make_features(X, partitioning="tree", threads=1, **options):
    """Return rows in the form that models learn, on all scales and with a linear term."""
    parameters = {"n_partitionings": T, "n_cells": N_CELLS, "n_scales": "auto", "random_state": 0}
    kernel = IsolationKernel(partitioning, **parameters | options).fit(X)
    term = LinearTerm.learn(X, None)
    return Features(kernel.map_, term, kernel.map_.codes(X, threads), X, threads)


def begun(candidates, y, features, fade=1.0):
    """Return an untrained race for the classes of rows."""
    return Race.begun(candidates, ClassBook.of(y, takes_new=True), features.fitted, features.term, fade)


def twin(candidate, features, y, loss, weights=None):
    """Return what a candidate learns, by the NumPy twin."""
    fitted, scales = features.fitted, list(candidate.numbers(features.fitted.n_scales))
    n_classes, linear, n_linear = len(np.unique(y)), None, 0
    places, shares, n_values = None, None, 0
    if scales:
        cells = fitted.expand(features.codes, 1).astype(int).reshape(len(y), T, -1)[:, :, scales]
        sizes = np.diff(fitted.starts).reshape(T, -1)[:, scales].ravel()
        places = cells + np.r_[0, np.cumsum(sizes)[:-1]].reshape(T, -1)
        shares, n_values = fitted.scale_weights[scales], sizes.sum()
        shares = (shares / np.sqrt((shares**2).sum())).astype(np.float32)
    if candidate.linear:
        linear, n_linear = linear_rows(features), features.term.n_weights
    targets = np.column_stack([signs(y, n_classes), -np.ones(len(y))])
    never = [len(y)]
    counted = (
        [0] + never * (targets.shape[1] - 1) if n_classes < 3 else [np.argmax(y == c) for c in range(n_classes)] + never
    )
    rule = {"loss": loss, "schedule": candidate.schedule, "rate": candidate.rate, "row_weights": weights}
    return reference.learn_scales(
        places, shares, n_values, linear, n_linear, targets, counted_from=np.array(counted), **rule
    )


def linear_rows(features):
    """Return the columns and values of the features of each row, the constant last."""
    rows, constant = features.linear_part
    if isinstance(rows, np.ndarray):
        return [(np.arange(len(row) + 1), np.append(row, np.float32(constant))) for row in rows]
    parts = [slice(begin, end) for begin, end in zip(rows.starts, rows.starts[1:], strict=False)]
    return [
        (np.append(rows.columns[part], rows.n_columns), np.append(rows.values[part], np.float32(constant)))
        for part in parts
    ]


def check_against_twin(race, k, candidate, features, y, loss, weights=None):
    """Check the tables, scores, support vectors and errors of a candidate against the twin."""
    model, window = race.models[k], race.windows[k]
    expected, scores, n_support = twin(candidate, features, y, loss, weights)
    tolerance = {"rtol": 0, "atol": 0} if loss != "logistic" else {"rtol": 1e-4, "atol": 1e-5}
    if model.values is not None:
        np.testing.assert_allclose(model.values, expected.w, **tolerance)
    if model.linear_values is not None:
        np.testing.assert_allclose(model.linear_values, expected.v, **tolerance)
    np.testing.assert_allclose(window.scores[: len(y)], scores, **tolerance)
    assert model.clock.n_support == n_support
    assert model.clock.n_rows == model.clock.rounds == len(y)
    errors = reference.faded_errors(window.scores[: len(y)], y, len(np.unique(y)), race.fade, weights)
    assert race.errors[k] == pytest.approx(errors, rel=1e-12)
    assert race.errors[-1] == pytest.approx(reference.faded_total(len(y), race.fade, weights), rel=1e-12)


@every("rows", ROWS)
@pytest.mark.parametrize("schedule", RATES)
@pytest.mark.parametrize("loss", LOSSES)
def test_candidates_equal_their_numpy_twins(loss, schedule, rows):
    n_classes, choices = rows
    X, y = make_rows(N, n_classes)
    features = make_features(X)
    weights = None if choices is None else np.random.default_rng(1).choice(choices, N)
    candidates = [Candidate(scales, linear, schedule, RATES[schedule]) for scales, linear in PARTS.values()]
    race = begun(candidates, y, features, fade=0.9)
    race.learn(features, y, weights, Steps(loss, "", 0.0, 0.0))
    for k, candidate in enumerate(candidates):
        check_against_twin(race, k, candidate, features, y, loss, weights)


def test_candidates_of_different_losses_equal_their_twins():
    X, y = make_rows(N, 3)
    features = make_features(X)
    candidates = [Candidate("every", linear=True, schedule="adagrad", rate=1.7, loss=loss) for loss in LOSSES]
    race = begun(candidates, y, features)
    race.learn(features, y, None, Steps("", "", 0.0, 0.0))
    for k, candidate in enumerate(candidates):
        check_against_twin(race, k, candidate, features, y, candidate.loss)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("partitioning", ["tree", "voronoi"])
def test_candidates_on_all_kinds_of_rows_and_cells_equal_their_twins(partitioning, form):
    X, y = make_rows(N, 3)
    X[X < 0] = 0
    X[::7] = 0
    features = make_features(form(X), partitioning)
    candidates = [Candidate(scales, linear, "adagrad", 1.7) for scales, linear in PARTS.values()]
    race = begun(candidates, y, features)
    race.learn(features, y, None, Steps("hinge", "", 0.0, 0.0))
    for k, candidate in enumerate(candidates):
        check_against_twin(race, k, candidate, features, y, "hinge")


def test_weights_that_are_fetched_ahead_equal_their_twins():
    X, y = make_rows(16_384, 2)  # weights of so many cells exceed the caches
    features, y = make_features(X, n_cells=len(X))[:N], y[:N]
    candidates = [Candidate(scales, linear, "adagrad", 1.7) for scales, linear in PARTS.values()]
    race = begun(candidates, y, features)
    race.learn(features, y, None, Steps("hinge", "", 0.0, 0.0))
    assert race.models[2].cells.nbytes > 2**20
    for k, candidate in enumerate(candidates):
        check_against_twin(race, k, candidate, features, y, "hinge")


@pytest.mark.parametrize(("n_classes", "threads"), [(2, 2), (2, 16), (3, 3), (7, 2), (7, 16)])
def test_threads_do_not_change_what_candidates_learn(n_classes, threads):
    X, y = make_rows(200, n_classes)  # more than the rows that one thread learns
    found = []
    for n in (1, threads):
        features = make_features(X, threads=n)
        race = begun([Candidate(*part, "adagrad", 1.7) for part in PARTS.values()], y, features, fade=0.9)
        race.learn(features, y, None, Steps("logistic", "", 0.0, 0.0))
        found.append([*race.errors, *(race.models[k].clock.n_support for k in range(len(PARTS)))])
        found[-1] += [table.tobytes() for model in race.models for table in model.tables() if table is not None]
        found[-1] += [window.scores.tobytes() for window in race.windows]
    assert found[0] == found[1]


def test_rows_in_blocks_and_in_any_order_of_an_index_are_the_same_rows():
    X, y = make_rows(60, 3)
    features = make_features(X)
    order = np.random.default_rng(3).permutation(60)
    found = []
    for parts in ([order], np.split(order, [1, 20, 21])):
        race = begun([Candidate("every", linear=True, schedule="adagrad", rate=1.7)], y, features)
        for part in parts:
            race.learn(features[part], y[part], None, Steps("hinge", "", 0.0, 0.0))
        found.append([table.tobytes() for table in race.model.tables()])
    turned = make_features(X)[order][slice(0, 60)]
    np.testing.assert_array_equal(turned.linear_part[0], features.term.rows(X[order]))
    np.testing.assert_array_equal(
        turned[10:20][np.array([3, 1])].linear_part[0], features.term.rows(X[order[[13, 11]]])
    )
    assert found[0] == found[1]


# Scores


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize("options", [{}, {"max_depth": 3}, {"n_partitionings": 1}], ids=["", "capped", "one tree"])
def test_folded_scores_are_those_along_the_path_byte_for_byte(options, linear, n_classes):
    X, y = make_rows(300, n_classes)
    parameters = {"n_partitionings": T, "n_cells": 64, "n_scales": 3, "random_state": 0, "n_initial": 50} | options
    model = IKOGDClassifier(schedule="adagrad", linear=linear, **parameters).fit(X, y)
    few = np.concatenate([model.decision_function(X[k : k + 3]) for k in range(0, 30, 3)])
    assert model.learned_.model._fold.values is None
    many = model.decision_function(X)
    assert model.learned_.model._fold.values is not None
    assert many[:30].tobytes() == few.tobytes()
    assert model.decision_function(X[:2]).tobytes() == few[:2].tobytes()  # folded now


def test_folded_weights_are_given_up_when_rows_are_learned():
    X, y = make_rows(400, 3)
    model = IKOGDClassifier(n_partitionings=T, n_scales=3, n_cells=64, schedule="adagrad", random_state=0).fit(X, y)
    for begin in range(0, 100, 20):
        fresh = model.decision_function(X)
        assert model.learned_.model._fold.values is not None
        model.partial_fit(X[begin : begin + 20], y[begin : begin + 20])
        one_by_one = [model.decision_function(X[k : k + 1]) for k in range(20)]
        assert not np.array_equal(np.concatenate(one_by_one), fresh[:20])
        assert np.concatenate(one_by_one).tobytes() == model.decision_function(X)[:20].tobytes()


def test_too_large_a_table_is_not_folded(monkeypatch):
    X, y = make_rows(300)
    model = IKOGDClassifier(n_partitionings=T, n_cells=64, n_scales=3, schedule="adagrad", random_state=0).fit(X, y)
    folded = model.decision_function(X)
    monkeypatch.setattr(scale_weights, "_LARGEST_FOLD", 1000)
    model.learned_.model._fold = None
    assert model.decision_function(X).tobytes() == folded.tobytes()
    assert model.learned_.model._fold is None


@pytest.mark.parametrize("partitioning", ["tree", "voronoi"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_blocks_of_scored_rows_do_not_change_scores(n_classes, partitioning, monkeypatch):
    X, y = make_rows(300, n_classes)
    model = IKOGDClassifier(partitioning, T, 64, n_scales=3, linear=True, schedule="adagrad", random_state=0).fit(X, y)
    whole = model.decision_function(X)
    monkeypatch.setattr(scale_weights, "_ROWS_PER_LOCK", 7)
    assert model.decision_function(X).tobytes() == whole.tobytes()
    assert model.set_params(n_jobs=2).decision_function(X).tobytes() == whole.tobytes()


def test_scores_before_a_row_is_learned_are_those_that_it_is_predicted_with():
    X, y = make_rows(120, 3)
    model = IKOGDClassifier(n_partitionings=T, n_initial=50, random_state=0).partial_fit(X[:60], y[:60])
    for k in range(60, 120):
        shown = model.decision_function(X[k : k + 1])
        leader = model.learned_.window
        model.partial_fit(X[k : k + 1], y[k : k + 1])
        assert leader.scores[k, :3].tobytes() == shown[0].tobytes()


# Large weights


@pytest.mark.parametrize("weight", [1e19, 1e50])
@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_heavy_rows_that_contradict_each_other_do_not_ruin_a_model(loss, linear, weight):
    X, y = make_rows(300)
    model = IKOGDClassifier(n_partitionings=T, n_cells=16, loss=loss, linear=linear, n_initial=50, random_state=0)
    model.partial_fit(X[:60], y[:60])
    model.partial_fit(np.tile(X[:1], (40, 1)), np.arange(40) % 2, sample_weight=np.full(40, weight))
    tables = [table for model in model.learned_.models for table in model.tables() if table is not None]
    assert all(np.isfinite(table).all() for table in tables)
    assert np.isfinite(model.decision_function(X)).all()


@pytest.mark.parametrize("linear", [False, True])
def test_weights_that_are_replaced_by_themselves_stay(linear):
    X, y = make_rows(700, 4)
    model = IKOGDClassifier(n_partitionings=T, random_state=0, linear=linear).partial_fit(X, y)
    replaced = copy.deepcopy(model)
    for candidate in replaced.learned_.models:
        candidate.replace_current(candidate.current())
    assert replaced.decision_function(X).tobytes() == model.decision_function(X).tobytes()
    for one, other in zip(model.learned_.models, replaced.learned_.models, strict=True):
        tables = zip(one.tables(), other.tables(), strict=True)
        assert all(a is b is None or a.tobytes() == b.tobytes() for a, b in tables)


# Arguments of the core


def learn_in_core(change):
    """Learn two rows of one candidate with cells and a linear term; ``change`` replaces arguments."""
    given = {
        "cells": np.zeros((2, 4), dtype=np.uint8),
        "starts": np.array([0, 2, 6, 8, 12]),
        "shares": np.array([0.6, 0.8], dtype=np.float32),
        "weights": np.zeros((12, 2, 3), dtype=np.float32),
        **{name: np.zeros((4, 3), dtype=np.float32) for name in ("linear_values", "linear_squares")},
        "rule": _core.Rule("hinge", 0.0, "adagrad", 0.5, 0.0, [0, 0, 0], True),
        "clock": _core.Clock(),
        "scores": np.empty((2, 3)),
        "linear": np.zeros((2, 3), dtype=np.float32),
        "constant": 0.5,
        "targets": np.array([0, 1], dtype=np.int32),
        "row_weights": None,
        "guard": _core.Clock(),
        "seen_from": [0, 0, 0],
        "fade": 1.0,
        "errors": np.zeros(2),
        "history": np.empty((1, 2)),
        "threads": 1,
    } | change
    own = (
        "cells",
        "starts",
        "shares",
        "weights",
        "linear_values",
        "linear_squares",
        "rule",
        "clock",
        "scores",
    )
    entrant = _core.Entrant(**{name: given.pop(name) for name in own})
    _core.learn_scales([entrant], **given)
    return given["errors"].tolist()


def float32(*shape):
    return np.zeros(shape, dtype=np.float32)


BAD_ARGUMENTS = {
    "a row of cells less": {"cells": np.zeros((1, 4), dtype=np.uint8)},
    "a column of cells less": {"cells": np.zeros((2, 3), dtype=np.uint8)},
    "starts for fewer cells": {"starts": np.array([0, 2, 6, 8])},
    "no starts": {"starts": None},
    "shares of another number of scales": {"shares": float32(3)},
    "no shares": {"shares": float32(0)},
    "weights of fewer cells": {"weights": float32(11, 2, 3)},
    "weights of fewer scores": {"weights": float32(12, 2, 2)},
    "no weights": {"weights": None},
    "no shares, cells and weights": {"shares": float32(0), "cells": None, "starts": None, "weights": None},
    "no squares": {"weights": float32(12, 1, 3)},
    "no cells": {"cells": None},
    "linear weights of fewer columns": {"linear_values": float32(3, 3)},
    "linear squares of fewer columns": {"linear_squares": float32(3, 3)},
    "no linear squares": {"linear_squares": None},
    "no linear rows": {"linear": None},
    "a linear row less": {"linear": float32(1, 3)},
    "linear rows of more columns": {"linear": float32(2, 4)},
    "scores of fewer rows": {"scores": np.empty((1, 3))},
    "scores of more columns": {"scores": np.empty((2, 4))},
    "a rule of fewer columns": {"rule": _core.Rule("hinge", 0.0, "adagrad", 0.5, 0.0, [0], True)},
    "weights of more rows": {"row_weights": np.ones(3)},
    "no error for the sum of weights": {"errors": np.zeros(1)},
    "more errors": {"errors": np.zeros(3)},
    "a history of fewer rows": {"history": np.empty((1, 1))},
    "a history of more entrants": {"history": np.empty((2, 2))},
    "more classes than scores": {"seen_from": [0] * 4},
    "a target beyond the classes": {"targets": np.array([0, 3], dtype=np.int32)},
    "a target below the classes": {"targets": np.array([0, -1], dtype=np.int32)},
}


@every("change", BAD_ARGUMENTS)
def test_the_core_refuses_arguments_that_do_not_match(change):
    with pytest.raises(ValueError, match="must"):
        learn_in_core(change)


@pytest.mark.parametrize("entrants", [[], [None]])
def test_the_core_refuses_to_learn_without_an_entrant(entrants):
    arrays = (np.zeros(len(entrants) + 1), np.empty((len(entrants), 2)))
    targets = np.array([0, 1], dtype=np.int32)
    with pytest.raises(ValueError, match="entrants must be at least one"):
        _core.learn_scales(entrants, None, 0.0, targets, None, _core.Clock(), [0, 0, 0], 1.0, *arrays, 1)


def test_the_core_refuses_none_for_a_clock_or_a_renewal():
    with pytest.raises(ValueError, match="clocks must not be None"):
        _core.copy_models(_core.Clock(), [None], [], 1)
    arguments = (None, None, float32(1), None, None, None, _core.Rule("hinge", 0.0, "adagrad", 0.5, 0.0, [0], True))
    with pytest.raises(ValueError, match="renewals must not be None"):
        _core.Entrant(*arguments, _core.Clock(), np.empty((2, 1)), [None])


def test_the_core_takes_arguments_that_match():
    assert learn_in_core({}) == [1.0, 2.0]
