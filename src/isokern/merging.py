"""The weighted mean of learners that share one map: how parts that learned apart become one."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Any

import joblib
import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from isokern import _core
from isokern.feature_map import IsolationKernel
from isokern.learners import IKOGDClassifier, IKOGDRegressor
from isokern.learners.calibration import ScoreWindow
from isokern.learners.classes import is_text
from isokern.learners.weights import CellWeights

Learner = IKOGDClassifier | IKOGDRegressor

# What decides how a model is to be read and how it goes on; all else may differ from part to part.
_ALIKE = ("loss", "epsilon", "schedule", "learning_rate", "shrinkage", "average", "class_weight")


def merge(models: Iterable[Any], weights: ArrayLike | None = None) -> Any:
    """Return the weighted mean of learners that share one map.

    Scores are the mean of the parts' scores. All that steps depend on is averaged, too (AdaGrad's sums of squares, the
    count of rows behind decaying steps, the counts of classes), so that the mean of equal parts is that part, and the
    result goes on with ``partial_fit`` as one of them would. A class that a part has not met counts there as what the
    part learned of classes not seen yet. Probabilities rest on the last rows of each part, in proportion to its weight.

    Parameters
    ----------
    models : iterable of IKOGDClassifier or of IKOGDRegressor
        Learners that have begun to learn, on one fitted kernel or on equal copies of it. They stay as they are.
    weights : array-like of shape (n_models,), default=None
        What each part counts, for example the number of its rows; None means that all count alike.

    Returns
    -------
    model : IKOGDClassifier or IKOGDRegressor
        With the parameters of the first of ``models``.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from isokern import IKOGDClassifier, IsolationKernel, merge
    >>> X, y = load_digits(return_X_y=True)
    >>> kernel = IsolationKernel(random_state=0).fit(X)
    >>> parts = [IKOGDClassifier(kernel=kernel).partial_fit(X[i:1200:4], y[i:1200:4]) for i in range(4)]
    >>> merge(parts).score(X[1200:], y[1200:]) > 0.9
    True
    """
    parts = list(models)
    shares = _shares(weights, len(parts))
    for k, part in enumerate(parts):
        _check_part(part, f"models[{k}]")
    for k, part in enumerate(parts[1:], start=1):
        _check_alike(parts[0], part, f"models[{k}]")
        _check_one_map(parts[0].kernel_, part.kernel_, f"models[{k}]")
    return mean_learner(parts, shares)


def mean_learner(parts: Sequence[Any], shares: NDArray[np.float64]) -> Any:
    """Return the mean of learners that are known to share one map; ``shares`` add up to 1."""
    if isinstance(parts[0], IKOGDClassifier):
        classes = reduce(np.union1d, (part.classes_ for part in parts))
        parts = [_knowing(part, classes) for part in parts]
    merged = copy.copy(parts[0])
    merged._model = _mean_weights([part._model for part in parts], shares)
    if isinstance(merged, IKOGDClassifier):
        merged._counts = _mean_counts([part._counts for part in parts], shares)
        merged._window = _joined_windows([part._window for part in parts], shares)
    else:
        merged._mass = float(shares @ [part._mass for part in parts])
        merged._total = merged._mass * float(shares @ [part.mean_ for part in parts])
    return merged


def _mean_weights(models: Sequence[CellWeights], shares: NDArray[np.float64]) -> CellWeights:
    mean = copy.copy(models[0])
    clocks = [model.clock for model in models]
    rounds = _mean_count([clock.rounds for clock in clocks], shares)
    n_support = _mean_count([clock.n_support for clock in clocks], shares)
    mean.clock = _core.Clock(rounds, n_support)
    mean.values = _mean((model.clock.scale * model.values for model in models), shares)
    if mean.sums is not None:
        # Of a clock whose scale_sum is 0, the averaged weights are -sums / rounds.
        mean.sums = -float(max(1, rounds)) * _mean(map(_averaged, models), shares)
    if mean.squares is not None:
        mean.squares = _mean((_there(model.squares) for model in models), shares)
    return mean


def _averaged(model: CellWeights) -> NDArray[np.float64]:
    return (model.clock.scale_sum * model.values - _there(model.sums)) / max(1, model.clock.rounds)


def _there(table: NDArray[np.float64] | None) -> NDArray[np.float64]:
    assert table is not None
    return table


def _mean(tables: Iterable[NDArray[np.float64]], shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """Add up tables one by one, since there may be many and each is large."""
    total: NDArray[np.float64] | None = None
    for share, table in zip(shares, tables, strict=True):
        total = share * table if total is None else np.add(total, share * table, out=total)
    return _there(total)


def _mean_count(counts: Sequence[int], shares: NDArray[np.float64]) -> int:
    return int(np.rint(shares @ np.asarray(counts, dtype=np.float64)))


def _mean_counts(counts: Sequence[NDArray[np.int64]], shares: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the mean of counts by class; a class that was met anywhere stays one that was met."""
    means = np.rint(shares @ np.asarray(counts, dtype=np.float64)).astype(np.int64)
    return np.maximum(means, np.any(counts, axis=0))


