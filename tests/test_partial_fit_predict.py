"""Check that rows of a stream can be answered before they are learned, as a loop over single rows would."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from isokern import FOGDClassifier, IsolationKernel, NOGDClassifier, OGDClassifier
from isokern.kernels import CustomKernel
from isokern.learners.weights import SupportVectors
from learning import FEW_RIVALS, FORMS, FROM_DATA, RIVALS, SCALED, SMALL, custom_kernel, every, is_unfitted, make_stream
from test_rivals import NON_NEGATIVE

ISOLATION = IsolationKernel(**SMALL)
ANSWERING = {
    **RIVALS,
    **FROM_DATA,
    **SCALED,
    "OGD, averaged": OGDClassifier("gaussian", gamma=0.7, average=True),
    "OGD, averaged, gamma from data": OGDClassifier(average=True, n_initial=50, random_state=0),
    "OGD, isolation kernel": OGDClassifier(ISOLATION, n_initial=50, random_state=0),
    "OGD, isolation kernel, averaged": OGDClassifier(ISOLATION, average=True, n_initial=50, random_state=0),
    "NOGD, balanced": NOGDClassifier(n_landmarks=60, class_weight="balanced", gamma=0.7),
}


def answers_of_loop(model, X, y, classes, weights=None, method="predict"):
    """Answer and learn rows one by one; rows of label None are not learned."""
    parts = []
    for i in range(X.shape[0]):
        row = X[i : i + 1]
        if not is_unfitted(model):
            parts.append(getattr(model, method)(row))
        elif method == "predict":
            parts.append(np.array(classes[:1]))
        else:
            parts.append(np.zeros((1, len(classes)) if len(classes) > 2 else 1))
        if y[i] is not None:
            model.partial_fit(row, [y[i]], classes, None if weights is None else weights[i : i + 1])
    return np.concatenate(parts)


def without_some_labels(y):
    """Return labels of which some in a row, and every fifth one, are missing."""
    return [None if i < 3 or 55 <= i < 75 or i % 5 == 0 else label for i, label in enumerate(y.tolist())]


def plain(value):
    """Return an object as nested tuples of plain values and bytes, which can be compared."""
    if isinstance(value, CustomKernel):
        return vars(value)
    if isinstance(value, SupportVectors):  # without their spare capacity
        arrays = [None if part is None else part[: value.n] for part in (value.cells, value.values, value.sums)]
        return plain([*arrays, value.n, value.clock])
    if hasattr(value, "state"):
        value = value.state() if callable(value.state) else value.state
    if isinstance(value, np.random.Generator):
        return plain(value.bit_generator)
    if sparse.issparse(value):
        value = value.toarray()
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, dict):
        return tuple((name, plain(part)) for name, part in value.items())
    return tuple(map(plain, value)) if isinstance(value, list | tuple) else value


@every("rival", ANSWERING)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_scores_are_those_of_a_loop_over_single_rows(rival, n_classes):
    X, y, weights = make_stream(90, n_classes)
    classes = list(range(n_classes))
    expected = answers_of_loop(clone(rival), X, y, classes, weights, "decision_function")
    model = clone(rival)
    actual = model.partial_fit_predict(X, y, classes, weights, method="decision_function")
    assert actual.tobytes() == expected.tobytes()
    assert plain(model.model_) == plain(clone(rival).partial_fit(X, y, classes, weights).model_)


@every("rival", FEW_RIVALS | FROM_DATA)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_labels_are_those_of_a_loop_over_single_rows(rival, n_classes):
    X, y, _ = make_stream(90, n_classes)
    names = np.array(["a", "b", "c"])[:n_classes]
    expected = answers_of_loop(clone(rival), X, names[y], names)
    assert np.array_equal(clone(rival).partial_fit_predict(X, names[y], names), expected)


@every("form", FORMS)
@every("rival", ANSWERING)
def test_calls_of_any_size_give_the_same_answers_and_the_same_model(rival, form, monkeypatch):
    monkeypatch.setattr("isokern.learners.answers.BLOCK", 37)
    X, y, _ = make_stream(300, 3)
    X, y = form(np.abs(X)), without_some_labels(y)
    one, many = clone(rival), clone(rival)
    options = {"classes": [0, 1, 2], "method": "decision_function"}
    at_once = one.partial_fit_predict(X, y, **options)
    edges = [0, 1, 2, 30, 70, 72, 200, 300]
    parts = [many.partial_fit_predict(X[a:b], y[a:b], **options) for a, b in pairwise(edges)]
    assert np.array_equal(np.concatenate(parts), at_once)
    assert plain(many.model_) == plain(one.model_)
    assert one.n_rows_seen_ == sum(label is not None for label in y)


@every("rival", FEW_RIVALS | FROM_DATA)
def test_rows_without_a_label_are_answered_but_not_learned(rival):
    X, y, _ = make_stream(140, 3)
    y = without_some_labels(y)
    expected = answers_of_loop(clone(rival), X, y, [0, 1, 2], method="decision_function")
    model = clone(rival)
    actual = model.partial_fit_predict(X, y, [0, 1, 2], method="decision_function")
    assert np.array_equal(actual, expected)
    is_learned = np.array([label is not None for label in y])
    learned = clone(rival).partial_fit(X[is_learned], [label for label in y if label is not None], [0, 1, 2])
    assert plain(model.model_) == plain(learned.model_)


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
def test_a_label_may_be_missing_in_any_way(missing):
    X, y, _ = make_stream(60)
    y = np.array(["a", "b", "c"], dtype=object)[y]
    expected = FOGDClassifier(random_state=0, gamma=1.0).partial_fit(X[:-10], y[:-10]).predict(X[-10:])
    y[-10:] = missing
    for labels in (y, list(y), pd.Series(y)):
        model = FOGDClassifier(random_state=0, gamma=1.0)
        assert np.array_equal(model.partial_fit_predict(X, labels)[-10:], expected)


def test_sums_of_many_support_vectors_equal_those_of_a_loop():
    X, y, _ = make_stream(900, 2)  # several blocks of support vectors
    for average in (False, True):
        model = OGDClassifier("gaussian", gamma=0.7, average=average, loss="logistic")
        scores = clone(model).partial_fit_predict(X, y, [0, 1], method="decision_function")
        begun = clone(model).partial_fit(X[:600], y[:600], [0, 1])
        later = answers_of_loop(begun, X[600:], y[600:], [0, 1], method="decision_function")
        assert np.array_equal(scores[600:], later)


# Before any row is learned


def test_the_first_class_is_the_answer_before_a_row_is_learned():
    X, _, _ = make_stream(5)
    model = FOGDClassifier(random_state=0)
    assert model.partial_fit_predict(X, None, ["b", "a"]).tolist() == ["a"] * 5
    assert model.partial_fit_predict(X, None, [0, 1, 2], method="decision_function").tolist() == [[0.0] * 3] * 5
    assert is_unfitted(model)


def test_classes_or_a_label_are_needed_in_the_first_call():
    with pytest.raises(NotFittedError, match=r"y must have a label, or classes must be given\.$"):
        FOGDClassifier().partial_fit_predict(make_stream(5)[0], [None] * 5)


def test_rows_without_labels_leave_a_model_as_it_was():
    X, y, _ = make_stream(60)
    model = FOGDClassifier(random_state=0).fit(X, y)
    before = plain(model.model_)
    assert np.array_equal(model.partial_fit_predict(X, None), model.predict(X))
    assert plain(model.model_) == before


def test_buffered_rows_are_answered_by_the_majority_so_far():
    X, _, _ = make_stream(7)
    y = ["b", None, "a", "a", "b", "b", None]
    model = OGDClassifier(n_initial=50)
    assert model.partial_fit_predict(X, y, ["a", "b"]).tolist() == ["a", "b", "b", "a", "a", "a", "b"]
    assert model.n_rows_seen_ == 5


# Bad input


def test_a_method_that_a_learner_does_not_have_is_refused():
    X, y, _ = make_stream(10)
    with pytest.raises(ValueError, match=r'^method must be "predict" or "decision_function" for OGDClassifier; got'):
        OGDClassifier().partial_fit_predict(X, y, method="predict_proba")


@every("rival", NON_NEGATIVE)
def test_rows_that_are_refused_leave_a_learner_unfitted(rival):
    X, y, _ = make_stream(1400, 2)
    model = clone(rival)
    with pytest.raises(ValueError, match=r"^X must not be negative"):
        model.partial_fit_predict(np.abs(X) - np.eye(*X.shape, k=-1300), y)
    assert is_unfitted(model)


def test_a_block_that_fails_leaves_the_blocks_before_it():
    X, y, _ = make_stream(1500, 2)

    def kernel(X, Z):
        if (X > 1e6).any():
            raise ZeroDivisionError
        return custom_kernel(X, Z)

    X[-1] = 1e7
    model = OGDClassifier(kernel)
    with pytest.raises(ZeroDivisionError):
        model.partial_fit_predict(X, y)
    assert model.n_rows_seen_ == 1001
