"""Read CSV text as a stream of rows, one per line; the first rows settle the types, and errors name the line."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator
from typing import Any, NoReturn

import numpy as np

from isokern.data.columns import TableOptions, are_valid, as_labels, as_numbers, is_date, is_number, is_text
from isokern.data.layouts import Layout, decoded
from isokern.data.layouts import is_number as holds_number
from isokern.data.lines import PathLike, first_lines, name_of, open_lines, peek_lines
from isokern.data.ranges import Range, numbered
from isokern.data.rebatching import joined

# The words that pyarrow takes for missing values by default, and a field of one space.
MISSING = (
    *("", " ", "NA", "N/A", "n/a", "#NA", "#N/A", "#N/A N/A", "NULL", "null", "NaN", "nan", "-NaN", "-nan"),
    *("1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"),
)
_NUMBER_WITH_COMMA = re.compile(r"[-+]?\d+(?:,\d+)?(?:[eE][-+]?\d+)?")
_QUOTED_WORD = re.compile(b'"(?:' + b"|".join(re.escape(word.encode()) for word in MISSING if word) + b')"')


def csv_pieces(path: PathLike, options: TableOptions, layout: Layout, n_first: int = 1) -> Iterator[tuple[Any, Any]]:
    """Yield (X, y) as lines arrive; the first piece has no rows. At least ``n_first`` rows settle the types."""
    with open_lines(path) as texts:
        reader, chunks = _begun(path, texts, options, layout)
        yield from reader.pieces(chunks, layout.first_line, n_first)


def csv_reader(path: PathLike, options: TableOptions, layout: Layout) -> Reader:
    """Return a reader that has seen the first rows and settled the types."""
    with peek_lines(path) as texts:
        reader, chunks = _begun(path, texts, options, layout)
        next(reader.pieces(chunks, layout.first_line))
    return reader


def csv_range(reader: Reader, part: Range) -> tuple[Any, Any]:
    """Return (X, y) of a byte range."""

    def read(line: int) -> tuple[Any, Any]:
        chunks = part.texts()
        if part.begin == 0:
            chunks, line = reader.layout.rows(chunks), reader.layout.first_line
        return joined(list(reader.pieces(chunks, line)))

    return numbered(read, part)


def csv_column_names(path: PathLike, layout: Layout) -> list[str]:
    """Return the names of a file's columns."""
    with peek_lines(path) as texts:
        first = next(texts, b"")
        return layout.known(first, path).names(first, path)


def _begun(
    path: PathLike, texts: Iterator[bytes], options: TableOptions, layout: Layout
) -> tuple[Reader, Iterator[bytes]]:
    """Return a reader of a file, and the chunks of rows."""
    first = next(texts, b"")
    layout = layout.known(first, path)
    reader = Reader(name_of(path), layout.names(first, path), options, layout)
    return reader, layout.rows(itertools.chain([first], texts))


