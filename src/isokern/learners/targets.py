"""Validate the labels, targets and weights of rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, assert_all_finite, check_consistent_length

Weights = NDArray[np.float64] | None

LARGEST = 1e50  # targets and weights beyond count as this much, so that no product of them overflows


def read_labels(estimator: object, y: Any, rows: Any) -> NDArray[Any]:
    """Return the labels of rows as an array."""
    is_plain = type(y) is np.ndarray and y.ndim == 1 and y.dtype.kind in "biuU"
    if is_plain and len(y) == rows.shape[0]:  # scikit-learn's checks take longer than learning a row
        return y
    labels = column_or_1d(_given(estimator, y), warn=True)
    check_consistent_length(rows, labels)
    if labels.dtype.kind == "f":
        assert_all_finite(labels, input_name="y")
    if labels.dtype.kind == "S":
        raise ValueError("y must be numbers or text; got bytes. Decode them first, for example with np.char.decode.")
    check_classification_targets(labels)
    return labels


def read_numbers(estimator: object, y: Any, rows: Any) -> NDArray[np.float64]:
    """Return the targets of a regression as float64."""
    targets = column_or_1d(_given(estimator, y), warn=True, dtype=np.float64)
    check_consistent_length(rows, targets)
    assert_all_finite(targets, input_name="y")
    return np.ascontiguousarray(targets.clip(-LARGEST, LARGEST))


def read_weights(sample_weight: Any, rows: Any) -> Weights:
    """Return the weights of rows as float64, or None."""
    if sample_weight is None:
        return None
    weights = _check_sample_weight(sample_weight, rows, dtype=np.float64, ensure_non_negative=True)
    if not weights.any():
        raise ValueError(f"sample_weight must not be zero for all rows; got {len(weights)} zeros.")
    return np.ascontiguousarray(np.minimum(weights, LARGEST))


def some(weights: Weights, which: Any) -> Weights:
    """Return the weights of some rows, or None."""
    return None if weights is None else weights[which]


def pass_orders(n: int, n_passes: int, rng: np.random.RandomState, *, shuffle: bool) -> Iterator[Any]:
    """Yield the order of n rows in each pass."""
    for _ in range(n_passes):
        yield rng.permutation(n) if shuffle else slice(None)


def is_text(labels: NDArray[Any]) -> bool:
    """Return whether labels are strings rather than numbers."""
    return labels.dtype.kind in "UST" or (labels.dtype.kind == "O" and any(isinstance(label, str) for label in labels))


def _given(estimator: object, y: Any) -> Any:
    if y is None:  # the message that scikit-learn's estimator checks expect
        raise ValueError(f"{type(estimator).__name__} requires y to be passed, but the target y is None.")
    return y
