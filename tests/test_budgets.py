"""Budgets of support vectors: each strategy equals its twin and keeps to its budget."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.utils import check_random_state

import reference_rivals
from isokern import IsolationKernel, OGDClassifier
from isokern.kernels import KERNELS
from learning import assert_close, make_rows
from test_ogd import rows_of, signs

SIZE, RATE, SHRINKAGE, SEED = 20, 0.47, 0.013, 3
STRATEGIES = list(reference_rivals.BUDGETS)
FORMS = {"dense": np.asarray, "csr": sparse.csr_array}

every_strategy = pytest.mark.parametrize("strategy", STRATEGIES)


def learner(strategy, **options):
    options = {"gamma": 0.83, "budget": SIZE, "learning_rate": RATE, "shrinkage": SHRINKAGE} | options
    return OGDClassifier(strategy=strategy, shuffle=False, random_state=SEED, **options)


def twin(strategy, K, targets, size=SIZE):
    """Return the coefficients of all rows, (n, n_scores), drawn from the generators that the learner makes."""
    generators = np.random.default_rng(int(check_random_state(SEED).randint(2**31 - 1))).spawn(targets.shape[1])
    learn = reference_rivals.BUDGETS[strategy]
    return np.stack(
        [learn(K, y, size, RATE, SHRINKAGE, rng) for y, rng in zip(targets.T, generators, strict=True)], axis=1
    )


@every_strategy
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("size", [2, SIZE])
def test_a_strategy_equals_its_twin(size, n_classes, form, strategy):
    X, y = make_rows(400, n_classes)
    K = reference_rivals.kernel("laplacian", X, X, 0.83)
    alpha = twin(strategy, K, signs(y, n_classes), size)
    model = learner(strategy, budget=size).fit(form(X), y)
    np.testing.assert_allclose(model.decision_function(form(X)).reshape(400, -1), K @ alpha, rtol=1e-7, atol=1e-7)


@every_strategy
@pytest.mark.parametrize("name", [name for name in KERNELS if name not in ("laplacian", "gaussian")])
def test_a_kernel_is_normalised_under_a_budget(name, strategy):
    X, y = rows_of(300)
    X = X + 0.05
    K = reference_rivals.kernel(name, X, X, 0.83, normalised=True)
    alpha = twin(strategy, K, signs(y, 2), size=3)
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
def test_points_that_no_score_uses_are_forgotten(strategy):
    X, y = make_rows(600, 3)
    assert learner(strategy).fit(X, y).model_.points.shape[0] <= 3 * SIZE


@every_strategy
def test_a_budget_that_is_never_full_forgets_nothing(strategy):
    X, y = make_rows(100)
    ample, more = (learner(strategy, budget=size).fit(X, y).model_.budgets[0] for size in (100, 101))
    assert len(ample.points) == len(more.points) <= 100


def test_bogd_with_an_ample_budget_and_no_shrinkage_is_ogd():
    X, y = make_rows(100)
    expected = OGDClassifier(gamma=0.83, learning_rate=RATE, shuffle=False).fit(X, y).decision_function(X)
    assert_close(learner("bogd", budget=100, shrinkage=0).fit(X, y).decision_function(X), expected)


@every_strategy
def test_equal_rows_do_no_harm(strategy):
    X, y = make_rows(5)
    X, y = np.tile(X, (60, 1)), np.random.default_rng(0).integers(2, size=300)
    assert np.isfinite(learner(strategy).fit(X, y).decision_function(X)).all()


@every_strategy
def test_rows_that_are_hardly_independent_do_no_harm(strategy):
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


BAD = {
    "one": ({"budget": 1}, r"^budget must be None or an integer of at least 2; got 1\."),
    "a fraction": ({"budget": 2.5}, r"^budget must be None or an integer of at least 2; got 2\.5\."),
    "True": ({"budget": True}, r"^budget must be None or an integer of at least 2; got True\."),
    "logistic loss": ({"loss": "logistic"}, r'^loss must be "hinge" with a budget; got \'logistic\'\.'),
    "squared hinge loss": ({"loss": "squared_hinge"}, r'^loss must be "hinge" with a budget; got'),
    "an Isolation Kernel": ({"kernel": IsolationKernel()}, r"^budget must be None for an IsolationKernel"),
    "an unknown strategy": ({"strategy": "best"}, r'^strategy must be "random", .* or "bogd"; got \'best\'\.'),
    "too much shrinkage": ({"shrinkage": 2.2}, r"^shrinkage must be at least 0 and below 1 / learning_rate; got 2\.2"),
    "negative shrinkage": ({"shrinkage": -0.1}, r"^shrinkage must be at least 0"),
}


@pytest.mark.parametrize(("options", "message"), BAD.values(), ids=BAD)
def test_a_budget_that_makes_no_sense_is_an_error(options, message):
    X, y = make_rows(50)
    with pytest.raises(ValueError, match=message):
        learner(**{"strategy": "bpas"} | options).fit(X, y)
