"""Check the race of a regressor: against NumPy twins, and that what must not matter does not."""

from __future__ import annotations

import numpy as np
import pytest

import reference
from isokern.learners.candidates import Candidate
from isokern.learners.moments import Moments
from isokern.learners.number_race import NumberRace, mean_error
from isokern.learners.steps import Steps
from learning import RATES, every
from test_scale_weights import LARGE_WEIGHTS, PARTS, SMALL_WEIGHTS, N, linear_rows, make_features

WEIGHTS = {"no weights": None, "small weights": SMALL_WEIGHTS, "large weights": LARGE_WEIGHTS}
LOSSES = {
    "squared": Steps("squared", "", 0.0, 0.0, standardised=True),
    "squared, as it is": Steps("squared", "", 0.0, 0.0),
    "huber": Steps("huber", "", 0.0, 0.0, epsilon=0.3, standardised=True),
    "epsilon_insensitive": Steps("epsilon_insensitive", "", 0.0, 0.0, epsilon=0.3, standardised=True),
    "quantile": Steps("quantile", "", 0.0, 0.0, quantiles=(0.1, 0.5, 0.9), standardised=True),
}


def make_numbers(n_outputs=1):
    """Return rows and targets in a unit of their own."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 3))
    return X, 40.0 + 20.0 * (np.sin(X[:, :n_outputs]) + 0.1 * rng.normal(size=(N, n_outputs)))


def begun(candidates, n_outputs, steps, features, fade=1.0):
    n_columns = max(n_outputs, len(steps.quantiles))
    columns = {"moments": Moments.none(n_outputs), "n_columns": n_columns}
    return NumberRace.begun(candidates, features.fitted, features.term, fade, **columns)


def standardised(y, weights, steps):
    """Return residuals and units with a column for each score."""
    standard = Moments.none(y.shape[1]).next(y, weights)  # equal to reference.standardised_targets, see test_moments
    residuals, units = standard.values(max(y.shape[1], len(steps.quantiles)), standardised=steps.standardised)
    return residuals, np.ones(residuals.shape) if units is None else units


def twin(candidate, features, y, steps, weights):
    """Return what a candidate learns, by the NumPy twin."""
    fitted, scales = features.fitted, list(candidate.numbers(features.fitted.n_scales))
    places, shares, n_values, t = None, None, 0, fitted.n_partitionings
    if scales:
        cells = fitted.expand(features.codes, 1).astype(int).reshape(N, t, -1)[:, :, scales]
        sizes = np.diff(fitted.starts).reshape(t, -1)[:, scales].ravel()
        places = cells + np.r_[0, np.cumsum(sizes)[:-1]].reshape(t, -1)
        shares, n_values = fitted.scale_weights[scales], sizes.sum()
        shares = (shares / np.sqrt((shares**2).sum())).astype(np.float32)
    linear, n_linear = (linear_rows(features), features.term.n_weights) if candidate.linear else (None, 0)
    residuals, units = standardised(y, weights, steps)
    rule = {"loss": steps.loss, "schedule": candidate.schedule, "rate": candidate.rate, "row_weights": weights}
    rule |= {"epsilon": steps.epsilon, "quantiles": steps.quantiles or 0.5, "units": units, "first_square": 1.0}
    return reference.learn_scales(places, shares, n_values, linear, n_linear, residuals, **rule)


@every("weights", WEIGHTS)
@every("steps", LOSSES)
@pytest.mark.parametrize("schedule", RATES)
def test_candidates_equal_their_numpy_twins(schedule, steps, weights):
    n_outputs = 1 if steps.quantiles else 2
    X, y = make_numbers(n_outputs)
    features = make_features(X)
    weights = None if weights is None else np.random.default_rng(1).choice(weights, N)
    candidates = [Candidate(scales, linear, schedule, RATES[schedule]) for scales, linear in PARTS.values()]
    race = begun(candidates, n_outputs, steps, features, fade=0.9)
    race.learn(features, y, weights, steps)
    for model, error, candidate in zip(race.models, race.errors, candidates, strict=False):
        expected, scores, n_support = twin(candidate, features, y, steps, weights)
        for table, of_twin in ((model.values, expected.w), (model.linear_values, expected.v)):
            if table is not None:
                np.testing.assert_array_equal(table, of_twin)
        assert model.clock.n_support == n_support
        residuals, units = standardised(y, weights, steps)
        loss = {"loss": steps.loss, "epsilon": steps.epsilon, "quantiles": steps.quantiles or 0.5}
        expected_error = reference.faded_losses(scores, residuals, units, race.fade, weights, **loss)
        assert error == pytest.approx(expected_error, rel=1e-12)


@every("steps", LOSSES)
def test_the_error_on_rows_held_out_is_that_of_the_race(steps):
    f, y = np.random.default_rng(0).normal(size=(2, 30, max(1, len(steps.quantiles))))
    loss = {"loss": steps.loss, "epsilon": steps.epsilon, "quantiles": steps.quantiles or 0.5}
    expected = reference.regression_error(f=f, target=y, **loss).mean(axis=1)
    np.testing.assert_allclose(mean_error(f - y, steps), expected)


@pytest.mark.parametrize("threads", [2, 16])
@every("steps", LOSSES)
def test_threads_do_not_change_what_candidates_learn(steps, threads):
    X, y = make_numbers()
    found = []
    for n in (1, threads):
        features = make_features(X, threads=n)
        race = begun([Candidate(*part, "adagrad", 0.7) for part in PARTS.values()], 1, steps, features, fade=0.9)
        race.learn(features, y, None, steps)
        found.append([*race.errors, *(model.clock.n_support for model in race.models)])
        found[-1] += [table.tobytes() for model in race.models for table in model.tables() if table is not None]
    assert found[0] == found[1]
