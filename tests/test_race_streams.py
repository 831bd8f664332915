"""Check that a race does not depend on calls, threads, the form of rows, late classes, interrupts or readers."""

from __future__ import annotations

import copy
import itertools
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import sparse

from isokern import IKOGDClassifier
from isokern.learners import base_race, candidates, classifier, commits, on_cells
from isokern.learners.candidates import FADE
from isokern.learners.scale_weights import ScaleWeights
from learning import FORMS, LOSSES, every, feed, make_rows, make_stream
from test_interrupts import interrupted, plain, state_of
from test_race import ALL, SMALL, STAGES, STREAM, chessboard, missed, numbers_running


@pytest.fixture(autouse=True)
def several_scales(monkeypatch):
    """Give few rows as many cells as 1,000 rows get, so that there are three scales."""
    monkeypatch.setattr(candidates, "auto_n_cells", lambda n_rows: 32)


@pytest.fixture
def early_stages(monkeypatch):
    """Drop candidates of a stream after few rows."""
    monkeypatch.setattr(base_race, "STREAM_STAGES", STAGES)


@pytest.fixture
def small_blocks(monkeypatch):
    """Learn blocks of 20 rows."""
    for module in (commits, classifier):
        monkeypatch.setattr(module, "BLOCK", 20)


# The same bytes

FITS = {
    "default": {},
    "logistic": {"loss": "logistic"},
    "voronoi": {"partitioning": "voronoi"},
    "balanced": {"class_weight": "balanced", "loss": "squared_hinge"},
    "n_cells": {"n_cells": 32},
    "n_scales": {"n_scales": 2},
    "linear": {"linear": True},
    "no race, linear": {"linear": True, "schedule": "decaying"},
}


@every("options", FITS)
@every("form", FORMS)
def test_fit_with_a_seed_gives_the_same_model_on_any_number_of_threads(form, options):
    X, y, weights = make_stream(400)
    X = form(X)
    models = [IKOGDClassifier(**SMALL, **options, n_jobs=n).fit(X, y, sample_weight=weights) for n in (1, 1, 2)]
    models.append(copy.deepcopy(models[0]).fit(X, y, sample_weight=weights))
    scores = models[0].decision_function(X)
    for model in models[1:]:
        assert state_of(model) == state_of(models[0])
        assert model.decision_function(X).tobytes() == scores.tobytes()
        assert model.set_params(n_jobs=2).predict_proba(X).tobytes() == models[0].predict_proba(X).tobytes()


@pytest.mark.parametrize("partitioning", ["tree", "voronoi"])
@pytest.mark.parametrize("options", [{}, {"n_cells": 20}, {"n_scales": 2}])
def test_dense_and_sparse_rows_give_the_same_model_without_a_linear_term(options, partitioning):
    X, y = make_rows(300, 3)
    X[X < 0.2] = 0
    learners = [IKOGDClassifier(partitioning, **STREAM, linear=False, **options) for _ in range(4)]
    dense, csr = learners[0].fit(X, y), learners[1].fit(sparse.csr_array(X), y)
    assert plain(dense.learned_) == plain(csr.learned_)
    assert dense.decision_function(X).tobytes() == csr.decision_function(sparse.csr_array(X)).tobytes()
    dense, csr = learners[2].partial_fit(X, y), learners[3].partial_fit(sparse.csr_array(X), y)
    assert plain(dense.learned_) == plain(csr.learned_)


SPLITS = {
    "two": [170],
    "at a stage": [60, 40, 50],
    "next to stages": [59, 2, 38, 2, 48, 2],
    "blocks": [37] * 20,
    "one by one": [1] * 200,
    "warm-up, then the rest": [49, 1, 1],
}


def assert_same_stream(options, sizes, y, X, weights=None):
    whole = feed(IKOGDClassifier(**STREAM, **options), [], X, y, weights)
    parts = feed(IKOGDClassifier(**STREAM, **options), sizes, X, y, weights)
    assert parts.decision_function(X).tobytes() == whole.decision_function(X).tobytes()
    assert parts.n_support_ == whole.n_support_
    assert state_of(parts) == state_of(whole)


