"""Read Parquet files as a stream of rows; errors name the column and the row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from isokern.data.columns import (
    TableOptions,
    are_valid,
    as_labels,
    as_numbers,
    as_text,
    bad_values,
    is_date,
    is_number,
    is_text,
)
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
    import pyarrow

    name, label = name_of(path), options.label
    with _opened(path) as file:
        features = options.features(_names(file), name)
        wanted = features if label is None else [*features, label]
        convert = {column: _conversion(file.schema_arrow.field(column), options, name) for column in wanted}
        row, numbers = (0, None) if groups is None else (groups.first_row, groups.numbers)
        for batch in _batches(file, wanted, numbers):
            columns = {column: convert[column](batch[column]) for column in wanted}
            y = None if label is None else as_labels(columns.pop(label))
            X = options.rows(pyarrow.table(columns))
            if not are_valid(X):
                raise ValueError(_complaint(X, features, row, name))
            yield X, y
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


def _conversion(field: Any, options: TableOptions, file: str) -> Callable[[Any], Any]:
    """Return the function that turns a column into float64 or text; raise if its type allows neither."""
    from pyarrow import types

    is_label = field.name == options.label
    what = f'{file}: {"label column" if is_label else "column"} "{field.name}"'
    kind = field.type.value_type if types.is_dictionary(field.type) else field.type
    told, drop = options.told(field.name), f"leave it out with drop={[field.name]!r}."
    if is_date(kind) and not is_label and told != "text":
        options.check_dates(field.name, file, kind)
        return as_numbers
    if not (is_number(kind) or is_text(kind)):
        raise ValueError(f"{what} must hold numbers, bools or text; got {kind}. Encode it, or {drop}")
    if told == "number" and is_text(kind):
        raise ValueError(f"{what} must hold numbers; got {kind}. Encode it, or {drop}")
    convert = as_text if told == "text" or is_text(kind) else as_numbers
    return lambda column: convert(column.cast(kind))


def _complaint(X: Any, features: list[str], first_row: int, name: str) -> str:
    """Say where the first number is that is not valid."""
    row, column = np.argwhere(~np.isfinite(X.toarray()) if sparse.issparse(X) else bad_values(X))[0]
    what = "a missing value" if sparse.issparse(X) and np.isnan(X[row, column]) else "infinity"
    return (
        f'{name}: column "{features[column]}" must hold finite numbers; got {what} in row {first_row + row} '
        f"(the first is 0). Fill it, or leave the column out with drop={[features[column]]!r}."
    )
