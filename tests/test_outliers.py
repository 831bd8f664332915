"""One row cannot ruin a model: targets or features that are far from all others change little of what is learned."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import is_regressor

from isokern import IKSVC, AdaptiveIKClassifier, AdaptiveIKRegressor, IKOGDClassifier, IKOGDRegressor, IsolationKernel
from isokern.learners.linear_term import LinearTerm
from learning import every, same_model

FEW = {"n_partitionings": 20, "random_state": 0}
LEARNERS = {"growing map": IKOGDRegressor(**FEW), "renewed map": AdaptiveIKRegressor(**FEW)}
LARGEST = np.finfo(np.float64).max
N = 1600


def make_numbers(n=N):
    """Return rows, and targets of unit deviation that they tell well."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n, 3))
    y = np.sin(3 * X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.normal(size=n)
    return X, (y - y.mean()) / y.std()


def with_outliers(y, outliers):
    """Return targets of which some are replaced, by row."""
    y = y.copy()
    y[list(outliers)] = list(outliers.values())
    return y


def fresh(model, **changes):
    """Return an untrained copy of a model."""
    return type(model)(**model.get_params() | changes)


def errors_of(y, predictions, outliers=()):
    """Return the errors of a stream's predictions, 0 where targets are outliers."""
    return np.where(np.isin(np.arange(len(y)), list(outliers)), 0.0, predictions - y)


def rms(errors):
    """Return the root of the mean square."""
    return np.sqrt(np.mean(errors**2))


# Streams

PLACES = {
    "the first row": [0],
    "the third row": [2],
    "several of the first rows": [0, 7, 11],
    "row 40": [40],
    "row 100": [100],
    "row 250": [250],
    "row 1000": [1000],
    "some rows": [0, 50, 300, 301, 302, 900],
    "every hundredth row": list(range(60, 1200, 100)),
}
SIZES = {"a thousand": [1e3], "a million": [1e6], "minus a million": [-1e6], "the largest": [LARGEST, -LARGEST]}


@every("size", SIZES)
@every("rows", PLACES)
@every("model", LEARNERS)
def test_an_extreme_target_changes_little_of_what_is_predicted_afterwards(model, rows, size):
    X, y = make_numbers()
    outliers = {row: size[k % len(size)] for k, row in enumerate(rows)}
    plain = errors_of(y, fresh(model).partial_fit_predict(X, y))
    found = errors_of(y, fresh(model).partial_fit_predict(X, with_outliers(y, outliers)), outliers)
    for first, last in ((max(rows[0], 16) + 1, N), (max(rows[-1], 256) + 1, rows[-1] + 300), (1300, N)):
        assert rms(found[first:last]) < 1.2 * rms(plain[first:last]) + 0.05


@pytest.mark.parametrize("offset", [0.0, 1e6, -3.0])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@every("model", LEARNERS)
def test_targets_of_any_offset_and_scale_are_safe(model, scale, offset):
    X, y = make_numbers()
    y = offset * max(1.0, scale) + scale * y
    outliers = {3: LARGEST, 400: offset + 1e9 * scale, 401: -LARGEST, 700: -1e4 * scale}
    predicted = fresh(model).partial_fit_predict(X, with_outliers(y, outliers))
    assert rms(errors_of(y, predicted, outliers)[1000:]) < 0.4 * scale


LOSSES = {
    "huber": {"loss": "huber"},
    "epsilon_insensitive": {"loss": "epsilon_insensitive"},
    "median": {"loss": "quantile"},
    "adagrad": {"schedule": "adagrad", "n_initial": 100},
    "constant": {"schedule": "constant", "n_initial": 100},
    "linear": {"linear": True},
}


@every("options", LOSSES)
def test_all_losses_and_schedules_are_safe(options):
    X, y = make_numbers()
    outliers = {3: 1e6, 300: -LARGEST, 600: 1e4}
    plain, found = (
        IKOGDRegressor(**FEW, **options).partial_fit_predict(X, targets) for targets in (y, with_outliers(y, outliers))
    )
    assert rms(errors_of(y, found, outliers)[1000:]) < 1.1 * rms((plain - y)[1000:]) + 0.02


def test_quantiles_still_cover_as_many_rows_as_they_say():
    X, y = make_numbers(4000)
    outliers = {row: 1e6 for row in range(3, 2000, 200)}
    model = IKOGDRegressor(loss="quantile", quantiles=(0.1, 0.9), **FEW)
    predicted = model.partial_fit_predict(X, with_outliers(y, outliers))[2000:]
    np.testing.assert_allclose((y[2000:, None] < predicted).mean(axis=0), (0.1, 0.9), atol=0.06)


def test_an_outlier_of_one_output_does_not_change_the_others():
    X, y = make_numbers()
    outputs = np.column_stack([y, 1e3 * X[:, 2]])
    plain = IKOGDRegressor(**FEW).partial_fit_predict(X, outputs)
    outputs[[2, 700], 0] = LARGEST, -1e7
    found = IKOGDRegressor(**FEW).partial_fit_predict(X, outputs)
    for k in range(2):
        assert rms((found - outputs)[1000:, k]) < 1.1 * rms((plain - outputs)[1000:, k])


def test_a_heavy_outlier_is_safe_too():
    X, y = make_numbers()
    outliers, weights = {5: 1e6, 500: 1e6}, np.ones(N)
    weights[[5, 500]] = 100.0
    found = IKOGDRegressor(**FEW).partial_fit_predict(X, with_outliers(y, outliers), weights)
    plain = IKOGDRegressor(**FEW).partial_fit_predict(X, y)
    assert rms(errors_of(y, found, outliers)[1000:]) < 1.3 * rms((plain - y)[1000:])


def test_calls_of_any_size_give_the_same_model():
    X, y = make_numbers(800)
    y = with_outliers(y, {0: 1e6, 30: -LARGEST, 300: 1e3, 301: 1e3})
    whole, split = IKOGDRegressor(**FEW).partial_fit(X, y), IKOGDRegressor(**FEW)
    for begin in range(0, 800, 7):
        split.partial_fit(X[begin : begin + 7], y[begin : begin + 7])
    assert same_model(whole, split)
    np.testing.assert_array_equal(whole.predict(X), split.predict(X))


def test_a_warm_up_predicts_the_mean_of_typical_targets():
    X, y = make_numbers(100)
    model = IKOGDRegressor(growth=False, **FEW).partial_fit(X, with_outliers(y, {0: 1e6}))
    assert abs(model.predict(X[:1])[0]) < 0.3
    assert abs(model.mean_) < 0.3


@pytest.mark.parametrize("schedule", ["constant", "adagrad"])
def test_a_given_map_needs_a_few_typical_rows_first(schedule):
    X, y = make_numbers()
    kernel = IsolationKernel(n_partitionings=20, n_cells=32, random_state=0).fit(X)
    outliers = {16: 1e6, 300: -LARGEST}
    plain, found = (
        IKOGDRegressor(kernel=kernel, schedule=schedule).partial_fit_predict(X, targets)
        for targets in (y, with_outliers(y, outliers))
    )
    assert rms(errors_of(y, found, outliers)[1000:]) < 1.4 * rms((plain - y)[1000:]) + 0.02


# Lasting changes

CHANGES = {
    "a thousand times larger": lambda y: 1e3 * y,
    "higher": lambda y: y + 1e6,
    "lower": lambda y: y - 1e6,
    "higher and larger": lambda y: 1e6 + 1e3 * y,
}


@every("change", CHANGES)
@pytest.mark.parametrize("at", [100, 700, 3000])
@every("model", LEARNERS)
def test_a_lasting_change_is_followed_within_some_hundred_rows(model, at, change):
    X, y = make_numbers(at + 600)
    changed = np.concatenate([y[:at], change(y[at:])])
    errors = fresh(model).partial_fit_predict(X, changed) - changed
    assert rms(errors[at + 300 :]) < 0.7 * changed[at:].std()


def test_a_sensor_that_was_stuck_is_followed_back():
    X, y = make_numbers(3000)
    stuck = y.copy()
    stuck[1500:1600] = 1e6
    errors = IKOGDRegressor(**FEW).partial_fit_predict(X, stuck) - stuck
    assert rms(errors[1600 + 16 :][:200]) < 1.0
    assert rms(errors[2000:]) < 0.5


@pytest.mark.parametrize("share", [0.01, 0.05])
def test_rare_targets_that_rows_tell_are_learned(share):
    X, _ = make_numbers(6000)
    is_rare = (X[:, 0] + 1) / 2 < share
    y = is_rare + 0.05 * X[:, 1]
    model = IKOGDRegressor(**FEW).fit(X[:5000], y[:5000])
    assert model.score(X[5000:], y[5000:]) > 0.6


# Tables


@every("options", LOSSES | {"a race": {}})
@pytest.mark.parametrize("rows", [[0], [77], list(range(0, 1200, 240))], ids=str)
@pytest.mark.parametrize("size", [1e6, -LARGEST])
def test_an_extreme_target_changes_little_of_what_fit_learns(options, rows, size):
    X, y = make_numbers()
    model = IKOGDRegressor(**FEW, **options)
    plain = model.fit(X[:1200], y[:1200]).score(X[1200:], y[1200:])
    found = model.fit(X[:1200], with_outliers(y, dict.fromkeys(rows, size))[:1200]).score(X[1200:], y[1200:])
    assert found > plain - 0.05


def test_an_extreme_target_does_not_choose_the_columns_that_are_split():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (3000, 30))
    y = np.sin(3 * X[:, 0])
    plain = IKOGDRegressor(**FEW).fit(X[:2000], y[:2000]).score(X[2000:], y[2000:])
    found = IKOGDRegressor(**FEW).fit(X[:2000], with_outliers(y, {9: 1e9})[:2000]).score(X[2000:], y[2000:])
    assert found > plain - 0.05


