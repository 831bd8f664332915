"""Check the race of candidates: whom parameters leave, the stages of fit, who wins, and cells in place of rows."""

from __future__ import annotations

import copy
import itertools
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from isokern import IKOGDClassifier, IKOGDClassifierCV, IsolationKernel
from isokern.learners import base_race, candidates
from isokern.learners.candidates import CANDIDATES, LINEAR_PASSES, candidates_of, fit_stages
from isokern.learners.one_vs_rest import OneVsRest
from isokern.learners.race import Race
from isokern.learners.weights import CellWeights
from learning import every, make_rows, make_stream
from test_interrupts import plain, state_of

T = 6
SMALL = {"n_partitionings": T, "random_state": 0}
STREAM = {**SMALL, "n_initial": 50}
STAGES = ((60, 4), (100, 3), (150, 2))


@pytest.fixture(autouse=True)
def several_scales(monkeypatch):
    """Give few rows as many cells as 1,000 rows get, so that there are three scales."""
    monkeypatch.setattr(candidates, "auto_n_cells", lambda n_rows: 32)


def chessboard(n, n_columns=2):
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 4, (n, n_columns))
    return X, (np.floor(X[:, :2]).sum(axis=1) % 2).astype(int)


def halves(n, n_columns=20):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, n_columns))
    return X, (X.sum(axis=1) > 0).astype(int)


def numbers_running(model):
    return model.learned_.selection.running


# The candidates that parameters leave

ALL = [
    "all cells, adagrad 2, squared_hinge",
    "coarse cells, adagrad 2, logistic",
    "all cells, adagrad 0.5, logistic",
    "all cells + linear, adagrad 0.5, logistic",
    "linear, adagrad 0.5, logistic",
]
FINEST = [
    "finest cells, adagrad 2, squared_hinge",
    "finest cells, adagrad 0.5, logistic",
    "finest cells + linear, adagrad 0.5, logistic",
    "linear, adagrad 0.5, logistic",
]
EVERY = [name.replace("finest", "every") for name in FINEST]
GROWING = [
    "finest cells, adagrad 2",
    "coarse cells, adagrad 2",
    "finest cells, adagrad 0.5",
    "finest cells + linear, adagrad 0.5",
]
WITH_LINEAR = [
    "all cells + linear, adagrad 2, squared_hinge",
    "coarse cells + linear, adagrad 2, logistic",
    "all cells + linear, adagrad 0.5, logistic",
    "linear, adagrad 0.5, logistic",
]
FINEST_WITH_LINEAR = [WITH_LINEAR[k].replace("all", "finest") for k in (0, 2, 3)]


class Halves(BaseEstimator):
    """A partitioning of a user: two halves of the first column."""

    def fit(self, X, y=None):
        self.n_cells_ = 2
        return self

    def apply(self, X):
        return (X[:, 0] > 0).astype(int)


class ScaledHalves(Halves):
    """One with two scales."""

    def fit(self, X, y=None):
        self.n_scales_, self.n_cells_ = 2, (2, 4)
        return self

    def apply(self, X):
        first, second = (X[:, :2] > 0).T.astype(int)
        return np.column_stack([first, 2 * first + second])


def fitted_kernel(**options):
    return IsolationKernel(n_partitionings=T, n_cells=64, random_state=0, **options).fit(make_rows(100)[0])


