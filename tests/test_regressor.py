"""Check IKOGDRegressor: the loop of the classifier on the residuals of a running mean."""

from __future__ import annotations

import numpy as np
import pytest

import reference
from isokern import IKOGDRegressor
from learning import RATES, SMALL, assert_close, make_kernel, weights_of

LOSSES = ["squared", "huber", "epsilon_insensitive", "quantile"]
every_loss = pytest.mark.parametrize("loss", LOSSES)
PLAIN = {"schedule": "constant", "average": True, "n_passes": 1}


def make_numbers(n=120):
    """Return rows, targets and weights."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    return X, np.sin(X[:, 0]) + 0.1 * rng.normal(size=n), rng.uniform(0.1, 1.5, n)


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("shrinkage", [0.0, 0.1])
@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("schedule", RATES)
@every_loss
def test_weights_and_predictions_equal_the_reference(loss, schedule, average, shrinkage, weighted):
    options = {"loss": loss, "schedule": schedule, "average": average, "shrinkage": shrinkage, "epsilon": 0.3}
    options |= {"quantiles": (0.2, 0.7)}
    X, y, row_weights = make_numbers(60)
    y *= 5.0
    row_weights = row_weights if weighted else np.ones(60)
    kernel, rate = make_kernel(X), RATES[schedule]
    cells = kernel.apply(X)
    model = IKOGDRegressor(kernel=kernel, learning_rate=rate, **options)
    model.partial_fit_cells(cells, y, row_weights if weighted else None)
    n_columns = 2 if loss == "quantile" else 1
    residuals, units = (
        np.repeat(column[:, None], n_columns, axis=1) for column in reference.standardised_targets(y, row_weights)[:2]
    )
    units = units if schedule == "adagrad" else None  # steps of a given size are taken as they are
    weights, _, n_support = reference.learn_online(
        cells, kernel.map_.starts, residuals, rate=rate, row_weights=row_weights, units=units, **options
    )
    assert_close(weights_of(model), weights)
    assert model.n_support_ == n_support
    expected = np.average(y, weights=row_weights) + kernel.transform(X) / np.sqrt(6) @ weights
    assert_close(model.predict(X), np.sort(expected, axis=1) if loss == "quantile" else expected[:, 0])


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("schedule", ["constant", "decaying"])
@every_loss
def test_primal_naive_and_dual_evaluation_predict_the_same(loss, schedule, average):
    X, y, weights = make_numbers()
    options = {"kernel": make_kernel(X), "loss": loss, "schedule": schedule, "average": average, "random_state": 0}
    options["learning_rate"] = RATES[schedule]
    primal, naive, dual = (
        IKOGDRegressor(evaluation=e, n_passes=2, **options).fit(X, y, weights).predict(X)
        for e in ("primal", "naive", "dual")
    )
    np.testing.assert_allclose(naive, primal, rtol=0, atol=1e-10)
    np.testing.assert_allclose(dual, primal, rtol=0, atol=1e-10)


# The mean


@pytest.mark.parametrize("n_initial", [50, 200], ids=["learned", "buffered"])
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_the_mean_is_the_weighted_mean_of_the_targets_so_far(weighted, n_initial):
    X, y, weights = make_numbers()
    weights = weights if weighted else np.ones(120)
    model = IKOGDRegressor(n_initial=n_initial, **SMALL)
    for part in (slice(70), slice(70, 120)):
        model.partial_fit(X[part], y[part], weights[part] if weighted else None)
    assert model.mean_ == pytest.approx(np.average(y, weights=weights))
    if n_initial > len(y):
        np.testing.assert_allclose(model.predict(X), model.mean_)


def test_several_passes_leave_the_mean_unchanged():
    X, y, _ = make_numbers()
    assert IKOGDRegressor(n_passes=4, **SMALL).fit(X, y).mean_ == pytest.approx(y.mean())


@pytest.mark.parametrize("offset", [-50.0, 1000.0])
def test_an_offset_of_all_targets_shifts_every_prediction_by_it(offset):
    X, y, _ = make_numbers()
    plain, moved = (IKOGDRegressor(**SMALL).fit(X, targets) for targets in (y, y + offset))
    np.testing.assert_allclose(moved.predict(X), plain.predict(X) + offset, rtol=0, atol=1e-8)


def test_a_constant_target_is_predicted_exactly():
    X, _, _ = make_numbers()
    np.testing.assert_allclose(IKOGDRegressor(**SMALL).fit(X, np.full(120, 7.0)).predict(X), 7.0)


# Accuracy


@pytest.mark.parametrize("options", [{}, {"loss": "huber"}, {"schedule": "adagrad", "loss": "epsilon_insensitive"}])
def test_a_smooth_function_is_learned(options):
    X = np.random.default_rng(0).uniform(-3, 3, (3000, 1))
    y = np.sin(2 * X[:, 0])
    model = IKOGDRegressor(n_cells=64, n_passes=5, random_state=0, **options).fit(X[:2000], y[:2000])
    assert model.score(X[2000:], y[2000:]) > 0.9
