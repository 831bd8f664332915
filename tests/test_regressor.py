"""IKOGDRegressor: the same loop for numbers, about their running mean."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.exceptions import NotFittedError

import reference
from isokern import IKOGDRegressor
from learning import RATES, SMALL, assert_close, feed, is_unfitted, make_kernel, same_model, weights_of

LOSSES = ["squared", "huber", "epsilon_insensitive"]


def make_numbers(n=120):
    """Return rows, targets and weights; the first target is 0, the mean of no targets."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=n)
    y[0] = 0.0
    return X, y, rng.uniform(0.1, 1.5, n)


# The loop equals its twin


def means_before(y, weights):
    """Return the mean of the targets before each row, 0 before the first."""
    return np.array([0.0, *(np.average(y[:r], weights=weights[:r]) for r in range(1, len(y)))])


def train_both(weighted, **options):
    X, y, weights = make_numbers(60)
    weights = weights if weighted else None
    kernel, rate = make_kernel(X), RATES[options["schedule"]]
    cells = kernel.apply(X)
    model = IKOGDRegressor(kernel=kernel, learning_rate=rate, **options).partial_fit_cells(cells, y, weights)
    residuals = y - means_before(y, np.ones(60) if weights is None else weights)
    options |= {"rate": rate, "row_weights": weights}
    twin = reference.learn_online(cells, kernel.map_.starts, residuals[:, None], **options)
    return X, y, weights, model, twin


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("shrinkage", [0.0, 0.1])
@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("schedule", RATES)
@pytest.mark.parametrize("loss", LOSSES)
def test_the_weights_equal_those_of_the_twin(loss, schedule, average, shrinkage, weighted):
    options = {"loss": loss, "schedule": schedule, "average": average, "shrinkage": shrinkage, "epsilon": 0.3}
    *_, model, (weights, _, _) = train_both(weighted, **options)
    assert_close(weights_of(model), weights)


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_a_prediction_is_the_mean_of_the_targets_plus_that_of_the_cells_weights(weighted):
    X, y, row_weights, model, (weights, _, _) = train_both(weighted, loss="squared", schedule="constant", average=True)
    features = model.kernel_.transform(X) / np.sqrt(6)
    assert_close(model.predict(X), np.average(y, weights=row_weights) + (features @ weights)[:, 0])


@pytest.mark.parametrize("loss", LOSSES)
def test_the_number_of_support_vectors_equals_that_of_the_twin(loss):
    *_, model, (_, _, n_support) = train_both(False, loss=loss, schedule="constant", epsilon=0.3)
    assert model.n_support_ == n_support


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("schedule", ["constant", "decaying"])
@pytest.mark.parametrize("loss", LOSSES)
def test_primal_naive_and_dual_predict_the_same(loss, schedule, average):
    X, y, weights = make_numbers()
    options = {"kernel": make_kernel(X), "loss": loss, "schedule": schedule, "average": average, "random_state": 0}
    options["learning_rate"] = RATES[schedule]
    primal, naive, dual = (
        IKOGDRegressor(evaluation=e, n_passes=2, **options).fit(X, y, weights).predict(X)
        for e in ("primal", "naive", "dual")
    )
    np.testing.assert_allclose(naive, primal, rtol=0, atol=1e-10)
    np.testing.assert_allclose(dual, primal, rtol=0, atol=1e-10)


# Streams


def stream_learner(**options):
    return IKOGDRegressor(n_initial=50, **SMALL, **options)


@given(
    options=st.sampled_from([{}, {"loss": "huber", "average": False}, {"schedule": "adagrad", "shrinkage": 0.01}]),
    sizes=st.lists(st.integers(1, 70), max_size=6),
)
def test_any_cut_of_a_stream_gives_the_same_weights(options, sizes):
    numbers = make_numbers()
    whole, parts = feed(stream_learner(**options), [], *numbers), feed(stream_learner(**options), sizes, *numbers)
    assert same_model(whole, parts)


