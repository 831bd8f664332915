"""Test that partial_fit_predict answers each row as if rows came one by one, and leaves the same model."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from isokern import IKOGDClassifier, IKOGDRegressor, IsolationKernel
from isokern.frames import is_missing
from learning import every, feed, is_unfitted, make_stream
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
    answers = fast.partial_fit_predict(X, names, sample_weight=WEIGHTS)
    assert answers[1:].tolist() == one_by_one(slow, names, weights=WEIGHTS)
    plain = copy.deepcopy(model).partial_fit(
        X[has_label], names[has_label].astype(str), sample_weight=WEIGHTS[has_label]
    )
    assert state_of(fast) == state_of(plain)


def test_rows_without_labels_leave_a_model_as_it_was():
    model = IKOGDClassifier(**SMALL).partial_fit(X, Y)
    before = state_of(model)
    assert np.array_equal(model.partial_fit_predict(X, None), model.predict(X))
    assert state_of(model) == before


@pytest.mark.parametrize("method", ["predict", "decision_function", "predict_proba"])
@every("model", CLASSIFIERS)
def test_rows_before_the_first_label_are_answered_like_the_first_row_that_has_one(model, method):
    early, late = copy.deepcopy(model), copy.deepcopy(model)
    found = early.partial_fit_predict(X, [None] * 20 + Y[20:].tolist(), method=method)
    expected = late.partial_fit_predict(X[20:], Y[20:], method=method)
    assert np.array_equal(found[20:], expected)
    assert np.array_equal(found[:20], np.repeat(expected[:1], 20, axis=0))
    assert state_of(early) == state_of(late)


@every("model", {name: CLASSIFIERS[name] for name in ("growing", "fixed", "no race", "kernel")})
def test_given_classes_answer_rows_before_any_label(model):
    model = copy.deepcopy(model)
    assert model.partial_fit_predict(X, None, ["b", "a"]).tolist() == ["a"] * 150
    assert model.partial_fit_predict(X[:2], None, [0, 1, 2], method="decision_function").tolist() == [[0.0] * 3] * 2
    assert model.partial_fit_predict(X[:2], [None] * 2, [0, 1], method="predict_proba").tolist() == [[0.5] * 2] * 2
    assert is_unfitted(model)
    assert model.partial_fit_predict(X[:1], ["b"], ["b", "a"]).tolist() == ["a"]


def test_without_labels_and_classes_there_is_no_answer():
    model = IKOGDClassifier()
    with pytest.raises(NotFittedError, match=r"y must have a label, or classes must be given\.$"):
        model.partial_fit_predict(X, [None] * 150)
    assert is_unfitted(model)


@pytest.mark.parametrize("make", [IKOGDClassifier, IKOGDRegressor])
def test_rows_before_the_first_label_are_validated(make):
    model, rows = make(**SMALL), np.where(np.arange(150)[:, None] == 1, np.inf, X)
    with pytest.raises(ValueError, match="infinity"):
        model.partial_fit_predict(rows, [np.nan] * 3 + Y[3:].tolist())
    assert is_unfitted(model)


@pytest.mark.parametrize("n", [1, 2, 15, 16, 17])
@every("model", {name: CLASSIFIERS[name] for name in ("growing", "fixed", "kernel")})
def test_short_streams_are_answered_by_calls_of_any_size(model, n):
    whole, rows = copy.deepcopy(model), copy.deepcopy(model)
    answers = whole.partial_fit_predict(X[:n], Y[:n], [0, 1, 2])
    single = [rows.partial_fit_predict(X[i : i + 1], Y[i : i + 1], [0, 1, 2])[0] for i in range(n)]
    assert answers.tolist() == single
    assert whole.n_rows_seen_ == n
    assert np.array_equal(whole.predict_proba(X), rows.predict_proba(X))
    assert state_of(whole.partial_fit(X[n:], Y[n:])) == state_of(rows.partial_fit(X[n:], Y[n:]))


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


@every("model", REGRESSORS)
def test_rows_before_the_first_number_are_predicted_as_0(model):
    early, late = copy.deepcopy(model), copy.deepcopy(model)
    found = early.partial_fit_predict(X, np.where(np.arange(150) < 20, np.nan, NUMBERS))
    assert not found[:20].any()
    assert np.array_equal(found[20:], late.partial_fit_predict(X[20:], NUMBERS[20:]))
    assert state_of(early) == state_of(late)


@every("model", REGRESSORS)
def test_without_any_number_0_is_predicted(model):
    model = copy.deepcopy(model)
    found = model.partial_fit_predict(X, None)
    assert is_unfitted(model)
    assert found.shape == model.partial_fit(X, NUMBERS).predict(X).shape
    assert not found.any()


def test_several_outputs_are_answered_together():
    y = np.column_stack([NUMBERS, -NUMBERS])
    model = IKOGDRegressor(**SMALL).partial_fit(X[:100], y[:100])
    expected = model.predict(X[100:101])
    assert np.array_equal(model.partial_fit_predict(X[100:], y[100:])[:1], expected)


# Invalid rows

BAD = {
    "label of another type": (X, ["a", None, 1, "b"], None),
    "label of the wrong type": (X, [0, None, "a", 1], None),
    "infinite row": (np.where(np.arange(150)[:, None] == 3, np.inf, X), [0, 1, None, 1], None),
    "NaN as weight": (X, [0, 1, None, 1], [1.0, 1.0, 1.0, np.nan]),
    "too few weights": (X, [0, 1, None, 1], [1.0, 1.0, 1.0]),
}


@every("rows", BAD)
@pytest.mark.parametrize("n_before", [0, 60])
def test_a_call_with_an_invalid_row_learns_none(rows, n_before):
    model, (table, y, weights) = IKOGDClassifier(**SMALL), rows
    if n_before:
        model.partial_fit(X[:n_before], Y[:n_before])
    before = state_of(model)
    with pytest.raises(ValueError, match=r"^(y must|X must be finite|sample_weight|Input sample_weight contains NaN)"):
        model.partial_fit_predict(table[:4], y, sample_weight=weights)
    assert state_of(model) == before


def test_a_call_with_an_infinite_target_learns_none():
    model = IKOGDRegressor(**SMALL).partial_fit(X, NUMBERS)
    before = state_of(model)
    with pytest.raises(ValueError, match=r"^y must be finite"):
        model.partial_fit_predict(X[:3], [1.0, np.nan, np.inf])
    assert state_of(model) == before


def test_a_mixture_of_text_and_numbers_is_refused_as_partial_fit_does():
    for method in ("partial_fit", "partial_fit_predict"):
        with pytest.raises(ValueError, match=r"^y must be all numbers or all text"):
            getattr(IKOGDClassifier(**SMALL), method)(X[:2], ["a", 1])
