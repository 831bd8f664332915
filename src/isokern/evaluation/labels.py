"""Blocks of rows and labels as they come, where labels may be missing."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_consistent_length, column_or_1d


def as_pair(block: Any, name: str) -> tuple[Any, Any]:
    """Return a pair (X, y), or raise an error that says what is none."""
    if not (isinstance(block, tuple | list) and len(block) == 2):
        shape = getattr(block, "shape", None)
        what = f"shape {shape}" if shape is not None else f"{block!r:.60}"
        raise ValueError(f"{name} must be a pair (X, y); got {type(block).__name__} of {what}.")
    return block[0], block[1]


def checked_block(X: Any, y: Any) -> tuple[Any, NDArray[Any], NDArray[np.bool_]]:
    """Return rows that can be indexed, the labels that are there, and which rows have one."""
    rows = X.tocsr() if sparse.issparse(X) else X if hasattr(X, "shape") else np.asarray(X)
    if y is None:
        return rows, np.empty(0), np.zeros(rows.shape[0], dtype=bool)
    # A list becomes an array of objects first: NumPy would make a NaN among strings the label "nan".
    labels = column_or_1d(np.asarray(y) if hasattr(y, "__array__") else np.array(y, dtype=object))
    check_consistent_length(rows, labels)
    has_label = ~_is_missing(labels)
    return rows, _plain(labels[has_label]), has_label


def _is_missing(labels: NDArray[Any]) -> NDArray[np.bool_]:
    if labels.dtype.kind == "f":
        return np.isnan(labels)
    if labels.dtype.kind != "O":
        return np.zeros(len(labels), dtype=bool)
    return np.array([label is None or _is_nan(label) for label in labels], dtype=bool)


def _is_nan(label: Any) -> bool:
    try:
        return bool(label != label)  # noqa: PLR0124
    except TypeError:  # pandas' NA does not even say whether it equals itself
        return True


def _plain(labels: NDArray[Any]) -> NDArray[Any]:
    """Return objects as an array of strings or numbers, unless there are both, which is for the learner to refuse."""
    if labels.dtype.kind != "O" or len({isinstance(label, str) for label in labels}) != 1:
        return labels
    return np.array(labels.tolist())