@pytest.mark.parametrize("size", [1, 7, 60])
def test_any_cut_of_a_stream_gives_the_same_predictions(size):
    X, y, weights = make_numbers()
    whole = feed(stream_learner(), [], X, y, weights)
    parts = feed(stream_learner(), [size] * 120, X, y, weights)
    assert np.array_equal(whole.predict(X), parts.predict(X))


def test_with_a_fitted_kernel_partial_fit_equals_one_pass_of_fit_in_order():
    X, y, weights = make_numbers()
    kernel = make_kernel(X)
    fitted = IKOGDRegressor(kernel=kernel, shuffle=False).fit(X, y, weights)
    assert same_model(fitted, IKOGDRegressor(kernel=kernel).partial_fit(X, y, weights))


def test_training_from_cells_equals_training_from_rows():
    X, y, weights = make_numbers()
    kernel = make_kernel(X)
    rows = IKOGDRegressor(kernel=kernel).partial_fit(X, y, weights)
    cells = IKOGDRegressor(kernel=kernel).partial_fit_cells(kernel.apply(X), y, weights)
    assert np.array_equal(rows.predict(X), cells.predict_cells(kernel.apply(X)))


def test_dense_and_sparse_rows_teach_the_same():
    X, y, _ = make_numbers()
    X = np.where(X > 0, X, 0.0)
    dense, csr = (IKOGDRegressor(**SMALL).fit(form(X), y) for form in (np.asarray, sparse.csr_array))
    assert same_model(dense, csr)


def test_the_same_seed_gives_the_same_weights():
    X, y, _ = make_numbers()
    assert same_model(IKOGDRegressor(**SMALL).fit(X, y), IKOGDRegressor(**SMALL).fit(X, y))


@pytest.mark.parametrize("n_initial", [50, 200])
def test_the_mean_is_that_of_the_targets_so_far_held_or_learned(n_initial):
    X, y, _ = make_numbers()
    model = IKOGDRegressor(n_initial=n_initial, **SMALL).partial_fit(X[:70], y[:70]).partial_fit(X[70:], y[70:])
    assert model.mean_ == pytest.approx(y.mean())


@pytest.mark.parametrize("n_initial", [50, 200])
def test_the_mean_is_weighted_as_the_rows_are(n_initial):
    X, y, weights = make_numbers()
    model = IKOGDRegressor(n_initial=n_initial, **SMALL).partial_fit(X, y, weights)
    assert model.mean_ == pytest.approx(np.average(y, weights=weights))


def test_several_passes_leave_the_mean_as_it_is():
    X, y, _ = make_numbers()
    assert IKOGDRegressor(n_passes=4, **SMALL).fit(X, y).mean_ == pytest.approx(y.mean())


def test_while_rows_are_held_their_mean_is_predicted():
    X, y, _ = make_numbers(40)
    model = IKOGDRegressor().partial_fit(X[:30], y[:30]).partial_fit(X[30:], y[30:])
    np.testing.assert_allclose(model.predict(X), np.full(40, y.mean()))


# What it is good for


@pytest.mark.parametrize("options", [{}, {"loss": "huber"}, {"schedule": "adagrad", "loss": "epsilon_insensitive"}])
def test_a_smooth_function_is_learned(options):
    X = np.random.default_rng(0).uniform(-3, 3, (3000, 1))
    y = np.sin(2 * X[:, 0])
    model = IKOGDRegressor(n_cells=64, n_passes=5, random_state=0, **options).fit(X[:2000], y[:2000])
    assert model.score(X[2000:], y[2000:]) > 0.9


@pytest.mark.parametrize("offset", [-50.0, 1000.0])
def test_an_offset_of_all_targets_moves_every_prediction_by_it(offset):
    X, y, _ = make_numbers()
    plain, moved = (IKOGDRegressor(**SMALL).fit(X, targets) for targets in (y, y + offset))
    np.testing.assert_allclose(moved.predict(X), plain.predict(X) + offset, rtol=0, atol=1e-8)


