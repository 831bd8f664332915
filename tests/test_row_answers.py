"""Test that partial_fit_predict answers each row as if rows came one by one, and leaves the same model."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from isokern import IKOGDClassifier, IKOGDRegressor, IsolationKernel
from isokern.frames import is_missing
from learning import every, feed, make_stream
from test_interrupts import state_of

SMALL = {"n_partitionings": 7, "random_state": 0}
X, Y, WEIGHTS = make_stream(150)
KERNEL = IsolationKernel(n_cells=8, **SMALL).fit(X)
CLASSIFIERS = {
    "growing": IKOGDClassifier(**SMALL),
    "fixed": IKOGDClassifier(n_cells=8, n_initial=50, **SMALL),
    "no race": IKOGDClassifier(n_cells=8, n_initial=50, schedule="constant", **SMALL),
    "averaged": IKOGDClassifier(n_cells=8, n_initial=50, schedule="constant", average=True, **SMALL),
    "dual": IKOGDClassifier(n_cells=8, n_initial=50, evaluation="dual", **SMALL),
    "kernel": IKOGDClassifier(kernel=KERNEL),
    "balanced": IKOGDClassifier(class_weight="balanced", loss="logistic", **SMALL),
}


def one_by_one(model, y, method="predict", weights=None):
    """Return the answers of the loop that partial_fit_predict stands for, from the second row on."""
    answers = []
    for i, label in enumerate(y):
        if i:
            answers.append(getattr(model, method)(X[i : i + 1])[0])
        if not is_missing(label):
            model.partial_fit(X[i : i + 1], [label], sample_weight=None if weights is None else weights[i : i + 1])
    return answers


@every("model", CLASSIFIERS)
@pytest.mark.parametrize("kind", ["two classes", "three classes", "late classes"])
def test_labels_are_those_of_rows_that_come_one_by_one(kind, model):
    y = {"two classes": np.minimum(Y, 1), "three classes": Y, "late classes": np.where(np.arange(150) < 70, 0, Y)}[kind]
    names = np.array(["a", "bb", "ccc"])[y]
    slow, fast, plain = (copy.deepcopy(model) for _ in range(3))
    expected = one_by_one(slow, names, weights=WEIGHTS)
    answers = np.concatenate(
        [
            fast.partial_fit_predict(X[part], names[part], sample_weight=WEIGHTS[part])
            for part in (slice(61), slice(61, None))
        ]
    )
    assert answers[1:].tolist() == expected
    assert state_of(fast) == state_of(feed(plain, [61], X, names, WEIGHTS))


@every("model", {name: CLASSIFIERS[name] for name in ("growing", "no race", "kernel")})
@pytest.mark.parametrize("y", [np.minimum(Y, 1), Y], ids=["two classes", "three classes"])
def test_scores_are_those_of_rows_that_come_one_by_one(y, model):
    given = copy.deepcopy(model).partial_fit(X[:60], y[:60])
    slow, fast = copy.deepcopy(given), copy.deepcopy(given)
    scores = fast.partial_fit_predict(X[60:], y[60:], method="decision_function")
    for i in range(60, 150):
        assert np.array_equal(slow.decision_function(X[i : i + 1])[0], scores[i - 60])
        slow.partial_fit(X[i : i + 1], y[i : i + 1])


# Not those with a kernel from the start: a score of 0, in cells that no row has fallen into, stands for no class.
@every("model", {name: model for name, model in CLASSIFIERS.items() if name != "kernel"})
@pytest.mark.parametrize("first", ["a", "b"])
def test_scores_agree_with_labels_before_the_second_class_comes(first, model):
    y = np.where(np.arange(150) < 70, first, np.array(["a", "b"])[np.minimum(Y, 1)])
    labels = copy.deepcopy(model).partial_fit_predict(X, y)
    scores = copy.deepcopy(model).partial_fit_predict(X, y, method="decision_function")
    assert np.array_equal(np.where(scores > 0, "b", "a")[1:], labels[1:])


@every("model", CLASSIFIERS)
def test_probabilities_agree_with_labels_and_have_all_classes_as_columns(model):
    y = np.where(np.arange(150) < 70, np.minimum(Y, 1), Y)
    first, second = copy.deepcopy(model), copy.deepcopy(model)
    shares = first.partial_fit_predict(X, y, method="predict_proba")
    labels = second.partial_fit_predict(X, y)
    assert shares.shape == (150, 3)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    assert not shares[1:70, 2].any()
    assert np.array_equal(first.classes_[shares[1:].argmax(axis=1)], labels[1:])


@every("model", {name: CLASSIFIERS[name] for name in ("growing", "fixed", "kernel")})
def test_rows_without_a_label_are_predicted_but_not_learned(model):
    names = np.array(["a", "bb", "ccc"], dtype=object)[Y]
    names[np.random.default_rng(0).random(150) < 0.3] = None
    names[0], has_label = "a", np.array([name is not None for name in names])
    slow, fast = copy.deepcopy(model), copy.deepcopy(model)
    assert fast.partial_fit_predict(X, names)[1:].tolist() == one_by_one(slow, names)
    plain = copy.deepcopy(model).partial_fit(X[has_label], names[has_label].astype(str))
    assert state_of(fast) == state_of(plain)


def test_no_labels_at_all_need_a_fitted_model():
    model = IKOGDClassifier(**SMALL).partial_fit(X, Y)
    assert np.array_equal(model.partial_fit_predict(X, None), model.predict(X))


def test_an_unknown_method_is_a_clear_error():
    with pytest.raises(ValueError, match=r'method must be .* or "predict_proba" for IKOGDClassifier; got'):
        IKOGDClassifier().partial_fit_predict(X, Y, method="transform")


# Regressors

NUMBERS = 3.0 * X[:, 0] + np.sin(2 * X[:, 1])
REGRESSORS = {
    "growing": IKOGDRegressor(**SMALL),
    "fixed": IKOGDRegressor(n_cells=8, n_initial=50, **SMALL),
    "averaged": IKOGDRegressor(n_cells=8, n_initial=50, schedule="constant", average=True, **SMALL),
    "kernel": IKOGDRegressor(kernel=KERNEL),
    "quantiles": IKOGDRegressor(loss="quantile", quantiles=(0.1, 0.5, 0.9), **SMALL),
}


@every("model", REGRESSORS)
def test_numbers_are_those_of_rows_that_come_one_by_one(model):
    slow, fast, plain = (copy.deepcopy(model) for _ in range(3))
    expected = one_by_one(slow, NUMBERS, weights=WEIGHTS)
    parts = (slice(61), slice(61, None))
    answers = [fast.partial_fit_predict(X[part], NUMBERS[part], sample_weight=WEIGHTS[part]) for part in parts]
    assert np.array_equal(np.concatenate(answers)[1:], expected)
    assert state_of(fast) == state_of(feed(plain, [61], X, NUMBERS, WEIGHTS))


def test_rows_without_a_number_are_predicted_but_not_learned():
    y = np.where(np.random.default_rng(0).random(150) < 0.3, np.nan, NUMBERS)
    y[0] = NUMBERS[0]
    slow, fast, plain = (IKOGDRegressor(**SMALL) for _ in range(3))
    assert np.array_equal(fast.partial_fit_predict(X, y)[1:], one_by_one(slow, y))
    assert state_of(fast) == state_of(plain.partial_fit(X[~np.isnan(y)], y[~np.isnan(y)]))


def test_several_outputs_are_answered_together():
    y = np.column_stack([NUMBERS, -NUMBERS])
    model = IKOGDRegressor(**SMALL).partial_fit(X[:100], y[:100])
    expected = model.predict(X[100:101])
    assert np.array_equal(model.partial_fit_predict(X[100:], y[100:])[:1], expected)
