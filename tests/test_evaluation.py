"""Test evaluations: what they measure and learn, in which order, and that they can be stopped and resumed."""

from __future__ import annotations

import copy
import json
import pickle
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.datasets import make_friedman1
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import SGDClassifier, SGDRegressor
from sklearn.naive_bayes import BernoulliNB, GaussianNB
from sklearn.svm import SVC, LinearSVC

import isokern
from isokern import (
    IKSVC,
    AdaptiveIKClassifier,
    IKOGDClassifier,
    IKOGDClassifierCV,
    IKOGDRegressor,
    IsolationKernel,
    evaluation,
    persistence,
)
from isokern.data import blocks
from isokern.evaluation import holdout, measure
from isokern.evaluation.learner import Block
from isokern.partitionings import IsolationTrees
from learning import SMALL, make_rows, same_model, stream_learner

# Block by block; test_evaluation_rows.py has the tests of the other protocol.
prequential = partial(evaluation.prequential, protocol="blocks")
Prequential = partial(evaluation.Prequential, protocol="blocks")

LEARNERS = {
    "IK-OGD": stream_learner,
    "SGD": lambda: SGDClassifier(random_state=0),
    "naive Bayes": GaussianNB,
    "OGD": lambda: isokern.OGDClassifier(n_initial=50, random_state=0),
    "NOGD": lambda: isokern.NOGDClassifier(n_initial=50, n_landmarks=20, random_state=0),
    "FOGD": lambda: isokern.FOGDClassifier(n_initial=50, n_frequencies=20, random_state=0),
    "AdaRaker": lambda: isokern.AdaRakerClassifier(n_directions=5, random_state=0),
}
REGRESSION = make_friedman1(240, random_state=0)


def cut(X, y, size=30):
    return list(blocks(X, y, size))


def make_blocks(n=240, n_classes=2, size=30):
    return cut(*make_rows(n, n_classes), size)


def stream_regressor(**options):
    return IKOGDRegressor(n_initial=50, **SMALL, **options)


def chosen():
    """Return a search that has chosen from the first 60 rows, and blocks of the others."""
    X, y = make_rows(240)
    search = IKOGDClassifierCV(n_partitionings=6, n_cells=(4, 8), cv=3, random_state=0)
    return search.fit(X[:60], y[:60]), cut(X[60:], y[60:])


def run_loop(learner, stream, delay=0, classes=None):
    """Return (rows seen, rows right, predictions) after each block, by predict and partial_fit alone."""
    n_seen = n_correct = 0
    results, late = [], []
    for X, y in stream:
        predictions = None
        if hasattr(learner, "classes_"):
            predictions = learner.predict(X)
            n_seen, n_correct = n_seen + len(y), n_correct + int(np.sum(predictions == y))
        results.append((n_seen, n_correct, predictions))
        late.append((X, y))
        if len(late) > delay:
            learner.partial_fit(*late.pop(0), **({} if hasattr(learner, "classes_") else {"classes": classes}))
    for X, y in late:
        learner.partial_fit(X, y, classes=classes)
    return results


def untimed(record):
    """Return what does not differ from run to run."""
    numbers = {name: value for name, value in record.as_dict().items() if "seconds" not in name}
    return numbers | {"predictions": record.predictions}


def assert_same_records(make, stream, expected_stream, **options):
    """Check that two streams give the same records."""
    one, other = (list(prequential(make(), blocks, **options)) for blocks in (stream, expected_stream))
    np.testing.assert_equal([untimed(record) for record in one], [untimed(record) for record in other])


# -- records


@pytest.mark.parametrize(("n_classes", "delay"), [(2, 0), (3, 1), (2, 20)])
@pytest.mark.parametrize("make", LEARNERS.values(), ids=LEARNERS)
def test_prequential_equals_a_loop_of_predict_and_partial_fit(make, n_classes, delay):
    stream, classes = make_blocks(n_classes=n_classes), list(range(n_classes))
    learner, twin = make(), make()
    records = list(prequential(learner, stream, classes=classes, delay=delay))
    np.testing.assert_equal(
        [(r.n_seen, r.n_correct, r.predictions) for r in records], run_loop(twin, stream, delay, classes)
    )
    X, _ = make_rows(240)
    method = "decision_function" if hasattr(learner, "decision_function") else "predict_proba"
    np.testing.assert_array_equal(getattr(learner, method)(X), getattr(twin, method)(X))