def test_a_constant_target_is_predicted_exactly():
    X, _, _ = make_numbers()
    model = IKOGDRegressor(**SMALL).fit(X, np.full(120, 7.0))
    np.testing.assert_allclose(model.predict(X), 7.0)


def test_a_model_does_not_grow_with_its_stream():
    X, y, _ = make_numbers(20_000)
    model = IKOGDRegressor(**SMALL).partial_fit(X[:1000], y[:1000])
    before = len(pickle.dumps(model))
    after = len(pickle.dumps(model.partial_fit(X[1000:], y[1000:])))
    assert abs(after - before) < 100  # larger counts take a few more bytes


# Bad input


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("loss", "hinge"),
        ("epsilon", -0.1),
        ("epsilon", np.nan),
        ("epsilon", "small"),
        ("epsilon", None),
        ("schedule", "optimal"),
        ("evaluation", "fast"),
        ("learning_rate", 0),
        ("shrinkage", 2.0),
        ("n_passes", 0),
        ("n_initial", 1),
        ("n_cells", 1),
    ],
)
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_a_bad_parameter_is_named_in_the_error_and_nothing_is_learned(method, name, value):
    X, y, _ = make_numbers()
    model = IKOGDRegressor(**{name: value})
    with pytest.raises(ValueError, match=f"^{name} must be"):
        getattr(model, method)(X, y)
    assert is_unfitted(model)


def spoiled(array, value):
    array = array.copy()
    array.flat[7] = value
    return array


BAD_ROWS = {
    "NaN": (lambda X, y, w: (spoiled(X, np.nan), y, w), "X must be finite; got NaN in column 1, first in row 2"),
    "NaN among targets": (lambda X, y, w: (X, spoiled(y, np.nan), w), "Input y contains NaN"),
    "infinite target": (lambda X, y, w: (X, spoiled(y, np.inf), w), "Input y contains infinity"),
    "text": (lambda X, y, w: (X, np.full(len(y), "a"), w), "could not convert string to float"),
    "no targets": (lambda X, y, w: (X, None, w), "requires y to be passed, but the target y is None"),
    "too few targets": (lambda X, y, w: (X, y[:-1], w), "inconsistent numbers of samples"),
    "two columns of targets": (lambda X, y, w: (X, np.stack([y, y], axis=1), w), "y should be a 1d array"),
    "negative weight": (lambda X, y, w: (X, y, spoiled(w, -1.0)), "(?i)negative"),
    "zero weights": (lambda X, y, w: (X, y, 0 * w), "(?i)zero"),
}
every_bad_row = pytest.mark.parametrize(("spoil", "message"), BAD_ROWS.values(), ids=BAD_ROWS)


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@every_bad_row
def test_a_rejected_first_call_leaves_the_model_unfitted(spoil, message, method):
    model = stream_learner()
    with pytest.raises(ValueError, match=message):
        getattr(model, method)(*spoil(*make_numbers()))
    assert is_unfitted(model)


@pytest.mark.parametrize("n_rows", [20, 60], ids=["holding rows", "learning"])
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@every_bad_row
def test_a_rejected_later_call_leaves_the_model_as_it_was(spoil, message, method, n_rows):
    model = feed(stream_learner(), [], *make_numbers(n_rows))
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match=message):
        getattr(model, method)(*spoil(*make_numbers()))
    assert pickle.dumps(model) == before


def test_columns_that_changed_between_calls_are_an_error():
    X, y, _ = make_numbers()
    model = stream_learner().partial_fit(X, y)
    with pytest.raises(ValueError, match="X has 2 features, but IKOGDRegressor is expecting 3 features"):
        model.partial_fit(X[:, :2], y)


@pytest.mark.parametrize("method", ["predict", "predict_cells"])
def test_an_unfitted_model_says_so(method):
    with pytest.raises(NotFittedError):
        getattr(IKOGDRegressor(), method)(np.zeros((2, 3)))
