"""Metrics: they are those of scikit-learn, whatever the size of blocks."""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import calibration_curve
from sklearn.datasets import make_friedman1
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import (
    average_precision_score,
    balanced_accuracy_score,
    cohen_kappa_score,
    f1_score,
    log_loss,
    mean_absolute_error,
    r2_score,
    roc_auc_score,
    root_mean_squared_error,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.preprocessing import label_binarize

from isokern import IKSVC, IKOGDClassifier, IKOGDRegressor, evaluation
from isokern.data import blocks
from isokern.evaluation import holdout, measure
from isokern.evaluation.counters import score_bins
from learning import SMALL, make_rows

prequential = partial(evaluation.prequential, protocol="blocks")

ALL = ["balanced_accuracy", "f1", "kappa", "log_loss", "calibration_error", "auc", "average_precision"]


class Scores(ClassifierMixin, BaseEstimator):
    """A classifier of two classes whose scores are the first column."""

    def __init__(self, classes):
        self.classes_ = np.array(classes)

    def decision_function(self, X):
        return X[:, 0]

    def predict(self, X):
        return self.classes_[(X[:, 0] > 0).astype(int)]


class Probabilities(ClassifierMixin, BaseEstimator):
    """A classifier whose probabilities are the columns."""

    def __init__(self, classes):
        self.classes_ = np.array(classes)

    def predict_proba(self, X):
        return X

    def predict(self, X):
        return self.classes_[X.argmax(axis=1)]


def calibration_error(is_own, shares):
    """Return the expected calibration error of one class, from the curve of scikit-learn."""
    frequencies, means = calibration_curve(is_own, shares, n_bins=15)
    counts = np.unique(np.searchsorted(np.linspace(0, 1, 16)[1:-1], shares), return_counts=True)[1]
    return counts @ np.abs(frequencies - means) / len(shares)


def metrics_of(learner, X, y, metrics, size=30):
    *_, record = measure(learner, blocks(X, y, size), metrics=metrics)
    return record.metrics


@pytest.mark.parametrize("size", [1, 30, 300])
@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("make", [GaussianNB, lambda: IKOGDClassifier(**SMALL)], ids=["naive Bayes", "IK-OGD"])
def test_metrics_of_labels_and_probabilities_are_those_of_scikit_learn(make, n_classes, size):
    X, y = make_rows(300, n_classes)
    model = make().fit(X[:100], y[:100])
    predictions, shares = model.predict(X), model.predict_proba(X)
    errors = [calibration_error(y == k, shares[:, k]) for k in range(n_classes)]
    assert metrics_of(model, X, y, ALL[:5], size) == pytest.approx(
        {
            "balanced_accuracy": balanced_accuracy_score(y, predictions),
            "f1": f1_score(y, predictions, average="binary" if n_classes == 2 else "macro"),
            "kappa": cohen_kappa_score(y, predictions),
            "log_loss": log_loss(y, shares),
            "calibration_error": errors[1] if n_classes == 2 else np.mean(errors),
        }
    )


def test_the_log_loss_of_certainty_is_finite():
    shares = np.array([[1.0, 0.0], [0.0, 1.0]])
    metrics = metrics_of(Probabilities(["a", "b"]), shares, np.array(["a", "a"]), "log_loss")
    assert metrics["log_loss"] == pytest.approx(log_loss(["a", "a"], shares, labels=["a", "b"]))


def test_a_class_that_the_learner_does_not_know_has_the_smallest_probability():
    metrics = metrics_of(Probabilities(["a", "c"]), np.array([[0.5, 0.5]]), np.array(["b"]), "log_loss")
    assert metrics["log_loss"] == pytest.approx(-np.log(np.finfo(float).eps))


def test_probabilities_that_are_frequencies_have_no_calibration_error():
    shares = np.column_stack([np.repeat([0.75, 0.25], 4), np.repeat([0.25, 0.75], 4)])
    truth = np.array([0, 0, 0, 1, 0, 1, 1, 1])
    assert metrics_of(Probabilities([0, 1]), shares, truth, "calibration_error")["calibration_error"] == 0
    assert metrics_of(Probabilities([0, 1]), shares, 1 - truth, "calibration_error")["calibration_error"] == 0.5


def test_a_class_that_the_learner_does_not_know_has_probability_zero():
    shares = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    metrics = metrics_of(Probabilities(["a", "c"]), shares, np.array(["a", "b", "c", "a"]), "calibration_error")
    assert metrics["calibration_error"] == pytest.approx((0 + 1 / 4 + 1 / 4) / 3)


@pytest.mark.parametrize("truth", [[0, 0, 1], [5, 1, 5], [5, 5, 5]])
def test_f1_is_that_of_the_second_class_of_the_learner(truth):
    classes = [0, 1] if 0 in truth else [1, 5]
    scores = np.array([[1.0], [-1.0], [1.0]])
    expected = f1_score(truth, Scores(classes).predict(scores), pos_label=classes[1])
    assert metrics_of(Scores(classes), scores, np.array(truth), "f1")["f1"] == pytest.approx(expected)


# -- scores in bins


@given(st.lists(st.floats(allow_nan=False), min_size=2, max_size=50))
def test_a_larger_score_never_has_a_lower_bin(scores):
    bins = score_bins(np.sort(np.array(scores, dtype=np.float64)))
    assert (np.diff(bins) >= 0).all()
    assert bins.min() >= 0 and bins.max() < 2**16


@given(st.floats(1e-18, 1e18), st.sampled_from([-1, 1]))
def test_scores_that_differ_by_half_a_percent_have_different_bins(size, sign):
    low, high = score_bins(sign * np.array([size, 1.005 * size]))
    assert low != high


def test_zero_has_one_bin():
    below, negative_zero, zero = score_bins(np.array([-1e-30, -0.0, 0.0]))
    assert below < negative_zero == zero


@given(st.lists(st.tuples(st.integers(-20, 20), st.booleans()), min_size=2, max_size=60))
def test_area_and_precision_are_exact_if_different_scores_have_different_bins(rows):
    scores, truth = np.array([[2.0**k if k % 2 else -(2.0**k)] for k, _ in rows]), np.array([c for _, c in rows])
    metrics = metrics_of(Scores([False, True]), scores, truth, ["auc", "average_precision"])
    if not truth.any() or truth.all():
        assert np.isnan(metrics["auc"])
        return
    assert metrics["auc"] == pytest.approx(roc_auc_score(truth, scores[:, 0]))
    assert metrics["average_precision"] == pytest.approx(average_precision_score(truth, scores[:, 0]))


def test_area_and_precision_are_close_for_any_scores():
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=5000)
    scores = rng.normal(size=5000) + truth
    metrics = metrics_of(Scores([0, 1]), scores[:, None], truth, ["auc", "average_precision"], 1000)
    assert metrics["auc"] == pytest.approx(roc_auc_score(truth, scores), abs=1e-4)
    assert metrics["average_precision"] == pytest.approx(average_precision_score(truth, scores), abs=1e-3)


