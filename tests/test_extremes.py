"""One extreme row or parameter must not ruin a model: finite input gives finite answers."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from sklearn.base import clone

from isokern import FOGDClassifier, IKOGDClassifier, IKOGDRegressor, OGDClassifier
from learning import ONLINE, SMALL, answers, every, make_rows, one_row, same_model

LARGE = [50.0, 1e6, 1e308]
STEPS = [("constant", 0.5), ("decaying", 0.5), ("adagrad", 2.0)]


@pytest.mark.parametrize("weight", LARGE)
@every("model", ONLINE)
def test_one_large_weight_does_not_ruin_a_model(weight, model):
    X, y = make_rows(400)
    weights = np.ones(400)
    weights[100] = weight
    plain, weighted = (clone(model).fit(X, y, sample_weight=w) for w in (None, weights))
    assert np.isfinite(answers(weighted, X)).all()
    # Random budgets of 15 vectors vary by more, and polynomial kernels reach far.
    if "bogd" not in repr(model) and "polynomial" not in repr(model) and not isinstance(model, IKOGDRegressor):
        assert weighted.score(X, y) > plain.score(X, y) - 0.1


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("schedule", ["constant", "decaying"])
def test_a_weighted_step_goes_no_further_than_the_margin_or_an_unweighted_step(schedule, loss):
    for rate in (0.1, 0.3, 0.7, 0.9):
        for weight in (1.0, 2.0, 5.0, 1e6):
            model, cells = one_row(schedule=schedule, loss=loss, learning_rate=rate)
            model.partial_fit_cells(cells, [1], classes=[0, 1], sample_weight=[weight])
            unweighted = rate * (2 if loss == "squared_hinge" else 1)
            expected = min(weight * unweighted, max(1.0, unweighted))
            assert model.decision_function_cells(cells)[0] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("schedule", "rate"), STEPS)
def test_a_cell_still_learns_after_a_row_of_large_weight(schedule, rate):
    model, cells = one_row(schedule=schedule, learning_rate=rate)
    model.partial_fit_cells(cells, [1], classes=[0, 1], sample_weight=[1e308])
    for _ in range(40):
        model.partial_fit_cells(cells, [0])
    assert model.decision_function_cells(cells)[0] < 0


def test_a_row_at_the_minimum_of_its_loss_takes_an_unweighted_step():
    model, cells = one_row(schedule="adagrad", loss="logistic")
    model.partial_fit_cells(cells, [1], classes=[0, 1])
    while model.decision_function_cells(cells)[0] <= 5:  # from there on, logistic loss counts as its minimum
        model.partial_fit_cells(cells, [1])
    before = model.decision_function_cells(cells)[0]
    light, heavy = (copy.deepcopy(model).partial_fit_cells(cells, [1], sample_weight=[w]) for w in (1.0, 1e6))
    assert same_model(light, heavy)
    assert heavy.decision_function_cells(cells)[0] > before


@pytest.mark.parametrize("loss", ["squared", "huber", "epsilon_insensitive"])
@pytest.mark.parametrize(("schedule", "rate"), STEPS)
@pytest.mark.parametrize("average", [False, True])
def test_one_large_target_gives_no_nan(loss, schedule, rate, average):
    X, y = make_rows(300)
    y = y.astype(float)
    y[[50, 51, 200]] = 1e308, 1e308, -1e308
    model = IKOGDRegressor(loss=loss, schedule=schedule, learning_rate=rate, average=average, n_initial=50, **SMALL)
    for k in range(0, 300, 25):
        model.partial_fit(X[k : k + 25], y[k : k + 25], sample_weight=np.full(25, 1e308))
    assert np.isfinite(model.predict(X)).all()
    assert np.isfinite(model.mean_)


@pytest.mark.parametrize("rate", [5000.0, 1e6])
@pytest.mark.parametrize("schedule", ["constant", "decaying", "adagrad"])
def test_squared_hinge_does_not_diverge_with_any_learning_rate(schedule, rate):
    X, y = make_rows(2000)
    model = IKOGDClassifier(loss="squared_hinge", schedule=schedule, learning_rate=rate, **SMALL).fit(X, y)
    assert np.isfinite(model.predict_proba(X)).all()
    fogd = FOGDClassifier(n_frequencies=30, gamma=0.7, loss="squared_hinge", learning_rate=rate).fit(X, y)
    assert np.isfinite(fogd.decision_function(X)).all()


@pytest.mark.parametrize("make", [IKOGDClassifier, IKOGDRegressor, OGDClassifier])
@pytest.mark.parametrize("rate", [1.7e308, 1e7])
def test_an_absurd_learning_rate_is_an_error(make, rate):
    X, y = make_rows(30)
    with pytest.raises(ValueError, match=r"learning_rate must be at most 1,000,000; got"):
        make(learning_rate=rate).fit(X, y)


def test_an_absurd_class_weight_is_an_error():
    X, y = make_rows(30)
    with pytest.raises(ValueError, match="class_weight must be"):
        IKOGDClassifier(class_weight={0: 1e308}).fit(X, y)
