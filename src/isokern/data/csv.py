"""CSV as a stream: a line of column names, then one row a line; errors name the line."""

from __future__ import annotations

import csv
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from isokern.data.columns import all_finite, feature_names, rows_of
from isokern.data.lines import PathLike, line_chunks, name_of
from isokern.data.ranges import Range, numbered
from isokern.data.rebatching import joined

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def csv_pieces(
    path: PathLike, label: str | None, columns: Sequence[str] | None, is_sparse: bool, dtype: DTypeLike
) -> Iterator[tuple[Any, Any]]:
    """Yield (X, y) for the lines that there are, as they come; the first piece has no rows."""
    chunks = line_chunks(path)
    names, rest = _header(chunks, name_of(path))
    reader = _reader(path, names, label, columns, is_sparse=is_sparse, dtype=dtype)
    yield from _pieces(reader, itertools.chain([rest], chunks), 2)


def csv_reader(
    path: PathLike, label: str | None, columns: Sequence[str] | None, is_sparse: bool, dtype: DTypeLike
) -> Reader:
    """Return what reads a file's lines, after it has seen the first of them."""
    chunks = line_chunks(path)
    names, rest = _header(chunks, name_of(path))
    reader = _reader(path, names, label, columns, is_sparse=is_sparse, dtype=dtype)
    for _ in zip(range(2), _pieces(reader, itertools.chain([rest], chunks), 2), strict=False):  # no rows, then some
        pass
    return reader


def csv_range(reader: Reader, part: Range) -> tuple[Any, Any]:
    """Return (X, y) for a range of a file's lines."""

    def read(line: int) -> tuple[Any, Any]:
        chunks = part.texts()
        if part.begin == 0:
            chunks, line = itertools.chain([_header(chunks, name_of(part.path))[1]], chunks), 2
        return joined(list(_pieces(reader, chunks, line)))

    return numbered(read, part)


def _reader(
    path: PathLike, names: list[str], label: str | None, columns: Sequence[str] | None, **options: Any
) -> Reader:
    file = name_of(path)
    reader = Reader(file, names, feature_names(names, label, columns, file), label, **options)
    if columns is None and "" in names:
        raise ValueError(
            f"{file}, line 1: column {names.index('') + 1} must have a name. "
            "Give it one, or choose the columns to learn from with columns=..."
        )
    return reader


def _pieces(reader: Reader, chunks: Iterable[bytes], line: int) -> Iterator[tuple[Any, Any]]:
    """Yield (X, y) for chunks of lines, of which the first has the number ``line``; the first piece has no rows."""
    yield reader.no_rows()
    for chunk in chunks:
        if chunk.strip(b"\r\n"):
            yield reader.read(chunk, line)
        line += chunk.count(b"\n")


def csv_column_names(path: PathLike) -> list[str]:
    """Return the names of a file's columns."""
    return _header(line_chunks(path), name_of(path))[0]


def _header(chunks: Iterator[bytes], file: str) -> tuple[list[str], bytes]:
    """Return the names of the columns, and what comes after them in the first chunk."""
    header, _, rest = next(chunks, b"").removeprefix(_BYTE_ORDER_MARK).partition(b"\n")
    return _column_names(header, file), rest


def _column_names(header: bytes, file: str) -> list[str]:
    try:
        text = header.decode().removesuffix("\r")
    except UnicodeDecodeError as error:
        raise ValueError(_not_utf8(f"{file}, line 1", error)) from None
    names = _fields(text)
    if all(_is_number(name) for name in names):
        got = f'"{text[:40]}"' if text else "nothing"
        raise ValueError(f"{file}, line 1: the first line must hold the names of the columns; got {got}.")
    return names