def test_probabilities_near_one_have_different_bins():
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=2000)
    shares = 1 - np.exp(-8 - truth - rng.normal(size=2000))  # all above 0.99
    metrics = metrics_of(Probabilities([0, 1]), np.column_stack([1 - shares, shares]), truth, "auc")
    assert metrics["auc"] == pytest.approx(roc_auc_score(truth, shares), abs=1e-3)


@pytest.mark.parametrize("make", [GaussianNB, lambda: IKOGDClassifier(**SMALL)], ids=["naive Bayes", "IK-OGD"])
def test_area_and_precision_of_more_classes_are_the_means_of_scikit_learn(make):
    X, y = make_rows(300, 4)
    model = make().fit(X[:100], y[:100])
    shares = model.predict_proba(X)
    expected = {
        "auc": roc_auc_score(y, shares, multi_class="ovr"),
        "average_precision": average_precision_score(y, shares),
    }
    assert metrics_of(model, X, y, list(expected)) == pytest.approx(expected, abs=2e-3)
    assert holdout(model, (X[:100], y[:100]), (X, y), metrics=list(expected)).metrics == pytest.approx(expected)


def test_the_area_of_more_classes_may_come_from_scores():
    X, y = make_rows(300, 4)
    model = IKSVC(**SMALL, C=1.0, linear=False).fit(X[:100], y[:100])  # without probabilities
    expected = roc_auc_score(label_binarize(y, classes=range(4)), model.decision_function(X))
    assert metrics_of(model, X, y, "auc")["auc"] == pytest.approx(expected, abs=2e-3)