def test_accuracies_are_those_of_the_rows_so_far_and_of_the_block():
    records = list(prequential(stream_learner(), make_blocks()))[1:]
    n_correct = np.array([r.n_correct for r in records])
    assert [r.accuracy for r in records] == (n_correct / np.arange(30, 240, 30)).tolist()
    assert [r.block_accuracy for r in records] == (np.diff(n_correct, prepend=0) / 30).tolist()


def test_only_a_fitted_learner_predicts_its_first_block():
    stream = make_blocks(60)
    first, second = list(prequential(GaussianNB(), stream, classes=[0, 1]))
    assert (first.n_seen, first.n_correct, first.predictions) == (0, 0, None)
    assert np.isnan([first.accuracy, first.block_accuracy]).all()
    assert second.n_seen == second.n_labelled == 30
    (record,) = prequential(GaussianNB().fit(*stream[0]), stream[1:])
    assert record.n_seen == 30


def test_a_record_as_a_dict_is_plain_numbers():
    *_, record = prequential(stream_learner(), make_blocks(), metrics=["kappa", "auc"])
    numbers = record.as_dict()
    assert json.loads(json.dumps(numbers)) == numbers
    assert numbers["protocol"] == "blocks"
    assert list(numbers) == [
        *("n_seen", "n_labelled", "n_correct", "accuracy", "block_accuracy"),
        *("map_seconds", "predict_seconds", "learn_seconds", "n_support", "leader", "n_drifts"),
        *("protocol", "kappa", "auc"),
    ]


def test_support_vectors_are_counted_if_the_learner_counts_them():
    learner = stream_learner()
    assert [r.n_support for r in prequential(learner, make_blocks())][-1] == learner.n_support_ > 0
    assert [r.n_support for r in prequential(GaussianNB(), make_blocks(60), classes=[0, 1])] == [None, None]
    assert holdout(SVC(), make_rows(60), make_rows(60)).n_support is None  # it has one number for each class


def test_records_name_the_leader_and_count_changes_if_the_learner_has_them():
    X, y = make_rows(2400)
    learner = AdaptiveIKClassifier(n_partitionings=10, random_state=0)
    records = list(prequential(learner, cut(X, np.where(np.arange(2400) < 1500, y, 1 - y), 300)))
    assert (records[-1].leader, records[-1].n_drifts) == (learner.selection_["leader"], len(learner.drifts_))
    found = [r.n_drifts for r in records]
    assert found == [np.count_nonzero(learner.drifts_ <= 300 * (k + 1)) for k in range(8)]
    assert found[-1] > 0
    *_, raced = prequential(IKOGDClassifier(n_partitionings=10, random_state=0), make_blocks())
    assert raced.leader is not None and raced.n_drifts is None
    *_, alone = prequential(GaussianNB(), make_blocks(60), classes=[0, 1])
    assert alone.leader is alone.n_drifts is None


def test_times_are_those_of_the_block_and_do_not_count_in_comparisons():
    one, other = (list(prequential(stream_learner(linear=False), make_blocks())) for _ in range(2))
    assert one[1:] == other[1:]  # the accuracy of the first is NaN, which never equals itself
    assert one[0].map_seconds == 0
    assert all(min(r.map_seconds, r.predict_seconds, r.learn_seconds) > 0 for r in one[3:])


# -- mapping


@pytest.fixture
def mapped_rows(monkeypatch):
    """Return a list to which every map adds how many rows it was given."""
    mapped, apply = [], IsolationTrees.apply

    def counted(trees, rows, cells, threads):
        mapped.append(len(cells))
        apply(trees, rows, cells, threads)

    monkeypatch.setattr(IsolationTrees, "apply", counted)
    return mapped


ALL_METRICS = ["balanced_accuracy", "f1", "kappa", "log_loss", "calibration_error", "auc", "average_precision"]
# To learn weights of columns, some rows are mapped by other trees.
PLAIN = {"linear": False, "column_weights": None}
MAPPED_ONCE = {
    "classifier": (
        240,
        lambda delay: prequential(stream_learner(**PLAIN), make_blocks(), delay=delay, metrics=ALL_METRICS),
    ),
    "regressor": (240, lambda delay: prequential(stream_regressor(**PLAIN), cut(*REGRESSION), delay=delay)),
    "search": (180, lambda delay: prequential(*chosen(), delay=delay, metrics=ALL_METRICS)),
    "measured classifier": (240, lambda _: measure(stream_learner(**PLAIN).fit(*make_rows(60)), make_blocks())),
    "measured search": (240, lambda _: measure(chosen()[0], make_blocks(), metrics=ALL_METRICS)),
}