@pytest.mark.usefixtures("early_stages")
@every("sizes", SPLITS)
def test_any_split_of_a_stream_gives_the_same_bytes(sizes):
    X, y, weights = make_stream(400)
    assert_same_stream({}, sizes, y, X, weights)


@pytest.mark.usefixtures("early_stages")
@every("options", FITS)
def test_a_split_of_a_stream_gives_the_same_bytes_with_any_parameters(options):
    X, y, weights = make_stream(250)
    assert_same_stream(options, SPLITS["next to stages"], y, X, weights)


@pytest.mark.usefixtures("early_stages")
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
def test_any_split_gives_the_same_bytes_of_sparse_rows_and_with_small_blocks(form, monkeypatch):
    X, y, weights = make_stream(300)
    X[X < 0] = 0
    X = form(X)
    whole = feed(IKOGDClassifier(**STREAM), [], X, y, weights)
    for module in (commits, classifier):
        monkeypatch.setattr(module, "BLOCK", 17)
    for sizes in ([], [5] * 60):
        assert state_of(feed(IKOGDClassifier(**STREAM), sizes, X, y, weights)) == state_of(whole)


@pytest.mark.usefixtures("early_stages")
def test_candidates_are_dropped_after_fixed_numbers_of_rows():
    X, y = chessboard(400)
    model, running = IKOGDClassifier(**STREAM), []
    for k in range(200):
        model.partial_fit(X[k : k + 1], y[k : k + 1])
        if k >= 49:
            running.append(len(numbers_running(model)))
            assert model.n_rows_seen_ == k + 1
    # The candidates are narrowed when the first row of the next stage is learned.
    assert [running.count(n) for n in (5, 4, 3, 2)] == [60 - 49, 40, 50, 50]
    selection = model.selection_
    assert selection["leader"] in selection["running"]
    assert np.isfinite(selection["errors"]).all()
    assert selection["leader"] == selection["candidates"][int(np.nanargmin(selection["errors"]))]


def test_errors_of_a_stream_fade():
    X, y = make_rows(400, 3)
    model = IKOGDClassifier(**STREAM).partial_fit(X, y)
    is_wrong = [missed(window.scores[:400], y) for window in model.learned_.windows]
    totals = np.array(is_wrong) @ FADE ** np.arange(399, -1, -1)
    of_all = (1 - FADE**400) / (1 - FADE)
    np.testing.assert_allclose(model.learned_.errors, [*totals, of_all], rtol=1e-9)
    np.testing.assert_allclose(model.selection_["errors"], totals / of_all, rtol=1e-9)
    assert model.selection_["leader"] == ALL[int(totals.argmin())]


# Classes


def late(n, first, n_classes=3):
    """Return a stream whose last class comes after ``first`` rows."""
    X, y = make_rows(n, n_classes)
    is_early = np.arange(n) < first
    return X[~(is_early & (y == n_classes - 1))], y[~(is_early & (y == n_classes - 1))]


LATE = {
    "in the warm-up": (30, {}),
    "in the first block": (500, {}),
    "after blocks": (2_500, {}),
    "logistic": (500, {"loss": "logistic"}),
    "n_cells": (500, {"n_cells": 32}),
    "balanced": (2_500, {"class_weight": "balanced"}),
}


