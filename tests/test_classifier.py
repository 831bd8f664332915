"""Check the classes of IKOGDClassifier: labels of any type, classes that appear late, row and class weights."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isokern import IKSVC, IKOGDClassifier, IKOGDRegressor
from learning import (
    LOSSES,
    PAPER,
    SMALL,
    every,
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


@every("labels", BINARY_LABELS)
@pytest.mark.parametrize("learner", [IKOGDClassifier, IKSVC])
def test_labels_may_be_of_any_type(learner, labels):
    X, y = make_rows(100)
    plain, model = learner(**SMALL).fit(X, y), learner(**SMALL).fit(X, labels[y])
    assert np.array_equal(model.decision_function(X), plain.decision_function(X))
    assert model.predict(X).dtype == labels.dtype
    assert np.array_equal(model.predict(X), labels[plain.predict(X)])


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
    "paper": PAPER,
    **{loss: {"loss": loss} for loss in LOSSES},
    **{f"{loss}, constant": {"loss": loss, "schedule": "constant"} for loss in LOSSES},
    "average": {"average": True},
    "average, shrinkage": {"average": True, "shrinkage": 0.01, "loss": "logistic"},
    "balanced": {"class_weight": "balanced"},
    "dual": {"schedule": "constant", "evaluation": "dual"},
}


def class_stream(blocks, n=40):
    """Return rows and labels, n for each block; every class of a block occurs in it."""
    rng = np.random.default_rng(3)
    y = np.concatenate([rng.permutation(np.resize(list(block), n)) for block in blocks])
    return rng.normal(size=(len(y), 3)) + (y == "a")[:, None], y


def discovered_and_declared(blocks, options, n=40):
    """Return rows, a model that discovered the classes block by block, and one that got them at the start."""
    X, y = class_stream(blocks, n)
    kernel = make_kernel(X)
    declared = IKOGDClassifier(kernel=kernel, **options).partial_fit(X, y, classes=np.unique(y))
    return X, feed(IKOGDClassifier(kernel=kernel, **options), [n] * len(blocks), X, y), declared


@every("blocks", CLASS_STREAMS)
@every("options", CLASS_OPTIONS)
def test_classes_discovered_late_are_learned_as_if_declared_at_the_start(options, blocks):
    X, discovered, declared = discovered_and_declared(blocks, options)
    assert np.array_equal(discovered.decision_function(X), declared.decision_function(X))
    assert np.array_equal(discovered.predict_proba(X), declared.predict_proba(X))
    assert discovered.n_support_ == declared.n_support_
    assert np.array_equal(discovered.classes_, declared.classes_)


@every("options", CLASS_OPTIONS)
@pytest.mark.parametrize("blocks", [["a", "ab"], ["b", "ab"], ["ab"], ["ab"] * 5], ids=str)
def test_two_classes_get_the_same_scores_whether_declared_or_discovered(blocks, options):
    X, discovered, declared = discovered_and_declared(blocks, options)
    np.testing.assert_allclose(discovered.decision_function(X), declared.decision_function(X), rtol=0, atol=1e-12)
    if blocks[0] == "ab":
        assert discovered.n_support_ == declared.n_support_


@given(cuts=st.lists(st.integers(1, 40), max_size=8))
def test_a_stream_with_new_classes_may_be_split_anywhere(cuts):
    X, y = class_stream(["b", "ab", "abd", "abcd"])
    kernel = make_kernel(X)
    whole, parts = (feed(IKOGDClassifier(kernel=kernel), sizes, X, y) for sizes in ([], cuts))
    assert np.array_equal(whole.decision_function(X), parts.decision_function(X))


def test_classes_may_appear_during_the_warm_up():
    X, y = class_stream(["b", "ab", "abc"])
    whole = stream_learner().partial_fit(X, y, classes=["a", "b", "c"])
    assert np.array_equal(whole.decision_function(X), feed(stream_learner(), [20] * 6, X, y).decision_function(X))


def test_a_stream_may_start_with_one_class_which_is_then_certain():
    X, _ = make_rows(50)
    model = IKOGDClassifier(kernel=make_kernel(X)).partial_fit(X, ["only"] * 50)
    assert set(model.predict(X)) == {"only"}
    assert np.array_equal(model.predict_proba(X), np.ones((50, 1)))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_classes_may_be_declared_again_in_a_later_call(n_classes):
    X, y = make_rows(100, n_classes)
    model = IKOGDClassifier(kernel=make_kernel(X)).partial_fit(X, y, classes=range(n_classes))
    assert model.partial_fit(X, y, classes=range(n_classes)) is model


# Row and class weights


@pytest.mark.parametrize(("weight", "score"), [(0.5, 0.25), (1.0, 0.5), (2.0, 1.0), (3.0, 1.0)])
def test_a_row_weight_multiplies_the_step_up_to_the_minimum_of_the_loss(weight, score):
    model, cells = one_row()
    model.partial_fit_cells(cells, [1], classes=[-1, 1], sample_weight=[weight])
    assert model.decision_function_cells(cells) == [score]


def test_a_row_of_weight_zero_is_not_a_support_vector():
    model, cells = one_row()
    model.partial_fit_cells(np.repeat(cells, 2, axis=0), [1, 1], classes=[-1, 1], sample_weight=[0, 1])
    assert model.n_support_ == 1


def balanced(y):
    """Return n / (k n_c) for each row: rows, classes and rows of its class so far, itself included."""
    so_far = [list(y[: r + 1]) for r in range(len(y))]
    return np.array([len(labels) / (len(set(labels)) * labels.count(labels[-1])) for labels in so_far])


CLASS_WEIGHTS = {  # and the equal row weights
    "dict": ({"a": 2.0, "c": 0.5}, lambda y: np.select([y == "a", y == "c"], [2.0, 0.5], 1.0)),
    "balanced": ("balanced", balanced),
}


@every(("class_weight", "factors"), CLASS_WEIGHTS)
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_class_weights_multiply_row_weights(method, class_weight, factors):
    X, y = class_stream(["b", "ab", "abc"])
    weights = np.random.default_rng(2).uniform(0.1, 2, len(y))
    kernel, options = make_kernel(X), {"n_passes": 1, "shuffle": False}
    by_class, by_row, late = (
        IKOGDClassifier(kernel=kernel, class_weight=w, **options) for w in (class_weight, None, class_weight)
    )
    getattr(by_class, method)(X, y, sample_weight=weights)
    getattr(by_row, method)(X, y, sample_weight=factors(y) * weights)
    assert same_model(by_class, by_row)
    # A class may have a weight before it appears.
    assert np.array_equal(feed(late, [40, 40], X, y, weights).decision_function(X), by_row.decision_function(X))


# Constant memory


@pytest.mark.parametrize(
    "model",
    [
        IKOGDClassifier(**SMALL),
        IKOGDClassifier(average=True, class_weight="balanced", **SMALL),
        IKOGDRegressor(**SMALL),
    ],
    ids=["classifier", "balanced average", "regressor"],
)
def test_a_model_does_not_grow_with_its_stream(model):
    X, y, _ = make_stream(20_000)
    before = len(pickle.dumps(model.partial_fit(X[:1000], y[:1000])))
    after = len(pickle.dumps(model.partial_fit(X[1000:], y[1000:])))
    assert after - before < 100  # larger counts take a few more bytes


@pytest.mark.parametrize("method", ["fit", "partial_fit", "partial_fit_predict"])
def test_a_learner_warns_at_the_caller(method):
    X = np.random.default_rng(0).normal(size=(200, 2))
    with pytest.warns(UserWarning, match="different integers") as caught:
        getattr(IKOGDClassifier(n_partitionings=3), method)(X, np.arange(200))
    assert {warning.filename for warning in caught} == {__file__}
