"""Choose the label and feature columns of a table, settle their types, and turn columns into rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import sparse

from isokern.checks import one_of
from isokern.rows import csr_class

TYPES = ("number", "text")
_MOST_NAMES = 12


class TableOptions(NamedTuple):
    """The options that all readers of tables share; see :func:`isokern.data.read_csv`."""

    label: str | None = None
    columns: Sequence[str] | None = None
    drop: Sequence[str] | None = None
    types: Mapping[str, str] | None = None
    dates: str | None = None
    sparse: bool = False
    dtype: DTypeLike = np.float64

    def checked(self) -> Self:
        """Return the options; raise unless they are valid and pyarrow is installed."""
        if self.label is not None and not isinstance(self.label, str):
            raise TypeError(f"label must be None or a column name; got {self.label!r}.")
        for option, names in (("columns", self.columns), ("drop", self.drop)):
            if isinstance(names, str) or not all(isinstance(name, str) for name in names or ()):
                raise TypeError(f"{option} must be None or a list of column names; got {names!r}.")
        if not isinstance(self.types or {}, Mapping):
            raise TypeError(f"types must be None or a dict from column names to types; got {self.types!r}.")
        for name, kind in (self.types or {}).items():
            if kind not in TYPES:
                raise ValueError(f'types must be {one_of(TYPES)}; got {kind!r} for column "{name}".')
        if self.dates not in (None, "number"):
            raise ValueError(f'dates must be None or "number"; got {self.dates!r}.')
        if np.dtype(self.dtype) not in (np.float32, np.float64):
            raise ValueError(f"dtype must be float32 or float64; got {np.dtype(self.dtype)}.")
        check_pyarrow()
        return self

    def features(self, names: Sequence[str], file: str) -> list[str]:
        """Return the names of the feature columns, given those of all columns of a file."""
        for name in [*(self.columns or ()), *(self.types or ())]:
            if name not in names:
                raise ValueError(f'{file}: there must be a column "{name}"; got {_listed(names)}.')
        _check_among(names, file, drop=self.drop)
        kept = [name for name in names if name not in (self.drop or ())]
        for name in _repeated(kept):
            raise ValueError(f'{file}: column names must be unique; got "{name}" twice.')
        if self.label is not None and self.label not in kept:
            raise ValueError(f'{file}: label must be one of {_listed(kept)}; got "{self.label}".')
        # A nameless first column is an index that pandas has written; in a Parquet file it is no feature either.
        index = [""] if names[:1] == [""] else []
        features = [name for name in kept if name not in (self.label, *index)] if self.columns is None else self.columns
        if not features:
            raise ValueError(f"{file}: there must be a feature column besides the label; got {_listed(names)}.")
        _check_among(kept, file, columns=features)
        for name in _repeated(features):
            raise ValueError(f'columns must be unique; got "{name}" twice.')
        if self.label in features:
            raise ValueError(f'label must not be one of the feature columns; got "{self.label}".')
        return list(features)

    def told(self, name: str) -> str | None:
        """Return the type that a column must have; None if its values decide."""
        is_sparse_feature = self.sparse and name != self.label
        return (self.types or {}).get(name, "number" if is_sparse_feature else None)

    def check_dates(self, column: str, file: str, example: Any) -> None:
        """Raise unless dates and times are to be read as numbers."""
        if self.dates is None:
            raise ValueError(
                f'{file}: column "{column}" must hold numbers or text; got dates or times, such as {example}. '
                f'Leave it out with drop={[column]!r}, or read it as seconds since 1970 with dates="number".'
            )

    def rows(self, table: Any) -> Any:
        """Return the float64 and string columns of a table as X."""
        if any(is_text(kind) for kind in table.schema.types):
            return table if np.dtype(self.dtype) == np.float64 else table.cast(_float32_schema(table.schema))
        X = np.empty(table.shape, dtype=self.dtype)
        with np.errstate(over="ignore"):  # values too large for float32 become infinite; the caller rejects those
            for k, column in enumerate(table.columns):
                X[:, k] = column.to_numpy()
        return csr_class()(X) if self.sparse else X


def check_pyarrow() -> None:
    """Raise unless pyarrow is installed."""
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise ImportError("CSV and Parquet files need a package: pip install isokern[tables]") from error


def are_valid(X: Any) -> bool:
    """Return whether no number of X is infinite and, in a sparse matrix, none is missing."""
    return not bad_values(X).any()


def bad_values(X: Any) -> NDArray[np.bool_]:
    """Return a mask of the infinite numbers of X; of a sparse matrix, a mask of stored values that also has NaN."""
    if sparse.issparse(X):
        return ~np.isfinite(X.data)
    if isinstance(X, np.ndarray):
        return np.isinf(X)
    nothing = np.zeros(X.shape[0], dtype=bool)
    return np.column_stack([nothing if is_text(c.type) else np.isinf(c.to_numpy()) for c in X.columns])


def is_number(kind: Any) -> bool:
    """Return whether an Arrow type holds numbers, bools, or nothing but nulls."""
    from pyarrow import types

    tests = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal, types.is_null)
    return any(test(kind) for test in tests)


def is_text(kind: Any) -> bool:
    """Return whether an Arrow type holds text."""
    from pyarrow import types

    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def is_date(kind: Any) -> bool:
    """Return whether an Arrow type holds dates, times of day or both."""
    from pyarrow import types

    return bool(types.is_date(kind) or types.is_timestamp(kind) or types.is_time(kind))


def as_numbers(column: Any) -> Any:
    """Return a column of numbers, bools, dates or times as float64.

    A date is its seconds since 1970, a time of day its seconds since midnight.
    """
    import pyarrow
    from pyarrow import compute, types

    if not is_date(column.type):
        # safe=False rounds integers beyond 2^53, as NumPy does, instead of raising.
        return column.cast(pyarrow.float64(), safe=False)
    precise = pyarrow.time64("us") if types.is_time(column.type) else pyarrow.timestamp("us")
    if types.is_timestamp(column.type):
        precise = pyarrow.timestamp("us", column.type.tz)
    return compute.divide(column.cast(precise, safe=False).cast(pyarrow.int64()).cast(pyarrow.float64()), 1e6)


def as_text(column: Any) -> Any:
    """Return a column as text; NaN becomes null."""
    import pyarrow
    from pyarrow import compute, types

    if types.is_floating(column.type):
        column = compute.if_else(compute.is_nan(column), None, column)
    return column.cast(pyarrow.string())


def as_labels(column: Any) -> NDArray[Any]:
    """Return a column of float64 or text as an array; nulls become NaN or None."""
    return np.asarray(column, dtype=object if is_text(column.type) else np.float64)


def _float32_schema(schema: Any) -> Any:
    import pyarrow

    kinds = [kind if is_text(kind) else pyarrow.float32() for kind in schema.types]
    return pyarrow.schema(list(zip(schema.names, kinds, strict=True)))


def _check_among(names: Sequence[str], file: str, **options: Iterable[str] | None) -> None:
    for option, given in options.items():
        for name in given or ():
            if name not in names:
                raise ValueError(f'{file}: {option} must be among {_listed(names)}; got "{name}".')


def _repeated(names: Iterable[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]


def _listed(names: Sequence[str]) -> str:
    """Return the first names, quoted, for an error message."""
    shown = ", ".join(f'"{name}"' for name in names[:_MOST_NAMES])
    return shown if len(names) <= _MOST_NAMES else f"{shown} and {len(names) - _MOST_NAMES} more"
