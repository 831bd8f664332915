"""Test evaluations row by row: each row is predicted right before it is learned, by learners that can do so."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import log_loss, roc_auc_score

import isokern
from isokern.data import blocks
from isokern.evaluation import Prequential, measure, prequential
from learning import make_rows
from test_evaluation import untimed


class Frequencies:
    """Predict how frequent the classes have been so far; new ones may come at any time."""

    def __init__(self):
        self.counts, self.calls = {}, []

    @property
    def classes_(self):
        if not self.counts:
            raise AttributeError("classes_")
        return np.array(sorted(self.counts))

    def partial_fit(self, X, y, classes=()):
        self.counts = dict.fromkeys([*classes, *y], 0) | self.counts
        for label in y:
            self.counts[label] += 1
        return self

    def predict(self, X):
        return self._answers(len(X), "predict")

    def predict_proba(self, X):
        return self._answers(len(X), "predict_proba")

    def _answers(self, n, method):
        if not self.counts:
            raise NotFittedError
        counts = np.array([1 + self.counts[label] for label in self.classes_])
        shares = counts / counts.sum()
        return np.tile(shares, (n, 1)) if method == "predict_proba" else np.repeat(self.classes_[shares.argmax()], n)

    def partial_fit_predict(self, X, y, classes=(), sample_weight=None, *, method="predict"):
        self.calls.append(method)
        has_label = ~np.isnan(y)
        self.counts = dict.fromkeys([*classes, *y[has_label]], 0) | self.counts
        answers = []
        for row, label in zip(X, y, strict=True):
            answers.append(self._answers(1, method))
            self.partial_fit([row], [] if np.isnan(label) else [label])
        return np.concatenate(answers)


def rivals():
    return {
        "OGD": isokern.OGDClassifier(n_initial=50, n_jobs=1, random_state=0),
        "NOGD": isokern.NOGDClassifier(n_initial=50, n_landmarks=20, n_jobs=1, random_state=0),
        "FOGD": isokern.FOGDClassifier(gamma=1.0, n_frequencies=20, random_state=0),
        "AdaRaker": isokern.AdaRakerClassifier(n_directions=5, random_state=0),
        "frequencies": Frequencies(),
    }


@pytest.mark.parametrize("size", [1, 30, 240])
@pytest.mark.parametrize("name", rivals())
def test_records_are_those_of_single_rows(name, size):
    X, y = make_rows(240)
    records = list(prequential(rivals()[name], blocks(X, y, size), classes=[0, 1]))
    singles = list(prequential(rivals()[name], blocks(X, y, 1), classes=[0, 1], protocol="blocks"))
    assert {record.protocol for record in records} == {"rows"}
    assert [record.n_seen for record in records] == list(range(size, 241, size))
    # A single row that comes before the learner is fitted is not predicted; row by row, it is the first class.
    n_correct = np.array([0, *(record.n_correct for record in singles)]) + int(y[0] == 0)
    assert [record.n_correct for record in records] == n_correct[size::size].tolist()
    predictions = np.concatenate([record.predictions for record in records])
    assert np.array_equal(predictions[1:], np.concatenate([record.predictions for record in singles[1:]]))


PROTOCOLS = {
    "default": (isokern.FOGDClassifier, {}, "rows", [30, 60, 90]),
    "blocks": (isokern.FOGDClassifier, {"protocol": "blocks"}, "blocks", [0, 30, 60]),
    "late labels": (isokern.FOGDClassifier, {"protocol": "rows", "delay": 1}, "blocks", [0, 0, 30]),
    "another learner": (SGDClassifier, {"protocol": "rows"}, "blocks", [0, 30, 60]),
}


@pytest.mark.parametrize(("make", "options", "protocol", "n_seen"), PROTOCOLS.values(), ids=PROTOCOLS)
def test_records_tell_the_protocol(make, options, protocol, n_seen):
    X, y = make_rows(90)
    records = list(prequential(make(random_state=0), blocks(X, y, 30), classes=[0, 1], **options))
    assert [record.protocol for record in records] == [protocol] * 3
    assert [record.n_seen for record in records] == n_seen


def test_a_fitted_learner_that_learns_nothing_is_measured_by_blocks():
    X, y = make_rows(120)
    learner = isokern.FOGDClassifier(random_state=0).fit(X, y)
    (record,) = measure(learner, [(X, y)])
    assert (record.protocol, record.n_seen, learner.n_rows_seen_) == ("blocks", 120, 120)


# -- metrics


def test_metrics_of_scores_take_one_pass():
    X, y = make_rows(240)
    twin = isokern.FOGDClassifier(gamma=1.0, random_state=0)
    scores = twin.partial_fit_predict(X, y, [0, 1], method="decision_function")
    learner = isokern.FOGDClassifier(gamma=1.0, random_state=0)
    *_, record = prequential(learner, blocks(X, y, 50), classes=[0, 1], metrics=["auc", "f1"])
    assert record.metrics["auc"] == pytest.approx(roc_auc_score(y, scores), abs=0.01)
    assert record.n_correct == np.sum((scores > 0) == y)
    assert np.array_equal(learner.decision_function(X), twin.decision_function(X))


METHODS = {
    "predict": ["kappa"],
    "predict_proba": ["kappa", "auc", "log_loss"],
}


@pytest.mark.parametrize("method", METHODS)
def test_the_learner_is_asked_once_for_each_block(method):
    X, y = make_rows(240, 3)
    learner = Frequencies()
    list(prequential(learner, blocks(X, y, 60), metrics=METHODS[method]))
    assert learner.calls == [method] * 4


def test_probabilities_are_those_before_each_row():
    X, y = make_rows(240)
    shares = Frequencies().partial_fit_predict(X, y, [0, 1], method="predict_proba")
    *_, record = prequential(Frequencies(), blocks(X, y, 60), classes=[0, 1], metrics=["log_loss"])
    assert record.metrics["log_loss"] == pytest.approx(log_loss(y, shares))


def test_scores_of_more_than_two_classes_may_be_those_of_a_learner_without_probabilities():
    X, y = make_rows(240, 3)
    *_, record = prequential(isokern.FOGDClassifier(random_state=0, n_initial=50), blocks(X, y, 60), metrics="auc")
    assert 0.6 < record.metrics["auc"] < 1


# -- missing labels


def test_rows_without_a_label_are_predicted_but_neither_counted_nor_learned():
    X, y = make_rows(240)
    gone = np.arange(240) % 4 == 1
    learner, twin = (isokern.FOGDClassifier(random_state=0, gamma=1.0) for _ in range(2))
    records = list(prequential(learner, blocks(X, np.where(gone, np.nan, y), 60)))
    expected = list(prequential(twin, blocks(X[~gone], y[~gone], 45)))
    assert [record.n_correct for record in records] == [record.n_correct for record in expected]
    assert [record.n_labelled for record in records] == [record.n_seen for record in expected]
    assert records[-1].n_seen == len(np.concatenate([record.predictions for record in records])) == 240
    assert np.array_equal(learner.decision_function(X), twin.decision_function(X))


@pytest.mark.parametrize("make", [Frequencies, isokern.FOGDClassifier, isokern.IKOGDClassifier])
def test_a_block_may_have_no_labels_at_all(make):
    X, y = make_rows(90)
    run = Prequential(make())
    first = run.step(X[:30], None)
    assert (first.predictions, first.n_seen) == (None, 0)
    run.step(X[30:60], y[30:60])
    last = run.step(X[60:], None)
    assert (last.n_seen, last.n_labelled, len(last.predictions)) == (60, 30, 30)


@pytest.mark.parametrize("metrics", ["kappa", "auc", "log_loss"])
@pytest.mark.parametrize("make", [isokern.FOGDClassifier, isokern.IKOGDClassifier])
def test_given_classes_predict_a_first_block_without_labels(make, metrics):
    if make is isokern.FOGDClassifier and metrics == "log_loss":
        pytest.skip("it has no probabilities")
    X, y = make_rows(90)
    run, twin = (Prequential(make(random_state=0), classes=[0, 1], metrics=metrics) for _ in range(2))
    first = run.step(X[:30], None)
    assert (first.n_seen, first.n_labelled, first.predictions.tolist()) == (30, 0, [0] * 30)
    last, expected = run.step(X[30:], y[30:]), twin.step(X[30:], y[30:])
    assert (last.n_seen, last.n_correct) == (90, expected.n_correct)
    assert last.metrics == expected.metrics


def test_a_regressor_predicts_0_before_the_first_target():
    X, y = make_rows(90)
    run = Prequential(isokern.IKOGDRegressor(random_state=0))
    first = run.step(X[:30], None)
    assert (first.n_seen, first.predictions.tolist()) == (30, [0.0] * 30)
    assert run.step(X[30:], y[30:]).n_seen == 90


def test_rows_with_labels_need_a_learner_that_can_learn_them():
    with pytest.raises(NotFittedError):
        Prequential(isokern.IKOGDClassifierCV()).step(*make_rows(30))


# -- stopping, resuming, and rows that are only learned


def test_an_evaluation_can_be_resumed_after_any_step():
    X, y = make_rows(240)
    options = {"classes": [0, 1], "metrics": ["auc", "kappa"]}
    whole, stopped = (Prequential(isokern.NOGDClassifier(n_initial=50, random_state=0), **options) for _ in range(2))
    for rows, labels in blocks(X, y, 30):
        expected = whole.step(rows, labels)
        learner, state = pickle.loads(pickle.dumps((stopped.learner, stopped.state())))
        stopped = Prequential(learner, **options).restore(state)
        np.testing.assert_equal(untimed(stopped.step(rows, labels)), untimed(expected))


def test_a_state_is_restored_only_with_the_same_protocol():
    state = Prequential(isokern.FOGDClassifier()).state()
    with pytest.raises(ValueError, match=r"^protocol must be 'rows', as in the saved evaluation; got 'blocks'\.$"):
        Prequential(isokern.FOGDClassifier(), protocol="blocks").restore(state)


def test_rows_may_be_learned_without_being_predicted():
    X, y = make_rows(240)
    run, twin = Prequential(isokern.FOGDClassifier(random_state=0)), isokern.FOGDClassifier(random_state=0)
    record = run.learn(X[:100], y[:100])
    assert (record.n_seen, record.predictions) == (0, None)
    assert run.learn(X[:0], y[:0]).n_seen == 0
    assert run.step(X[100:], y[100:]).n_seen == 140
    assert np.array_equal(run.learner.decision_function(X), twin.partial_fit(X, y).decision_function(X))


def test_a_block_that_cannot_be_learned_leaves_the_evaluation_unchanged():
    X, y = make_rows(60)
    run = Prequential(isokern.FOGDClassifier(), metrics=["kappa"])
    run.step(X[:30], y[:30])
    before = run.state()
    with pytest.raises(ValueError, match="classes"):
        run.step(X[30:], np.full(30, 7))
    np.testing.assert_equal(run.state(), before)


def test_an_unknown_protocol_is_refused():
    with pytest.raises(ValueError, match=r'^protocol must be "rows" or "blocks"; got \'row\'\.$'):
        prequential(isokern.FOGDClassifier(), [], protocol="row")