@pytest.mark.parametrize("delay", [0, 2])
@pytest.mark.parametrize(("n_rows", "evaluate"), MAPPED_ONCE.values(), ids=MAPPED_ONCE)
def test_each_row_is_mapped_once(n_rows, evaluate, delay, mapped_rows):
    records = evaluate(delay)
    mapped_rows.clear()  # rows that were mapped to fit the learner
    list(records)
    assert sum(mapped_rows) == n_rows


@pytest.mark.parametrize("make", [stream_learner, stream_regressor])
def test_each_row_of_a_block_is_mapped_once_for_candidates_with_a_linear_term(make, mapped_rows):
    stream = make_blocks() if make is stream_learner else cut(*REGRESSION)
    list(prequential(make(column_weights=None), stream, protocol="blocks"))
    assert sum(mapped_rows) == 240


def test_each_row_without_a_label_is_mapped_once(mapped_rows):
    X, y = make_rows(240)
    labels = np.where(np.arange(240) % 3 == 0, np.nan, y)
    list(prequential(stream_learner(**PLAIN), cut(X, labels)))
    n_before_the_map = sum(np.isnan(labels[:90]))  # predicted as the majority class, without a map
    assert sum(mapped_rows) == 240 - n_before_the_map


def test_each_held_out_row_is_mapped_once(mapped_rows):
    X, y = make_rows(240)
    holdout(IKOGDClassifier(**PLAIN, **SMALL), (X[:150], y[:150]), (X[150:], y[150:]), metrics=ALL_METRICS)
    assert sum(mapped_rows) == 240


# -- missing labels

NAMES = np.array(["a", "b"], dtype=object)
FORMS_OF_MISSING = {
    "NaN": lambda y, gone: np.where(gone, np.nan, y),
    "list with None": lambda y, gone: [None if g else int(label) for label, g in zip(y, gone, strict=True)],
    "list of strings with NaN": lambda y, gone: np.where(gone, float("nan"), NAMES[y]).tolist(),
    "objects": lambda y, gone: np.where(gone, None, NAMES[y]),
    "pandas": lambda y, gone: pd.Series(y, dtype="Int64").mask(gone),
    "pandas strings": lambda y, gone: pd.Series(NAMES[y].astype(str)).mask(gone),
    "polars": lambda y, gone: pl.Series(np.where(gone, None, y).tolist()),
}


@pytest.mark.parametrize("form", FORMS_OF_MISSING.values(), ids=FORMS_OF_MISSING)
def test_rows_without_a_label_are_predicted_but_neither_counted_nor_learned(form):
    X, y = make_rows(240)
    gone = np.arange(240) % 4 == 1
    learner, twin = stream_learner(), stream_learner()
    parts = [slice(i, i + 30) for i in range(0, 240, 30)]
    records = list(prequential(learner, [(X[part], form(y[part], gone[part])) for part in parts], metrics="kappa"))
    expected = list(prequential(twin, [(X[part][~gone[part]], y[part][~gone[part]]) for part in parts]))
    assert [r.n_correct for r in records] == [r.n_correct for r in expected]
    assert [r.n_labelled for r in records] == [r.n_seen for r in expected]
    assert [r.n_seen for r in records] == list(range(0, 240, 30))
    assert same_model(learner, twin)


def test_a_block_may_have_no_labels_at_all():
    stream = make_blocks()
    stream[4] = (stream[4][0], None)
    records = list(prequential(stream_learner(), stream, delay=1))
    assert len(records[4].predictions) == 30
    assert np.isnan(records[4].block_accuracy)
    assert records[-1].n_seen == records[-1].n_labelled + 30 == 180


def test_an_unfitted_learner_may_get_a_block_without_labels():
    X, y = make_rows(60)
    records = list(prequential(stream_learner(), [(X[:30], None), (X[30:], y[30:])]))
    assert [r.predictions for r in records] == [None, None]


# -- forms of input

FORMS = {
    "csr_array": sparse.csr_array,
    "csc_matrix": sparse.csc_matrix,
    "coo_array": sparse.coo_array,
    "pandas": lambda X: pd.DataFrame(X, columns=["a", "b", "c"]),
    "polars": lambda X: pl.DataFrame(X, schema=["a", "b", "c"]),
    "list": lambda X: X.tolist(),
}


