"""Check the budgets of support vectors: each strategy equals the reference and stays within its budget."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.utils import check_random_state

import reference_rivals
from isokern import OGDClassifier
from isokern.kernels import KERNELS
from learning import FORMS, assert_close, every, make_rows, signs
from test_ogd import rows_of

SIZE, RATE, SHRINKAGE, SEED = 20, 0.47, 0.013, 3

every_strategy = pytest.mark.parametrize("strategy", reference_rivals.BUDGETS)


def learner(strategy, **options):
    options = {"gamma": 0.83, "budget": SIZE, "learning_rate": RATE, "shrinkage": SHRINKAGE} | options
    return OGDClassifier(strategy=strategy, shuffle=False, random_state=SEED, **options)


def expected(strategy, K, targets, size=SIZE):
    """Return the reference's coefficients of all rows, (n, n_scores), with the generators that the learner uses."""
    generators = np.random.default_rng(int(check_random_state(SEED).randint(2**31 - 1))).spawn(targets.shape[1])
    learn = reference_rivals.BUDGETS[strategy]
    return np.stack(
        [learn(K, y, size, RATE, SHRINKAGE, rng) for y, rng in zip(targets.T, generators, strict=True)], axis=1
    )


@every_strategy
@every("form", FORMS)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("size", [2, SIZE])
def test_a_strategy_equals_the_reference(size, n_classes, form, strategy):
    X, y = make_rows(400, n_classes)
    K = reference_rivals.kernel("laplacian", X, X, 0.83)
    alpha = expected(strategy, K, signs(y, n_classes), size)
    model = learner(strategy, budget=size).fit(form(X), y)
    np.testing.assert_allclose(model.decision_function(form(X)).reshape(400, -1), K @ alpha, rtol=1e-7, atol=1e-7)


@every_strategy
@pytest.mark.parametrize("name", [name for name in KERNELS if name not in ("laplacian", "gaussian")])
def test_a_kernel_is_normalised_under_a_budget(name, strategy):
    X, y = rows_of(300)
    X = X + 0.05
    K = reference_rivals.kernel(name, X, X, 0.83, normalised=True)
    alpha = expected(strategy, K, signs(y, 2), size=3)
    scores = learner(strategy, kernel=name, budget=3).fit(X, y).decision_function(X)
    np.testing.assert_allclose(scores, (K @ alpha)[:, 0], rtol=1e-5, atol=1e-5)


@every_strategy
@pytest.mark.parametrize("n_classes", [2, 3])
def test_no_score_has_more_support_vectors_than_the_budget(n_classes, strategy):
    X, y = make_rows(300, n_classes)
    model = learner(strategy)
    sizes = []
    for begin in range(0, 300, 10):
        model.partial_fit(X[begin : begin + 10], y[begin : begin + 10], classes=np.arange(n_classes))
        sizes.append(max(len(budget.points) for budget in model.model_.budgets))
    assert max(sizes) == SIZE


@every_strategy
def test_points_that_no_score_uses_are_dropped(strategy):
    X, y = make_rows(600, 3)
    assert learner(strategy).fit(X, y).model_.points.shape[0] <= 3 * SIZE


@every_strategy
def test_a_budget_that_is_never_full_drops_nothing(strategy):
    X, y = make_rows(100)
    ample, more = (learner(strategy, budget=size).fit(X, y).model_.budgets[0] for size in (100, 101))
    assert len(ample.points) == len(more.points) <= 100


def test_bogd_with_an_ample_budget_and_no_shrinkage_is_ogd():
    X, y = make_rows(100)
    expected = OGDClassifier(gamma=0.83, learning_rate=RATE, shuffle=False).fit(X, y).decision_function(X)
    assert_close(learner("bogd", budget=100, shrinkage=0).fit(X, y).decision_function(X), expected)


@every_strategy
def test_repeated_rows_give_finite_scores(strategy):
    X, y = make_rows(5)
    X, y = np.tile(X, (60, 1)), np.random.default_rng(0).integers(2, size=300)
    assert np.isfinite(learner(strategy).fit(X, y).decision_function(X)).all()


@every_strategy
def test_nearly_dependent_rows_give_moderate_scores(strategy):
    X, y = make_rows(400)
    y = np.random.default_rng(0).integers(2, size=400)
    scores = learner(strategy, kernel="gaussian", gamma=1e-4, budget=100).fit(X, y).decision_function(X)
    assert np.abs(scores).max() < 1e6


@every_strategy
def test_a_row_of_weight_zero_changes_nothing(strategy):
    X, y = make_rows(200)
    weights = np.random.default_rng(0).integers(2, size=200).astype(float)
    weighted = learner(strategy).fit(X, y, sample_weight=weights)
    fewer = learner(strategy).fit(X[weights > 0], y[weights > 0])
    assert np.array_equal(weighted.decision_function(X), fewer.decision_function(X))
