"""Models of every kind that can be a forest, rows that are hard for them, and a slow twin of their scores."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
from scipy import sparse

from isokern import (
    IKSVC,
    AdaptiveIKClassifier,
    AdaptiveIKRegressor,
    IKOGDClassifier,
    IKOGDClassifierCV,
    IKOGDRegressor,
    IsolationKernel,
)

FEW = {"n_partitionings": 11, "random_state": 0}  # not a multiple of the number of partial sums
PAPER = {"schedule": "constant", "n_passes": 1, "shuffle": False}


@cache
def numbers(n=400, d=5, missing=0.0):
    """Return rows of normal numbers, some of them missing."""
    rng = np.random.default_rng(d)
    X = rng.normal(size=(n, d))
    X[rng.random(X.shape) < missing] = np.nan
    return X


@cache
def sides(d=5):
    """Return a class for each row that no linear model finds."""
    X = numbers(d=d)
    return (X[:, 0] * X[:, 1] > 0).astype(int)


@cache
def kinds():
    """Return one of four classes for each row."""
    X = numbers()
    return np.where(X[:, 0] > 0, 2, 0) + (X[:, 1] > 0.3)


@cache
def heights():
    """Return a number for each row."""
    X = numbers()
    return 1000.0 + np.sin(X[:, 0]) * X[:, 1]


def far(X):
    """Return rows whose columns have other offsets and units."""
    return X * [1e-3, 1.0, 100.0, 1e6, 7.0] + [5.0, -1e6, 0.1, 1e9, 0.0]


def powers(X):
    """Return rows that make deep trees: half of all points are in the upper half of a column, again and again."""
    return np.exp2(8 * X)


def words():
    """Return a table with a categorical column and missing values."""
    X = numbers(missing=0.1)
    names = np.array(["cook", "baker", "smith", "Müller", "a longer name", None], dtype=object)
    return pd.DataFrame(X[:, :4], columns=list("abcd")).assign(job=names[np.arange(len(X)) * 7 % 6])


MODELS = {
    "two classes": lambda: IKOGDClassifier(**FEW).fit(numbers(), sides()),
    "text labels": lambda: IKOGDClassifier(**FEW).fit(numbers(), np.array(["süß", "sour", 'a "b"', "??/"])[kinds()]),
    "truth labels": lambda: IKOGDClassifier(**FEW).fit(numbers(), sides() > 0),
    "float labels": lambda: IKOGDClassifier(**FEW).fit(numbers(), np.array([-1.0, 1.0])[sides()]),
    "many classes": lambda: IKOGDClassifier(**FEW).fit(numbers(), kinds()),
    "logistic, two classes": lambda: IKOGDClassifier(loss="logistic", **FEW).fit(numbers(), sides()),
    "logistic, many classes": lambda: IKOGDClassifier(loss="logistic", **FEW).fit(numbers(), kinds()),
    "paper's learner": lambda: IKOGDClassifier(average=False, **PAPER, **FEW).fit(numbers(), sides()),
    "shrinking weights": lambda: IKOGDClassifier(shrinkage=1e-3, **PAPER, **FEW).fit(numbers(), kinds()),
    "all scales": lambda: IKOGDClassifier(n_scales=3, linear=False, **FEW).fit(numbers(), sides()),
    "linear and cells": lambda: IKOGDClassifier(n_scales=2, linear=True, schedule="adagrad", **FEW).fit(
        far(numbers()), kinds()
    ),
    "linear alone": lambda: IKOGDClassifier(column_weights=None, **FEW).fit(
        numbers(d=30), numbers(d=30).sum(axis=1) > 0
    ),
    "sparse rows": lambda: IKOGDClassifier(linear=True, schedule="adagrad", **FEW).fit(
        sparse.csr_array(np.maximum(numbers(), 0)), sides()
    ),
    "missing values": lambda: IKOGDClassifier(linear=True, schedule="adagrad", **FEW).fit(
        numbers(missing=0.2), sides()
    ),
    "standard scale": lambda: IKOGDClassifier(scale="standard", **FEW).fit(far(numbers()), sides()),
    "minmax scale": lambda: IKOGDClassifier(scale="minmax", **FEW).fit(far(numbers()), sides()),
    "deep trees": lambda: IKOGDClassifier(n_cells=256, schedule="adagrad", **FEW).fit(powers(numbers()), sides()),
    "search": lambda: IKOGDClassifierCV(n_cells=(4, 32), cv=2, **FEW).fit(numbers(), sides()),
    "stream": lambda: IKOGDClassifier(**FEW).partial_fit(numbers(), kinds()),
    "support vector machine": lambda: IKSVC(**FEW).fit(numbers(), kinds()),
    "machine on one scale": lambda: IKSVC(n_scales=1, linear=False, C=1.0, **FEW).fit(numbers(), sides()),
    "regressor": lambda: IKOGDRegressor(**FEW).fit(numbers(), heights()),
    "quantiles": lambda: IKOGDRegressor(loss="quantile", quantiles=(0.9, 0.1, 0.5), **FEW).fit(numbers(), heights()),
    "outputs": lambda: IKOGDRegressor(**FEW).fit(numbers(), np.column_stack([heights(), -1e6 * heights()])),
}
# Models whose scores a forest gives up to rounding: it folds two sums into one, or adds in another order.
ROUNDED = {
    "averaged weights": lambda: IKOGDClassifier(average=True, **PAPER, **FEW).fit(numbers(), sides()),
    "averaged regressor": lambda: IKOGDRegressor(average=True, **PAPER, **FEW).fit(numbers(), heights()),
    "naive evaluation": lambda: IKOGDClassifier(evaluation="naive", **PAPER, **FEW).fit(numbers(), sides()),
    "adaptive classifier": lambda: AdaptiveIKClassifier(linear=True, **FEW).fit(numbers(), kinds()),
    "adaptive regressor": lambda: AdaptiveIKRegressor(linear=False, **FEW).fit(numbers(), heights()),
}
KERNELS = {
    "kernel, one scale": lambda: IsolationKernel(n_cells=32, **FEW).fit(numbers(missing=0.2)),
    "kernel, all scales": lambda: IsolationKernel(n_cells=64, n_scales="auto", **FEW).fit(numbers()),
    "kernel, few leaves": lambda: IsolationKernel(n_cells=64, max_depth=3, **FEW).fit(numbers()),
    "kernel, equal rows": lambda: IsolationKernel(n_cells=8, **FEW).fit(np.repeat(numbers()[:2], 50, axis=0)),
    "kernel, scaled": lambda: IsolationKernel(n_cells=32, scale="minmax", **FEW).fit(far(numbers())),
}


@cache
def fitted(name):
    """Return a model, trained once."""
    return (MODELS | ROUNDED | KERNELS)[name]()


def trees_of(model):
    """Return the trees of a model, or None."""
    forest = model.forest()
    if hasattr(forest, "cells"):
        return forest.trees
    return None if forest.leaves is None else forest.leaves.trees


def hard_rows(model, dtype=np.float64, n=200):
    """Return rows of numbers at thresholds of the model's trees, next to them, missing and at random."""
    rng, trees, d = np.random.default_rng(1), trees_of(model), model.n_features_in_
    rows = (10.0 ** rng.integers(-2, 3, size=(n, d)) * rng.normal(size=(n, d))).astype(dtype)
    if trees is not None:
        for j in range(d):
            at = trees.threshold[~trees.is_leaf & (trees.column == j) & np.isfinite(trees.threshold)]
            if len(at):
                near = rng.choice(at, n).astype(dtype)
                rows[:, j] = np.choose(
                    rng.integers(5, size=n),
                    [near, np.nextafter(near, dtype(np.inf)), np.nextafter(near, dtype(-np.inf)), near, rows[:, j]],
                )
    rows[rng.random((n, d)) < 0.05] = np.nan
    rows[0] = np.nan
    return rows