@pytest.mark.parametrize(("first", "options"), list(LATE.values()), ids=list(LATE))
def test_a_class_that_comes_late_is_learned_as_if_it_had_been_known(first, options):
    X, y = late(first + 600, first)
    told = IKOGDClassifier(**STREAM, **options).partial_fit(X, y, classes=[0, 1, 2])
    met = IKOGDClassifier(**STREAM, **options).partial_fit(X, y)
    assert met.decision_function(X).tobytes() == told.decision_function(X).tobytes()
    assert met.selection_["leader"] == told.selection_["leader"]
    assert met.n_support_ == told.n_support_
    assert np.array_equal(met.predict_proba(X), told.predict_proba(X))
    parts = feed(IKOGDClassifier(**STREAM, **options), [first // 2, first // 4, 1, 300], X, y)
    assert parts.decision_function(X).tobytes() == told.decision_function(X).tobytes()


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("options", [{}, {"n_cells": 32}], ids=str)
def test_errors_do_not_depend_on_when_classes_are_told(options):
    X, y = late(400, 200)
    y = np.array([1, 2, 0])[y]  # the class that comes late is the first in order
    told = IKOGDClassifier(**STREAM, **options).partial_fit(X, y, classes=[0, 1, 2])
    met = IKOGDClassifier(**STREAM, **options).partial_fit(X, y)
    np.testing.assert_array_equal(met.learned_.errors, told.learned_.errors)


def test_the_leader_does_not_depend_on_the_split_of_a_stream_before_a_new_class(monkeypatch):
    monkeypatch.undo()
    rng = np.random.default_rng(5)
    X = rng.normal(size=(400, 6))
    y = (X[:, 0] * X[:, 1] + 0.5 * X[:, 2] > 0).astype(int)
    y[:250] = 1  # class 0 comes late
    whole, parts = (IKOGDClassifier(n_partitionings=10, n_initial=200, random_state=5) for _ in range(2))
    whole.partial_fit(X, y)
    parts.partial_fit(X[:250], y[:250]).partial_fit(X[250:], y[250:])
    assert parts.selection_["leader"] == whole.selection_["leader"]


@pytest.mark.parametrize("options", [{}, {"n_cells": 32}], ids=str)
def test_errors_before_a_new_class_do_not_depend_on_the_split_of_a_stream(options):
    X, y = make_rows(300)
    y = 1 - (np.arange(300) > 200) * (1 - y)  # class 0 comes late
    assert_same_stream(options, [60, 1, 100], y, X)


def test_a_stream_of_one_class_is_never_wrong():
    X, _ = make_rows(200)
    model = IKOGDClassifier(**STREAM).partial_fit(X, np.full(200, "only"))
    assert not model.learned_.errors[:-1].any()
    assert set(model.predict(X)) == {"only"}
    np.testing.assert_array_equal(model.predict_proba(X), np.ones((200, 1)))


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("learn", ["fit", "partial_fit"])
def test_the_most_probable_class_is_the_predicted_one(learn, loss, n_classes):
    X, y = make_rows(300, n_classes)
    model = getattr(IKOGDClassifier(**STREAM, loss=loss), learn)(X, y)
    probabilities = model.predict_proba(X)
    assert np.array_equal(model.classes_[probabilities.argmax(axis=1)], model.predict(X))
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)


# Interrupts and readers


def states_between_blocks(first, X, y, upto, stages=STAGES):
    """Return the states of a model by the number of rows learned, block by block."""
    model = copy.deepcopy(first)
    states = {model.n_rows_seen_: state_of(model)}
    while model.n_rows_seen_ < upto:
        n = model.n_rows_seen_
        end = min([n + 20, upto, *(at for at, _ in stages if at > n)])
        model.partial_fit(X[n:end], y[n:end])
        states[end] = state_of(model)
    return states


def candidates_in(state, running):
    """Return the errors, models and windows of some candidates of a state, after the sum of weights."""
    learned = state["learned_"]
    known = [int(number) for number in learned["selection"]["running"]]
    assert set(running) <= set(known)
    *errors, of_all = np.frombuffer(learned["errors"][2])
    found = dict(zip(known, zip(errors, learned["models"], learned["windows"], strict=True), strict=True))
    return [of_all, *(found[k] for k in running)]


def check_torn(torn, states, X, y, upto):
    """Check that a torn model has learned whole blocks, and that it learns on as if nothing had happened."""
    # Candidates are dropped before the next row is learned, so the number of rows does not tell whether they were.
    n, running = torn.n_rows_seen_, numbers_running(torn)
    assert candidates_in(state_of(torn), running) == candidates_in(states[n], running)
    if n < upto:
        torn.partial_fit(X[n:upto], y[n:upto])
        assert state_of(torn) == states[upto]


@pytest.mark.usefixtures("early_stages", "small_blocks")
def test_an_interrupted_race_leaves_whole_blocks():
    X, y = make_rows(160, 3)
    first = IKOGDClassifier(**STREAM, n_jobs=1).partial_fit(X[:101], y[:101])
    states = states_between_blocks(first, X, y, 145)
    for k in itertools.count(1, 61):
        torn = copy.deepcopy(first)
        if not interrupted(k, lambda torn=torn: torn.partial_fit(X[101:145], y[101:145])):
            break
        check_torn(torn, states, X, y, 145)
    assert k > 300


@pytest.mark.usefixtures("early_stages", "small_blocks")
def test_a_race_interrupted_at_the_end_of_a_stage_leaves_whole_blocks(monkeypatch):
    X, y = make_rows(160, 3)
    first = IKOGDClassifier(**STREAM, n_jobs=1).partial_fit(X[:60], y[:60])
    states = states_between_blocks(first, X, y, 80)

    def stop(*args, **changes):
        raise KeyboardInterrupt

    torn = copy.deepcopy(first)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(on_cells, "commit", stop)
        torn.partial_fit(X[60:80], y[60:80])
    check_torn(torn, states, X, y, 80)


def while_another_learns(model, X, y, read, at, monkeypatch):
    """Return what a model's method ``read`` says of rows that are learned just before the n-th call of ``at``."""
    name, n = at
    call, n_calls = getattr(ScaleWeights, name), itertools.count(1)

    def late(self, *args, **options):
        if next(n_calls) == n:
            model.partial_fit(X, y)
        return call(self, *args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(ScaleWeights, name, late)
        found = getattr(model, read)(X)
    assert next(n_calls) > n
    return found


# _score_block is called when the scales have been folded; its second call is that with the window of probabilities.
LEARNED_AT = [("score", 1), ("_score_block", 1), ("score", 2), ("_score_block", 2)]


def both_blocks(model, read, X, y):
    """Return the leaders before and after a block, and what they say of its rows."""
    before, after = copy.deepcopy(model), copy.deepcopy(model).partial_fit(X, y)
    answers = {getattr(m, read)(X).tobytes() for m in (before, after)}
    assert len(answers) == 2
    return before.learned_.leader, after.learned_.leader, answers


@pytest.mark.parametrize("at", LEARNED_AT[:2], ids=str)
@pytest.mark.parametrize("read", ["decision_function", "predict_proba"])
def test_a_reader_gets_the_leader_of_the_block_that_it_reads(read, at, monkeypatch):
    X, y = make_rows(300, 3)
    model = IKOGDClassifier(**STREAM).partial_fit(X[:100], y[:100])
    model.learned_.errors[:-1] = [99.99, 100, 100, 100, 100]  # so that the block changes the leader
    first, second, expected = both_blocks(model, read, X[100:], y[100:])
    assert first != second
    assert while_another_learns(model, X[100:], y[100:], read, at, monkeypatch).tobytes() in expected


@pytest.mark.parametrize("at", LEARNED_AT, ids=str)
def test_a_reader_gets_scores_and_temperature_of_the_same_block(at, monkeypatch):
    X, y = make_rows(300, 3)
    model = IKOGDClassifier(**STREAM).partial_fit(X[:100], y[:100])
    model.learned_.errors[:-1] = [0, 100, 100, 100, 100]  # the leader stays
    first, second, expected = both_blocks(model, "predict_proba", X[100:], y[100:])
    assert first == second == 0
    assert while_another_learns(model, X[100:], y[100:], "predict_proba", at, monkeypatch).tobytes() in expected


def test_a_race_scores_no_rows():
    X, y = make_rows(100, 3)
    model = IKOGDClassifier(**STREAM, linear=False).partial_fit(X, y)
    assert model.decision_function_cells(model.map_rows(X)[:0]).shape == (0, 3)
    assert model.predict_proba_cells(model.map_rows(X)[:0]).shape == (0, 3)


def test_copies_made_while_another_thread_learns_are_of_whole_blocks(small_blocks):
    X, y = make_rows(600, 3)
    model = IKOGDClassifier(**STREAM).partial_fit(X[:50], y[:50])
    states = states_between_blocks(model, X, y, 600, stages=())
    together, is_over, found = threading.Barrier(2), threading.Event(), []

    def copy_often():
        together.wait(timeout=60)
        while not is_over.is_set():
            found.append(pickle.loads(pickle.dumps(model)))

    with ThreadPoolExecutor(1) as pool:
        reader = pool.submit(copy_often)
        together.wait(timeout=60)
        try:
            model.partial_fit(X[50:], y[50:])
        finally:
            is_over.set()
        reader.result()
    assert all(state_of(copied) == states[copied.n_rows_seen_] for copied in found)
    assert state_of(model) == states[600]
