"""Read CSV text as a stream: a header with column names, then one row per line; errors name the line."""

from __future__ import annotations

import csv
import itertools
from collections.abc import Iterable, Iterator
from typing import Any, NoReturn

import numpy as np

from isokern.data.columns import TableOptions, all_finite
from isokern.data.lines import PathLike, name_of, open_lines, peek_lines
from isokern.data.ranges import Range, numbered
from isokern.data.rebatching import joined

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def csv_pieces(path: PathLike, options: TableOptions) -> Iterator[tuple[Any, Any]]:
    """Yield (X, y) as lines arrive; the first piece has no rows."""
    with open_lines(path) as texts:
        names, chunks = _split_header(texts, name_of(path))
        yield from Reader(name_of(path), names, options).pieces(chunks, 2)


def csv_reader(path: PathLike, options: TableOptions) -> Reader:
    """Return a reader that has seen the header and decided on the type of the labels."""
    with peek_lines(path) as texts:
        names, chunks = _split_header(texts, name_of(path))
        reader = Reader(name_of(path), names, options)
        list(itertools.islice(reader.pieces(chunks, 2), 2))  # the empty piece, then the first rows
    return reader


def csv_range(reader: Reader, part: Range) -> tuple[Any, Any]:
    """Return (X, y) of a byte range."""

    def read(line: int) -> tuple[Any, Any]:
        chunks = part.texts()
        if part.begin == 0:
            _, chunks = _split_header(chunks, name_of(part.path))
            line = 2
        return joined(list(reader.pieces(chunks, line)))

    return numbered(read, part)


def csv_column_names(path: PathLike) -> list[str]:
    """Return the names of a file's columns."""
    with peek_lines(path) as texts:
        return _split_header(texts, name_of(path))[0]


def _split_header(chunks: Iterator[bytes], file: str) -> tuple[list[str], Iterator[bytes]]:
    """Return the column names and the lines after the header."""
    header, _, rest = next(chunks, b"").removeprefix(_BYTE_ORDER_MARK).partition(b"\n")
    text = _decoded(header, f"{file}, line 1")
    names = _fields(text)
    if all(_is_number(name) for name in names):
        got = f'"{text[:40]}"' if text else "nothing"
        raise ValueError(f"{file}, line 1: the header must name the columns; got {got}.")
    return names, itertools.chain([rest], chunks)


class Reader:
    """Parse lines into rows. The first lines decide whether labels are numbers or text."""

    def __init__(self, file: str, names: list[str], options: TableOptions) -> None:
        self._file, self._names, self._options, self._label = file, names, options, options.label
        self.features = options.features(names, file)
        self.labels_are_text: bool | None = None
        if "" in self.features and options.columns is None:
            raise ValueError(
                f"{file}, line 1: column {names.index('') + 1} must have a name. "
                "Give it one, or select the feature columns with columns=..."
            )

    def pieces(self, chunks: Iterable[bytes], line: int) -> Iterator[tuple[Any, Any]]:
        """Yield (X, y) for chunks of lines, the first of which has the number ``line``; the first piece has no rows."""
        nothing = np.empty(0, dtype=object if self.labels_are_text else np.float64)
        yield self._options.rows([nothing] * len(self.features), 0), None if self._label is None else nothing
        for chunk in chunks:
            if chunk.strip(b"\r\n"):
                yield self._read(chunk, line)
            line += chunk.count(b"\n")

    def _read(self, chunk: bytes, line: int) -> tuple[Any, Any]:
        if self.labels_are_text is None and self._label is not None:
            self.labels_are_text = not self._is_readable(chunk, [], self._label)
        try:
            return self._parsed(chunk, self.features, self._label)
        except ValueError:
            self._raise_on_bad_line(chunk, line)

    def _parsed(self, chunk: bytes, features: list[str], label: str | None) -> tuple[Any, Any]:
        """Return (X, y), or raise a ValueError without details."""
        import pyarrow
        from pyarrow import csv as arrow

        types = dict.fromkeys(features, pyarrow.float64())
        if label is not None:
            types[label] = pyarrow.string() if self.labels_are_text else pyarrow.float64()
        table = arrow.read_csv(
            pyarrow.BufferReader(_arrow_copy(chunk)),
            arrow.ReadOptions(column_names=self._names, block_size=len(chunk) + 1),
            convert_options=arrow.ConvertOptions(
                column_types=types, include_columns=list(types), null_values=[""], strings_can_be_null=True
            ),
        )
        if _has_open_quote(chunk) or table.num_rows != _n_rows(chunk, table.num_rows):
            raise ValueError
        X = self._options.rows([table[name].to_numpy() for name in features], table.num_rows)
        if not all_finite(X):
            raise ValueError
        return X, None if label is None else table[label].to_numpy()

    def _is_readable(self, chunk: bytes, features: list[str], label: str | None) -> bool:
        try:
            self._parsed(chunk, features, label)
        except ValueError:
            return False
        return True

    def _raise_on_bad_line(self, chunk: bytes, line: int) -> NoReturn:
        """Find the first line that is not a row, by bisection, and say why."""
        lines = chunk.split(b"\n")
        while len(lines) > 1:
            half = len(lines) // 2
            first = b"\n".join(lines[:half])
            if first.strip(b"\r\n") and not self._is_readable(first, self.features, self._label):
                lines = lines[:half]
            else:
                lines, line = lines[half:], line + half
        where = f"{self._file}, line {line}"
        raise ValueError(f"{where}: {self._complaint(lines[0], _decoded(lines[0], where))}") from None

    def _complaint(self, line: bytes, text: str) -> str:
        fields = _fields(text)
        if text.count('"') % 2 == 1 or "\r" in text:
            return "a line must hold one row; got a quoted field that does not end on it, or a stray \\r."
        if len(fields) != len(self._names):
            return f"a row must have {len(self._names)} fields like the header; got {len(fields)}."
        values = dict(zip(self._names, fields, strict=True))
        for name in self.features:
            if not self._is_readable(line, [name], None):
                rule = "a finite number" if _is_number(values[name]) else "a number"
                got = f'"{values[name]}"' if values[name].strip() else "an empty field"
                cure = "Fill or encode it, or leave the column out with columns=..."
                return f'column "{name}" must be {rule}; got {got}. {cure}'
        if self._label is None:
            return "must be a row of the table."
        return f'label column "{self._label}" must be a number, as in the first rows; got "{values[self._label]}".'


def _arrow_copy(chunk: bytes) -> Any:
    """Copy bytes to memory of pyarrow.

    A thread of pyarrow may hold its input a little longer than the call, above all after an error. To release memory of
    Python it would need the GIL, and a thread that asks for the GIL while Python exits aborts the process.
    """
    import pyarrow

    buffer = pyarrow.allocate_buffer(len(chunk))
    memoryview(buffer).cast("B")[:] = chunk
    return buffer


def _decoded(line: bytes, where: str) -> str:
    try:
        return line.decode().removesuffix("\r")
    except UnicodeDecodeError as error:
        byte = f"0x{line[error.start]:02x}"
        raise ValueError(f"{where}: text must be UTF-8; got the byte {byte}. Convert the file to UTF-8.") from None


def _has_open_quote(chunk: bytes) -> bool:
    return b'"' in chunk and any(line.count(b'"') % 2 for line in chunk.split(b"\n"))


def _n_rows(chunk: bytes, expected: int) -> int:
    """Return the number of lines that are not empty; the slow count runs only if the fast one is not as expected."""
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
