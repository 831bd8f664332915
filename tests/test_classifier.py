"""IKOGDClassifier: labels of any kind, classes that come late, weights of rows and classes, constant memory."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isokern import IKOGDClassifier
from learning import (
    LOSSES,
    PAPER,
    SMALL,
    feed,
    make_kernel,
    make_rows,
    make_stream,
    one_row,
    same_model,
    stream_learner,
)

# Classes


BINARY_LABELS = {
    "strings": np.array(["no", "yes"]),
    "minus and plus one": np.array([-1, 1]),
    "bools": np.array([False, True]),
    "objects": np.array(["no", "yes"], dtype=object),
    "floats": np.array([1.0, 2.0]),
    "bytes": np.array([3, 7], dtype=np.uint8),
}


@pytest.mark.parametrize("labels", BINARY_LABELS.values(), ids=BINARY_LABELS)
def test_two_classes_of_any_name_give_the_same_scores(labels):
    X, y = make_rows(100)
    expected = IKOGDClassifier(**SMALL).fit(X, y).decision_function(X)
    assert np.array_equal(IKOGDClassifier(**SMALL).fit(X, labels[y]).decision_function(X), expected)


@pytest.mark.parametrize("labels", BINARY_LABELS.values(), ids=BINARY_LABELS)
def test_predictions_are_the_labels_that_were_given(labels):
    X, y = make_rows(100)
    expected = IKOGDClassifier(**SMALL).fit(X, y).predict(X)
    predictions = IKOGDClassifier(**SMALL).fit(X, labels[y]).predict(X)
    assert predictions.dtype == labels.dtype
    assert np.array_equal(predictions, labels[expected])


CLASS_STREAMS = {  # the classes of one block of rows after another
    "2 to 3, after": ["ab", "abc"],
    "2 to 3, between": ["ac", "abc"],
    "2 to 3, before": ["bc", "abc"],
    "2 to 3, all in the first block": ["abc"],
    "1 to 2 to 3, after": ["a", "ab", "abc"],
    "1 to 2 to 3, before": ["c", "bc", "abc"],
    "1 to 2 to 3, around": ["b", "ab", "abc"],
    "1 to 3": ["b", "abc"],
    "3 to 5": ["bcd", "abcde"],
    "3 to 4 to 5": ["ace", "abce", "abcde"],
    "a class that never comes again": ["a", "b", "c"],
}
CLASS_OPTIONS = {
    **{loss: {"loss": loss} for loss in LOSSES},
    **{f"{loss}, constant": {"loss": loss, "schedule": "constant"} for loss in LOSSES},
    "average": {"average": True},
    "average, shrinkage": {"average": True, "shrinkage": 0.01, "loss": "logistic"},
    "balanced": {"class_weight": "balanced"},
    "dual": {"schedule": "constant", "evaluation": "dual"},
}


def class_stream(blocks, n=40):
    """Return rows and labels, n of each block's classes; every class of a block occurs in it."""
    rng = np.random.default_rng(3)
    y = np.concatenate([rng.permutation(np.resize(list(block), n)) for block in blocks])
    return rng.normal(size=(len(y), 3)) + (y == "a")[:, None], y


def tell_and_not(blocks, options, n=40):
    """Return rows, a model that met the classes as they came and one that was told them at the start."""
    X, y = class_stream(blocks, n)
    kernel = make_kernel(X)
    told = IKOGDClassifier(kernel=kernel, **options).partial_fit(X, y, classes=np.unique(y))
    met = IKOGDClassifier(kernel=kernel, **options)
    for begin in range(0, len(y), n):
        met.partial_fit(X[begin : begin + n], y[begin : begin + n])
    return X, met, told


@pytest.mark.parametrize("blocks", CLASS_STREAMS.values(), ids=CLASS_STREAMS)
@pytest.mark.parametrize("options", CLASS_OPTIONS.values(), ids=CLASS_OPTIONS)
def test_classes_met_later_get_the_scores_of_classes_told_at_the_start(options, blocks):
    X, met, told = tell_and_not(blocks, options)
    assert np.array_equal(met.decision_function(X), told.decision_function(X))


@pytest.mark.parametrize("blocks", CLASS_STREAMS.values(), ids=CLASS_STREAMS)
@pytest.mark.parametrize("options", CLASS_OPTIONS.values(), ids=CLASS_OPTIONS)
def test_classes_met_later_get_the_probabilities_of_classes_told_at_the_start(options, blocks):
    X, met, told = tell_and_not(blocks, options)
    assert np.array_equal(met.predict_proba(X), told.predict_proba(X))


@pytest.mark.parametrize("options", CLASS_OPTIONS.values(), ids=CLASS_OPTIONS)
@pytest.mark.parametrize("blocks", [["a", "ab"], ["b", "ab"], ["ab"]], ids=str)
def test_two_classes_get_the_same_scores_whether_told_or_met(blocks, options):
    X, met, told = tell_and_not(blocks, options)
    np.testing.assert_allclose(met.decision_function(X), told.decision_function(X), rtol=0, atol=1e-12)


@pytest.mark.parametrize("blocks", CLASS_STREAMS.values(), ids=CLASS_STREAMS)
def test_classes_met_later_leave_the_number_of_support_vectors_as_if_told(blocks):
    _, met, told = tell_and_not(blocks, PAPER)
    assert met.n_support_ == told.n_support_


def test_two_classes_have_as_many_support_vectors_whether_told_or_met():
    _, met, told = tell_and_not(["ab"], PAPER, n=200)
    assert met.n_support_ == told.n_support_