LEFT = {
    "nothing given": ({}, ALL),
    "voronoi": ({"partitioning": "voronoi"}, ALL),
    "other parameters": (
        {"n_passes": 3, "shuffle": False, "class_weight": "balanced", "scale": "minmax"},
        ALL,
    ),
    "loss": ({"loss": "hinge"}, [name.rpartition(", ")[0] for name in ALL]),
    "n_partitionings, max_depth": ({"n_partitionings": 7, "max_depth": 4}, ALL),
    "linear=False": ({"linear": False}, ALL[:3]),
    "linear=True": ({"linear": True}, WITH_LINEAR),
    "n_cells": ({"n_cells": 64}, FINEST),
    "n_cells, linear=False": ({"n_cells": 64, "linear": False}, FINEST[:2]),
    "n_cells, linear=True": ({"n_cells": 64, "linear": True}, FINEST_WITH_LINEAR),
    "n_scales=1": ({"n_scales": 1}, FINEST),
    "n_scales=1, n_cells": ({"n_scales": 1, "n_cells": 64}, FINEST),
    "n_scales=3, linear=True": (
        {"n_scales": 3, "linear": True},
        [name.replace("finest", "every") for name in FINEST_WITH_LINEAR],
    ),
    "n_scales=3, linear=False": ({"n_scales": 3, "linear": False}, EVERY[:2]),
    "schedule": ({"schedule": "constant"}, []),
    "schedule adagrad": ({"schedule": "adagrad"}, []),
    "learning_rate": ({"learning_rate": 2.0}, []),
    "average": ({"average": True}, []),
    "shrinkage": ({"shrinkage": 0.1}, []),
    "naive": ({"evaluation": "naive"}, []),
    "dual": ({"evaluation": "dual"}, []),
    "own partitioning": ({"partitioning": Halves()}, []),
    "an unfitted kernel": ({"kernel": IsolationKernel(n_cells=64, random_state=0)}, []),
    "a fitted kernel": ({"kernel": fitted_kernel()}, []),
    "the paper's learner": ({"schedule": "constant", "average": False, "n_passes": 1, "shuffle": False}, []),
    "schedule, linear=False": ({"schedule": "constant", "linear": False}, []),
    "schedule, linear=True": ({"schedule": "constant", "linear": True}, ["finest cells + linear, constant 0.5"]),
    "schedule, n_scales": ({"schedule": "constant", "n_scales": 2}, ["every cells, constant 0.5"]),
    "learning_rate, n_scales, linear": (
        {"learning_rate": 1.5, "n_scales": 2, "linear": True},
        ["every cells + linear, adagrad 1.5"],
    ),
    "decaying, n_scales": ({"schedule": "decaying", "n_scales": 3}, ["every cells, decaying 1"]),
    "a kernel with scales": ({"kernel": fitted_kernel(n_scales=2)}, ["every cells, adagrad 2"]),
    "an unfitted kernel with scales": ({"kernel": IsolationKernel(n_scales="auto")}, ["every cells, adagrad 2"]),
    "a kernel, linear=True": ({"kernel": fitted_kernel(), "linear": True}, ["finest cells + linear, adagrad 2"]),
    "own partitioning with scales": ({"partitioning": ScaledHalves(), "n_scales": 2}, ["every cells, adagrad 2"]),
}


@pytest.mark.parametrize(("parameters", "expected"), LEFT.values(), ids=LEFT)
def test_parameters_leave_these_candidates(parameters, expected):
    model = IKOGDClassifier(**parameters)
    assert [candidate.name for candidate in candidates_of(model)] == expected
    model.set_params(**({} if "kernel" in parameters else {"n_partitionings": T}), random_state=0)
    model.fit(*make_rows(200))
    assert isinstance(model.learned_, Race if expected else OneVsRest)
    assert (model.selection_ and model.selection_["candidates"]) == (expected or None)


CLOSED = {name: parameters for name, (parameters, left) in LEFT.items() if not left}


@pytest.mark.parametrize("parameters", [{"n_scales": 3}, {"n_scales": 3, "n_cells": 64}], ids=str)
def test_a_number_of_scales_leaves_the_linear_candidate(parameters):
    assert [candidate.name for candidate in candidates_of(IKOGDClassifier(**parameters))] == EVERY


@every("parameters", CLOSED)
def test_given_steps_give_one_model_in_float64_on_one_scale(parameters):
    X, y = make_rows(200, 3)
    model = IKOGDClassifier(**parameters, **({} if "kernel" in parameters else {"n_partitionings": T})).fit(X, y)
    assert model.linear_term_ is None
    assert model.kernel_.n_scales_ == 1
    if parameters.get("evaluation") != "dual":
        assert isinstance(model.learned_.model, CellWeights)
        assert model.learned_.model.values.dtype == np.float64


@every("parameters", CLOSED | {"one candidate": {"schedule": "constant", "linear": True}})
def test_without_a_race_the_loss_is_hinge(parameters):
    X, y = make_rows(200, 3)
    how = {"random_state": 0} | parameters | ({} if "kernel" in parameters else {"n_partitionings": T})
    auto, hinge = (IKOGDClassifier(loss=loss, **how).fit(X, y) for loss in ("auto", "hinge"))
    assert auto.decision_function(X).tobytes() == hinge.decision_function(X).tobytes()


def test_each_candidate_learns_by_its_own_loss():
    X, y = make_rows(200, 3)
    model = IKOGDClassifier(**SMALL).partial_fit(X[:1], y[:1], classes=np.unique(y)).partial_fit(X, y)
    growing = model.learned_.selection.candidates
    assert growing == [*(f"{name}, squared_hinge" for name in GROWING), "linear, adagrad 0.5, logistic"]
    assert [m.loss for m in model.learned_.models] == [name.rpartition(", ")[2] for name in growing]