# Features

LINEAR = {
    "classifier": IKOGDClassifier(linear=True, **FEW),
    "regressor": IKOGDRegressor(linear=True, **FEW),
    "machine": IKSVC(**FEW),
    "adaptive classifier": AdaptiveIKClassifier(**FEW),
    "adaptive regressor": AdaptiveIKRegressor(**FEW),
}


def make_linear(model):
    """Return rows, and targets that a linear function of them tells."""
    X = np.random.default_rng(0).normal(size=(2400, 5))
    scores = X @ np.array([1.0, -2.0, 0.5, 1.0, 0.0])
    return X, scores if is_regressor(model) else (scores > 0).astype(int)


@pytest.mark.parametrize("size", [1e6, -1e30, 1e300])
@pytest.mark.parametrize("rows", [[0], [200], [5, 900]], ids=str)
@every("model", LINEAR)
def test_an_extreme_row_does_not_end_the_linear_term(model, rows, size):
    X, y = make_linear(model)
    plain = fresh(model).fit(X[:1600], y[:1600]).score(X[1600:], y[1600:])
    wild = X.copy()
    wild[rows] = size
    assert fresh(model).fit(wild[:1600], y[:1600]).score(X[1600:], y[1600:]) > plain - 0.04


@pytest.mark.parametrize("size", [1e6, -1e30, 1e300])
@pytest.mark.parametrize("row", [0, 40, 200])
@pytest.mark.parametrize("name", ["classifier", "regressor"])
def test_an_extreme_row_of_a_stream_does_not_end_the_linear_term(name, row, size):
    model = LINEAR[name]
    X, y = make_linear(model)
    plain = fresh(model).partial_fit(X[:1600], y[:1600]).score(X[1600:], y[1600:])
    X[row] = size
    assert fresh(model).partial_fit(X[:1600], y[:1600]).score(X[1600:], y[1600:]) > plain - 0.04


@pytest.mark.parametrize("size", [1e6, 1e300])
def test_an_extreme_value_does_not_shrink_all_sparse_rows(size):
    table = sparse.random_array((200, 50), density=0.2, rng=0, format="csr")
    plain = LinearTerm.learn(table, None).factor
    table.data[7] = size
    np.testing.assert_allclose(LinearTerm.learn(table, None).factor, plain, rtol=0.01)


@pytest.mark.parametrize("scale", [1e30, 1e35, 1e40, 1e300])
@pytest.mark.parametrize("learner", [IKOGDRegressor, AdaptiveIKRegressor])
def test_targets_of_any_size_give_finite_predictions(learner, scale):
    X = np.random.default_rng(0).normal(size=(1000, 3))
    model = learner(n_partitionings=10, random_state=0).fit(X, scale * X[:, 0])
    predictions = model.predict(X)
    assert np.isfinite(predictions).all()
    assert np.corrcoef(np.sign(predictions), np.sign(X[:, 0]))[0, 1] > 0.8
