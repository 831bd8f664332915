"""Small rows, kernels and comparisons that the learners' tests share."""

from __future__ import annotations

import functools
import itertools

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from isokern import IKOGDClassifier, IsolationKernel

LOSSES = ["hinge", "squared_hinge", "logistic"]
# Not those of "auto", with which some scores are exactly 1 but for rounding: then rounding decides what is learned.
RATES = {"constant": 0.47, "decaying": 0.93, "adagrad": 1.7}
SMALL = {"n_partitionings": 6, "n_cells": 8, "random_state": 0}
PAPER = {"schedule": "constant", "average": False}


def make_rows(n, n_classes=2):
    """Return rows and noisy labels 0, 1, ..."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    edges = np.quantile(X[:, 0], np.arange(1, n_classes) / n_classes)
    return X, np.searchsorted(edges, X[:, 0] + 0.5 * rng.normal(size=n))


def make_stream(n=120, n_classes=3):
    """Return rows, labels and weights."""
    return *make_rows(n, n_classes), np.random.default_rng(2).uniform(0.1, 2, n)


def make_kernel(X, **parameters):
    """Return a small fitted kernel; for the same rows and parameters it is the same object, to save time."""
    return _make_kernel(X.tobytes(), X.shape, **SMALL | parameters)


@functools.cache
def _make_kernel(data, shape, **parameters):
    return IsolationKernel(**parameters).fit(np.frombuffer(data).reshape(shape))


def stream_learner(**options):
    """Return a learner that draws its map from the first 50 rows."""
    return IKOGDClassifier(n_initial=50, **SMALL, **options)


def one_row(n_partitionings=4, **parameters):
    """Return the paper's learner, which has seen nothing yet, and the cells of one row."""
    X, _ = make_rows(50)
    kernel = make_kernel(X, n_partitionings=n_partitionings)
    return IKOGDClassifier(kernel=kernel, **PAPER | parameters), kernel.apply(X[:1])


def feed(model, sizes, X, y, weights):
    """Give a model rows in calls of these sizes, the rest in one call."""
    cuts = np.cumsum(sizes)
    bounds = [0, *cuts[cuts < len(y)].astype(int), len(y)]
    for begin, end in itertools.pairwise(bounds):
        model.partial_fit(X[begin:end], y[begin:end], sample_weight=weights[begin:end])
    return model


def weights_of(model):
    """Return the weights that a primal model predicts with."""
    weights, clock = model.learned_.model, model.learned_.model.clock
    if weights.sums is None:
        return clock.scale * weights.values
    return (clock.scale_sum * weights.values - weights.sums) / clock.rounds


def same_model(one, other):
    """Return whether two models have learned the same, to the last bit."""
    tables = [
        (getattr(one.learned_.model, name), getattr(other.learned_.model, name))
        for name in ("values", "sums", "squares")
    ]
    is_same = [a is b is None or np.array_equal(a, b) for a, b in tables]
    return all(is_same) and one.learned_.model.clock.state() == other.learned_.model.clock.state()


def assert_close(actual, expected):
    """Check that values agree but for rounding."""
    np.testing.assert_allclose(actual, expected, rtol=1e-9, atol=1e-11 * max(1.0, np.abs(expected).max()))


def is_unfitted(model):
    try:
        check_is_fitted(model)
    except NotFittedError:
        return True
    return False