# -- the twin


def leaves_of(trees, X):
    """Return the number of each row's leaf in each tree, (n, t)."""
    found, rows = np.empty((len(X), trees.n_trees), dtype=np.int64), np.arange(len(X))
    for i, root in enumerate(trees.starts[:-1]):
        node = np.full(len(X), root)
        while (moving := trees.left[node] >= 0).any():
            values = X[rows, trees.column[node]]
            right = np.where(np.isnan(values), trees.missing_right[node], ~(values < trees.threshold[node]))
            node = np.where(moving, trees.left[node] + right, node)
        found[:, i] = -1 - trees.left[node]
    return found


def partial_sums(terms):
    """Return the sums of terms, (n, number of terms, n_scores), over the terms in the order of the core."""
    parts = np.zeros((4, len(terms), terms.shape[2]))
    for i in range(terms.shape[1]):
        parts[i % 4] += terms[:, i]
    return (parts[0] + parts[1]) + (parts[2] + parts[3])


def scores_of(forest, X):
    """Return the scores of dense rows without categories, (n, n_scores)."""
    X = np.asarray(X, dtype=np.float64)
    scores = np.zeros((len(X), forest.n_scores))
    if forest.leaves is not None:
        sums = partial_sums(forest.leaves.values[leaves_of(forest.leaves.trees, X)])
        scores = sums * forest.leaves.multiplier / forest.leaves.divisor
    if forest.linear is not None:
        linear = forest.linear
        z = np.clip((X - linear.offset) * linear.factor, -linear.limit, linear.limit)
        z = np.column_stack([np.nan_to_num(z), np.full(len(X), linear.constant)]).astype(np.float32)
        scores = scores + partial_sums(z[:, :, None].astype(np.float64) * linear.weights)
    return scores + forest.intercept


def model_scores(model, X):
    """Return the scores of a model, (n, n_scores), before quantiles are sorted."""
    scores = model.decision_function(X) if hasattr(model, "classes_") else model.predict(X)
    return scores.reshape(len(X), -1)
