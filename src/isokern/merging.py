"""Merge learners that were trained separately on one map into their weighted mean.

This module checks that learners can be merged; each part of a learner computes its own mean, see ``isokern.parts``.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from isokern.feature_map import IsolationKernel
from isokern.learners import IKOGDClassifier, IKOGDRegressor
from isokern.learners.base_race import BaseRace
from isokern.learners.kernel_source import check_same_map
from isokern.learners.renewing import Renewing
from isokern.learners.weights import CellWeights

Learner = IKOGDClassifier | IKOGDRegressor

# Parameters that define the meaning of the learned state and the next steps; all others may differ.
_ALIKE = ("loss", "epsilon", "quantiles", "schedule", "learning_rate", "shrinkage", "average", "class_weight")


def merge(models: Iterable[Any], weights: ArrayLike | None = None) -> Any:
    """Return the weighted mean of learners that share one map.

    Scores are the mean of the models' scores. The state behind the next steps is averaged too (AdaGrad's sums of
    squares, number of rows, class counts), so the mean of equal models is that model, and ``partial_fit`` continues
    from it. In a model that has not seen a class, the class has the score of a class not seen yet. Probabilities are
    calibrated on the latest rows of all models, in proportion to the weights.

    Parameters
    ----------
    models : iterable of IKOGDClassifier or of IKOGDRegressor
        Learners that have passed their warm-up, on one fitted kernel or on equal copies of it. They are not changed.
    weights : array-like of shape (n_models,), default=None
        Weight of each model, for example its number of rows; None means equal weights.

    Returns
    -------
    model : IKOGDClassifier or IKOGDRegressor
        Mean, with the parameters of the first model.

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
    merged = copy.copy(parts[0])
    merged.learned_ = type(merged.learned_).merge([part.learned_ for part in parts], shares)
    return merged


def _shares(weights: ArrayLike | None, n: int) -> NDArray[np.float64]:
    if n == 0:
        raise ValueError("models must have at least 1; got none.")
    if weights is None:
        return np.full(n, 1.0 / n)
    array = np.asarray(weights, dtype=np.float64)
    if array.shape != (n,):
        raise ValueError(f"weights must be one number for each of {n} models; got shape {array.shape}.")
    if not (np.isfinite(array).all() and (array >= 0).all() and array.any()):
        raise ValueError(f"weights must be finite, at least 0 and not all 0; got {array}.")
    return array / array.sum()


def _check_part(part: Any, name: str) -> None:
    if not isinstance(part, Learner) or isinstance(part, Renewing):  # each of the latter has a map of its own
        raise TypeError(f"models must be IKOGDClassifier or IKOGDRegressor; got {type(part).__name__} as {name}.")
    check_is_fitted(part)
    if not hasattr(part, "learned_"):
        raise ValueError(
            f"models must have passed their warm-up; {name} still buffers its first {part.warm_up_.n} rows. Give it a "
            "fitted kernel to learn at once."
        )
    if isinstance(part.learned_, BaseRace):
        return
    if not isinstance(part.learned_.model, CellWeights):
        raise ValueError(f'evaluation must be "primal" or "naive" to be merged; got {part.evaluation!r} in {name}.')
    check_same_map(part.kernel_.map_, part.learned_.model.starts)


def _check_alike(first: Any, part: Any, name: str) -> None:
    if type(part) is not type(first):
        raise TypeError(f"models must be of one class; got {type(first).__name__} and {type(part).__name__} as {name}.")
    for parameter in _ALIKE:
        expected, value = getattr(first, parameter, None), getattr(part, parameter, None)
        if value != expected:
            raise ValueError(f"{parameter} must be the same in all models; got {expected!r} and {value!r} in {name}.")
    if type(part.learned_) is not type(first.learned_):
        raise ValueError(f"models must all be chosen by a race or by their parameters; {name} differs from the first.")
    first.learned_.check_mergeable(part.learned_, name)
    term, other = (getattr(model, "linear_term_", None) for model in (first, part))
    if term is not None and not term.equals(other):
        raise ValueError(f"models must share one linear term; that of {name} differs from the first.")


def _check_one_map(first: IsolationKernel, other: IsolationKernel, name: str) -> None:
    is_alike = first.n_features_in_ == other.n_features_in_
    difference = first.map_.difference(other.map_) if is_alike else "the number of columns"
    if difference is not None:
        raise ValueError(
            f"models must share one map; {difference} of {name} differs from the first. Fit one IsolationKernel and "
            "give it to all as kernel=..."
        )