def test_a_class_without_rows_has_no_area():
    shares = np.array([[0.6, 0.3, 0.1], [0.3, 0.5, 0.2], [0.5, 0.4, 0.1]])
    assert metrics_of(Probabilities([0, 1, 2]), shares, np.array([0, 1, 0]), "auc")["auc"] == 1


def test_classes_that_appear_later_have_an_area_from_then_on():
    X, y = make_rows(240)
    y = np.where(np.arange(240) < 120, y, 2 + y)
    *_, before, _, _, _, last = prequential(IKOGDClassifier(n_initial=50, **SMALL), blocks(X, y, 30), metrics="auc")
    assert before.metrics["auc"] > 0.6 and last.metrics["auc"] > 0.6


def test_a_stream_of_very_many_classes_has_no_area():
    shares = np.eye(101)
    with pytest.raises(ValueError, match=r'must not name "auc" .* more than 100 classes along a stream.*; got 101'):
        metrics_of(Probabilities(range(101)), shares, np.arange(101), "auc")


def test_a_learner_without_scores_has_no_area():
    class Silent:
        def predict(self, X):
            return np.zeros(len(X))

    with pytest.raises(ValueError, match="Silent, which has no decision_function or predict_proba"):
        measure(Silent(), [], metrics="auc")


# -- not defined yet


def test_undefined_metrics_are_nan_without_a_warning():
    X, _ = make_rows(60)
    learner, metrics = IKOGDClassifier(n_initial=20, **SMALL), ["f1", "kappa", "auc", "average_precision"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        records = list(prequential(learner, blocks(X, np.zeros(60), 30), metrics=metrics))
    assert all(np.isnan(value) for record in records for value in record.metrics.values())


def test_before_the_first_prediction_all_metrics_are_nan():
    (record,) = prequential(IKOGDClassifier(), [make_rows(30)], metrics=ALL)
    assert list(record.metrics) == ALL
    assert np.isnan(list(record.metrics.values())).all()


# -- regressors


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_errors_of_a_regressor_are_those_of_scikit_learn(offset):
    X, y = make_friedman1(300, random_state=0)
    y = y + offset
    records = list(prequential(IKOGDRegressor(n_initial=50, **SMALL), blocks(X, y, 30)))[1:]
    predictions, truth = np.concatenate([r.predictions for r in records]), y[30:]
    assert records[-1].metrics == pytest.approx(
        {
            "mae": mean_absolute_error(truth, predictions),
            "rmse": root_mean_squared_error(truth, predictions),
            "r2": r2_score(truth, predictions),
        }
    )


def test_one_target_has_no_variance_to_explain():
    X, y = make_friedman1(31, random_state=0)
    *_, record = prequential(IKOGDRegressor(), blocks(X, y, 30), metrics=["r2", "mae"])
    assert np.isnan(record.metrics["r2"]) and record.metrics["mae"] > 0


# -- held-out rows


def test_metrics_of_held_out_rows_are_exact():
    X, y = make_rows(300)
    model = GaussianNB()
    record = holdout(model, (X[:100], y[:100]), (X[100:], y[100:]), metrics=ALL)
    truth, shares = y[100:], model.predict_proba(X[100:])
    expected = {
        "balanced_accuracy": balanced_accuracy_score(truth, record.predictions),
        "f1": f1_score(truth, record.predictions),
        "kappa": cohen_kappa_score(truth, record.predictions),
        "log_loss": log_loss(truth, shares),
        "calibration_error": calibration_error(truth, shares[:, 1]),
        "auc": roc_auc_score(truth, shares[:, 1]),
        "average_precision": average_precision_score(truth, shares[:, 1]),
    }
    assert record.metrics == pytest.approx(expected, rel=1e-12)


def test_the_exact_area_may_come_from_scores():
    X, y = make_rows(300)
    model = SGDClassifier(random_state=0)
    record = holdout(model, (X[:100], y[:100]), (X[100:], y[100:]), metrics=["auc"])
    assert record.metrics["auc"] == pytest.approx(roc_auc_score(y[100:], model.decision_function(X[100:])), rel=1e-12)
