"""Rows, kernels and comparisons that the tests of the learners share."""

from __future__ import annotations

import functools
import itertools

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import RegressorMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

import reference_rivals
from isokern import (
    IKSVC,
    AdaRakerClassifier,
    FOGDClassifier,
    IKOGDClassifier,
    IKOGDClassifierCV,
    IKOGDRegressor,
    IKOGDRegressorCV,
    IsolationKernel,
    NOGDClassifier,
    OGDClassifier,
)
from isokern.learners.rival import RivalClassifier

LOSSES = ["hinge", "squared_hinge", "logistic"]
# Not the rates of "auto", with which some scores are exactly 1, so that rounding decides what is learned.
RATES = {"constant": 0.47, "decaying": 0.93, "adagrad": 1.7}
SMALL = {"n_partitionings": 6, "n_cells": 8, "random_state": 0}
PAPER = {"schedule": "constant", "average": False}
FORMS = {"dense": np.asarray, "csr": sparse.csr_array}


def custom_kernel(X, Z, gamma=0.7):
    """Compute the Laplacian kernel as a user might."""
    X, Z = (table.toarray() if sparse.issparse(table) else table for table in (X, Z))
    return reference_rivals.kernel("laplacian", X, Z, gamma)


# Estimators that all tests of common behaviour run on

G = {"gamma": 0.7, "random_state": 0}
BUFFERED = {"n_initial": 50, **SMALL}
DUAL = {"evaluation": "dual", "schedule": "constant", "average": True}
BATCH = {
    "IKSVC": IKSVC(**SMALL),
    "IKOGD, CV": IKOGDClassifierCV(n_partitionings=6, n_cells=(2, 8), cv=3, random_state=0),
    "IKOGD regressor, CV": IKOGDRegressorCV(n_partitionings=6, n_cells=(2, 8), cv=3, random_state=0),
}
IKOGD = {
    "IKOGD": IKOGDClassifier(**BUFFERED),
    "IKOGD, voronoi": IKOGDClassifier("voronoi", scale="maxabs", loss="logistic", **BUFFERED),
    "IKOGD, dual": IKOGDClassifier(**DUAL, **BUFFERED),
    "IKOGD, balanced": IKOGDClassifier(class_weight="balanced", **BUFFERED),
    "IKOGD regressor": IKOGDRegressor(**BUFFERED),
    "IKOGD regressor, dual": IKOGDRegressor(**DUAL, **BUFFERED),
    "IKOGD regressor, averaged": IKOGDRegressor(average=True, **BUFFERED),
    "IKOGD regressor, quantiles": IKOGDRegressor(loss="quantile", quantiles=(0.2, 0.7), **BUFFERED),
}
RIVALS = {
    "OGD": OGDClassifier(**G),
    "OGD, gaussian, logistic": OGDClassifier("gaussian", loss="logistic", **G),
    "OGD, polynomial, squared hinge": OGDClassifier(
        "polynomial", loss="squared_hinge", learning_rate=1e-3, gamma=0.1, degree=2, random_state=0
    ),
    "OGD, custom kernel": OGDClassifier(custom_kernel, random_state=0),
    **{f"OGD, {strategy}": OGDClassifier(budget=15, strategy=strategy, **G) for strategy in reference_rivals.BUDGETS},
    "OGD, custom kernel, budget": OGDClassifier(custom_kernel, budget=15, random_state=0),
    "NOGD": NOGDClassifier(n_landmarks=60, **G),
    "NOGD, full rank": NOGDClassifier("gaussian", n_landmarks=60, rank=None, average=False, **G),
    "FOGD": FOGDClassifier(n_frequencies=30, **G),
    "FOGD, orthogonal": FOGDClassifier(n_frequencies=30, features="orthogonal", loss="logistic", **G),
    "FOGD, laplacian": FOGDClassifier("laplacian", n_frequencies=30, average=False, **G),
    "AdaRaker": AdaRakerClassifier((0.1, 0.5, 2.0), n_directions=7, random_state=0),
    "AdaRaker, cold": AdaRakerClassifier((0.1, 0.5, 2.0), n_directions=7, restart="cold", random_state=0),
}
FROM_DATA = {  # rivals that learn gamma from their first 50 rows
    f"{name}, gamma from data": clone(RIVALS[name]).set_params(gamma="data", n_initial=50)
    for name in ("OGD", "OGD, gaussian, logistic", "OGD, bpas", "OGD, random", "NOGD", "FOGD", "FOGD, laplacian")
}
SCALED = {  # rivals that learn a scaling from their first 50 rows
    f"{name}, scaled": clone(RIVALS[name]).set_params(scale="maxabs", n_initial=50)
    for name in ("OGD", "OGD, custom kernel", "OGD, bpas", "NOGD", "FOGD", "AdaRaker")
}
FEW_RIVALS = {name: RIVALS[name] for name in ("OGD", "OGD, bpas", "NOGD", "FOGD", "AdaRaker")}
ONLINE = IKOGD | RIVALS | SCALED
LEARNERS = BATCH | ONLINE


