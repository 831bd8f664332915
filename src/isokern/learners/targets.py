"""Validate the labels, targets and weights of rows."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _num_samples, check_consistent_length

from isokern.frames import is_missing

Weights = NDArray[np.float64] | None

LARGEST = 1e50  # weights beyond count as this much, so that no product of them overflows
_LARGEST_TARGET = 1e35  # targets beyond likewise; the weights of a race, in single precision, have their units
LARGEST_WHOLE = 2.0**53  # below it, float64 tells all whole numbers apart


def read_labels(estimator: object, y: Any, rows: Any) -> NDArray[Any]:
    """Return the labels of rows as an array."""
    is_plain = type(y) is np.ndarray and y.ndim == 1 and y.dtype.kind in "biuU"
    if is_plain and len(y) == rows.shape[0]:  # scikit-learn's checks take longer than learning a row
        return y
    labels = _column(estimator, y, rows)
    if isinstance(y, list | tuple) and labels.dtype.kind == "U":
        # NumPy has turned numbers and NaN among text into text, too.
        _check_objects(np.array(y, dtype=object).reshape(-1))
    if labels.dtype.kind == "O":
        _check_objects(labels)
        if not isinstance(labels[0], str):
            labels = np.array(labels.tolist())
    if labels.dtype.kind == "f":
        _check_finite(labels)
        _check_distinct(labels)
    if labels.dtype.kind == "S":
        raise ValueError("y must be numbers or text; got bytes. Decode them first, for example with np.char.decode.")
    check_classification_targets(labels)
    return labels


def read_numbers(estimator: object, y: Any, rows: Any) -> NDArray[np.float64]:
    """Return the targets of a regression as float64."""
    given = _column(estimator, y, rows)
    try:
        targets = given.astype(np.float64)
    except (TypeError, ValueError):
        _check_present(given)
        k, value = next((k, value) for k, value in enumerate(given.tolist()) if not _is_float(value))
        cure = "Convert y to numbers, or use a classifier."
        raise ValueError(f"y must be numbers for a regressor; got {value!r:.60} first in row {k}. {cure}") from None
    _check_finite(targets)
    return np.ascontiguousarray(targets.clip(-_LARGEST_TARGET, _LARGEST_TARGET))


def read_outputs(estimator: object, y: Any, rows: Any) -> NDArray[np.float64]:
    """Return the targets of a regression as float64, (n, n_outputs)."""
    outputs = y if sparse.issparse(y) else np.asarray(y)
    if outputs.ndim != 2 or outputs.shape[1] == 1 or sparse.issparse(y):
        return read_numbers(estimator, y, rows)[:, None]
    return np.stack([read_numbers(estimator, column, rows) for column in outputs.T], axis=1)


def read_weights(sample_weight: Any, rows: Any) -> Weights:
    """Return the weights of some rows of a stream as float64, or None."""
    if sample_weight is None:
        return None
    how: Any = {"dtype": np.float64, "ensure_2d": False, "ensure_non_negative": True, "input_name": "sample_weight"}
    weights, n = check_array(sample_weight, **how), _num_samples(rows)
    if weights.shape != (n,):
        raise ValueError(f"sample_weight must have the shape ({n},); got {weights.shape}.")
    return np.ascontiguousarray(np.minimum(weights, LARGEST))


def read_all_weights(sample_weight: Any, rows: Any) -> Weights:
    """Return the weights of the rows of ``fit`` as float64, or None; raise if all are 0."""
    weights = read_weights(sample_weight, rows)
    if weights is not None and not weights.any():
        raise ValueError(f"sample_weight must not be zero for all rows; got {len(weights)} zeros.")
    return weights


def some(weights: Weights, which: Any) -> Weights:
    """Return the weights of some rows, or None."""
    return None if weights is None else weights[which]


def mean_weights(weights: NDArray[np.float64]) -> tuple[float, float]:
    """Return the mean weight of rows, and that in which each row counts by its weight."""
    mean = max(float(weights.mean()), np.finfo(np.float64).tiny)
    return mean, float(((weights / mean) ** 2).mean()) * mean


def pass_orders(n: int, n_passes: int, rng: np.random.RandomState, *, shuffle: bool) -> Iterator[Any]:
    """Yield the order of n rows in each pass."""
    for _ in range(n_passes):
        yield rng.permutation(n) if shuffle else slice(None)


def is_text(labels: NDArray[Any]) -> bool:
    """Return whether labels are strings rather than numbers."""
    return labels.dtype.kind in "UST" or (labels.dtype.kind == "O" and any(isinstance(label, str) for label in labels))


def _is_float(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def _column(estimator: object, y: Any, rows: Any) -> NDArray[Any]:
    """Return y as an array of one value per row; raise if these are dates."""
    if y is None:  # the message that scikit-learn's estimator checks expect
        raise ValueError(f"{type(estimator).__name__} requires y to be passed, but the target y is None.")
    values = column_or_1d(_with_plain_integers(y), warn=True)
    check_consistent_length(rows, values)
    if values.dtype.kind in "mM":
        cure = "Convert them first, for example with y.astype(str) or y.astype(np.int64)."
        raise ValueError(f"y must be numbers or text; got dates or times ({values.dtype}). {cure}")
    return values.astype(object) if values.dtype.kind == "T" else values  # scikit-learn does not know StringDType


def _with_plain_integers(y: Any) -> Any:
    """Return a column of pandas' nullable integers as an array, if none is missing: scikit-learn would round them."""
    dtype = getattr(y, "dtype", None)
    is_nullable = getattr(dtype, "kind", "") in ("i", "u") and hasattr(dtype, "numpy_dtype")
    return y.to_numpy(dtype=dtype.numpy_dtype) if is_nullable and not y.isna().any() else y  # type: ignore[union-attr]


