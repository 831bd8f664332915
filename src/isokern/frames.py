"""Turn tables with words and missing values into arrays of numbers, whatever library they come from.

A column of categories becomes the codes of their names: hashes from 1 to 2^32 - 1 (``cpp/trees/splits.hpp``). So no
dictionary is kept, categories that come later are welcome, and the same name has the same code in every library and
file. A missing value becomes NaN.
"""

from __future__ import annotations

import datetime
import decimal
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from isokern import _core
from isokern.parts import Part, need

Mask = NDArray[np.bool_]

_DATES = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)
_DATE_CURE = "Leave it out, or turn it into numbers first: seconds since a date, the hour, the day of the week."


def is_frame(X: Any) -> bool:
    """Return whether X is a data frame or table in memory, of pandas, polars, pyarrow or a library like them."""
    if not hasattr(X, "columns"):
        return False
    from narwhals.dependencies import is_into_dataframe

    return is_into_dataframe(X)


def in_memory(X: Any) -> Any:
    """Return a record batch of pyarrow as a table, and other rows as they are; raise if they are not in memory."""
    kind = type(X).__name__
    if kind == "LazyFrame":
        raise ValueError("X must be in memory; got a LazyFrame. Call its method collect first.")
    if kind != "RecordBatch":
        return X
    import pyarrow

    return pyarrow.Table.from_batches([X])


def in_order(X: Any, names: Sequence[str]) -> Any:
    """Return a frame with its columns in the order of ``names``, if it has exactly these columns."""
    frame = _frame(X)
    return X if frame.columns == list(names) or set(frame.columns) != set(names) else frame.select(names).to_native()


def _frame(X: Any) -> Any:
    """Return a data frame in the form of narwhals, which is the same for all libraries."""
    import narwhals as nw
    from narwhals.exceptions import DuplicateError

    try:
        return nw.from_native(X, eager_only=True)
    except DuplicateError:
        names = Counter(getattr(X, "column_names", None) or X.columns)
        twice = next(name for name, n in names.items() if n > 1)
        raise ValueError(f"X must have columns of different names; got {twice!r} more than once. Rename one.") from None


@dataclass(frozen=True, eq=False)
class Categories(Part):
    """Categories of a column among the rows that a map is drawn from, the most frequent first."""

    most: ClassVar[int] = 1000

    names: tuple[str, ...]
    counts: NDArray[np.int64]
    n: int  # number of distinct categories, of which only the first ``most`` have a name here

    @classmethod
    def of(cls, counted: dict[str, int], n: int) -> Self:
        """Return the categories with these counts."""
        items = sorted(counted.items(), key=lambda item: (-item[1], item[0]))[: cls.most]
        return cls(tuple(name for name, _ in items), np.array([count for _, count in items], dtype=np.int64), n)

    def joined(self, other: Categories) -> Self:
        """Return the categories of both; their number is exact as long as all of them have names."""
        counted = Counter(dict(zip(self.names, self.counts.tolist(), strict=True)))
        counted.update(dict(zip(other.names, other.counts.tolist(), strict=True)))
        return type(self).of(counted, max(len(counted), self.n, other.n))

    def check(self) -> None:
        """Raise ValueError unless each name has a count."""
        need(len(self.names) == len(self.counts) <= self.n, "each category must have a count")


