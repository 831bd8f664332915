"""Check streams: splits, the warm-up, cells instead of rows, and partial_fit after fit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone

from isokern import AdaptiveIKClassifier, IKOGDClassifier, IKOGDRegressor, IsolationKernel
from learning import (
    BUFFERED,
    LOSSES,
    ONLINE,
    PAPER,
    SMALL,
    answers,
    every,
    feed,
    make_kernel,
    make_rows,
    make_stream,
    same_model,
    stream_learner,
)

FEW_TREES = {"n_partitionings": 6, "random_state": 0}

CASES = {
    "default": (IKOGDClassifier, {}),
    "paper": (IKOGDClassifier, PAPER),
    "average": (IKOGDClassifier, {"average": True, "shrinkage": 0.01}),
    "decaying": (IKOGDClassifier, {"schedule": "decaying", "loss": "logistic"}),
    "balanced": (IKOGDClassifier, {"class_weight": "balanced"}),
    "balanced average": (IKOGDClassifier, {"class_weight": "balanced", "average": True, "loss": "squared_hinge"}),
    "regressor": (IKOGDRegressor, {}),
    "regressor, quantiles": (IKOGDRegressor, {"loss": "quantile", "quantiles": (0.2, 0.7)}),
    "regressor, averaged": (IKOGDRegressor, {"average": True}),
    "regressor, huber": (IKOGDRegressor, {"loss": "huber", "average": False}),
    "regressor, adagrad": (IKOGDRegressor, {"schedule": "adagrad", "shrinkage": 0.01}),
}


@every("case", CASES)
@given(sizes=st.one_of(st.just([1] * 120), st.lists(st.integers(1, 70), max_size=6)), n_classes=st.sampled_from([2, 3]))
def test_weights_do_not_depend_on_how_a_stream_is_split(case, sizes, n_classes):
    (learner, options), (X, y, weights) = case, make_stream(n_classes=n_classes)
    whole, parts = (feed(learner(**BUFFERED, **options), cuts, X, y, weights) for cuts in ([], sizes))
    assert same_model(whole, parts)
    if learner is IKOGDClassifier:
        assert np.array_equal(whole.predict_proba(X), parts.predict_proba(X))


@every("learner", ONLINE | {"growing": IKOGDClassifier(**FEW_TREES), "adaptive": AdaptiveIKClassifier(**FEW_TREES)})
def test_rows_of_weight_zero_may_come_alone(learner):
    X, y, weights = make_stream(100)
    weights[np.r_[:3, 50:55, 99]] = 0.0
    whole, rows = (feed(clone(learner), sizes, X, y, weights) for sizes in ([], [1] * 100))
    assert np.array_equal(answers(whole, X), answers(rows, X))
    assert np.isfinite(answers(whole, X)).all()
    assert (whole.n_support_, whole.n_rows_seen_) == (rows.n_support_, rows.n_rows_seen_)


# Warm-up


@pytest.mark.parametrize("n_rows", [49, 50, 51])
def test_the_map_is_drawn_after_n_initial_rows(n_rows):
    X, y, _ = make_stream()
    model = stream_learner().partial_fit(X[:n_rows], y[:n_rows])
    assert hasattr(model, "kernel_") == (n_rows >= 50)


def test_the_map_is_drawn_from_the_first_n_initial_rows_only():
    X, y, _ = make_stream()
    model = stream_learner().partial_fit(X, y)
    first = stream_learner(n_passes=1).fit(X[:50], y[:50])
    assert np.array_equal(model.kernel_.apply(X), first.kernel_.apply(X))


@pytest.mark.parametrize(("n_cells", "n_initial"), [("auto", 1000), (8, 1000), (1024, 1024)])
def test_by_default_a_stream_buffers_1000_rows_or_n_cells(n_cells, n_initial):
    X, y = make_rows(n_initial)
    options = {"n_partitionings": 2, "n_cells": n_cells, "growth": False, "random_state": 0}
    model = IKOGDClassifier(**options).partial_fit(X[:-1], y[:-1])
    assert not hasattr(model, "kernel_")
    assert hasattr(model.partial_fit(X[-1:], y[-1:]), "kernel_")


def test_n_initial_may_be_lowered_during_the_warm_up():
    X, y, _ = make_stream()
    model = stream_learner().partial_fit(X[:40], y[:40]).set_params(n_initial=30)
    assert hasattr(model.partial_fit(X[40:], y[40:]), "kernel_")


def test_a_call_without_weights_has_weights_of_one():
    X, y, weights = make_stream()
    mixed = stream_learner().partial_fit(X[:20], y[:20]).partial_fit(X[20:], y[20:], sample_weight=weights[20:])
    weights[:20] = 1.0
    assert same_model(mixed, stream_learner().partial_fit(X, y, sample_weight=weights))


EARLY_LABELS = {"two classes": ["b"] * 5 + ["a"] * 3, "three": ["a", "c", "c", "b"], "one": ["a"] * 3}


@every("labels", EARLY_LABELS)
def test_during_the_warm_up_probabilities_are_class_frequencies(labels):
    X, _ = make_rows(len(labels))
    model = IKOGDClassifier().partial_fit(X, labels)
    frequencies = [labels.count(label) / len(labels) for label in sorted(set(labels))]
    assert np.array_equal(model.predict_proba(X[:2]), [frequencies] * 2)
    assert set(model.predict(X)) == {max(labels, key=labels.count)}
    assert model.n_support_ == 0


# fit and partial_fit


@pytest.mark.parametrize("n_classes", [2, 3])
@every("case", CASES)
def test_with_a_fitted_kernel_partial_fit_equals_one_pass_of_fit_in_order(case, n_classes):
    (learner, options), (X, y, weights) = case, make_stream(n_classes=n_classes)
    options = {"kernel": make_kernel(X), "n_passes": 1, "shuffle": False, **options}
    fitted, streamed = learner(**options).fit(X, y, weights), learner(**options)
    assert same_model(fitted, streamed.partial_fit(X, y, sample_weight=weights))
    continued = learner(**options).fit(X[:60], y[:60], weights[:60])
    assert same_model(fitted, continued.partial_fit(X[60:], y[60:], sample_weight=weights[60:]))


@pytest.mark.parametrize("shuffle", [False, True])
def test_every_pass_learns_every_row_once(shuffle):
    X, y = make_rows(100)
    kernel = make_kernel(X)
    model = IKOGDClassifier(n_passes=3, shuffle=shuffle, kernel=kernel, random_state=0).fit(X, y)
    assert (model.learned_.model.clock.rounds, model.n_rows_seen_) == (300, 100)
    in_order = IKOGDClassifier(kernel=kernel).partial_fit(X, y).partial_fit(X, y).partial_fit(X, y)
    assert np.array_equal(model.learned_.model.values, in_order.learned_.model.values) == (not shuffle)


# Cells


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("evaluation", ["primal", "naive", "dual"])
@pytest.mark.parametrize("learner", [IKOGDClassifier, IKOGDRegressor])
def test_cells_are_learned_and_predicted_like_their_rows(learner, evaluation, n_classes):
    X, y, weights = make_stream(n_classes=n_classes)
    kernel = make_kernel(X)
    rows, cells = (learner(kernel=kernel, evaluation=evaluation, schedule="constant") for _ in range(2))
    rows.partial_fit(X, y, sample_weight=weights)
    cells.partial_fit_cells(kernel.apply(X), y, sample_weight=weights)
    assert np.array_equal(answers(cells, X), answers(rows, X))
    assert np.array_equal(cells.predict_cells(cells.map_rows(X)), rows.predict(X))
    if learner is IKOGDClassifier:
        assert np.array_equal(cells.decision_function_cells(kernel.apply(X)), rows.decision_function(X))


@pytest.mark.parametrize("loss", LOSSES)
def test_the_probabilities_of_cells_are_those_of_their_rows(loss):
    X, y = make_rows(100, 3)
    model = IKOGDClassifier(loss=loss, linear=False, **SMALL).fit(X, y)
    assert np.array_equal(model.predict_proba_cells(model.kernel_.apply(X)), model.predict_proba(X))


@pytest.mark.parametrize("form", [np.int64, np.uint16, np.ndarray.tolist, np.asfortranarray], ids=lambda f: f.__name__)
def test_cells_may_be_integers_of_any_type_and_layout(form):
    X, y = make_rows(100)
    kernel = make_kernel(X)
    cells = kernel.apply(X)
    models = [IKOGDClassifier(kernel=kernel).partial_fit_cells(c, y) for c in (cells, form(cells))]
    assert same_model(*models)


# Maps


def test_rows_that_cannot_be_mapped_change_nothing_even_if_they_have_a_new_class():
    X = np.random.default_rng(0).normal(size=(60, 3))
    model = IKOGDClassifier(scale="minmax", n_cells=8, n_initial=50, random_state=0).partial_fit(X, np.arange(60) % 2)
    before = model.decision_function(X)
    with pytest.raises(ValueError, match="X must be dense"):
        model.partial_fit(sparse.csr_array(X), np.arange(60) % 3)
    assert np.array_equal(model.decision_function(X), before)


@pytest.mark.parametrize("options", [SMALL, {"kernel": IsolationKernel(**SMALL)}], ids=["flat", "kernel"])
def test_the_map_of_a_stream_of_data_frames_knows_their_columns(options):
    X, y, _ = make_stream()
    frame = pytest.importorskip("pandas").DataFrame(X, columns=["a", "b", "c"])
    model = IKOGDClassifier(n_initial=50, **options).partial_fit(frame, y)
    assert len(model.kernel_.apply(frame)) == len(frame)  # without a warning
    with pytest.raises(ValueError, match="feature names"):
        model.kernel_.apply(frame.rename(columns={"a": "d"}))