@pytest.mark.parametrize("delay", [0, 2])
@pytest.mark.parametrize("make", [partial(stream_learner, linear=False), BernoulliNB])
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_rows_may_have_many_forms(form, make, delay):
    X, y = make_rows(240)
    labels = np.where(np.arange(240) % 5 == 0, np.nan, y)
    stream = [(form(rows), part.tolist()) for rows, part in cut(X, labels)]
    assert_same_records(make, stream, cut(X, labels), classes=[0, 1], delay=delay)


def test_blocks_may_be_single_rows():
    stream = make_blocks(120, size=1)
    records = list(prequential(stream_learner(), stream, delay=2, metrics="f1"))
    assert [(r.n_seen, r.n_correct, r.predictions) for r in records] == run_loop(stream_learner(), stream, delay=2)


def test_empty_blocks_are_skipped():
    stream, empty = make_blocks(), (np.empty((0, 3)), np.empty(0))
    assert_same_records(stream_learner, [empty, *stream[:4], empty, empty, *stream[4:]], stream, delay=1)


def test_an_empty_step_changes_nothing():
    run = Prequential(stream_learner(), delay=1)
    before = [run.step(X, y) for X, y in make_blocks()][-1]
    after = run.step(np.empty((0, 3)), [])
    assert (after.n_seen, after.accuracy, after.predictions) == (before.n_seen, before.accuracy, None)


def test_labels_may_be_strings_and_new_classes_may_come_later():
    X, y = make_rows(240, 3)
    names = np.array(["one", "three", "twenty"])[y]
    names[:100] = "one"
    records = list(prequential(stream_learner(), cut(X, names), metrics=["f1", "kappa", "balanced_accuracy"]))
    results = run_loop(stream_learner(), cut(X, names))
    np.testing.assert_equal([(r.n_seen, r.n_correct, r.predictions) for r in records], results)
    assert 0 < records[-1].metrics["kappa"] < 1


@pytest.mark.parametrize("name", ["IK-OGD", "SGD"])
def test_the_caller_may_reuse_the_memory_of_waiting_blocks(name):
    buffer, labels = np.empty((30, 3)), np.empty(30)

    def reused():
        for X, y in make_blocks():
            buffer[:], labels[:] = X, y
            yield buffer, labels

    assert_same_records(LEARNERS[name], reused(), make_blocks(), classes=[0, 1], delay=2)


# -- stopping and resuming

STOPPED = {
    "IK-OGD": (stream_learner, {"metrics": ALL_METRICS}),
    "IK-OGD, late labels": (stream_learner, {"delay": 3, "metrics": ["log_loss"]}),
    "naive Bayes": (GaussianNB, {"delay": 2, "classes": [0, 1], "metrics": ["auc", "balanced_accuracy"]}),
    "regressor": (stream_regressor, {"delay": 1}),
}
STOPPED_FORMS = {
    "array": np.asarray,
    "csr": FORMS["csr_array"],
    "data frame": FORMS["pandas"],
    "arrow": lambda X: pa.table(dict(zip("abc", X.T, strict=True))),
}


@pytest.mark.parametrize(("make", "options"), STOPPED.values(), ids=STOPPED)
@pytest.mark.parametrize("form", STOPPED_FORMS)
def test_an_evaluation_can_be_resumed_after_any_step(make, options, form):
    stream = [(STOPPED_FORMS[form](X), np.where(np.arange(30) % 7 == 0, np.nan, y)) for X, y in make_blocks()]
    if form == "csr" and make is GaussianNB:
        make = BernoulliNB
    whole, stopped = Prequential(make(), **options), Prequential(make(), **options)
    for X, y in stream:
        expected = whole.step(X, y)
        learner, state = pickle.loads(pickle.dumps((stopped.learner, stopped.state())))
        stopped = Prequential(learner, **options).restore(state)
        np.testing.assert_equal(untimed(stopped.step(X, y)), untimed(expected))
    X = stream[0][0]
    assert np.array_equal(stopped.finish().learner.predict(X), whole.finish().learner.predict(X))


