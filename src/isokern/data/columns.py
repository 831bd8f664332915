"""Which columns of a table are the features and which is the label, and how columns become rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import sparse

from isokern.rows import csr_class

_MOST_NAMES = 12


def check_options(label: Any, columns: Any, dtype: DTypeLike) -> None:
    """Raise unless the options can name columns and a type of numbers."""
    if label is not None and not isinstance(label, str):
        raise TypeError(f"label must be None or the name of a column; got {label!r}.")
    if isinstance(columns, str) or not (columns is None or all(isinstance(name, str) for name in columns)):
        raise TypeError(f"columns must be None or a list of names; got {columns!r}.")
    if np.dtype(dtype) not in (np.float32, np.float64):
        raise ValueError(f"dtype must be float32 or float64; got {np.dtype(dtype)}.")


def feature_names(names: Sequence[str], label: str | None, columns: Sequence[str] | None, file: str) -> list[str]:
    """Return the feature columns in order, chosen from the names of a file's columns."""
    for name in repeated(names):
        raise ValueError(f'{file}: the names of columns must differ; got "{name}" twice.')
    if label is not None and label not in names:
        raise ValueError(f'{file}: label must be one of {_listed(names)}; got "{label}".')
    features = [name for name in names if name != label] if columns is None else list(columns)
    if not features:
        raise ValueError(f"{file}: there must be a column of features besides the label; got {_listed(names)}.")
    for name in features:
        if name not in names:
            raise ValueError(f'{file}: columns must be among {_listed(names)}; got "{name}".')
    for name in repeated(features):
        raise ValueError(f'columns must differ; got "{name}" twice.')
    if label in features:
        raise ValueError(f'columns must not hold the label; got "{label}".')
    return features


def rows_of(columns: Sequence[NDArray[Any]], n: int, is_sparse: bool, dtype: DTypeLike) -> Any:
    """Return columns of n numbers as rows: an array, or CSR."""
    X = np.empty((n, len(columns)), dtype=dtype)
    with np.errstate(over="ignore"):  # what is too large for float32 becomes infinite, and is then refused
        for k, column in enumerate(columns):
            X[:, k] = column
    return csr_class()(X) if is_sparse else X


def all_finite(X: Any) -> bool:
    """Return whether no stored value is NaN or infinite."""
    return bool(np.isfinite(X.data if sparse.issparse(X) else X).all())


def repeated(names: Iterable[str]) -> list[str]:
    """Return the names that stand more than once."""
    return [name for name, count in Counter(names).items() if count > 1]


def _listed(names: Sequence[str]) -> str:
    """Return names for an error, the first few of many."""
    shown = ", ".join(f'"{name}"' for name in names[:_MOST_NAMES])
    return shown if len(names) <= _MOST_NAMES else f"{shown} and {len(names) - _MOST_NAMES} more"