class Columns(NamedTuple):
    """The columns of a table: arrays of numbers or of objects, or columns of a data frame."""

    columns: list[Any]
    names: list[str] | None
    n_rows: int

    @classmethod
    def of(cls, X: Any, names: Iterable[str] | None = None) -> Self:
        """Return the columns of a data frame, of an array or nested list, or of dicts; those of dicts are ``names``."""
        if is_frame(X):
            frame = _frame(X)
            return cls(list(frame.iter_columns()), list(frame.columns), len(frame))
        if are_dicts(X):
            return cls.of_dicts(X, names)
        array = X if isinstance(X, np.ndarray) else np.array(X, dtype=object)
        if array.ndim != 2:
            raise ValueError(f"Expected 2D array, got {array.ndim}D array instead: reshape X to (n, n_features).")
        return cls(list(array.T), None, len(array))

    @classmethod
    def of_dicts(cls, rows: Sequence[dict[str, Any]], names: Iterable[str] | None) -> Self:
        """Return the columns of rows given as dicts; a key that a row lacks is a missing value."""
        if not all(isinstance(row, dict) for row in rows):
            raise TypeError("X must be a list of dicts only, since its first item is one.")
        found = dict.fromkeys(key for row in rows for key in row)
        if not all(isinstance(key, str) for key in found):
            raise TypeError("X must have column names that are strings as keys.")
        known = dict.fromkeys(found if names is None else names)
        if unknown := list(found.keys() - known.keys()):
            raise ValueError(f"X must have the columns seen in fit; got {min(unknown)!r} besides them.")
        return cls([_objects(row.get(name) for row in rows) for name in known], list(known), len(rows))

    def has_words(self) -> Mask:
        """Return which columns are categorical by their dtype or, in arrays of objects, because they hold text."""
        return np.array([_has_words(column) for column in self.columns], dtype=bool)

    def encoded(self, is_categorical: Mask | None) -> NDArray[np.float64]:
        """Return the rows as numbers, (n, d): codes in the categorical columns."""
        table = np.empty((self.n_rows, len(self.columns)))
        for j, column in enumerate(self.columns):
            read = _codes if is_categorical is not None and is_categorical[j] else _numbers
            table[:, j] = read(column, self.name(j))
        return table

    def categories(self, table: NDArray[np.float64], is_categorical: Mask, n: int) -> dict[int, Categories]:
        """Return the categories among the first n rows, by column; ``table`` holds their codes."""
        found = {}
        for j in np.flatnonzero(is_categorical).tolist():
            present = np.flatnonzero(~np.isnan(table[:n, j]))
            _, firsts, counts = np.unique(table[present, j], return_index=True, return_counts=True)
            commonest = np.argsort(-counts, kind="stable")[: Categories.most]
            named = {_name(self.columns[j][int(present[firsts[k]])]): int(counts[k]) for k in commonest}
            found[j] = Categories.of(named, len(counts))
        return found

    def name(self, j: int) -> str:
        """Return a description of a column for errors."""
        return f"column {j}" if self.names is None else f"column {j} ({self.names[j]!r})"


def needs_encoding(X: Any) -> bool:
    """Return whether X is not just an array or frame of numbers."""
    if isinstance(X, np.ndarray):
        return X.dtype.kind in "OUSTMm"
    if is_frame(X):
        return any(map(_is_encoded, _frame(X).iter_columns()))
    return isinstance(X, list | tuple) and (are_dicts(X) or _holds_words(X))


def are_dicts(X: Any) -> bool:
    """Return whether X is a list of dicts."""
    return isinstance(X, list | tuple) and len(X) > 0 and isinstance(X[0], dict)


def resolve(features: Any, columns: Columns) -> Mask | None:
    """Return which columns are categorical by ``categorical_features``; None if there is none."""
    mask = np.zeros(len(columns.columns), dtype=bool)
    if isinstance(features, str):
        mask = columns.has_words()
    elif features is not None:
        mask[_positions(features, columns.names, len(mask))] = True
    return mask if mask.any() else None


def check_categorical_features(features: Any) -> None:
    """Raise unless a value can be that of the parameter ``categorical_features``."""
    if features is None or (isinstance(features, str) and features == "from_dtype"):
        return
    kinds = {_kind_of_feature(feature) for feature in features} if np.ndim(features) == 1 else {None}
    if len(kinds) > 1 or None in kinds:
        raise ValueError(
            'categorical_features must be "from_dtype", None, or a list of names, positions or booleans; '
            f"got {features!r}."
        )


def _kind_of_feature(feature: Any) -> str | None:
    kinds = {"bool": bool | np.bool_, "str": str, "int": Integral}
    return next((name for name, kind in kinds.items() if isinstance(feature, kind)), None)


def _positions(features: Any, names: list[str] | None, n: int) -> list[Any]:
    """Return the positions of columns given as a mask, or by position or name."""
    kind = _kind_of_feature(features[0]) if len(features) else "int"
    if kind == "bool":
        if len(features) != n:
            raise ValueError(f"categorical_features must have {n} booleans, one for each column; got {len(features)}.")
        return list(np.flatnonzero(features))
    known = range(n) if kind == "int" else names or []
    for feature in features:
        if feature not in known:
            what = "positions below the number of columns" if kind == "int" else "names of columns of X"
            raise ValueError(f"categorical_features must be {what}; got {feature!r}.")
    return [feature if kind == "int" else known.index(feature) for feature in features]


# -- columns


def _is_encoded(column: Any) -> bool:
    """Return whether a column of a data frame must be encoded; NumPy can take over the others."""
    import narwhals as nw

    is_sparse = column.implementation.is_pandas() and "Sparse" in str(column.to_native().dtype)
    if is_sparse or isinstance(column.dtype, nw.Boolean):
        return False
    return not column.dtype.is_numeric() or column.dtype.is_decimal()


def _has_words(column: Any) -> bool:
    if isinstance(column, np.ndarray):
        return column.dtype.kind in "OUST" and _holds_words(column)
    import narwhals as nw

    if isinstance(column.dtype, nw.Object) or (
        column.implementation.is_pandas() and column.to_native().dtype == object
    ):
        return _holds_words(column.to_numpy())
    return isinstance(column.dtype, nw.String | nw.Categorical | nw.Enum | nw.Binary)