WORDS = {"a": [1.5, None, 2.0], "b": ["x", None, "y"], "c": [None, None, None]}
TABLES = {
    "pandas": lambda: pd.DataFrame(WORDS),
    "nullable pandas": lambda: pd.DataFrame(WORDS).convert_dtypes(),
    "polars": lambda: pl.DataFrame(WORDS, schema={"a": pl.Float64, "b": pl.String, "c": pl.String}),
    "pyarrow": lambda: pa.table(WORDS, pa.schema({"a": pa.float64(), "b": pa.string(), "c": pa.string()})),
}


@pytest.mark.parametrize("form", TABLES)
def test_waiting_rows_with_words_and_holes_survive_a_file(form, tmp_path):
    rows = TABLES[form]()
    persistence.write_file(tmp_path / "block", Block(rows).state())
    again = Block.from_state(persistence.read_file(tmp_path / "block")).rows
    assert type(again) is type(rows)
    columns = [np.asarray(again[name]) for name in WORDS]
    for column, expected in zip(columns, WORDS.values(), strict=True):
        assert [None if pd.isna(value) else value for value in column] == expected
    if form == "pyarrow":
        assert again.schema == rows.schema


@pytest.mark.parametrize("form", STOPPED_FORMS.values(), ids=STOPPED_FORMS)
def test_a_state_has_only_plain_values_and_arrays(form):
    def check(value):
        if isinstance(value, dict):
            assert all(isinstance(key, str) for key in value)
            value = list(value.values())
        if isinstance(value, list):
            for part in value:
                check(part)
        elif isinstance(value, np.ndarray):
            assert value.dtype.kind != "O"
        else:
            assert isinstance(value, int | float | str | sparse.csr_array)

    run = Prequential(stream_learner(), delay=3, metrics=ALL_METRICS)
    for X, y in make_blocks():
        run.step(form(X), NAMES[y])
        check(run.state())


def test_a_state_does_not_change_while_the_evaluation_goes_on():
    run = Prequential(stream_learner(), delay=1, metrics=ALL_METRICS)
    for k, (X, y) in enumerate(make_blocks()):
        run.step(X, y)
        if k == 3:
            state = run.state()
            before = copy.deepcopy(state)
    np.testing.assert_equal(state, before)


FORGED_STATES = {
    "n_seen": [-5, 0, 1.5, None],
    "n_labelled": [10**12, True],
    "n_correct": [-1, 10**12],
    "has_learned": [1],
    "counters": [{}, {"ClassCounts": {}}, {"ClassCounts": {"classes": [0, 1], "sums": np.zeros((2, 3), np.int64)}}],
    "waiting": [None, [{}], [{"block": {"rows": np.zeros((2, 2)), "are_cells": False}, "labels": np.zeros(3)}]],
}


@pytest.mark.parametrize("name", FORGED_STATES)
def test_a_state_that_contradicts_itself_is_refused(name):
    run = Prequential(stream_learner(), delay=1, metrics=["kappa"])
    for X, y in make_blocks():
        run.step(X, y)
    before = run.state()
    for value in FORGED_STATES[name]:
        with pytest.raises(ValueError, match=" must "):
            run.restore(before | {name: value})
    np.testing.assert_equal(run.state(), before)


FORGED_COUNTERS = {
    "log_loss": ("LogLoss", [{"n": 0}, {"total": -1.0}, {"total": None}]),
    "kappa": (
        "ClassCounts",
        [
            *({"classes": [1, 0]}, {"classes": ["0", 1]}, {"classes": [0]}, {"sums": np.full((2, 2), 1)}),
            *({"sums": np.full((2, 3), -1)}, {"sums": np.array([[105, 105, 105], [105, 105, 106]])}),
        ],
    ),
    "calibration_error": (
        "Calibration",
        [{"n": 0}, {"sums": np.full((2, 15), 1e9)}, {"sums": np.full((2, 15), np.nan)}],
    ),
    "auc": (
        "ScoreHistograms",
        [{"sums": np.ones((2, 3), dtype=np.int64)}, {"sums": np.ones((2, 2, 2**16), dtype=np.int64)}, {"more": 1}],
    ),
}


@pytest.mark.parametrize("metric", FORGED_COUNTERS)
def test_a_counter_that_contradicts_itself_is_refused(metric):
    run = Prequential(stream_learner(), metrics=[metric])
    for X, y in make_blocks():
        run.step(X, y)
    state, (name, forgeries) = run.state(), FORGED_COUNTERS[metric]
    for forged in forgeries:
        with pytest.raises(ValueError, match=" must "):
            run.restore(state | {"counters": {name: state["counters"][name] | forged}})
    np.testing.assert_equal(run.restore(state).state(), state)


