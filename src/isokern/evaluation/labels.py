"""Check blocks of rows and labels, and find the rows whose label is missing."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_consistent_length

from isokern.learners.answers import present_labels


def as_pair(block: Any, name: str) -> tuple[Any, Any]:
    """Return a pair (X, y); raise if the block is something else."""
    if not (isinstance(block, tuple | list) and len(block) == 2):
        shape = getattr(block, "shape", None)
        what = f"shape {shape}" if shape is not None else f"{block!r:.60}"
        raise ValueError(f"{name} must be a pair (X, y); got {type(block).__name__} of {what}.")
    return block[0], block[1]


def checked_block(X: Any, y: Any) -> tuple[Any, NDArray[Any], NDArray[np.bool_]]:
    """Return rows that can be indexed, the labels that are not missing, and a mask of the rows that have one."""
    rows = X.tocsr() if sparse.issparse(X) else X if hasattr(X, "shape") else np.asarray(X)
    if y is None:
        return rows, np.empty(0), np.zeros(rows.shape[0], dtype=bool)
    labels, has_label = present_labels(y)
    check_consistent_length(rows, has_label)
    return rows, labels, has_label
