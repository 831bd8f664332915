"""Check what all rivals share beyond test_estimator_checks_learners: late classes, rejected rows, large values, a9a."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from isokern import FOGDClassifier, NOGDClassifier, OGDClassifier
from isokern.data import read_libsvm
from isokern.kernels import KERNELS
from learning import FEW_RIVALS, FORMS, custom_kernel, every, is_unfitted, make_rows, spoiled
from test_ogd import rows_of


@every("rival", FEW_RIVALS)
def test_a_class_given_at_the_start_may_appear_late(rival):
    X, y = make_rows(200, 3)
    late = np.argsort(y == 2, kind="stable")
    model = clone(rival).partial_fit(X[late][:50], y[late][:50], classes=[0, 1, 2])
    assert 2 in model.partial_fit(X[late][50:], y[late][50:]).predict(X)


def test_a_grid_search_reaches_the_kernel():
    grid = {"kernel": ["laplacian", "gaussian"], "gamma": [0.1, 1]}
    search = GridSearchCV(OGDClassifier(random_state=0), grid, cv=3).fit(*make_rows(120, 3))
    assert search.best_estimator_.gamma_ == search.best_params_["gamma"]


def test_a_custom_kernel_has_no_gamma():
    X, y = make_rows(50)
    model = OGDClassifier(gamma=0.5).fit(X, y).set_params(kernel=custom_kernel)
    assert not hasattr(model.fit(X, y), "gamma_")


# Rejected rows


NON_NEGATIVE = {
    "chi2": OGDClassifier("chi2", gamma=1.0, random_state=0),
    "chi2 in a budget": OGDClassifier("chi2", gamma=1.0, budget=20, random_state=0),
    "chi2, NOGD": NOGDClassifier("chi2", gamma=1.0, n_landmarks=50, random_state=0),
}


@every("rival", NON_NEGATIVE)
@pytest.mark.parametrize("n_learned", [0, 30, 600])
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_negative_values_in_a_late_block_leave_a_model_as_it_was(method, n_learned, rival, monkeypatch):
    monkeypatch.setattr("isokern.rows._BLOCK_ROWS", 256)  # the smallest block
    X, y = make_rows(1400)
    X, model = np.abs(X), clone(rival)
    if n_learned:
        model.partial_fit(X[:n_learned], y[:n_learned])
        before = model.decision_function(X)
    with pytest.raises(ValueError, match=r"^X must not be negative"):
        getattr(model, method)(spoiled(X[600:], -1), y[600:])
    assert is_unfitted(model) if not n_learned else np.array_equal(model.decision_function(X), before)


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_a_custom_kernel_that_fails_leaves_a_model_as_it_was(method):
    X, y = make_rows(700)

    def kernel(X, Z):
        if (X > 1e6).any():
            raise ZeroDivisionError
        return custom_kernel(X, Z)

    model = OGDClassifier(kernel).partial_fit(X[:100], y[:100])
    before = model.decision_function(X)
    with pytest.raises(ZeroDivisionError):
        getattr(model, method)(spoiled(X[100:], 1e7), y[100:])
    assert np.array_equal(model.decision_function(X), before)


# Small and large values


EXTREME = {
    **{f"OGD, {name}": partial(OGDClassifier, name) for name in KERNELS},
    **{f"OGD, {name}, budget": partial(OGDClassifier, name, budget=5) for name in KERNELS},
    **{f"NOGD, {name}": partial(NOGDClassifier, name, n_landmarks=20, rank=None) for name in KERNELS},
    **{f"FOGD, {name}": partial(FOGDClassifier, name, n_frequencies=20) for name in ("gaussian", "laplacian")},
    "FOGD, orthogonal": partial(FOGDClassifier, n_frequencies=20, features="orthogonal"),
}


@every("make", EXTREME)
@every("form", FORMS)
@pytest.mark.parametrize("gamma", [1e-300, 1e-9, 1.0, 1e9, 1e300, "data"])
@pytest.mark.parametrize("size", [1e-300, 1.0, 1e200, 1e307])
def test_scores_are_finite_or_an_error_says_why_not(size, gamma, form, make):
    X, y = rows_of(80)
    X = form(size * X)
    try:
        scores = make(gamma=gamma, random_state=0).fit(X, y).decision_function(X)
    except ValueError as error:
        assert "must" in str(error)
    else:
        assert np.isfinite(scores).all()


@every("rival", FEW_RIVALS)
@pytest.mark.parametrize("size", [1e-300, 1e100, 1e200])
def test_gamma_from_data_of_any_size_leaves_scores_finite(size, rival):
    X, y = make_rows(200)
    model = clone(rival)
    if "gamma" in model.get_params():
        model.set_params(gamma="data")
    assert np.isfinite(model.fit(size * X, y).decision_function(size * X)).all()


@pytest.mark.parametrize("kernel", ["polynomial", "chi2", "intersection"])
@pytest.mark.parametrize("learner", [OGDClassifier, NOGDClassifier])
def test_large_kernel_values_and_squared_hinge_loss_give_no_nan(learner, kernel):
    X, y = make_rows(1500)
    X = 10 * np.abs(X)
    try:
        scores = learner(kernel, loss="squared_hinge", random_state=0).fit(X, y).decision_function(X)
    except ValueError as error:
        assert "must" in str(error)
    else:
        assert np.isfinite(scores).all()


# Real data


ACCURACIES = {
    "OGD": (OGDClassifier(n_cells=16, random_state=0), 0.840),
    "NOGD": (NOGDClassifier(n_cells=16, random_state=0), 0.830),
    "FOGD": (FOGDClassifier(gamma=0.02, random_state=0), 0.843),
}


@every(("model", "accuracy"), ACCURACIES)
def test_a9a_is_classified(model, accuracy, data_set):
    train, test = (read_libsvm(data_set(name), n_features=123) for name in ("a9a", "a9a.t"))
    assert clone(model).fit(*train).score(*test) >= accuracy
