"""The weighted mean of learners that share one map: how parts that learned apart become one.

This module checks that learners can be merged; what their mean is, each part of a learner knows by itself.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from isokern.feature_map import IsolationKernel
from isokern.learners import IKOGDClassifier, IKOGDRegressor
from isokern.learners.kernel_source import check_same_map
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
    merged = copy.copy(parts[0])
    merged.learned_ = type(merged.learned_).merge([part.learned_ for part in parts], shares)
    return merged


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
    if not hasattr(part, "learned_"):
        raise ValueError(
            f"models must have begun to learn; {name} still holds its first {part.warm_up_.n} rows back. Give it a "
            "fitted kernel, and it begins at once."
        )
    if not isinstance(part.learned_.model, CellWeights):
        raise ValueError(f'evaluation must be "primal" or "naive" to be merged; got {part.evaluation!r} in {name}.')
    check_same_map(part.kernel_.map_, part.learned_.model.starts)


def _check_alike(first: Any, part: Any, name: str) -> None:
    if type(part) is not type(first):
        raise TypeError(f"models must be of one class; got {type(first).__name__} and, {name}, {type(part).__name__}.")
    for parameter in _ALIKE:
        expected, value = getattr(first, parameter, None), getattr(part, parameter, None)
        if value != expected:
            raise ValueError(f"{parameter} must be the same in all models; got {expected!r} and, {name}, {value!r}.")
    first.learned_.check_mergeable(part.learned_, name)


def _check_one_map(first: IsolationKernel, other: IsolationKernel, name: str) -> None:
    is_alike = first.n_features_in_ == other.n_features_in_
    difference = first.map_.difference(other.map_) if is_alike else "the number of columns"
    if difference is not None:
        raise ValueError(
            f"models must share one map; {difference} of {name} is not that of the first. Fit one IsolationKernel and "
            "give it to all as kernel=..."
        )