class Reader:
    """Parse lines into rows. The first lines settle which columns are numbers and which are text."""

    def __init__(self, file: str, names: list[str], options: TableOptions, layout: Layout) -> None:
        self._file, self._names, self._options, self._label = file, names, options, options.label
        self.layout, self.features = layout, options.features(names, file)
        self.types: dict[str, Any] | None = None  # Arrow types of the features and the label
        self._decimal_point = "."
        if "" in self.features and options.columns is None:
            raise ValueError(
                f"{file}, line 1: column {names.index('') + 1} must have a name. "
                'Give it one, or leave it out with drop=[""].'
            )

    def pieces(self, chunks: Iterable[bytes], line: int, n_first: int = 1) -> Iterator[tuple[Any, Any]]:
        """Yield (X, y) for chunks of lines, the first of which has the number ``line``; the first piece has no rows."""
        chunks = iter(chunks)
        if self.types is None:
            first = first_lines(chunks, n_first)
            self.types = self._settled(b"".join(first), line)
            chunks = itertools.chain(first, chunks)
        yield self._no_rows()
        for chunk in chunks:
            if chunk.strip(b"\r\n"):
                yield self._read(chunk, line)
            line += chunk.count(b"\n")

    def _settled(self, text: bytes, line: int) -> dict[str, Any]:
        """Return the types to read columns with, given the first lines."""
        import pyarrow

        wanted = self.features if self._label is None else [*self.features, self._label]
        try:
            if self._has_decimal_commas(text, wanted):
                self._decimal_point = ","
            inferred = self._inferred(text, wanted)
        except ValueError:
            self.types = dict.fromkeys(wanted, pyarrow.string())
            self._raise_on_bad_line(text, line)
        return {name: self._type_of(name, inferred[name], text) for name in wanted}

    def _has_decimal_commas(self, text: bytes, wanted: list[str]) -> bool:
        """Return whether all values of a column that may hold numbers are digits, some with a comma between them."""
        import pyarrow

        may_be_numbers = [name for name in wanted if self._options.told(name) != "text"]
        if self.layout.separator == "," or b"," not in text or not may_be_numbers:
            return False
        table = self._columns(text, dict.fromkeys(may_be_numbers, pyarrow.string()))
        columns = (column.drop_null().to_pylist() for column in table.columns)
        return any("," in "".join(column) and all(map(_NUMBER_WITH_COMMA.fullmatch, column)) for column in columns)

    def _inferred(self, text: bytes, wanted: list[str]) -> dict[str, Any]:
        """Return the types that pyarrow infers; without rows, null."""
        import pyarrow
        from pyarrow import types

        if not text.strip(b"\r\n"):
            return dict.fromkeys(wanted, pyarrow.null())
        schema = self._columns(text, dict.fromkeys(wanted)).schema
        inferred = dict(zip(schema.names, schema.types, strict=True))
        if b"0x" in text.lower():  # pyarrow takes hexadecimal digits for integers, but cannot read them as float64
            for name in wanted:
                if types.is_integer(inferred[name]) and not self._is_readable(text, {name: pyarrow.float64()}):
                    inferred[name] = pyarrow.string()
        return inferred

    def _type_of(self, name: str, inferred: Any, text: bytes) -> Any:
        import pyarrow
        from pyarrow import types

        told = self._options.told(name)
        if told != "text" and name != self._label:
            if is_date(inferred):
                example = self._columns(text, {name: pyarrow.string()})[name].drop_null()[0]
                self._options.check_dates(name, self._file, f'"{example}"')
                return inferred if types.is_time(inferred) else pyarrow.timestamp("us", getattr(inferred, "tz", None))
            if types.is_boolean(inferred):
                return inferred
        is_plain = is_number(inferred) and not types.is_boolean(inferred)
        return pyarrow.float64() if told == "number" or (told is None and is_plain) else pyarrow.string()

    def _no_rows(self) -> tuple[Any, Any]:
        import pyarrow

        types = self.types or {}
        empty = {name: pyarrow.array([], kind) for name, kind in types.items()}
        return self._as_rows(pyarrow.table(empty), types)

    def _read(self, chunk: bytes, line: int) -> tuple[Any, Any]:
        try:
            return self._parsed(chunk, self.types or {})
        except ValueError:
            self._raise_on_bad_line(chunk, line)

    def _parsed(self, chunk: bytes, types: dict[str, Any]) -> tuple[Any, Any]:
        """Return (X, y) of the columns that have a type, or raise a ValueError without details."""
        if _has_open_quote(chunk):
            raise ValueError
        table = self._columns(chunk, types)
        if table.num_rows != _n_rows(chunk, table.num_rows):
            raise ValueError
        X, y = self._as_rows(table, types)
        if not are_valid(X):
            raise ValueError
        return X, y

    def _as_rows(self, table: Any, types: dict[str, Any]) -> tuple[Any, Any]:
        import pyarrow

        columns = {name: table[name] if is_text(kind) else as_numbers(table[name]) for name, kind in types.items()}
        label = columns.pop(self._label, None) if self._label is not None else None
        X = self._options.rows(pyarrow.table(columns)) if columns else np.empty((table.num_rows, 0))
        return X, None if label is None else as_labels(label)

    def _columns(self, chunk: bytes, types: dict[str, Any]) -> Any:
        """Return columns as a pyarrow table; a type of None is inferred."""
        table = self._arrow_table(chunk, types)
        if b'"' in chunk and _QUOTED_WORD.search(chunk):  # such a word is text in a column of text
            text = {name: kind for name, kind in types.items() if kind is not None and is_text(kind)}
            for name, column in self._text_columns(chunk, text).items():
                table = table.set_column(table.schema.get_field_index(name), name, column)
        return table

    def _text_columns(self, chunk: bytes, types: dict[str, Any]) -> dict[str, Any]:
        """Return columns of text in which quoted words like NA are not missing."""
        from pyarrow import compute

        table = self._arrow_table(chunk, types, quoted_strings_can_be_null=False) if types else {}
        return {name: compute.if_else(compute.equal(table[name], ""), None, table[name]) for name in types}

    def _arrow_table(self, chunk: bytes, types: dict[str, Any], **options: Any) -> Any:
        import pyarrow
        from pyarrow import csv as arrow

        return arrow.read_csv(
            pyarrow.BufferReader(_arrow_copy(chunk)),
            arrow.ReadOptions(column_names=self._names, block_size=len(chunk) + 1),
            arrow.ParseOptions(delimiter=self.layout.separator),
            arrow.ConvertOptions(
                column_types={name: kind for name, kind in types.items() if kind is not None},
                include_columns=list(types),
                null_values=MISSING,
                strings_can_be_null=True,
                decimal_point=self._decimal_point,
                **options,
            ),
        )

    def _is_readable(self, chunk: bytes, types: dict[str, Any]) -> bool:
        try:
            self._parsed(chunk, types)
        except ValueError:
            return False
        return True

    def _raise_on_bad_line(self, chunk: bytes, line: int) -> NoReturn:
        """Find the first line that is not a row, by bisection, and say why."""
        lines = chunk.split(b"\n")
        while len(lines) > 1:
            half = len(lines) // 2
            first = b"\n".join(lines[:half])
            if first.strip(b"\r\n") and not self._is_readable(first, self.types or {}):
                lines = lines[:half]
            else:
                lines, line = lines[half:], line + half
        where = f"{self._file}, line {line}"
        raise ValueError(f"{where}: {self._complaint(lines[0], decoded(lines[0], where))}") from None

    def _complaint(self, line: bytes, text: str) -> str:
        fields = self.layout.fields(text)
        if text.count('"') % 2 == 1 or "\r" in text:
            return "a line must hold one row; got a quoted field that does not end on it, or a stray \\r."
        if len(fields) != len(self._names):
            like = "the header" if self.layout.header else "the first row"
            return f"a row must have {len(self._names)} fields like {like}; got {len(fields)}."
        values = dict(zip(self._names, fields, strict=True))
        for name, kind in (self.types or {}).items():
            if not self._is_readable(line, {name: kind}):
                return self._misfit(name, kind, values[name])
        return "must be a row of the table."

    def _misfit(self, name: str, kind: Any, value: str) -> str:
        """Say that a field does not fit the type of its column."""
        from pyarrow import types

        what = "label column" if name == self._label else "column"
        rule = "true or false" if types.is_boolean(kind) else "a date or time" if is_date(kind) else "a number"
        got = f'"{value}"' if value.strip() else "an empty field"
        drop = f"leave the column out with drop={[name]!r}."
        if types.is_floating(kind) and holds_number(value):
            return f'{what} "{name}" must be a finite number; got {got}. Leave the field empty, or {drop}'
        if self._options.sparse and name != self._label:
            return f'{what} "{name}" must be {rule}; got {got}. Fill or encode it, or {drop}'
        if self._options.told(name) is not None:
            return f'{what} "{name}" must be {rule}; got {got}. Correct the field, or leave it empty.'
        as_text = f"Read the column as text with types={ {name: 'text'}!r}"
        cure = f"{as_text}." if name == self._label else f"{as_text}, or {drop}"
        return f'{what} "{name}" must be {rule}, as in the first rows; got {got}. {cure}'


def _arrow_copy(chunk: bytes) -> Any:
    """Copy bytes to memory of pyarrow.

    A thread of pyarrow may hold its input a little longer than the call, above all after an error. To release memory of
    Python it would need the GIL, and a thread that asks for the GIL while Python exits aborts the process.
    """
    import pyarrow

    buffer = pyarrow.allocate_buffer(len(chunk))
    memoryview(buffer).cast("B")[:] = chunk
    return buffer


def _has_open_quote(chunk: bytes) -> bool:
    return b'"' in chunk and any(line.count(b'"') % 2 for line in chunk.split(b"\n"))


def _n_rows(chunk: bytes, expected: int) -> int:
    """Return the number of lines that are not empty; the slow count runs only if the fast one is not as expected."""
    n = chunk.count(b"\n") + (not chunk.endswith(b"\n"))
    return n if n == expected else sum(1 for line in chunk.split(b"\n") if line.strip(b"\r"))
