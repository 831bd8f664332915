"""The rivals' scaling: what a scaler in front would do, learned from the first rows and frozen."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

from isokern import AdaRakerClassifier, FOGDClassifier, IsolationKernel, NOGDClassifier, OGDClassifier
from learning import is_unfitted, make_kernel, make_rows
from test_rivals import bounds_of, every, feed, own_kernel

SCALERS = {"minmax": MinMaxScaler, "standard": StandardScaler, "maxabs": MaxAbsScaler}
N_INITIAL = 40
RIVALS = {
    "OGD": OGDClassifier(n_initial=N_INITIAL, random_state=0),
    "OGD, gamma given": OGDClassifier("gaussian", gamma=0.7, n_initial=N_INITIAL, random_state=0),
    "OGD, budget": OGDClassifier(budget=15, n_initial=N_INITIAL, random_state=0),
    "OGD, own kernel": OGDClassifier(own_kernel, n_initial=N_INITIAL, random_state=0),
    "NOGD": NOGDClassifier(n_landmarks=30, n_initial=N_INITIAL, random_state=0),
    "FOGD": FOGDClassifier(n_frequencies=20, n_initial=N_INITIAL, random_state=0),
    "AdaRaker": AdaRakerClassifier((0.1, 0.5, 2.0), n_directions=7, n_initial=N_INITIAL, random_state=0),
}
every_scale = pytest.mark.parametrize("scale", SCALERS)


def make_table(n=150):
    """Return rows of unlike columns, labels and weights; the columns' ranges are powers of two.

    So scikit-learn's MinMaxScaler, which multiplies where others divide, rounds as they do.
    """
    X, y = make_rows(n, 3)
    X = np.clip(np.round(X * 64), -128, 128)
    X[:2] = [[-128] * 3, [128] * 3]
    return X * [1, 2**10, 2**-7] + [0, 2**12, -1], y, np.random.default_rng(1).uniform(0.5, 1.5, n)


# What a scale is


@every(RIVALS)
@every_scale
def test_fit_with_a_scale_equals_a_scaler_in_front(scale, rival):
    X, y, weights = make_table()
    scaler = SCALERS[scale]().fit(X)
    model = clone(rival).set_params(scale=scale).fit(X, y, weights)
    by_hand = clone(rival).fit(scaler.transform(X), y, weights)
    others = X[::-1] * 1.25
    assert np.array_equal(model.decision_function(others), by_hand.decision_function(scaler.transform(others)))


@every(RIVALS)
@every_scale
def test_a_stream_is_scaled_by_its_first_rows(scale, rival):
    X, y, weights = make_table()
    scaler = SCALERS[scale]().fit(X[:N_INITIAL])
    model = clone(rival).set_params(scale=scale).partial_fit(X, y, sample_weight=weights)
    by_hand = clone(rival).partial_fit(scaler.transform(X), y, sample_weight=weights)
    assert np.array_equal(model.decision_function(X), by_hand.decision_function(scaler.transform(X)))


@every(RIVALS)
def test_a_scale_changes_what_is_learned(rival):
    X, y, _ = make_table()
    plain, scaled = (
        clone(rival).set_params(scale=scale).fit(X, y).decision_function(X) for scale in (None, "standard")
    )
    assert not np.array_equal(plain, scaled)


@every({name: rival for name, rival in RIVALS.items() if "gamma" in rival.get_params() and "own" not in name})
def test_gamma_is_learned_from_scaled_rows(rival):
    X, y, _ = make_table()
    model = clone(rival).set_params(scale="standard").fit(X, y)
    assert model.gamma_ == clone(rival).fit(StandardScaler().fit_transform(X), y).gamma_


@every(RIVALS)
def test_partial_fit_after_fit_keeps_the_scale_of_fit(rival):
    X, y, _ = make_table()
    scaler = StandardScaler().fit(X[:100])
    model = clone(rival).set_params(scale="standard").fit(X[:100], y[:100]).partial_fit(X[100:], y[100:])
    by_hand = clone(rival).fit(scaler.transform(X[:100]), y[:100]).partial_fit(scaler.transform(X[100:]), y[100:])
    assert np.array_equal(model.decision_function(X), by_hand.decision_function(scaler.transform(X)))


@every(RIVALS)
def test_fit_forgets_the_scale_learned_before(rival):
    X, y, _ = make_table()
    model = clone(rival).set_params(scale="minmax").fit(1000 * X, y).fit(X, y)
    fresh = clone(rival).set_params(scale="minmax").fit(X, y)
    assert np.array_equal(model.decision_function(X), fresh.decision_function(X))
    assert np.array_equal(model.set_params(scale=None).fit(X, y).decision_function(X), scores_without_scale(rival))


def scores_without_scale(rival):
    X, y, _ = make_table()
    return clone(rival).fit(X, y).decision_function(X)


# Streams, forms, copies


@every(RIVALS)
@every_scale
@pytest.mark.parametrize("split", [0, 1, 2])
def test_any_cut_of_a_stream_gives_the_same_model(split, scale, rival):
    X, y, weights = make_table()
    rival = clone(rival).set_params(scale=scale)
    parts = feed(clone(rival), bounds_of(len(y), split), X, y, weights)
    whole = clone(rival).partial_fit(X, y, sample_weight=weights)
    assert np.array_equal(parts.decision_function(X), whole.decision_function(X))
    assert parts.n_support_ == whole.n_support_


@every(RIVALS)
def test_rows_are_held_back_until_a_scale_can_be_learned(rival):
    X, y, _ = make_table()
    model = clone(rival).set_params(scale="maxabs").partial_fit(X[: N_INITIAL - 1], y[: N_INITIAL - 1])
    assert model.n_support_ == 0
    assert model.partial_fit(X[N_INITIAL - 1 :], y[N_INITIAL - 1 :]).n_support_ > 0


@pytest.mark.parametrize("learner", [OGDClassifier, NOGDClassifier, FOGDClassifier, AdaRakerClassifier])
def test_unless_told_otherwise_a_scale_is_learned_from_1000_rows(learner):
    X, y = make_rows(1000)
    model = learner(scale="standard", random_state=0).partial_fit(X[:-1], y[:-1])
    assert model.n_support_ == 0
    assert model.partial_fit(X[-1:], y[-1:]).n_support_ > 0


@every({name: rival for name, rival in RIVALS.items() if "own" not in name})
def test_maxabs_of_csr_equals_maxabs_of_dense_rows(rival):
    X, y, _ = make_table()
    X = X * (np.random.default_rng(3).random(X.shape) < 0.5)
    rival = clone(rival).set_params(scale="maxabs")
    dense, csr = (clone(rival).fit(form(X), y).decision_function(form(X)) for form in (np.asarray, sparse.csr_array))
    np.testing.assert_allclose(csr, dense, rtol=1e-9, atol=1e-9)


@every(RIVALS)
@pytest.mark.parametrize("scale", ["minmax", "maxabs"])  # not standard: the order of additions rounds its means
def test_blocks_change_nothing(scale, rival, tiny_blocks):
    X, y, _ = make_table(60)
    scaler = SCALERS[scale]().fit(X)
    model = clone(rival).set_params(scale=scale).fit(X, y)
    by_hand = clone(rival).fit(scaler.transform(X), y)
    assert np.array_equal(model.decision_function(X), by_hand.decision_function(scaler.transform(X)))


@every(RIVALS)
@pytest.mark.parametrize("n_rows", [30, 100])
@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_a_copy_goes_on_as_the_model_would(duplicate, n_rows, rival):
    X, y, _ = make_table()
    model = clone(rival).set_params(scale="standard").partial_fit(X[:n_rows], y[:n_rows])
    copied = duplicate(model).partial_fit(X[n_rows:], y[n_rows:])
    assert np.array_equal(copied.decision_function(X), model.partial_fit(X[n_rows:], y[n_rows:]).decision_function(X))


# Bad input


@every(RIVALS)
@pytest.mark.parametrize("scale", ["minmax", "standard"])
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_a_scale_that_moves_zeros_is_refused_for_sparse_rows(method, scale, rival):
    X, y, _ = make_table()
    model = clone(rival).set_params(scale=scale)
    message = f"^scale must be None or \"maxabs\" for sparse X, whose zeros stay zeros; got '{scale}'"
    with pytest.raises(ValueError, match=message):
        getattr(model, method)(sparse.csr_array(X), y)
    assert is_unfitted(model)


@every(RIVALS)
def test_sparse_rows_after_a_scale_that_moves_zeros_leave_a_model_as_it_was(rival):
    X, y, _ = make_table()
    model = clone(rival).set_params(scale="standard").fit(X, y)
    before = model.decision_function(X)
    for call in (lambda: model.partial_fit(sparse.csr_array(X), y), lambda: model.predict(sparse.csr_array(X))):
        with pytest.raises(ValueError, match="X must be dense"):
            call()
    assert np.array_equal(model.decision_function(X), before)


CHI2 = {"OGD": OGDClassifier("chi2", random_state=0), "NOGD": NOGDClassifier("chi2", n_landmarks=20, random_state=0)}


@every(CHI2)
def test_negative_rows_serve_a_kernel_that_refuses_them_once_they_are_scaled(rival):
    X, y, _ = make_table()
    with pytest.raises(
        ValueError, match=r'^X must not be negative for kernel="chi2"; got -[\d.]+\. Give scale="minmax"\.'
    ):
        clone(rival).fit(X, y)
    assert np.isfinite(clone(rival).set_params(scale="minmax").fit(X, y).decision_function(X)).all()


@every(CHI2)
def test_rows_that_are_negative_once_scaled_are_refused(rival):
    X, y, _ = make_table()
    with pytest.raises(ValueError, match=r'got -[\d.]+ after scaling\. Give scale="minmax"\.'):
        clone(rival).set_params(scale="standard").fit(X, y)
    model = clone(rival).set_params(scale="minmax").fit(X, y)
    with pytest.raises(ValueError, match=r"got -1 after scaling\. Clip it to the range that scale has learned\."):
        model.predict(X - [256, 0, 0])


KERNELS = {
    "unfitted": lambda X: IsolationKernel(),
    "fitted": make_kernel,
    "frozen": lambda X: FrozenEstimator(make_kernel(X)),
}


@pytest.mark.parametrize("make", KERNELS.values(), ids=KERNELS)
def test_a_scale_along_with_an_isolation_kernel_is_an_error(make):
    X, y = make_rows(50)
    with pytest.raises(
        ValueError, match=r"^scale must be None for an IsolationKernel, which has its own; got 'minmax'"
    ):
        OGDClassifier(make(X), scale="minmax").fit(X, y)


@every(RIVALS)
def test_values_too_large_to_be_scaled_leave_a_model_as_it_was(rival):
    X, y, _ = make_table()
    model = clone(rival).set_params(scale="maxabs").fit(1e-10 * X, y)
    before = model.decision_function(1e-10 * X)
    with pytest.raises(ValueError, match=r"^scale must leave X finite"):
        model.partial_fit(1e300 * X, y)
    assert np.array_equal(model.decision_function(1e-10 * X), before)