class Reader:
    """Turns lines into rows; whether labels are numbers or text is decided by the first lines and kept."""

    def __init__(
        self, file: str, names: list[str], features: list[str], label: str | None, *, is_sparse: bool, dtype: DTypeLike
    ) -> None:
        self._file, self._names, self.features, self._label = file, names, features, label
        self._is_sparse, self._dtype = is_sparse, dtype
        self.labels_are_text: bool | None = None

    def no_rows(self) -> tuple[Any, Any]:
        """Return X of no rows, and as many labels."""
        nothing = np.empty(0, dtype=object if self.labels_are_text else np.float64)
        X = rows_of([nothing] * len(self.features), 0, self._is_sparse, self._dtype)
        return X, None if self._label is None else nothing

    def read(self, chunk: bytes, line: int) -> tuple[Any, Any]:
        """Return the rows and labels of a chunk of lines, of which the first has the number ``line``."""
        if self.labels_are_text is None and self._label is not None:
            self.labels_are_text = not self._is_readable(chunk, [], self._label)
        try:
            return self._parsed(chunk, self.features, self._label)
        except ValueError:
            raise ValueError(self._complaint(chunk, line)) from None

    def _parsed(self, chunk: bytes, features: list[str], label: str | None) -> tuple[Any, Any]:
        """Return (X, y), or raise a ValueError that does not say much."""
        import pyarrow
        from pyarrow import csv as arrow

        types = dict.fromkeys(features, pyarrow.float64())
        if label is not None:
            types[label] = pyarrow.string() if self.labels_are_text else pyarrow.float64()
        table = arrow.read_csv(
            pyarrow.BufferReader(chunk),
            arrow.ReadOptions(column_names=self._names, block_size=len(chunk) + 1),
            convert_options=arrow.ConvertOptions(
                column_types=types, include_columns=list(types), null_values=[""], strings_can_be_null=True
            ),
        )
        if _has_open_quote(chunk) or table.num_rows != _n_rows(chunk, table.num_rows):
            raise ValueError
        X = rows_of([table[name].to_numpy() for name in features], table.num_rows, self._is_sparse, self._dtype)
        if not all_finite(X):
            raise ValueError
        return X, None if label is None else table[label].to_numpy()

    def _is_readable(self, chunk: bytes, features: list[str], label: str | None) -> bool:
        try:
            self._parsed(chunk, features, label)
        except ValueError:
            return False
        return True

    def _complaint(self, chunk: bytes, line: int) -> str:
        """Return what is wrong with a chunk: its first line that makes no row, found by halving, and why."""
        lines = chunk.split(b"\n")
        while len(lines) > 1:
            half = len(lines) // 2
            first = b"\n".join(lines[:half])
            if first.strip(b"\r\n") and not self._is_readable(first, self.features, self._label):
                lines = lines[:half]
            else:
                lines, line = lines[half:], line + half
        return self._complaint_of_line(lines[0], f"{self._file}, line {line}")

    def _complaint_of_line(self, line: bytes, where: str) -> str:
        try:
            text = line.decode().removesuffix("\r")
        except UnicodeDecodeError as error:
            return _not_utf8(where, error)
        fields = _fields(text)
        if text.count('"') % 2 == 1 or "\r" in text:
            return f"{where}: a line must be one row; got a quoted field that does not end on it, or a stray \\r."
        if len(fields) != len(self._names):
            return f"{where}: a row must have {len(self._names)} fields, as the header has; got {len(fields)}."
        values = dict(zip(self._names, fields, strict=True))
        for name in self.features:
            if not self._is_readable(line, [name], None):
                return f'{where}: column "{name}" must be {_rule_that_breaks(values[name])}'
        if self._label is None:
            return f"{where}: cannot be read as a row."
        value = values[self._label]
        return f'{where}: label column "{self._label}" must be a number, as in the first rows; got "{value}".'


def _rule_that_breaks(value: str) -> str:
    rule = "a finite number" if _is_number(value) else "a number"
    got = f'"{value}"' if value.strip() else "an empty field"
    return f"{rule}; got {got}. Fill or encode it, or leave the column out with columns=..."


def _not_utf8(where: str, error: UnicodeDecodeError) -> str:
    return f"{where}: text must be UTF-8; got the byte 0x{error.object[error.start]:02x}. Convert the file to UTF-8."


def _has_open_quote(chunk: bytes) -> bool:
    return b'"' in chunk and any(line.count(b'"') % 2 for line in chunk.split(b"\n"))


def _n_rows(chunk: bytes, expected: int) -> int:
    """Return the number of lines that are not empty; lines are looked at only if their number is not as expected."""
    n = chunk.count(b"\n") + (not chunk.endswith(b"\n"))
    return n if n == expected else sum(1 for line in chunk.split(b"\n") if line.strip(b"\r"))


def _fields(text: str) -> list[str]:
    try:
        return next(csv.reader([text]), [])
    except csv.Error:  # a field of more than 131,072 characters, or a stray end of line
        return text.split(",")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
