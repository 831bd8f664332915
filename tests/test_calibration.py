"""Check probabilities: they sum to 1, agree with the predicted class, and are calibrated on unlearned rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_blobs
from sklearn.metrics import brier_score_loss
from sklearn.svm import LinearSVC

from isokern import IKOGDClassifier, IsolationKernel
from isokern.data import read_libsvm
from learning import LOSSES, RATES, SMALL, feed, make_kernel, make_rows, make_stream, same_model

every_loss = pytest.mark.parametrize("loss", LOSSES)
every_hinge = pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])


HUGE_STEPS = {"schedule": "constant", "learning_rate": 5000.0}
OPTIONS = [{"loss": loss} for loss in LOSSES] + [{"loss": loss, **HUGE_STEPS} for loss in ("hinge", "logistic")]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_the_probabilities_of_a_row_sum_to_one(n_classes, options):
    X, y = make_rows(200, n_classes)
    probabilities = IKOGDClassifier(**options, **SMALL).fit(X, y).predict_proba(X)
    assert probabilities.min() >= 0
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)


@given(
    seed=st.integers(0, 1000),
    n_classes=st.integers(2, 5),
    loss=st.sampled_from(LOSSES),
    schedule=st.sampled_from(list(RATES)),
    average=st.booleans(),
)
def test_the_most_probable_class_is_the_predicted_one(seed, n_classes, **options):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(60, 2)), rng.integers(n_classes, size=60)
    model = IKOGDClassifier(n_partitionings=3, n_cells=4, random_state=seed, **options).fit(X, y)
    assert np.array_equal(model.classes_[model.predict_proba(X).argmax(axis=1)], model.predict(X))


@every_loss
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("scale", [1e-6, 1e2, 1e4])
def test_the_most_probable_class_is_the_predicted_one_for_scores_of_any_size(scale, n_classes, loss):
    X, y = make_rows(200, n_classes)
    model = IKOGDClassifier(loss=loss, schedule="adagrad", **SMALL).fit(X, y)
    model.learned_.model.values *= scale
    assert np.array_equal(model.classes_[model.predict_proba(X).argmax(axis=1)], model.predict(X))


def test_the_most_probable_class_is_the_predicted_one_for_a_score_of_rounding_error():
    X, _ = make_rows(50)
    model = IKOGDClassifier(schedule="constant", learning_rate=0.1, kernel=make_kernel(X))
    one = np.repeat(X[:1], 6, axis=0)
    model.partial_fit(one, [1, 1, 1, 0, 0, 0])  # 0.1 + 0.1 + 0.1 - 0.1 - 0.1 - 0.1 is 2.8e-17
    assert model.predict_proba(one[:1]).argmax() == model.predict(one[:1])[0]


@every_hinge
@pytest.mark.parametrize("n_classes", [2, 4])
def test_probabilities_are_the_softmax_of_the_scores_over_one_temperature(n_classes, loss):
    X, y = make_rows(300, n_classes)
    model = IKOGDClassifier(loss=loss, **SMALL).fit(X, y)
    scores, logarithms = model.decision_function(X), np.log(model.predict_proba(X))
    if n_classes == 2:  # one score, for the second class; the logit of the first is 0
        scores = np.column_stack([np.zeros(300), scores])
    factors = np.diff(logarithms, axis=1) / np.diff(scores, axis=1)
    assert factors[0, 0] > 0
    np.testing.assert_allclose(factors, factors[0, 0], rtol=1e-5)


def test_scores_of_logistic_loss_are_logits():
    X, y = make_rows(300)
    model = IKOGDClassifier(loss="logistic", **SMALL).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], expit(model.decision_function(X)))


@every_hinge
@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities_are_near_chance_for_random_labels(n_classes, loss):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(2000, 3)), rng.integers(n_classes, size=2000)
    model = IKOGDClassifier(n_cells=256, loss=loss, random_state=0).fit(X, y)
    assert model.predict_proba(X).max() < 1 / n_classes + 0.2


@every_loss
@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities_are_near_one_for_well_separated_classes(n_classes, loss):
    X, y = make_blobs(1000, centers=n_classes, cluster_std=0.5, random_state=0)
    probabilities = IKOGDClassifier(loss=loss, random_state=0).fit(X, y).predict_proba(X)
    assert probabilities[np.arange(1000), y].mean() > 0.9


@every_hinge
def test_probabilities_stay_below_one_for_perfect_scores(loss):
    X = np.repeat([[0.0], [1.0]], 200, axis=0)
    y = np.repeat([0, 1], 200)
    model = IKOGDClassifier(n_partitionings=20, n_cells=2, loss=loss, random_state=0).fit(X, y)
    assert 0.9 < model.predict_proba([[1.0]])[0, 1] < 1


def test_calibration_uses_the_scores_of_the_first_pass():
    X, y = make_rows(200, 3)
    kernel = make_kernel(X)
    one, three = (IKOGDClassifier(kernel=kernel, n_passes=n, shuffle=False).fit(X, y).learned_.window for n in (1, 3))
    assert np.array_equal(one.scores, three.scores)
    assert one.n_seen == three.n_seen


@pytest.mark.parametrize("size", [1, 7, 50, 120])
def test_calibration_uses_the_most_recent_rows_however_the_stream_is_split(size, monkeypatch):
    monkeypatch.setattr("isokern.learners.calibration.ScoreWindow.size", 32)
    X, y, weights = make_stream()
    kernel = make_kernel(X)
    whole, parts = (feed(IKOGDClassifier(kernel=kernel), [n] * 120, X, y, weights) for n in (120, size))
    assert same_model(whole, parts)
    rows = [np.unique(model.learned_.window.scores, axis=0) for model in (whole, parts)]
    assert np.array_equal(*rows)
    np.testing.assert_allclose(whole.predict_proba(X), parts.predict_proba(X), rtol=0, atol=1e-6)


def test_the_brier_score_on_a9a_is_near_that_of_a_calibrated_linear_svm_on_the_same_map(data_set):
    (X, y), (X_test, y_test) = (read_libsvm(data_set(name), n_features=123) for name in ("a9a", "a9a.t"))
    kernel = IsolationKernel(random_state=0).fit(X)
    linear = CalibratedClassifierCV(LinearSVC(), cv=3).fit(kernel.transform(X), y)
    model = IKOGDClassifier(kernel=kernel, random_state=0).fit(X, y)
    expected = brier_score_loss(y_test, linear.predict_proba(kernel.transform(X_test))[:, 1])
    assert brier_score_loss(y_test, model.predict_proba(X_test)[:, 1]) <= expected + 0.005