def every(name, table):
    """Parametrise a test by the values of a dict, with its keys as ids."""
    return pytest.mark.parametrize(name, list(table.values()), ids=list(table))


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
    """Return a small fitted kernel; the same object for the same rows and parameters, to save time."""
    return _make_kernel(X.tobytes(), X.shape, **SMALL | parameters)


@functools.cache
def _make_kernel(data, shape, **parameters):
    return IsolationKernel(**parameters).fit(np.frombuffer(data).reshape(shape))


def stream_learner(**options):
    """Return a classifier that draws its map from the first 50 rows."""
    return IKOGDClassifier(n_initial=50, **SMALL, **options)


def one_row(n_partitionings=4, **parameters):
    """Return an untrained learner of the paper, and the cells of one row."""
    X, _ = make_rows(50)
    kernel = make_kernel(X, n_partitionings=n_partitionings)
    return IKOGDClassifier(kernel=kernel, **PAPER | parameters), kernel.apply(X[:1])


def feed(model, sizes, X, y, weights=None):
    """Call partial_fit with blocks of rows of these sizes, then with the rest."""
    cuts = np.cumsum(sizes)
    options = {"classes": np.unique(y)} if isinstance(model, RivalClassifier) else {}
    for begin, end in itertools.pairwise([0, *cuts[cuts < len(y)].astype(int), len(y)]):
        sample_weight = None if weights is None else weights[begin:end]
        model.partial_fit(X[begin:end], y[begin:end], sample_weight=sample_weight, **options)
    return model


def signs(y, n_classes):
    """Return the targets of each score, (n, n_scores), +1 or -1; two classes have one score, for the second."""
    targets = np.where(y[:, None] == np.arange(n_classes), 1.0, -1.0)
    return targets if n_classes > 2 else targets[:, 1:]


def answers(model, X):
    """Return predictions of a regressor or scores of a classifier."""
    return model.predict(X) if isinstance(model, RegressorMixin) else model.decision_function(X)


def weights_of(model):
    """Return the weights that a primal model predicts with."""
    weights, clock = model.learned_.model, model.learned_.model.clock
    if weights.sums is None:
        return clock.scale * weights.values
    return (clock.scale_sum * weights.values - weights.sums) / clock.rounds


def same_model(one, other):
    """Return whether two models have learned the same, bit for bit."""
    pairs = zip(*(getattr(model.learned_, "models", [model.learned_.model]) for model in (one, other)), strict=True)
    return all(_same_weights(first, second) for first, second in pairs)


def _same_weights(first, second):
    tables = [(getattr(first, name), getattr(second, name)) for name in first.in_place]
    is_same = [a is b is None or np.array_equal(a, b) for a, b in tables]
    return all(is_same) and first.clock.state() == second.clock.state()


def assert_close(actual, expected):
    """Check that values are equal up to rounding."""
    np.testing.assert_allclose(actual, expected, rtol=1e-9, atol=1e-11 * max(1.0, np.abs(expected).max()))


def spoiled(array, value):
    """Return a copy of an array with another value in column 1 of its last row, or as the last entry."""
    array = np.array(array)
    array[(-1, 1) if array.ndim == 2 else -1] = value
    return array


def is_unfitted(model):
    try:
        check_is_fitted(model)
    except NotFittedError:
        return True
    return False