def test_an_own_partitioning_with_scales_needs_no_n_scales():
    X, y = make_rows(100)
    IKOGDClassifier(ScaledHalves(), n_partitionings=2).fit(X, y)


@every("options", {"average": {"average": True}, "shrinkage": {"shrinkage": 0.1}, "dual": {"evaluation": "dual"}})
@every("asked", {"scales": {"n_scales": 3}, "linear": {"linear": True}})
def test_several_scales_and_a_linear_term_need_plain_steps(asked, options):
    with pytest.raises(ValueError, match="must be kept with several scales or a linear term"):
        IKOGDClassifier(**asked, **options).fit(*make_rows(50))


def test_candidates_take_the_scales_that_their_names_say():
    by_name = {c.scales: c for c in CANDIDATES}
    assert by_name["all"].numbers(5) == (0, 2, 4)
    assert by_name["all"].numbers(6) == (1, 3, 5)
    assert by_name["all"].numbers(1) == by_name["coarse"].numbers(1) == (0,)
    assert by_name["coarse"].numbers(6) == (1,)
    assert by_name[""].numbers(6) == ()
    assert by_name["all"]._replace(scales="every").numbers(3) == (0, 1, 2)
    assert by_name["all"]._replace(scales="finest").numbers(3) == (2,)


# The stages of fit


def test_stages_of_fit_for_some_numbers_of_rows():
    assert fit_stages(10) == [(10, 1)]
    assert fit_stages(1_999) == [(1_999, 1)]
    assert fit_stages(3_999) == [(1_000, 4), (3_999, 1)]
    assert fit_stages(8_000) == [(1_000, 4), (2_000, 3), (8_000, 1)]
    assert fit_stages(32_000) == [(1_000, 4), (2_000, 3), (8_000, 2), (30_000, 1)]
    assert fit_stages(32_000, 10.0) == [(10_000, 4), (32_000, 1)]
    assert fit_stages(60_000) == [(1_000, 4), (2_000, 3), (8_000, 2), (30_000, 1)]
    assert fit_stages(64_000) == [(1_000, 4), (2_000, 3), (8_000, 2), (32_000, 1)]
    assert fit_stages(10**6) == [(15_625, 4), (31_250, 3), (125_000, 2), (500_000, 1)]


@pytest.mark.parametrize("n", [2, 10, 999, 1_000, 10_000, 63_999, 64_000, 64_001, 123_457, 10**6, 10**9])
def test_stages_of_fit_are_long_drop_candidates_and_end_with_one(n):
    stages = fit_stages(n)
    ends, kept = zip(*stages, strict=True)
    assert list(ends) == sorted(set(ends))
    assert list(kept) == sorted(set(kept), reverse=True)
    assert kept[-1] == 1
    assert ends[-1] <= n
    assert all(second - first >= 1_000 for first, second in itertools.pairwise([0, *ends])) or len(ends) == 1


# The winner


def alone(monkeypatch, candidate, X, y, weights, **options):
    """Return the scores that rows of fit had before they were learned by a single candidate, and the model."""
    with monkeypatch.context() as patch:
        patch.setattr(candidates, "CANDIDATES", (candidate,))
        model = IKOGDClassifier(**SMALL, **options).fit(X, y, sample_weight=weights)
    return model.learned_.window.scores[: len(y)].copy(), model


def missed(scores, y):
    """Return which rows are not predicted as their class, among those seen so far; a single class is never missed."""
    seen = np.cumsum(y[:, None] == np.arange(y.max() + 1), axis=0) > 0
    if seen.shape[1] == 2:
        return seen.all(axis=1) & ((scores[:, 0] > 0) != y)
    return np.where(seen, scores[:, : seen.shape[1]], -np.inf).argmax(axis=1) != y


def expected_race(is_missed, weights):
    """Return the winner, and each candidate's share of errors in its last stage; ``is_missed`` is (candidates, n)."""
    usual = (weights**2).sum() / weights.sum()
    running, shares, begin = list(range(len(is_missed))), np.full(len(is_missed), np.nan), 0
    for end, n_kept in fit_stages(len(weights), usual / weights.mean()):
        errors, total = is_missed[:, begin:end] @ weights[begin:end], weights[begin:end].sum()
        shares[running] = errors[running] / total
        least = min(errors[running])
        near = [k for k in running if errors[k] <= 1.25 * least + 4 * np.sqrt(usual * least)]
        running, begin = sorted(sorted(near, key=lambda k: errors[k])[:n_kept]), end
    return running[0], shares


ROWS = {"noise": make_rows, "chessboard": chessboard, "halves": halves}


