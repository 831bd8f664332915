"""Check that classifiers of many classes stay below max_model_size and hint at a regression."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from isokern import IKOGDClassifier
from isokern.learners import candidates
from learning import every, make_rows
from test_interrupts import state_of
from test_race import SMALL, STREAM, numbers_running
from test_race_streams import assert_same_stream


@pytest.fixture(autouse=True)
def several_scales(monkeypatch):
    """Give few rows as many cells as 1,000 rows get, so that there are three scales."""
    monkeypatch.setattr(candidates, "auto_n_cells", lambda n_rows: 32)


def size_of(model):
    return sum(candidate.n_bytes for candidate in model.learned_.models)


def many_classes(n, n_classes):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4))
    return X, np.array([f"class {k:03}" for k in rng.permutation(np.arange(n) % n_classes)])


@pytest.mark.parametrize("limit", [2**19, 2**20])
@pytest.mark.parametrize("learn", ["fit", "partial_fit"])
def test_a_model_of_many_classes_stays_below_its_limit_with_a_warning(learn, limit):
    X, y = many_classes(1200, 200)
    model = IKOGDClassifier(n_partitionings=10, growth=False, random_state=0, max_model_size=limit)
    with pytest.warns(UserWarning, match=rf"max_model_size={limit:,} bytes") as caught:
        getattr(model, learn)(X, y)
    assert any("cells per partitioning instead of" in str(warning.message) for warning in caught)
    assert len(model.classes_) == 200
    assert size_of(model) <= limit


def test_a_model_below_its_limit_has_all_candidates_and_no_warning():
    X, y = many_classes(600, 20)
    assert len(numbers_running(IKOGDClassifier(**STREAM).partial_fit(X, y))) == 5
    unlimited = IKOGDClassifier(**STREAM, max_model_size=None).partial_fit(X, y)
    assert state_of(unlimited) == state_of(IKOGDClassifier(**STREAM).partial_fit(X, y))


def test_candidates_are_dropped_before_cells():
    X, y = many_classes(600, 20)
    whole = IKOGDClassifier(**STREAM).partial_fit(X, y)
    limit = size_of(whole) - 1
    model = IKOGDClassifier(**STREAM, max_model_size=limit).partial_fit(X, y)
    assert numbers_running(model) == [0, 1, 2, 3]
    assert size_of(model) <= limit
    assert model.kernel_.n_cells_ == whole.kernel_.n_cells_


def late_flood():
    """Return 100 rows of two classes, followed by others of 30."""
    X, y = many_classes(200, 30)
    y[:100] = np.where(np.arange(100) % 2, "class 000", "class 001")
    return X, y


def test_a_late_flood_of_classes_drops_candidates():
    X, y = late_flood()
    limit = 100_000
    model = IKOGDClassifier(**STREAM, max_model_size=limit).partial_fit(X[:100], y[:100])
    assert len(numbers_running(model)) == 5
    model.partial_fit(X[100:], y[100:])
    assert 1 <= len(numbers_running(model)) < 5
    assert size_of(model) <= limit


def test_the_best_candidates_that_fit_together_stay():
    X, y = many_classes(100, 2)
    state = IKOGDClassifier(**STREAM).partial_fit(X, y).learned_
    state.errors[:] = [5, 3, 2, 4, 1, 10]
    sizes = [candidate.n_bytes for candidate in state.models]
    assert state.within(sum(sizes)) is state
    assert state.within(sizes[4] + sizes[2] + sizes[1]).selection.running == [1, 2, 4]
    assert state.within(sizes[4] + sizes[2] - 1).selection.running == [1, 4]  # 2 is too large, 1 is not
    assert state.within(sizes[4]).selection.running == [4]


def test_who_is_dropped_by_a_late_flood_of_classes_does_not_depend_on_the_split():
    X, y = late_flood()
    assert_same_stream({"max_model_size": 100_000}, [100] + [1] * 100, y, X)


def test_categories_of_many_classes_stay_below_the_limit_or_warn():
    X, y = many_classes(400, 100)
    X[:, 0] = np.arange(400) % 7
    limit = 2**24
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = IKOGDClassifier(
            **SMALL, linear=True, schedule="adagrad", categorical_features=[0], max_model_size=limit
        ).fit(X, y)
    assert size_of(model) <= limit or any("max_model_size" in str(w.message) for w in caught)


@pytest.mark.parametrize("limit", [0, -1, 1.5, "1 GB", True])
def test_a_bad_limit_is_an_error(limit):
    with pytest.raises(ValueError, match="max_model_size must be None or a positive integer; got"):
        IKOGDClassifier(max_model_size=limit).fit(*make_rows(50))


@pytest.mark.parametrize("learn", ["fit", "partial_fit"])
def test_many_integers_as_classes_look_like_a_regression(learn):
    X, words = many_classes(303, 101)
    y = np.unique(words, return_inverse=True)[1]
    with pytest.warns(UserWarning, match="y has 101 different integers, which looks like a regression"):
        getattr(IKOGDClassifier(n_partitionings=2, n_initial=300), learn)(X, y)
    getattr(IKOGDClassifier(n_partitionings=2, n_initial=300), learn)(X, words)
    getattr(IKOGDClassifier(n_partitionings=2, n_initial=300), learn)(X, y % 100)


def test_many_integers_that_come_late_look_like_a_regression():
    X, words = many_classes(303, 101)
    y = np.unique(words, return_inverse=True)[1]
    model = IKOGDClassifier(n_partitionings=2, n_initial=300).partial_fit(X, y % 99)
    with pytest.warns(UserWarning, match="looks like a regression"):
        model.partial_fit(X, y)


LAST_ONES = {"a winner": {"linear": True, "column_weights": None}, "no race": {"schedule": "adagrad"}}


@every("options", LAST_ONES)
def test_classes_that_make_the_only_model_too_large_are_warned_of(options):
    X, y = many_classes(120, 60)
    model = IKOGDClassifier(**SMALL, **options, max_model_size=20_000)
    model.fit(X[:100], np.where(np.arange(100) % 2, "class 000", "class 001"))
    with pytest.warns(UserWarning, match="take more than max_model_size=20,000 bytes; the map is drawn already"):
        model.partial_fit(X, y)