def _is_numeric(column: Any) -> bool:
    """Return whether a column of a data frame holds numbers or truth values by its dtype."""
    if isinstance(column, np.ndarray):
        return False
    import narwhals as nw

    return bool(column.dtype.is_numeric()) or isinstance(column.dtype, nw.Boolean)


def _holds_words(values: Any) -> bool:
    """Return whether there is text among values, which may be lists of values."""
    return any(
        isinstance(value, str | bytes) or (isinstance(value, list | tuple) and _holds_words(value)) for value in values
    )


def _codes(column: Any, name: str) -> NDArray[np.float64]:
    """Return the codes of a column of categories."""
    values = _values(column, name)
    if values.dtype.kind in "biuf":
        values, places = np.unique(values, return_inverse=True)
        return _coded(values, name)[places]
    return _coded(values, name)


def _coded(values: NDArray[Any], name: str) -> NDArray[np.float64]:
    try:
        return _core.category_codes(values.tolist(), _name_of)
    except (TypeError, UnicodeError):
        row = next(row for row, value in enumerate(values) if not _can_be_named(value))
        raise _bad_value(values[row], name, row) from None


def _numbers(column: Any, name: str) -> NDArray[Any]:
    """Return a column of numbers, with NaN for missing ones."""
    if _is_numeric(column):
        import narwhals as nw

        column = column.cast(nw.Float64)
    values = _values(column, name)
    if values.dtype.kind in "biuf":
        return values
    numbers = np.empty(len(values))
    for row, value in enumerate(values):
        if isinstance(value, str | bytes):
            raise ValueError(
                f"X must be a number in {name}; got {value!r} in row {row}. Columns with text must be listed in "
                "categorical_features, or hold text already in fit or in the first rows of partial_fit."
            )
        if not (is_missing(value) or isinstance(value, Real | decimal.Decimal | np.bool_)):
            raise _bad_value(value, name, row)
        try:
            numbers[row] = math.nan if is_missing(value) else float(value)
        except OverflowError:
            raise ValueError(f"X must fit into float64 in {name}; got {str(value)[:20]}... in row {row}.") from None
    return numbers


def _values(column: Any, name: str) -> NDArray[Any]:
    """Return a column as an array of numbers or of objects."""
    if isinstance(column, np.ndarray):
        if column.dtype.kind in "mM":
            raise _bad_value(column[0] if len(column) else np.datetime64("NaT"), name, 0)
        return column
    import narwhals as nw

    dtype = column.dtype
    if dtype.is_temporal():
        raise ValueError(f"X must not hold dates or times; got {dtype} in {name}. {_DATE_CURE}")
    values = column.to_numpy()
    if values.ndim > 1:  # a struct
        raise _bad_value(values[0], name, 0)
    if isinstance(dtype, nw.Categorical):
        values = values.astype(object)
        values[column.is_null().to_numpy()] = None  # pyarrow gives missing entries of a dictionary a value
    return np.asarray(values)


def _name_of(value: Any) -> str | None:
    """Return the name of a category that is not a str: digits for whole numbers; None if it is missing."""
    if is_missing(value):
        return None
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, Integral):
        return str(int(value))
    if isinstance(value, Real | decimal.Decimal):
        number = float(value)
        return str(int(value)) if number.is_integer() else repr(number)  # type: ignore[arg-type]
    if isinstance(value, bytes):
        return value.decode()
    if type(value).__name__ == "Interval":  # of pandas' cut and qcut
        return str(value)
    raise TypeError


def _name(value: Any) -> str:
    """Return the name of a category that is not missing."""
    return value if isinstance(value, str) else str(_name_of(value))


def _can_be_named(value: Any) -> bool:
    try:
        _core.category_codes([value], _name_of)
    except (TypeError, UnicodeError):
        return False
    return True


def is_missing(value: Any) -> bool:
    """Return whether a value or label is None, NaN, NaT or pandas' NA."""
    if value is None:
        return True
    try:
        return bool(value != value)  # noqa: PLR0124
    except TypeError:  # pandas' NA has no truth value, not even when compared with itself
        return True
    except ValueError:  # an array
        return False


def _bad_value(value: Any, name: str, row: int) -> Exception:
    if isinstance(value, _DATES) or type(value).__name__ == "Period":  # of pandas
        return ValueError(f"X must not hold dates or times; got {value!r} in {name}, row {row}. {_DATE_CURE}")
    if isinstance(value, str | bytes):
        return ValueError(f"X must hold text in UTF-8; got {value!r} in {name}, row {row}.")
    kind = type(value).__name__
    return TypeError(f"X: argument must be a string or a number in {name}; got {value!r:.60} of {kind} in row {row}.")


def _objects(values: Iterable[Any]) -> NDArray[Any]:
    return np.fromiter(values, dtype=object)
