"""Check the scaling of the rivals: it equals a scikit-learn scaler, learned from the first rows and then fixed."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

from isokern import AdaRakerClassifier, FOGDClassifier, IsolationKernel, NOGDClassifier, OGDClassifier
from learning import custom_kernel, every, feed, is_unfitted, make_kernel, make_rows

SCALERS = {"minmax": MinMaxScaler, "standard": StandardScaler, "maxabs": MaxAbsScaler}
N_INITIAL = 40
COMMON = {"n_initial": N_INITIAL, "random_state": 0}
RIVALS = {
    "OGD": OGDClassifier(**COMMON),
    "OGD, gamma given": OGDClassifier("gaussian", gamma=0.7, **COMMON),
    "OGD, budget": OGDClassifier(budget=15, **COMMON),
    "OGD, custom kernel": OGDClassifier(custom_kernel, **COMMON),
    "NOGD": NOGDClassifier(n_landmarks=30, **COMMON),
    "FOGD": FOGDClassifier(n_frequencies=20, **COMMON),
    "AdaRaker": AdaRakerClassifier((0.1, 0.5, 2.0), n_directions=7, **COMMON),
}
every_rival = every("rival", RIVALS)
every_scale = pytest.mark.parametrize("scale", SCALERS)


def make_table(n=150):
    """Return rows of columns with different ranges, labels and weights.

    The ranges are powers of two, so that MinMaxScaler, which multiplies where isokern divides, rounds alike.
    """
    X, y = make_rows(n, 3)
    X = np.clip(np.round(X * 64), -128, 128)
    X[:2] = [[-128] * 3, [128] * 3]
    return X * [1, 2**10, 2**-7] + [0, 2**12, -1], y, np.random.default_rng(1).uniform(0.5, 1.5, n)


# A scale equals a scaler


@every_rival
@every_scale
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_a_scale_equals_a_scaler_fitted_to_the_first_rows(method, scale, rival):
    X, y, weights = make_table()
    scaler = SCALERS[scale]().fit(X if method == "fit" else X[:N_INITIAL])
    model, by_hand = clone(rival).set_params(scale=scale), clone(rival)
    getattr(model, method)(X, y, sample_weight=weights)
    getattr(by_hand, method)(scaler.transform(X), y, sample_weight=weights)
    others = X[::-1] * 1.25
    assert np.array_equal(model.decision_function(others), by_hand.decision_function(scaler.transform(others)))
    assert getattr(model, "gamma_", None) == getattr(by_hand, "gamma_", None)
    assert not np.array_equal(model.decision_function(X), clone(rival).fit(X, y).decision_function(X))


@every_rival
def test_partial_fit_after_fit_keeps_the_scale_of_fit(rival):
    X, y, _ = make_table()
    scaler = StandardScaler().fit(X[:100])
    model = clone(rival).set_params(scale="standard").fit(X[:100], y[:100]).partial_fit(X[100:], y[100:])
    by_hand = clone(rival).fit(scaler.transform(X[:100]), y[:100]).partial_fit(scaler.transform(X[100:]), y[100:])
    assert np.array_equal(model.decision_function(X), by_hand.decision_function(scaler.transform(X)))


@every_rival
def test_fit_forgets_the_scale_learned_before(rival):
    X, y, _ = make_table()
    model = clone(rival).set_params(scale="minmax").fit(1000 * X, y)
    for scale in ("minmax", None):
        fresh = clone(rival).set_params(scale=scale).fit(X, y)
        again = model.set_params(scale=scale).fit(X, y)
        assert np.array_equal(again.decision_function(X), fresh.decision_function(X))


# Streams


@every_rival
@every_scale
@pytest.mark.parametrize("sizes", [[1] * 150, [7, 60, 1], [30, 30, 30]], ids=["row by row", "uneven", "even"])
def test_a_model_does_not_depend_on_how_its_stream_is_split(sizes, scale, rival):
    X, y, weights = make_table()
    rival = clone(rival).set_params(scale=scale)
    parts, whole = (feed(clone(rival), cut, X, y, weights) for cut in (sizes, []))
    assert np.array_equal(parts.decision_function(X), whole.decision_function(X))
    assert parts.n_support_ == whole.n_support_


@pytest.mark.parametrize("n_initial", [None, N_INITIAL])
@every_rival
def test_rows_are_buffered_until_a_scale_can_be_learned(rival, n_initial):
    X, y, _ = make_table(1000)
    n = n_initial or 1000
    model = clone(rival).set_params(scale="maxabs", n_initial=n_initial).partial_fit(X[: n - 1], y[: n - 1])
    assert model.n_support_ == 0
    assert model.partial_fit(X[n - 1 :], y[n - 1 :]).n_support_ > 0


# Bad input


@every_rival
@pytest.mark.parametrize("scale", ["minmax", "standard"])
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_a_scale_that_moves_zeros_is_an_error_for_sparse_rows(method, scale, rival):
    X, y, _ = make_table()
    model = clone(rival).set_params(scale=scale)
    message = f"^scale must be None or \"maxabs\" for sparse X, which must keep its zeros; got '{scale}'"
    with pytest.raises(ValueError, match=message):
        getattr(model, method)(sparse.csr_array(X), y)
    assert is_unfitted(model)


@every_rival
def test_rows_that_the_learned_scale_cannot_take_leave_a_model_as_it_was(rival):
    large, y, _ = make_table()
    X = 1e-10 * large
    for scale, bad, message in (
        ("standard", sparse.csr_array(X), "X must be dense"),
        ("maxabs", 1e300 * large, r"^scale must leave X finite"),
    ):
        model = clone(rival).set_params(scale=scale).fit(X, y)
        before = model.decision_function(X)
        with pytest.raises(ValueError, match=message):
            model.partial_fit(bad, y)
        with pytest.raises(ValueError, match=message):
            model.predict(bad)
        assert np.array_equal(model.decision_function(X), before)


@pytest.mark.parametrize("learner", [OGDClassifier, NOGDClassifier])
def test_negative_rows_must_be_scaled_to_at_least_zero_for_chi2(learner):
    X, y, _ = make_table()
    message = r'^X must not be negative for kernel="chi2"; got -[\d.]+'
    with pytest.raises(ValueError, match=rf'{message}\. Set scale="minmax"\.'):
        learner("chi2").fit(X, y)
    with pytest.raises(ValueError, match=rf'{message} after scaling\. Set scale="minmax"\.'):
        learner("chi2", scale="standard").fit(X, y)
    model = learner("chi2", scale="minmax").fit(X, y)
    assert np.isfinite(model.decision_function(X)).all()
    with pytest.raises(ValueError, match=rf"{message} after scaling\. Clip it to the range that scale has learned\."):
        model.predict(X - [256, 0, 0])


KERNELS = {
    "unfitted": lambda X: IsolationKernel(),
    "fitted": make_kernel,
    "frozen": lambda X: FrozenEstimator(make_kernel(X)),
}


@every("make", KERNELS)
def test_a_scale_along_with_an_isolation_kernel_is_an_error(make):
    X, y = make_rows(50)
    message = r"^scale must be None for an IsolationKernel, which has its own; got 'minmax'"
    with pytest.raises(ValueError, match=message):
        OGDClassifier(make(X), scale="minmax").fit(X, y)
