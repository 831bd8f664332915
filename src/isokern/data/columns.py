"""Select the label and feature columns of a table, and turn columns into rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import sparse

from isokern.rows import csr_class

_MOST_NAMES = 12


class TableOptions(NamedTuple):
    """The options that all readers of tables share; see :func:`isokern.data.read_csv`."""

    label: str | None
    columns: Sequence[str] | None
    sparse: bool
    dtype: DTypeLike

    @classmethod
    def checked(cls, label: Any, columns: Any, sparse: bool, dtype: DTypeLike) -> Self:
        """Return the options; raise unless they are valid and pyarrow is installed."""
        if label is not None and not isinstance(label, str):
            raise TypeError(f"label must be None or a column name; got {label!r}.")
        if isinstance(columns, str) or not (columns is None or all(isinstance(name, str) for name in columns)):
            raise TypeError(f"columns must be None or a list of column names; got {columns!r}.")
        if np.dtype(dtype) not in (np.float32, np.float64):
            raise ValueError(f"dtype must be float32 or float64; got {np.dtype(dtype)}.")
        check_pyarrow()
        return cls(label, columns, sparse, dtype)

    def features(self, names: Sequence[str], file: str) -> list[str]:
        """Return the names of the feature columns, given those of all columns of a file."""
        for name in _repeated(names):
            raise ValueError(f'{file}: column names must be unique; got "{name}" twice.')
        if self.label is not None and self.label not in names:
            raise ValueError(f'{file}: label must be one of {_listed(names)}; got "{self.label}".')
        features = [name for name in names if name != self.label] if self.columns is None else list(self.columns)
        if not features:
            raise ValueError(f"{file}: there must be a feature column besides the label; got {_listed(names)}.")
        for name in features:
            if name not in names:
                raise ValueError(f'{file}: columns must be among {_listed(names)}; got "{name}".')
        for name in _repeated(features):
            raise ValueError(f'columns must be unique; got "{name}" twice.')
        if self.label in features:
            raise ValueError(f'columns must not contain the label; got "{self.label}".')
        return features

    def rows(self, columns: Sequence[NDArray[Any]], n: int) -> Any:
        """Return columns of n numbers as X."""
        X = np.empty((n, len(columns)), dtype=self.dtype)
        with np.errstate(over="ignore"):  # values too large for float32 become infinite; the caller rejects those
            for k, column in enumerate(columns):
                X[:, k] = column
        return csr_class()(X) if self.sparse else X


def check_pyarrow() -> None:
    """Raise unless pyarrow is installed."""
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise ImportError("CSV and Parquet files need a package: pip install isokern[tables]") from error


def all_finite(X: Any) -> bool:
    """Return whether no stored value is NaN or infinite."""
    return bool(np.isfinite(X.data if sparse.issparse(X) else X).all())


def _repeated(names: Iterable[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]


def _listed(names: Sequence[str]) -> str:
    """Return the first names, quoted, for an error message."""
    shown = ", ".join(f'"{name}"' for name in names[:_MOST_NAMES])
    return shown if len(names) <= _MOST_NAMES else f"{shown} and {len(names) - _MOST_NAMES} more"