@pytest.mark.parametrize(("name", "value"), [("delay", 2), ("metrics", ["f1"])])
def test_a_state_is_restored_only_with_the_same_options(name, value):
    state = Prequential(stream_learner(), delay=1, metrics=["kappa"]).state()
    options = {"delay": 1, "metrics": ["kappa"]} | {name: value}
    with pytest.raises(ValueError, match=f"{name} must be"):
        Prequential(stream_learner(), **options).restore(state)


def test_a_block_that_cannot_be_learned_leaves_the_evaluation_unchanged():
    run = Prequential(LEARNERS["SGD"](), classes=[0, 1], metrics=["kappa"])
    *stream, (last, _) = make_blocks(120)
    for X, y in stream:
        run.step(X, y)
    before = run.state()
    with pytest.raises(ValueError, match="classes"):
        run.step(last, np.full(30, 7))
    np.testing.assert_equal(run.state(), before)


# -- held-out rows


def test_holdout_fits_and_predicts():
    X, y = make_rows(240)
    record = holdout(IKOGDClassifier(**SMALL), (X[:150], y[:150]), (X[150:], y[150:]))
    twin = IKOGDClassifier(**SMALL).fit(X[:150], y[:150])
    assert np.array_equal(record.predictions, twin.predict(X[150:]))
    assert record.accuracy == twin.score(X[150:], y[150:])
    assert (record.n_train, record.n_test, record.n_support) == (150, 90, twin.n_support_)
    assert min(record.fit_seconds, record.predict_seconds) > 0


@pytest.mark.parametrize("make", [IKSVC, LinearSVC, RandomForestClassifier])
def test_holdout_takes_learners_that_only_have_fit(make):
    X, y = make_rows(240)
    learner = make(random_state=0)
    record = holdout(learner, (X[:150], y[:150]), (X[150:], y[150:]), metrics=["auc"])
    assert record.accuracy == learner.score(X[150:], y[150:])
    assert json.loads(json.dumps(record.as_dict()))["auc"] == record.metrics["auc"] > 0.5


def test_holdout_ignores_rows_without_a_label():
    X, y = make_rows(240)
    gone = np.arange(240) % 3 == 0
    labels = np.where(gone, np.nan, y)
    record = holdout(GaussianNB(), (X[:150], labels[:150]), (X[150:], labels[150:]))
    twin = GaussianNB().fit(X[:150][~gone[:150]], y[:150][~gone[:150]])
    assert record.accuracy == twin.score(X[150:][~gone[150:]], y[150:][~gone[150:]])
    assert (record.n_train, record.n_test) == (100, 90)


# -- regressors


def test_a_regressor_has_errors_instead_of_accuracy():
    X, y = REGRESSION
    *_, record = prequential(SGDRegressor(random_state=0), cut(X, y))
    assert (record.n_correct, record.accuracy, record.block_accuracy) == (None, None, None)
    assert list(record.metrics) == ["mae", "rmse", "r2"]
    held_out = holdout(IKOGDRegressor(**SMALL), (X[:120], y[:120]), (X[120:], y[120:]))
    assert held_out.accuracy is None
    assert held_out.metrics["mae"] == pytest.approx(np.abs(held_out.predictions - y[120:]).mean())
    learner = IKOGDRegressor(random_state=0).fit(X, y)
    *_, measured = measure(learner, cut(X, y))
    assert measured.accuracy is None
    assert measured.metrics["r2"] == pytest.approx(learner.score(X, y))


# -- searches


@pytest.mark.parametrize("delay", [0, 2])
def test_a_search_continues_as_its_best_estimator(delay):
    (search, stream), (twin, _) = chosen(), chosen()
    records = list(prequential(search, stream, delay=delay, metrics="log_loss"))
    assert records == list(prequential(twin.best_estimator_, stream, delay=delay, metrics="log_loss"))
    assert records[0].n_seen == 30
    assert same_model(search.best_estimator_, twin.best_estimator_)


def test_an_unfitted_search_raises():
    with pytest.raises(NotFittedError, match="call fit first"):
        list(prequential(IKOGDClassifierCV(random_state=0), make_blocks()))


# -- measuring


