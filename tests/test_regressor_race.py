"""Check IKOGDRegressor's defaults: targets of any scale, the race, passes, quantiles and several outputs."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_friedman1

from isokern import IKOGDRegressor, IsolationKernel, merge
from isokern.learners.number_race import NumberRace
from isokern.learners.residuals import Residuals
from learning import every, feed, same_model

LOSSES = ["squared", "huber", "epsilon_insensitive", "quantile"]
FEW = {"n_partitionings": 20, "random_state": 0}


def make_numbers(n=1500):
    X, y = make_friedman1(n, noise=1.0, random_state=0)
    return X, y


# Targets of any scale


@pytest.mark.parametrize("stream", [False, True], ids=["fit", "stream"])
@pytest.mark.parametrize("options", [{}, {"schedule": "adagrad"}, {"linear": True, "n_cells": 32}], ids=str)
@pytest.mark.parametrize("loss", LOSSES)
def test_predictions_follow_the_offset_and_scale_of_the_targets(loss, options, stream):
    X, y = make_numbers()
    found = []
    for offset, scale in ((0.0, 1.0), (1e9, 1e6)):
        model = IKOGDRegressor(loss=loss, **FEW | options)
        learn = model.partial_fit if stream else model.fit
        found.append((learn(X, offset + scale * y).predict(X) - offset) / scale)
    np.testing.assert_allclose(found[1], found[0], atol=1e-3 * y.std())


def test_an_outlier_does_not_end_learning():
    X, y = make_numbers()
    y[100] = 1e6
    model = IKOGDRegressor(loss="huber", **FEW).fit(X, y)
    assert np.isfinite(model.predict(X)).all()


# The race


RACES = {
    "default": ({}, 6),
    "no linear term": ({"linear": False}, 4),
    "a linear term": ({"linear": True}, 5),
    "one scale": ({"n_scales": 1}, 5),
    "several scales": ({"n_scales": 3}, 5),
    "a number of cells": ({"n_cells": 32}, 5),
}


@every("case", RACES)
def test_parameters_restrict_the_race(case):
    options, n_candidates = case
    X, y = make_numbers(300)
    selection = IKOGDRegressor(**FEW, **options).fit(X, y).selection_
    assert len(selection["candidates"]) == len(selection["errors"]) == n_candidates
    assert selection["running"] == [selection["leader"]]


@pytest.mark.parametrize(
    "options",
    [
        {"schedule": "adagrad"},
        {"learning_rate": 0.3},
        {"average": True},
        {"average": False},
        {"shrinkage": 0.01},
        {"evaluation": "naive"},
        {"kernel": IsolationKernel(n_partitionings=8)},
    ],
    ids=str,
)
def test_a_given_parameter_ends_the_race(options):
    X, y = make_numbers(300)
    few = {"random_state": 0} if "kernel" in options else FEW
    model = IKOGDRegressor(**few, **options).fit(X, y)
    assert isinstance(model.learned_, Residuals)
    assert model.selection_ is None


def test_errors_of_the_race_are_one_minus_r_squared():
    X, y = make_numbers(4000)
    model = IKOGDRegressor(n_partitionings=50, random_state=0).fit(X[:3000], y[:3000])
    error = dict(zip(model.selection_["candidates"], model.selection_["errors"], strict=True))[
        model.selection_["leader"]
    ]
    assert error == pytest.approx(1 - model.score(X[3000:], y[3000:]), abs=0.1)


def test_a_linear_function_is_won_by_a_linear_term():
    X = np.random.default_rng(0).normal(size=(3000, 8))
    y = X @ np.arange(8.0)
    model = IKOGDRegressor(**FEW).fit(X[:2000], y[:2000])
    assert "linear" in model.selection_["leader"]
    assert model.score(X[2000:], y[2000:]) > 0.99
    assert model.score(10 * X[2000:], 10 * y[2000:]) > 0.9  # it extrapolates


def test_a_smooth_function_with_noise_is_learned_without_tuning():
    X, y = make_numbers(4000)
    model = IKOGDRegressor(random_state=0).fit(X[:3000], y[:3000])
    former = IKOGDRegressor(schedule="constant", average=True, n_passes=1, random_state=0).fit(X[:3000], y[:3000])
    assert model.score(X[3000:], y[3000:]) > max(0.88, former.score(X[3000:], y[3000:]) + 0.05)


def test_a_stream_narrows_its_race_and_does_not_depend_on_its_calls(monkeypatch):
    monkeypatch.setattr("isokern.learners.base_race.STREAM_STAGES", ((400, 3), (700, 2)))
    X, y = make_numbers()
    weights = np.random.default_rng(1).uniform(0.1, 2.0, len(y))
    models = [feed(IKOGDRegressor(n_initial=100, **FEW), sizes, X, y, weights) for sizes in ([], [150] * 9, [1] * 300)]
    assert len(models[0].selection_["running"]) == 2
    for model in models[1:]:
        assert same_model(model, models[0])
        np.testing.assert_array_equal(model.learned_.errors, models[0].learned_.errors)
        np.testing.assert_array_equal(model.learned_.moments.sums, models[0].learned_.moments.sums)
        np.testing.assert_array_equal(model.predict(X), models[0].predict(X))


def test_a_row_of_weight_zero_changes_nothing():
    X, y = make_numbers(1200)
    weights = np.ones(1200)
    weights[1::3] = 0.0
    with_zeros = IKOGDRegressor(n_initial=100, **FEW).partial_fit(X[:100], y[:100])
    without = IKOGDRegressor(n_initial=100, **FEW).partial_fit(X[:100], y[:100])
    with_zeros.partial_fit(X[100:], y[100:], weights[100:])
    kept = np.flatnonzero(weights[100:] > 0) + 100
    without.partial_fit(X[kept], y[kept])
    np.testing.assert_array_equal(with_zeros.learned_.model.tables()[0], without.learned_.model.tables()[0])


def test_rows_given_as_cells_are_learned_like_rows():
    X, y = make_numbers(600)
    kernel = IsolationKernel(n_partitionings=12, n_cells=32, n_scales="auto", random_state=0).fit(X)
    by_rows = IKOGDRegressor(kernel=kernel, schedule="adagrad").partial_fit(X, y)
    by_cells = IKOGDRegressor(kernel=kernel, schedule="adagrad").partial_fit_cells(kernel.apply(X), y)
    assert isinstance(by_rows.learned_, NumberRace)
    assert same_model(by_rows, by_cells)
    np.testing.assert_array_equal(by_rows.predict(X), by_cells.predict_cells(by_cells.map_rows(X)))
    with pytest.raises(ValueError, match="linear must be False for cells"):
        IKOGDRegressor(kernel=kernel, linear=True).partial_fit_cells(kernel.apply(X), y)


def test_merged_models_predict_the_mean():
    X, y = make_numbers(900)
    kernel = IsolationKernel(n_partitionings=12, n_cells=32, n_scales="auto", random_state=0).fit(X)
    parts = [IKOGDRegressor(kernel=kernel, schedule="adagrad").partial_fit(X[k::3], y[k::3]) for k in range(3)]
    mean = np.mean([part.predict(X) for part in parts], axis=0)
    np.testing.assert_allclose(merge(parts).predict(X), mean, rtol=1e-5)


# Passes


def test_passes_go_on_as_long_as_they_help():
    rng = np.random.default_rng(0)
    X, noise = rng.uniform(-3, 3, (2000, 2)), rng.normal(size=2000)
    fine = IKOGDRegressor(**FEW, linear=False).fit(X, np.floor(2 * X).sum(axis=1) % 3)
    noisy = IKOGDRegressor(**FEW, linear=False).fit(X, noise)
    n_passes = [model.learned_.model.clock.rounds / 2000 for model in (fine, noisy)]
    assert n_passes[0] >= 4
    assert n_passes[1] <= 3
    assert fine.n_rows_seen_ == noisy.n_rows_seen_ == 2000


def test_a_given_number_of_passes_is_made():
    X, y = make_numbers(300)
    assert IKOGDRegressor(n_passes=3, **FEW).fit(X, y).learned_.model.clock.rounds == 900


# Quantiles


def test_quantiles_cover_as_many_rows_held_out_as_they_say():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (9000, 3))
    y = X[:, 0] + (1.5 + X[:, 1]) * rng.normal(size=9000)
    quantiles = (0.1, 0.5, 0.9)
    model = IKOGDRegressor(loss="quantile", quantiles=quantiles, n_partitionings=50, random_state=0)
    predicted = model.fit(X[:6000], y[:6000]).predict(X[6000:])
    assert predicted.shape == (3000, 3)
    assert (np.diff(predicted, axis=1) >= 0).all()
    np.testing.assert_allclose((y[6000:, None] <= predicted).mean(axis=0), quantiles, atol=0.03)
    width = predicted[:, 2] - predicted[:, 0]
    is_wide = X[6000:, 1] > 0
    assert width[is_wide].mean() > 1.5 * width[~is_wide].mean()  # as the noise is


def test_one_quantile_is_predicted_as_one_number():
    X, y = make_numbers(500)
    for quantiles in (0.9, [0.9]):
        assert IKOGDRegressor(loss="quantile", quantiles=quantiles, **FEW).fit(X, y).predict(X).shape == (500,)


def test_a_warm_up_predicts_quantiles_of_the_rows_so_far():
    X, y = make_numbers(101)
    model = IKOGDRegressor(loss="quantile", quantiles=(0.25, 0.5), growth=False, **FEW).partial_fit(X, y)
    np.testing.assert_array_equal(model.predict(X[:2]), np.tile(np.quantile(y, (0.25, 0.5)), (2, 1)))


# Several outputs


def test_several_outputs_are_learned_like_one_each():
    X, y = make_numbers(400)
    outputs = np.column_stack([y, 1e3 * X[:, 1]])
    kernel = IsolationKernel(n_partitionings=12, n_cells=32, n_scales="auto", random_state=0).fit(X)
    scales = {"kernel": kernel, "schedule": "adagrad", "random_state": 0}
    for options in (scales, {"schedule": "adagrad", **FEW}, {"average": True, **FEW}):
        together = IKOGDRegressor(**options).partial_fit(X, outputs).fit(X, outputs)
        assert together.predict(X).shape == (400, 2)
        for k in range(2):
            alone = IKOGDRegressor(**options).fit(X, outputs[:, k])
            np.testing.assert_allclose(together.predict(X)[:, k], alone.predict(X), rtol=1e-6)
            assert together.mean_[k] == pytest.approx(alone.mean_)


def test_several_outputs_race_together():
    X, y = make_numbers(2000)
    outputs = np.column_stack([y, -(y**2)])
    model = IKOGDRegressor(**FEW).fit(X[:1500], outputs[:1500])
    assert model.score(X[1500:], outputs[1500:]) > 0.75


def test_outputs_must_stay_and_have_no_quantiles():
    X, y = make_numbers(50)
    outputs = np.column_stack([y, y])
    with pytest.raises(ValueError, match="y must have the 1 outputs of the rows before; got 2"):
        IKOGDRegressor(**FEW).partial_fit(X, y).partial_fit(X, outputs)
    with pytest.raises(ValueError, match=r"one output for loss=.quantile.; got 2\. Use sklearn\.multioutput"):
        IKOGDRegressor(loss="quantile", **FEW).fit(X, outputs)


@pytest.mark.parametrize("seed", range(8))
def test_few_rows_with_a_weight_may_all_be_learned_or_all_held_out(seed):
    X, weights = np.random.default_rng(0).normal(size=(300, 3)), np.zeros(300)
    weights[0] = 1.0
    model = IKOGDRegressor(n_partitionings=5, random_state=seed).fit(X, X[:, 0], sample_weight=weights)
    assert np.isfinite(model.predict(X)).all()


def test_all_rows_are_counted_once_whatever_the_number_of_passes():
    X = np.random.default_rng(0).normal(size=(300, 3))
    assert IKOGDRegressor(n_partitionings=5, random_state=0).fit(X, X[:, 0]).n_rows_seen_ == 300


def test_more_passes_than_two_help_on_a_smooth_function_without_noise():
    X = np.random.default_rng(0).uniform(size=(600, 2))
    y = np.sin(6 * X[:, 0]) + X[:, 1]
    models = [IKOGDRegressor(n_passes=n, random_state=0).fit(X[:400], y[:400]) for n in ("auto", 2)]
    auto, two = (1.0 - model.score(X[400:], y[400:]) for model in models)
    assert auto < 0.7 * two
