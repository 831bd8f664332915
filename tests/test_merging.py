"""Check merge: the weighted mean of learners that share one map."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest

import isokern
from isokern import IKOGDClassifier, IKOGDRegressor, IsolationKernel, OGDClassifier, merge
from learning import LOSSES, RATES, SMALL, assert_close, make_kernel, make_rows, weights_of

SCHEDULES = list(RATES)


def make_parts(n_parts=3, n_classes=2, cls=IKOGDClassifier, **options):
    """Return rows, labels and learners of consecutive parts of them, each larger than the one before."""
    X, y = make_rows(90 * n_parts, n_classes)
    kernel = make_kernel(X)
    bounds = np.cumsum(np.r_[0, 30 * np.arange(1, n_parts + 1)])
    parts = [cls(kernel=kernel, **options).partial_fit(X[a:b], y[a:b]) for a, b in itertools.pairwise(bounds)]
    return X, y, parts


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("loss", LOSSES)
def test_scores_are_the_weighted_mean_of_the_models_scores(loss, schedule, average, n_classes):
    X, _, parts = make_parts(n_classes=n_classes, loss=loss, schedule=schedule, average=average, shrinkage=0.01)
    for weights in ([1, 2, 5], None):
        expected = np.average([part.decision_function(X) for part in parts], axis=0, weights=weights)
        merged = merge(parts, weights)
        assert_close(merged.decision_function(X), expected)
        assert np.array_equal(merged.classes_[merged.predict_proba(X).argmax(axis=1)], merged.predict(X))


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_the_mean_of_equal_models_learns_on_like_one_of_them(schedule, average):
    X, y, (part, _) = make_parts(2, schedule=schedule, average=average, learning_rate=RATES[schedule], shrinkage=0.01)
    merged = merge([part, pickle.loads(pickle.dumps(part))])
    assert merged.n_support_ == part.n_support_
    assert_close(weights_of(merged.partial_fit(X, y)), weights_of(part.partial_fit(X, y)))


def test_a_merged_model_learns_on_and_leaves_the_models_unchanged():
    X, y, parts = make_parts()
    before = [part.decision_function(X) for part in parts]
    merged = merge(parts)
    first = merged.score(X, y)
    for _ in range(5):
        merged.partial_fit(X, y)
    assert merged.score(X, y) > first
    assert np.array_equal([part.decision_function(X) for part in parts], before)


def test_a_model_that_lacks_a_class_counts_as_one_that_was_given_it():
    X, y = make_rows(200, 3)
    kernel, y = make_kernel(X), np.array(["a", "b", "c"])[y]
    blocks = [np.flatnonzero(y != "c")[:60], np.flatnonzero(y == "a")[:20], np.arange(100, 200)]
    merged = merge(IKOGDClassifier(kernel=kernel).partial_fit(X[rows], y[rows]) for rows in blocks)
    given = [IKOGDClassifier(kernel=kernel).partial_fit(X[b], y[b], classes=["a", "b", "c"]) for b in blocks]
    assert merged.classes_.tolist() == ["a", "b", "c"]
    assert_close(merged.decision_function(X), merge(given).decision_function(X))


def test_a_merged_model_takes_a_class_that_no_model_has_seen():
    X, y, parts = make_parts()
    merged = merge(parts).partial_fit(X, np.where(X[:, 1] > 1, 7, y))
    assert merged.classes_.tolist() == [0, 1, 7]


def test_a_class_seen_only_with_little_weight_is_kept():
    X, y = make_rows(100, 3)
    kernel = make_kernel(X)
    parts = [IKOGDClassifier(kernel=kernel).partial_fit(X[y < k], y[y < k]) for k in (2, 3)]
    assert merge(parts, [1, 1e-9]).learned_.book.counts.min() > 0


def test_probabilities_are_calibrated_on_the_latest_rows_of_each_model():
    X, y = make_rows(9000)
    kernel = make_kernel(X)
    parts = [IKOGDClassifier(kernel=kernel).partial_fit(X[a:b], y[a:b]) for a, b in ((0, 4500), (4500, 9000))]
    merged, windows = merge(parts, [3, 1]).learned_.window, [part.learned_.window for part in parts]
    latest = [window.scores[(window.n_seen - 1) % window.size] for window in windows]
    assert np.array_equal(merged.scores[[3071, 4095]], latest)


@pytest.mark.parametrize("average", [False, True])
def test_predictions_of_a_merged_regressor_are_the_weighted_mean(average):
    X, y, parts = make_parts(cls=IKOGDRegressor, n_classes=4, average=average)
    expected = np.average([part.predict(X) for part in parts], axis=0, weights=[1, 2, 5])
    merged = merge(parts, [1, 2, 5])
    assert_close(merged.predict(X), expected)
    assert np.isfinite(merged.partial_fit(X, y).predict(X)).all()


def test_a_merged_model_can_be_saved_and_loaded(tmp_path):
    X, _, parts = make_parts(average=True)
    merged = merge(parts)
    isokern.save(merged, tmp_path / "model")
    assert np.array_equal(isokern.load(tmp_path / "model").decision_function(X), merged.decision_function(X))


@pytest.mark.parametrize("options", [{}, {"partitioning": "voronoi", "scale": "minmax"}])
def test_equal_copies_of_a_map_count_as_one_map(options):
    X, y = make_rows(100)
    copies = [IsolationKernel(**SMALL, **options).fit(X) for _ in range(2)]
    assert merge(IKOGDClassifier(kernel=kernel).partial_fit(X, y) for kernel in copies).n_support_ > 0


# Models that cannot be merged


def merge_with(X, y, first, second):
    merge([model.partial_fit(X, y) for model in (first, second)])


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"random_state": 1}, "the partitionings"),
        ({"n_cells": 9}, "the number of cells"),
        ({"n_partitionings": 5}, "the number of cells"),
        ({"scale": "minmax"}, "the scaling"),
    ],
)
def test_different_maps_are_an_error_that_names_the_difference(changes, what):
    X, y = make_rows(100)
    kernels = [IsolationKernel(**SMALL | options).fit(X) for options in ({}, changes)]
    with pytest.raises(ValueError, match=rf"share one map; {what} of models\[1\]"):
        merge_with(X, y, *(IKOGDClassifier(kernel=kernel) for kernel in kernels))


@pytest.mark.parametrize(
    ("parameter", "value"),
    [("loss", "logistic"), ("schedule", "constant"), ("average", True), ("shrinkage", 0.1), ("learning_rate", 0.1)],
)
def test_different_parameters_are_an_error_that_names_the_parameter(parameter, value):
    X, y = make_rows(100)
    kernel = make_kernel(X)
    with pytest.raises(ValueError, match=rf"^{parameter} must be the same in all models; got .* in models\[1\]"):
        merge_with(X, y, IKOGDClassifier(kernel=kernel), IKOGDClassifier(kernel=kernel, **{parameter: value}))


def test_different_classes_are_an_error():
    X, y, (part, _) = make_parts(2)
    kernel = part.kernel_
    given = [IKOGDClassifier(kernel=kernel).partial_fit(X, y, classes=classes) for classes in ([0, 1], [0, 1, 2])]
    text = IKOGDClassifier(kernel=kernel).partial_fit(X, np.array(["a", "b"])[y])
    for models, message in (
        (given, "classes must be the same in all models"),
        ([part, given[0]], r"given to all models at the start, or to none; models\[1\] differs"),
        ([part, text], "classes must be of one type"),
    ):
        with pytest.raises(ValueError, match=message):
            merge(models)


def test_models_that_are_not_primal_learners_on_cells_are_an_error():
    X, y, (part, _) = make_parts(2)
    with pytest.raises(TypeError, match=r"got OGDClassifier as models\[1\]"):
        merge([part, OGDClassifier().fit(X, y)])
    with pytest.raises(TypeError, match="models must be of one class"):
        merge([part, IKOGDRegressor(kernel=part.kernel_).partial_fit(X, y)])
    with pytest.raises(ValueError, match='evaluation must be "primal" or "naive"'):
        merge([IKOGDClassifier(kernel=part.kernel_, evaluation="dual", schedule="constant").partial_fit(X, y)])
    with pytest.raises(ValueError, match=r"models\[0\] still buffers its first 180 rows"):
        merge([IKOGDClassifier(**SMALL).partial_fit(X, y)])
    with pytest.raises(ValueError, match="models must have at least 1"):
        merge([])


@pytest.mark.parametrize("weights", [[1], [1, -1], [0, 0], [1, np.nan], [[1, 1]]])
def test_weights_must_be_one_number_per_model(weights):
    with pytest.raises(ValueError, match="weights must be"):
        merge(make_parts(2)[2], weights)