MEASURED = {
    "IK-OGD": stream_learner,
    "IK-SVM": lambda: IKSVC(random_state=0),
    "naive Bayes": GaussianNB,
    "search": lambda: chosen()[0],
}


@pytest.mark.parametrize("make", MEASURED.values(), ids=MEASURED)
def test_measure_equals_holdout(make):
    X, y = make_rows(240)
    learner = make().fit(X, y)
    *_, last = measure(learner, cut(X, y), metrics=["f1", "kappa"])
    assert last.n_seen == last.n_labelled == 240
    assert last.accuracy == learner.score(X, y)
    expected = holdout(make(), (X, y), (X, y), metrics=["f1", "kappa"])
    assert last.metrics == pytest.approx(expected.metrics)


def test_a_measured_learner_predicts_and_does_not_change():
    X, y = make_rows(240)
    learner = stream_learner().fit(X, y)
    before = copy.deepcopy(learner)
    records = list(measure(learner, cut(X, y), metrics="auc"))
    assert same_model(learner, before)
    assert np.array_equal(np.concatenate([record.predictions for record in records]), learner.predict(X))


def test_rows_without_a_label_are_predicted_but_not_measured():
    X, y = make_rows(240)
    learner, gone = stream_learner().fit(X, y), np.arange(240) % 3 == 0
    *_, last = measure(learner, cut(X, np.where(gone, np.nan, y)))
    assert (last.n_seen, last.n_labelled) == (240, 160)
    assert last.accuracy == learner.score(X[~gone], y[~gone])
    assert [(record.n_seen, record.n_labelled) for record in measure(learner, cut(X, None, 120))] == [
        (120, 0),
        (240, 0),
    ]


# -- errors

BAD_ARGUMENTS = {
    "learner without partial_fit": (LinearSVC(), {}, "learner must have partial_fit or learn_one; got LinearSVC"),
    "negative delay": (GaussianNB(), {"delay": -1}, "delay must be an integer of at least 0; got -1"),
    "unknown metric": (GaussianNB(), {"metrics": "f2"}, "metrics must be .*for GaussianNB, a classifier; got 'f2'"),
    "classes of a regressor": (SGDRegressor(), {"classes": [0, 1]}, "classes must be None for a regressor"),
    "regressor's metric": (GaussianNB(), {"metrics": ["mae"]}, '"balanced_accuracy", "f1".* got \'mae\''),
    "classifier's metric": (SGDRegressor(), {"metrics": ["f1"]}, '"mae", "rmse" or "r2" for SGDRegressor'),
    "no probabilities": (SGDClassifier(), {"metrics": ["log_loss"]}, "SGDClassifier, which has no predict_proba"),
}


@pytest.mark.parametrize(("learner", "options", "message"), BAD_ARGUMENTS.values(), ids=BAD_ARGUMENTS)
def test_wrong_arguments_raise_at_once(learner, options, message):
    with pytest.raises(ValueError, match=message):
        prequential(learner, [], **options)


def test_only_a_fitted_learner_that_predicts_can_be_measured():
    with pytest.raises(NotFittedError, match="learner must be fitted; got an unfitted IKOGDClassifier"):
        next(measure(stream_learner(), make_blocks()))
    with pytest.raises(ValueError, match=r"learner must have predict or learn_one; got IsolationKernel\.$"):
        measure(IsolationKernel(), make_blocks())


def test_holdout_needs_a_learner():
    with pytest.raises(ValueError, match="learner must have fit, partial_fit or learn_one; got object"):
        holdout(object(), ([[1.0]], [0]), ([[1.0]], [0]))


@pytest.mark.parametrize("block", [np.zeros((3, 2)), (np.zeros((3, 2)),), "ab", {"X": 1, "y": 2}])
def test_a_block_must_be_a_pair(block):
    with pytest.raises(ValueError, match=r"must be a pair \(X, y\); got"):
        list(prequential(GaussianNB(), [block]))
    with pytest.raises(ValueError, match=r"train must be a pair"):
        holdout(GaussianNB(), block, block)


@pytest.mark.parametrize("n_labels", [29, 31])
def test_there_must_be_as_many_labels_as_rows(n_labels):
    X, _ = make_rows(30)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        list(prequential(stream_learner(), [(X, np.zeros(n_labels))]))


def test_a_learner_that_needs_classes_says_so():
    with pytest.raises(ValueError, match="classes must be passed"):
        list(prequential(GaussianNB(), make_blocks()))
