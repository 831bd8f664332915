"""Cut text files into byte ranges that can be read independently, on several machines."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, TypeVar

from isokern.data.archives import is_archive
from isokern.data.lines import STDIN, PathLike, is_stream, name_of, open_lines

Read = TypeVar("Read")

_PIECE = 2**22


class Range(NamedTuple):
    """The lines of a file that start within a byte range; without an end, all lines."""

    path: str
    begin: int
    end: int | None

    def texts(self) -> Iterator[bytes]:
        """Yield the lines in chunks."""
        if self.end is None:
            with open_lines(self.path) as texts:
                yield from texts
            return
        with open(self.path, "rb") as file:
            if self.begin:
                file.seek(self.begin - 1)
                file.readline()  # the previous range reads the line that starts before this one
            text = file.read(max(0, self.end - file.tell()))
            text += b"" if text.endswith(b"\n") or not text else file.readline()
        yield text

    def first_line(self) -> int:
        """Return the number of the first line; this reads everything before it."""
        n_lines = 1
        with open(self.path, "rb") as file:
            if self.begin:
                while piece := file.read(min(_PIECE, self.begin - file.tell())):
                    n_lines += piece.count(b"\n")
                file.seek(self.begin - 1)
                n_lines += file.read(1) != b"\n"
        return n_lines


def ranges_of(paths: Iterable[str], size: int) -> list[Range]:
    """Cut files into ranges of about ``size`` bytes; a compressed file stays whole."""
    return [part for path in paths for part in _ranges_of_file(path, size)]


def _ranges_of_file(path: str, size: int) -> list[Range]:
    if is_archive(path):
        return [Range(path, 0, None)]
    n_bytes = os.path.getsize(path)
    return [Range(path, begin, min(begin + size, n_bytes)) for begin in range(0, max(1, n_bytes), size)]


def numbered(read: Callable[[int], Read], part: Range) -> Read:
    """Return ``read(number of the range's first line)``; the number is counted only if an error needs it."""
    try:
        return read(1)
    except ValueError:
        if not part.begin:
            raise
        return read(part.first_line())


def as_paths(path: PathLike | Iterable[PathLike]) -> list[str]:
    """Return one or several paths as a list of absolute paths; raise if one is not a regular file."""
    paths = [path] if isinstance(path, str | os.PathLike) else list(path)
    if not paths:
        raise ValueError("path must be a file or a list of files; got an empty list.")
    for one in paths:
        if is_stream(one) and (one == STDIN or Path(one).exists()):
            raise ValueError(f"path must be a regular file, since blocks are read by offset; got {name_of(one)}.")
    return [os.path.abspath(os.fspath(one)) for one in paths]
