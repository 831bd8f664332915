"""Check IKOGDRegressorCV: its results equal those of scikit-learn's GridSearchCV."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.metrics import mean_pinball_loss
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold

from isokern import IKOGDRegressor, IKOGDRegressorCV
from learning import every, is_unfitted, same_model
from test_search import CELLS, SEED, check_results

RATES = (0.25, 1.0)
WITHOUT_RACE = {"schedule": "adagrad", "average": False, "n_passes": 4}


def make_numbers(n, n_outputs=1):
    """Return rows and noisy targets, (n,) or (n, n_outputs)."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    targets = 50.0 + 3.0 * np.sin(X) @ rng.normal(size=(3, n_outputs)) + rng.normal(size=(n, n_outputs))
    return X, targets[:, 0] if n_outputs == 1 else targets


def make_search(**options):
    return IKOGDRegressorCV(**{"n_partitionings": 6, "n_cells": CELLS, "cv": 3, "random_state": 0} | options)


def plain_learner(**options):
    return IKOGDRegressor(**WITHOUT_RACE | {"n_partitionings": 6, "random_state": SEED} | options)


def check_against_grid_search(X, y, *, cv=3, scoring=None, **options):
    """Check the results of a search against scikit-learn's, and return the fitted search."""
    grid = {"n_cells": CELLS, "learning_rate": RATES}
    expected = GridSearchCV(plain_learner(**options), grid, cv=cv, scoring=scoring).fit(X, y)
    model = make_search(cv=cv, scoring=scoring, **options).fit(X, y)
    check_results(model, expected)
    return model


OPTIONS = {
    "default": {},
    "voronoi, scaled": {"partitioning": "voronoi", "scale": "standard"},
    "averaged": {"schedule": "constant", "average": True, "n_passes": 1, "shrinkage": 0.01},
    "dual": {"schedule": "constant", "evaluation": "dual", "n_passes": 1},
    "huber": {"loss": "huber", "epsilon": 0.5},
    "median": {"loss": "quantile"},
}


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@every("options", OPTIONS)
def test_results_equal_those_of_a_grid_search(options, form):
    X, y = make_numbers(120)
    check_against_grid_search(form(X) if options.get("scale") is None else X, y, **options)


def largest_error(model, X, y):
    return -np.abs(model.predict(X) - y).max()


@pytest.mark.parametrize("scoring", ["r2", "neg_mean_absolute_error", largest_error])
def test_scoring_may_be_the_name_of_a_scorer_or_a_function_of_rows(scoring):
    check_against_grid_search(*make_numbers(120), scoring=scoring)


FOLDS = {
    "a number": 4,
    "none given": None,
    "a splitter": KFold(3, shuffle=True, random_state=1),
    "pairs": list(GroupKFold(3).split(np.zeros(120), groups=np.arange(120) // 10)),
}


@every("cv", FOLDS)
def test_folds_are_those_of_scikit_learn(cv):
    check_against_grid_search(*make_numbers(120), cv=cv)


def test_several_outputs_are_searched_together():
    X, y = make_numbers(120, n_outputs=2)
    model = check_against_grid_search(X, y)
    assert model.predict(X).shape == (120, 2)
    assert model.mean_.shape == (2,)


def test_several_quantiles_are_searched_by_a_score_of_their_own():
    X, y = make_numbers(120)

    def scoring(model, X, y):
        lower, upper = model.predict(X).T
        return -mean_pinball_loss(y, lower, alpha=0.2) - mean_pinball_loss(y, upper, alpha=0.8)

    model = check_against_grid_search(X, y, loss="quantile", quantiles=(0.2, 0.8), scoring=scoring)
    assert model.predict(X).shape == (120, 2)


def test_the_best_candidate_is_fitted_to_all_rows_with_their_weights_and_goes_on():
    X, y = make_numbers(200)
    weights = np.random.default_rng(2).uniform(0.1, 2, 200)
    model = make_search().fit(X[:120], y[:120], weights[:120])
    learner = plain_learner(**model.best_params_).fit(X[:120], y[:120], weights[:120])
    assert same_model(model.best_estimator_, learner)
    assert (model.mean_, model.n_support_, model.n_rows_seen_) == (learner.mean_, learner.n_support_, 120)
    model.partial_fit(X[120:150], y[120:150], weights[120:150])
    model.partial_fit_cells(model.kernel_.apply(X[150:180]), y[150:180], weights[150:180])
    answers = model.partial_fit_predict(X[180:], y[180:], weights[180:])
    expected = learner.partial_fit(X[120:180], y[120:180], weights[120:180])
    np.testing.assert_array_equal(answers, expected.partial_fit_predict(X[180:], y[180:], weights[180:]))
    assert same_model(model.best_estimator_, learner)
    np.testing.assert_array_equal(model.predict(X), learner.predict(X))
    np.testing.assert_array_equal(model.predict_cells(model.kernel_.apply(X)), learner.predict(X))


def test_a_target_of_any_scale_leads_to_the_same_choice():
    X, y = make_numbers(300)
    model, scaled = make_search().fit(X, y), make_search().fit(X, 1e6 * y - 1e9)
    assert scaled.best_params_ == model.best_params_
    np.testing.assert_allclose(scaled.cv_results_["mean_test_score"], model.cv_results_["mean_test_score"], atol=1e-6)


def test_fit_must_come_first():
    X, y = make_numbers(50)
    for call in (lambda model: model.predict(X), lambda model: model.partial_fit(X, y), lambda model: model.mean_):
        with pytest.raises(NotFittedError, match=r"^IKOGDRegressorCV is not fitted yet: call fit first"):
            call(make_search())


BAD_PARAMETERS = {
    "no cells": ({"n_cells": ()}, r"^n_cells must be integers of at least 2; got \(\)\."),
    "a rate of 0": ({"learning_rate": [1, 0]}, r"^learning_rate must be a positive number; got 0\."),
    "a loss of classifiers": ({"loss": "hinge"}, r'^loss must be "squared", '),
    "quantiles by R²": ({"loss": "quantile", "quantiles": (0.1, 0.9)}, r"^scoring must be given for several quantiles"),
}


@every(("options", "message"), BAD_PARAMETERS)
def test_a_bad_parameter_is_an_error(options, message):
    model = make_search(**options)
    with pytest.raises(ValueError, match=message):
        model.fit(*make_numbers(120))
    assert is_unfitted(model)


def test_several_outputs_with_quantiles_are_an_error():
    with pytest.raises(ValueError, match=r'^y must be one output for loss="quantile"; got 2\.'):
        make_search(loss="quantile").fit(*make_numbers(60, n_outputs=2))
