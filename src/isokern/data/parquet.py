"""Parquet as a stream of rows; errors name the column and the row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import sparse

from isokern.data.columns import all_finite, feature_names, rows_of
from isokern.data.lines import PathLike, name_of

_PIECE_VALUES = 2**20
_BUFFER_BYTES = 2**16


def parquet_pieces(
    path: PathLike,
    label: str | None,
    columns: Sequence[str] | None,
    is_sparse: bool,
    dtype: DTypeLike,
    *,
    groups: RowGroups | None = None,
) -> Iterator[tuple[Any, Any]]:
    """Yield (X, y) for consecutive rows, of the whole file or of some row groups; the first piece has no rows."""
    name = name_of(path)
    with _opened(path) as file:
        schema = file.schema_arrow
        features = feature_names(_names(file), label, columns, name)
        _check_types(schema, features, label, name)
        wanted = features if label is None else [*features, label]
        row = 0 if groups is None else groups.first_row
        for batch in _batches(file, wanted, None if groups is None else groups.numbers):
            X = rows_of([_numbers(batch[column]) for column in features], batch.num_rows, is_sparse, dtype)
            if not all_finite(X):
                raise ValueError(_complaint(X, features, row, name))
            yield X, None if label is None else _labels(batch[label])
            row += batch.num_rows


class RowGroups(NamedTuple):
    """Consecutive row groups of a file, which is what can be read of it by itself."""

    path: str
    numbers: list[int]
    first_row: int
    n_rows: int


def row_groups(path: str, size: int) -> list[RowGroups]:
    """Return a file's row groups, put together while they have fewer than ``size`` bytes."""
    found: list[RowGroups] = []
    row, n_bytes = 0, size
    with _opened(path) as file:
        for k in range(file.metadata.num_row_groups):
            group = file.metadata.row_group(k)
            if n_bytes + group.total_byte_size > size:
                found.append(RowGroups(path, [], row, 0))
                n_bytes = 0
            last = found[-1]
            found[-1] = last._replace(numbers=[*last.numbers, k], n_rows=last.n_rows + group.num_rows)
            row, n_bytes = row + group.num_rows, n_bytes + group.total_byte_size
    return found or [RowGroups(path, [], 0, 0)]


def parquet_column_names(path: PathLike) -> list[str]:
    """Return the names of a file's columns."""
    with _opened(path) as file:
        return _names(file)


@contextmanager
def _opened(path: PathLike) -> Iterator[Any]:
    from pyarrow import parquet

    with (
        _damage_named(name_of(path)),
        parquet.ParquetFile(path, buffer_size=_BUFFER_BYTES, pre_buffer=False) as file,
    ):
        yield file


def _names(file: Any) -> list[str]:
    # Where pandas stores an index as a column, it is no feature.
    return [name for name in file.schema_arrow.names if not name.startswith("__index_level_")]


def _batches(file: Any, wanted: list[str], groups: list[int] | None) -> Iterator[Any]:
    """Yield a table of no rows, then batches of a bounded number of values."""
    yield file.schema_arrow.empty_table()
    yield from file.iter_batches(max(1, min(2**16, _PIECE_VALUES // len(wanted))), groups, columns=wanted)


@contextmanager
def _damage_named(name: str) -> Iterator[None]:
    """Let pyarrow's errors about damaged files name the file."""
    import pyarrow

    try:
        yield
    except (pyarrow.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # the file is not there, or must not be read
        raise ValueError(f"{name}: must be a whole Parquet file; {error}") from error


def _check_types(schema: Any, features: list[str], label: str | None, name: str) -> None:
    for column in features:
        kind = schema.field(column).type
        if not _is_number(kind):
            raise ValueError(
                f'{name}: column "{column}" must hold numbers or bools; got {kind}. '
                "Encode the column as numbers, or leave it out with columns=..."
            )
    if label is not None and not (_is_number(kind := _plain(schema.field(label).type)) or _is_text(kind)):
        raise ValueError(f'{name}: label column "{label}" must hold numbers, bools or text; got {kind}.')


def _plain(kind: Any) -> Any:
    """Return the type of the values of a column that may be dictionary-encoded."""
    from pyarrow import types

    return kind.value_type if types.is_dictionary(kind) else kind


def _is_number(kind: Any) -> bool:
    from pyarrow import types

    return any(test(kind) for test in (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal))


def _is_text(kind: Any) -> bool:
    from pyarrow import types

    return any(test(kind) for test in (types.is_string, types.is_large_string))


def _numbers(column: Any) -> NDArray[np.float64]:
    """Return numbers and bools as float64, missing ones as NaN."""
    # Integers beyond 2^53 are rounded, as NumPy does.
    return np.asarray(column.cast("float64", safe=False))


def _labels(column: Any) -> NDArray[Any]:
    """Return labels as float64 or str, missing ones as NaN or None."""
    plain = column.cast(_plain(column.type))
    return _numbers(plain) if _is_number(plain.type) else np.asarray(plain, dtype=object)


def _complaint(X: Any, features: list[str], first_row: int, name: str) -> str:
    """Return where the first value is that is not finite."""
    X = X.toarray() if sparse.issparse(X) else X
    row, column = np.argwhere(~np.isfinite(X))[0]
    what = "a missing value" if np.isnan(X[row, column]) else "infinity"
    return (
        f'{name}: column "{features[column]}" must hold finite numbers; got {what} '
        f"in row {first_row + row} (the first is 0). Fill it, or leave the column out with columns=..."
    )
