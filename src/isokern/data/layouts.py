"""Find out how CSV text is laid out: its separator, its header and the names of its columns."""

from __future__ import annotations

import csv
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, Self

from isokern.data.lines import PathLike, name_of

SEPARATORS = (",", ";", "\t", "|")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_GUESSED_LINES = 20


class Layout(NamedTuple):
    """How text is cut into fields, and whether a header names them; a separator of None is guessed."""

    separator: str | None = None
    header: bool = True

    @classmethod
    def checked(cls, separator: Any, header: Any) -> Self:
        """Return the layout; raise unless it is valid."""
        is_character = isinstance(separator, str) and len(separator) == 1 and separator.isascii()
        if separator is not None and (not is_character or separator in '"\r\n'):
            raise ValueError(f"separator must be None or one character of ASCII; got {separator!r}.")
        if not isinstance(header, bool):
            raise TypeError(f"header must be True or False; got {header!r}.")
        return cls(separator, header)

    @property
    def first_line(self) -> int:
        """The number of the first line that is a row."""
        return 2 if self.header else 1

    def known(self, text: bytes, path: PathLike) -> Self:
        """Return the layout with its separator, given the first lines of a file."""
        if self.separator is not None:
            return self
        is_tsv = ".tsv" in Path(path).suffixes
        return self._replace(separator="\t" if is_tsv else _guessed(_lines(text, _GUESSED_LINES)))

    def names(self, text: bytes, path: PathLike) -> list[str]:
        """Return the names of the columns, given the first lines of a file; without a header, their positions."""
        where = f"{name_of(path)}, line 1"
        first = decoded(_lines(text, 1)[0], where)
        fields = self.fields(first)
        if not self.header:
            return [str(k) for k in range(len(fields))]
        if all(is_number(name) for name in fields):
            got, cure = (f'"{first[:40]}"', " Without a header, pass header=False.") if first else ("nothing", "")
            raise ValueError(f"{where}: the header must name the columns; got {got}.{cure}")
        return fields

    def rows(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        """Return the lines after the header, if there is one."""
        first = next(chunks, b"").removeprefix(_BYTE_ORDER_MARK)
        return itertools.chain([first.partition(b"\n")[2] if self.header else first], chunks)

    def fields(self, line: str) -> list[str]:
        """Return the fields of a line."""
        return _fields(line, self.separator or ",")


def decoded(line: bytes, where: str) -> str:
    """Return a line as text."""
    try:
        return line.decode().removesuffix("\r")
    except UnicodeDecodeError as error:
        byte = f"0x{line[error.start]:02x}"
        raise ValueError(f"{where}: text must be UTF-8; got the byte {byte}. Convert the file to UTF-8.") from None


def is_number(text: str) -> bool:
    """Return whether text is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def _lines(text: bytes, n: int) -> list[bytes]:
    return text.removeprefix(_BYTE_ORDER_MARK).split(b"\n", n)[:n]


def _guessed(lines: list[bytes]) -> str:
    """Return the separator that cuts all lines into equally many fields, or else the first one, into the most."""
    texts = [line.decode(errors="replace").removesuffix("\r") for line in lines if line.strip()] or [""]

    def score(separator: str) -> tuple[bool, int]:
        n_fields = [len(_fields(text, separator)) for text in texts]
        return n_fields[0] > 1 and len(set(n_fields)) == 1, n_fields[0]

    return max(SEPARATORS, key=score)  # the first of the best


def _fields(text: str, separator: str) -> list[str]:
    try:
        return next(csv.reader([text], delimiter=separator), [])
    except csv.Error:  # a field of more than 131,072 characters, or a stray end of line
        return text.split(separator)
