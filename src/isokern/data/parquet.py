"""Read Parquet files as a stream of rows; errors name the column and the row."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from isokern.data.columns import TableOptions, all_finite
from isokern.data.lines import PathLike, name_of

_PIECE_VALUES = 2**20
_BUFFER_BYTES = 2**16


class RowGroups(NamedTuple):
    """Consecutive row groups of a file: the smallest part that can be read on its own."""

    path: str
    numbers: list[int]
    first_row: int
    n_rows: int


def parquet_pieces(path: PathLike, options: TableOptions, groups: RowGroups | None = None) -> Iterator[tuple[Any, Any]]:
    """Yield (X, y) for consecutive rows of a file, or of some row groups; the first piece has no rows."""
    name, label = name_of(path), options.label
    with _opened(path) as file:
        features = options.features(_names(file), name)
        _check_types(file.schema_arrow, features, label, name)
        row, numbers = (0, None) if groups is None else (groups.first_row, groups.numbers)
        for batch in _batches(file, features if label is None else [*features, label], numbers):
            X = options.rows([_numbers(batch[column]) for column in features], batch.num_rows)
            if not all_finite(X):
                raise ValueError(_complaint(X, features, row, name))
            yield X, None if label is None else _labels(batch[label])
            row += batch.num_rows


def row_groups(path: str, size: int) -> list[RowGroups]:
    """Return a file's row groups; neighbours are merged while they have at most ``size`` bytes together."""
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
    """Open a file; pyarrow's errors about its content become errors that name the file."""
    import pyarrow
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(
            path, buffer_size=_BUFFER_BYTES, pre_buffer=False, page_checksum_verification=True
        ) as file:
            yield file
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # the file is missing or not readable
        raise ValueError(f"{name_of(path)}: must be a valid Parquet file; {error}") from error


def _names(file: Any) -> list[str]:
    # pandas stores the index as a column with this prefix.
    return [name for name in file.schema_arrow.names if not name.startswith("__index_level_")]


def _batches(file: Any, wanted: list[str], groups: list[int] | None) -> Iterator[Any]:
    """Yield an empty table, then batches of a bounded number of values."""
    yield file.schema_arrow.empty_table()
    yield from file.iter_batches(max(1, min(2**16, _PIECE_VALUES // len(wanted))), groups, columns=wanted)


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
    """Return the value type of a column that may be dictionary-encoded."""
    from pyarrow import types

    return kind.value_type if types.is_dictionary(kind) else kind


def _is_number(kind: Any) -> bool:
    from pyarrow import types

    return any(test(kind) for test in (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal))


def _is_text(kind: Any) -> bool:
    from pyarrow import types

    return types.is_string(kind) or types.is_large_string(kind)


def _numbers(column: Any) -> NDArray[np.float64]:
    """Return numbers and bools as float64, nulls as NaN."""
    # safe=False rounds integers beyond 2^53, as NumPy does, instead of raising.
    return np.asarray(column.cast("float64", safe=False))


def _labels(column: Any) -> NDArray[Any]:
    """Return labels as float64 or str; nulls become NaN or None."""
    plain = column.cast(_plain(column.type))
    return _numbers(plain) if _is_number(plain.type) else np.asarray(plain, dtype=object)


def _complaint(X: Any, features: list[str], first_row: int, name: str) -> str:
    """Say where the first value is that is not finite."""
    X = X.toarray() if sparse.issparse(X) else X
    row, column = np.argwhere(~np.isfinite(X))[0]
    what = "a missing value" if np.isnan(X[row, column]) else "infinity"
    return (
        f'{name}: column "{features[column]}" must hold finite numbers; got {what} '
        f"in row {first_row + row} (the first is 0). Fill it, or leave the column out with columns=..."
    )