@given(cuts=st.lists(st.integers(1, 40), max_size=8))
def test_it_does_not_matter_where_a_stream_with_new_classes_is_cut(cuts):
    X, y = class_stream(["b", "ab", "abd", "abcd"])
    kernel = make_kernel(X)
    whole = IKOGDClassifier(kernel=kernel).partial_fit(X, y)
    parts = feed(IKOGDClassifier(kernel=kernel), cuts, X, y, np.ones(len(y)))
    assert np.array_equal(whole.decision_function(X), parts.decision_function(X))


def test_classes_may_first_come_while_rows_are_held():
    X, y = class_stream(["b", "ab", "abc"])
    whole = stream_learner().partial_fit(X, y, classes=["a", "b", "c"])
    parts = feed(stream_learner(), [20] * 6, X, y, np.ones(len(y)))
    assert np.array_equal(whole.decision_function(X), parts.decision_function(X))


def test_classes_are_sorted_whenever_they_come():
    X, y = class_stream(["d", "bd", "bcd", "abcd"])
    model = feed(IKOGDClassifier(kernel=make_kernel(X)), [40] * 3, X, y, np.ones(len(y)))
    assert model.classes_.tolist() == ["a", "b", "c", "d"]


def test_a_stream_may_begin_with_one_class_and_predicts_it():
    X, _ = make_rows(50)
    model = IKOGDClassifier(kernel=make_kernel(X)).partial_fit(X, ["only"] * 50)
    assert set(model.predict(X)) == {"only"}


def test_one_class_alone_is_certain():
    X, _ = make_rows(50)
    model = IKOGDClassifier(kernel=make_kernel(X)).partial_fit(X, ["only"] * 50)
    assert np.array_equal(model.predict_proba(X), np.ones((50, 1)))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_classes_may_be_told_again_in_a_later_call(n_classes):
    X, y = make_rows(100, n_classes)
    model = IKOGDClassifier(kernel=make_kernel(X)).partial_fit(X, y, classes=range(n_classes))
    assert model.partial_fit(X, y, classes=range(n_classes)) is model


# Weights of rows and classes


@pytest.mark.parametrize("weight", [0.5, 1.0, 3.0])
def test_a_row_s_weight_multiplies_its_step(weight):
    model, cells = one_row()
    model.partial_fit_cells(cells, [1], classes=[-1, 1], sample_weight=[weight])
    assert model.decision_function_cells(cells) == [0.5 * weight]


def test_a_row_of_weight_zero_is_no_support_vector():
    model, cells = one_row()
    model.partial_fit_cells(np.repeat(cells, 2, axis=0), [1, 1], classes=[-1, 1], sample_weight=[0, 1])
    assert model.n_support_ == 1


def test_a_class_s_weight_multiplies_the_weights_of_its_rows():
    X, y, weights = make_stream()
    kernel, class_weight = make_kernel(X), {0: 2.0, 2: 0.5}
    by_class = IKOGDClassifier(kernel=kernel, class_weight=class_weight).partial_fit(X, y, sample_weight=weights)
    factors = np.array([class_weight.get(label, 1.0) for label in y])
    assert same_model(by_class, IKOGDClassifier(kernel=kernel).partial_fit(X, y, sample_weight=factors * weights))


def test_a_class_s_weight_may_be_given_for_a_class_that_comes_later():
    X, y = class_stream(["ab", "abc"])
    kernel = make_kernel(X)
    by_class = IKOGDClassifier(kernel=kernel, class_weight={"c": 3.0})
    by_class.partial_fit(X[:40], y[:40]).partial_fit(X[40:], y[40:])
    assert same_model(
        by_class, IKOGDClassifier(kernel=kernel).partial_fit(X, y, sample_weight=np.where(y == "c", 3, 1))
    )


def balanced(y):
    """Return n / (k n_c) for each row: rows, classes and rows of its class so far, itself included."""
    so_far = [list(y[: r + 1]) for r in range(len(y))]
    return np.array([len(labels) / (len(set(labels)) * labels.count(labels[-1])) for labels in so_far])


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_balanced_weights_follow_the_running_counts(method):
    X, y = class_stream(["b", "ab", "abc"])
    kernel, options = make_kernel(X), {"n_passes": 1, "shuffle": False}
    by_class = getattr(IKOGDClassifier(kernel=kernel, class_weight="balanced", **options), method)(X, y)
    by_row = getattr(IKOGDClassifier(kernel=kernel, **options), method)(X, y, sample_weight=balanced(y))
    assert same_model(by_class, by_row)


def test_balanced_weights_are_multiplied_with_those_of_rows():
    X, y, weights = make_stream()
    kernel = make_kernel(X)
    by_class = IKOGDClassifier(kernel=kernel, class_weight="balanced").partial_fit(X, y, sample_weight=weights)
    by_row = IKOGDClassifier(kernel=kernel).partial_fit(X, y, sample_weight=balanced(y) * weights)
    assert same_model(by_class, by_row)


# Constant memory


@pytest.mark.parametrize("options", [{}, {"average": True, "class_weight": "balanced"}], ids=["default", "average"])
def test_a_model_does_not_grow_with_its_stream(options):
    X, y = make_rows(20_000, 3)
    model = IKOGDClassifier(**SMALL, **options).partial_fit(X[:1000], y[:1000])
    before = len(pickle.dumps(model))
    after = len(pickle.dumps(model.partial_fit(X[1000:], y[1000:])))
    assert abs(after - before) < 100  # larger counts take a few more bytes