@pytest.mark.parametrize("is_weighted", [False, True], ids=["", "weighted"])
@pytest.mark.parametrize(
    ("data", "n_classes", "decision"),
    [("noise", 3, 10), ("chessboard", 2, 10), ("chessboard", 3, 30_000), ("halves", 2, 30_000)],
)
def test_the_candidate_with_the_fewest_errors_wins(data, n_classes, decision, is_weighted, monkeypatch):
    stages = ((1 / 64, 15, 4), (1 / 32, 30, 3), (1 / 8, 60, 2), (1 / 2, decision, 1))
    monkeypatch.setattr(candidates, "FIT_STAGES", stages)
    n = 600
    X, y = ROWS[data](n)
    y = y + (n_classes == 3) * (X[:, 1] > X[:, 1].mean())
    rng = np.random.RandomState(0)
    rng.randint(np.iinfo(np.int32).max)  # the seed of the kernel
    order = rng.permutation(n)
    weights = np.random.default_rng(1).exponential(size=n) if is_weighted else np.ones(n)
    runs = [alone(monkeypatch, candidate, X, y, weights) for candidate in CANDIDATES]
    winner, shares = expected_race(np.array([missed(scores, y[order]) for scores, _ in runs]), weights[order])
    model = IKOGDClassifier(**SMALL).fit(X, y, sample_weight=weights)
    found = model.selection_
    assert found["candidates"] == [candidate.name for candidate in CANDIDATES]
    assert found["running"] == [found["leader"]] == [CANDIDATES[winner].name]
    np.testing.assert_allclose(found["errors"], shares)
    assert model.decision_function(X).tobytes() == runs[winner][1].decision_function(X).tobytes()
    assert model.n_support_ == runs[winner][1].n_support_


def test_the_earlier_candidate_wins_a_tie(monkeypatch):
    monkeypatch.setattr(candidates, "CANDIDATES", CANDIDATES[3:] + CANDIDATES[3:])
    X, y = halves(600)
    assert len(candidates_of(IKOGDClassifier())) == 2  # equal candidates run once
    monkeypatch.setattr(base_race, "_model", lambda _, *a, model=base_race._model: model(CANDIDATES[0], *a))
    model = IKOGDClassifier(**SMALL).fit(X, y)
    assert model.selection_["leader"] == CANDIDATES[3].name
    assert len(set(model.selection_["errors"])) == 1


def test_rows_that_a_linear_function_separates_are_won_by_a_linear_term():
    X, y = halves(2000)
    model = IKOGDClassifier(**SMALL).fit(X, y)
    assert "linear" in model.selection_["leader"]
    X, y = chessboard(2000)
    model = IKOGDClassifier(**SMALL).fit(X, y)
    assert "linear" not in model.selection_["leader"]


@pytest.mark.parametrize("learn", ["fit", "partial_fit"])
def test_class_weights_weigh_steps_and_errors_like_sample_weights(learn):
    X, y, weights = make_stream(300, 3)
    shares = {0: 0.25, 1: 2.0, 2: 1.0}
    by_class = getattr(IKOGDClassifier(**STREAM, class_weight=shares), learn)(X, y, sample_weight=weights)
    by_row = getattr(IKOGDClassifier(**STREAM), learn)(X, y, sample_weight=weights * [shares[label] for label in y])
    assert state_of(by_class) == state_of(by_row)


def test_rows_of_weight_zero_count_for_nothing():
    X, y, weights = make_stream(300, 3)
    weights[::3] = 0
    kernel = fitted_kernel(n_scales="auto")
    some = IKOGDClassifier(kernel=kernel).partial_fit(X, y, sample_weight=weights)
    without = IKOGDClassifier(kernel=kernel).partial_fit(
        X[weights > 0], y[weights > 0], sample_weight=weights[weights > 0]
    )
    assert some.decision_function(X).tobytes() == without.decision_function(X).tobytes()
    assert some.n_support_ == without.n_support_


@pytest.mark.parametrize(
    ("data", "n_passes", "n_learned"),
    [("chessboard", 1, 1), ("chessboard", 3, 3), ("noise", 1, 1), ("noise", 3, 1 + 2 * LINEAR_PASSES)],
)
def test_the_winner_alone_goes_on_after_fit(data, n_passes, n_learned):
    X, y = ROWS[data](500)
    model = IKOGDClassifier(**SMALL, n_passes=n_passes).fit(X[:300], y[:300])
    assert (model.selection_["leader"] == ALL[-1]) == (data == "noise")
    assert model.n_rows_seen_ == 300
    assert model.learned_.model.clock.rounds == 300 * n_learned
    before, support = model.selection_, model.n_support_
    parts = copy.deepcopy(model)
    model.partial_fit(X[300:], y[300:])
    for k in range(300, 500):
        parts.partial_fit(X[k : k + 1], y[k : k + 1])
    assert model.n_rows_seen_ == 500
    assert model.n_support_ > support
    assert model.selection_["leader"] == before["leader"]
    np.testing.assert_array_equal(model.selection_["errors"], before["errors"])
    assert state_of(model) == state_of(parts)