def _check_distinct(labels: NDArray[np.floating[Any]]) -> None:
    """Raise if labels are so large that float64 may not tell them apart."""
    is_large = np.abs(labels) >= LARGEST_WHOLE
    if is_large.any():
        k = int(np.argmax(is_large))
        cure = "Give such classes as integers or text; in a file, read the label column as text, or renumber them."
        raise ValueError(f"y must be below 2^53 if it is not of an integer type; got {labels[k]} in row {k}. {cure}")


def _check_objects(labels: NDArray[Any]) -> None:
    """Raise unless labels are all text or all numbers."""
    if all(issubclass(kind, str) for kind in set(map(type, labels))):
        return
    _check_present(labels)
    is_word = np.array([isinstance(label, str) for label in labels])
    is_number = np.array([isinstance(label, Real | np.bool_) for label in labels])
    if not (is_word | is_number).all():
        k = int(np.argmin(is_word | is_number))
        raise ValueError(
            f"y must be numbers or text; got {labels[k]!r:.60} in row {k}. Convert it to one of these first."
        )
    if is_word.any() and is_number.any():
        i, j = int(np.argmax(is_word)), int(np.argmax(is_number))
        raise ValueError(
            f"y must be all numbers or all text; got {labels[i]!r:.60} in row {i} and {labels[j]!r} in row {j}. "
            "Convert the numbers to text with str, or the text to numbers."
        )


def _check_present(values: NDArray[Any]) -> None:
    """Raise if an object is missing."""
    missing = next((k for k, value in enumerate(values) if is_missing(value)), None)
    if missing is not None:
        raise ValueError(_missing_text(values[missing], missing))


def _check_finite(numbers: NDArray[np.floating[Any]]) -> None:
    """Raise if a number is NaN or infinite."""
    is_finite = np.isfinite(numbers)
    if is_finite.all():
        return
    k = int(np.argmin(is_finite))
    if np.isnan(numbers[k]):
        raise ValueError(_missing_text("NaN", k))
    raise ValueError(f"y must be finite; got {numbers[k]} first in row {k}.")


def _missing_text(value: Any, row: int) -> str:
    return f"y must not have missing values; got {value} first in row {row}. Drop those rows."