def _joined_windows(windows: Sequence[ScoreWindow], shares: NDArray[np.float64]) -> ScoreWindow:
    """Return a window of the last rows of each, as many as its share."""
    joined = ScoreWindow(windows[0].scores.shape[1])
    for window, share in zip(windows, shares, strict=True):
        n = min(window.n_seen, window.size, int(np.ceil(share * window.size)))
        places = (window.n_seen - n + np.arange(n)) % window.size
        joined.add(window.scores[places], window.classes[places])
    return joined


def _knowing(part: IKOGDClassifier, classes: NDArray[Any]) -> IKOGDClassifier:
    """Return a learner that knows more classes, as if it had met them now; the given one stays as it is."""
    if len(classes) == len(part.classes_):
        return part
    grown = copy.copy(part)
    grown._model, grown._window = copy.copy(part._model), copy.copy(part._window)
    grown._grow(classes)
    return grown


def _shares(weights: ArrayLike | None, n: int) -> NDArray[np.float64]:
    if n == 0:
        raise ValueError("models must be at least 1; got none.")
    if weights is None:
        return np.full(n, 1.0 / n)
    array = np.asarray(weights, dtype=np.float64)
    if array.shape != (n,):
        raise ValueError(f"weights must be one number for each of {n} models; got shape {array.shape}.")
    if not (np.isfinite(array).all() and (array >= 0).all() and array.any()):
        raise ValueError(f"weights must be finite, at least 0 and not all 0; got {array}.")
    return array / array.sum()


def _check_part(part: Any, name: str) -> None:
    if not isinstance(part, Learner):
        raise TypeError(f"models must be IKOGDClassifier or IKOGDRegressor; got {type(part).__name__} as {name}.")
    check_is_fitted(part)
    if not part._has_begun:
        raise ValueError(
            f"models must have begun to learn; {name} still holds its first {part._held.n} rows back. Give it a fitted "
            "kernel, and it begins at once."
        )
    if not isinstance(part._model, CellWeights):
        raise ValueError(f'evaluation must be "primal" or "naive" to be merged; got {part.evaluation!r} in {name}.')
    part._check_map()


def _check_alike(first: Any, part: Any, name: str) -> None:
    if type(part) is not type(first):
        raise TypeError(f"models must be of one class; got {type(first).__name__} and, {name}, {type(part).__name__}.")
    for parameter in _ALIKE:
        expected, value = getattr(first, parameter, None), getattr(part, parameter, None)
        if value != expected:
            raise ValueError(f"{parameter} must be the same in all models; got {expected!r} and, {name}, {value!r}.")
    if isinstance(first, IKOGDClassifier):
        _check_classes(first, part, name)


def _check_classes(first: IKOGDClassifier, part: IKOGDClassifier, name: str) -> None:
    if is_text(part.classes_) != is_text(first.classes_):
        raise ValueError(f"classes must be of one kind; got {first.classes_} and, {name}, {part.classes_}.")
    if part._is_open != first._is_open:
        raise ValueError(f"classes must have been given to all models at the start, or to none; not so {name}.")
    if not part._is_open and not np.array_equal(part.classes_, first.classes_):
        raise ValueError(
            f"classes must be the same if they are given at the start; got {first.classes_} and, {name}, "
            f"{part.classes_}."
        )


# The parts of a map by the words that errors have for them.
_PARTS_OF_A_MAP = {
    "the number of columns": "n_features_in_",
    "the number of cells": "_cell_starts",
    "the scaling": "_scaling",
    "the partitionings": "_partitionings",
}


def _check_one_map(first: IsolationKernel, other: IsolationKernel, name: str) -> None:
    if other is first:
        return
    for what, attribute in _PARTS_OF_A_MAP.items():
        one, another = getattr(first, attribute), getattr(other, attribute)
        if one is not another and _fingerprint(one) != _fingerprint(another):
            raise ValueError(
                f"models must share one map; {what} of {name} is not that of the first. Fit one IsolationKernel and "
                "give it to all as kernel=..."
            )


def _fingerprint(part: Any) -> str:
    """Return a hash of all bytes of a part, the same in every process."""
    return str(joblib.hash(part, coerce_mmap=True))