@pytest.mark.parametrize("learn", ["fit", "partial_fit"])
def test_shares_of_errors_are_at_most_one_with_large_weights(learn):
    X, y = make_rows(300)
    model = getattr(IKOGDClassifier(**STREAM), learn)(X, y, sample_weight=np.full(300, 10.0))
    assert np.nanmax(model.selection_["errors"]) <= 1


def test_candidates_that_go_on_do_not_depend_on_the_unit_of_the_weights():
    X, y = make_rows(60)
    state = IKOGDClassifier(**STREAM).partial_fit(X, y).learned_
    state.errors[:] = [20, 10, 26, 24, 40, 60]
    for n_kept, kept in [(4, [0, 1, 3]), (2, [0, 1]), (1, [1])]:  # 26 is far behind
        assert state.compared(n_kept).selection.running == kept
        heavy = replace(state, errors=100 * state.errors)
        assert heavy.compared(n_kept, usual_weight=100.0).selection.running == kept


def test_a_search_never_races():
    X, y = make_rows(150)
    model = IKOGDClassifierCV(n_partitionings=T, n_cells=(4, 16), cv=3, random_state=0).fit(X, y)
    assert isinstance(model.best_estimator_.learned_, OneVsRest)


# Cells


@pytest.mark.parametrize("partitioning", ["tree", "voronoi"])
def test_cells_are_learned_and_scored_like_rows_without_a_linear_term(partitioning):
    X, y = make_rows(400, 3)
    model = IKOGDClassifier(partitioning, **STREAM, linear=False).partial_fit(X[:100], y[:100])
    other = copy.deepcopy(model)
    cells = model.kernel_.apply(X)
    model.partial_fit(X[100:], y[100:])
    other.partial_fit_cells(cells[100:], y[100:])
    assert state_of(model) == state_of(other)
    assert model.takes_cells
    assert model.decision_function(X).tobytes() == model.decision_function_cells(cells).tobytes()
    assert np.array_equal(model.predict(X), model.predict_cells(cells))
    assert model.predict_proba(X).tobytes() == model.predict_proba_cells(cells).tobytes()
    assert np.array_equal(model.map_rows(X), cells)


def test_cells_for_a_model_with_a_linear_term_are_a_clear_error():
    X, y = halves(600)
    model = IKOGDClassifier(**SMALL).fit(X, y)
    assert "linear" in model.selection_["leader"]
    cells = model.kernel_.apply(X)
    for call in (
        lambda: model.partial_fit_cells(cells, y),
        lambda: model.decision_function_cells(cells),
        lambda: model.predict_cells(cells),
        lambda: model.predict_proba_cells(cells),
    ):
        with pytest.raises(ValueError, match=r"linear must be False for cells.*rows themselves, or linear=False"):
            call()
    assert not model.takes_cells
    assert model.n_rows_seen_ == 600


def test_cells_for_a_winner_without_a_linear_term_are_scored():
    X, y = chessboard(1000)
    model = IKOGDClassifier(**SMALL).fit(X, y)
    cells = model.kernel_.apply(X)
    assert model.decision_function(X).tobytes() == model.decision_function_cells(cells).tobytes()
    model.partial_fit_cells(cells, y)
    assert model.n_rows_seen_ == 2000


def test_a_kernel_with_scales_may_be_begun_with_cells():
    X, y = make_rows(300, 3)
    kernel = fitted_kernel(n_scales="auto")
    by_rows = IKOGDClassifier(kernel=kernel).partial_fit(X, y)
    by_cells = IKOGDClassifier(kernel=kernel).partial_fit_cells(kernel.apply(X), y)
    assert plain(by_rows.learned_) == plain(by_cells.learned_)


@pytest.mark.parametrize("change", [{"n_cells": 32}, {"n_scales": 1}], ids=str)
def test_a_kernel_that_was_refitted_is_a_clear_error(change):
    X, y = make_rows(200)
    kernel = IsolationKernel(n_partitionings=T, n_cells=64, n_scales=3, random_state=0).fit(X)
    model = IKOGDClassifier(kernel=kernel).fit(X, y)
    kernel.set_params(**change).fit(X)
    with pytest.raises(ValueError, match="kernel must stay as it was when learning began"):
        model.predict(X)
