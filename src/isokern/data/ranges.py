"""Files of lines, cut into ranges of bytes that can be read apart, on several machines."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, TypeVar

from isokern.data.archives import is_archive
from isokern.data.lines import PathLike, is_stream, line_chunks, name_of

Read = TypeVar("Read")

_PIECE = 2**22


class Range(NamedTuple):
    """The lines of a file that begin within a range of its bytes; without an end, all lines."""

    path: str
    begin: int
    end: int | None

    def texts(self) -> Iterator[bytes]:
        """Yield the lines, in whatever pieces."""
        if self.end is None:
            yield from line_chunks(self.path)
            return
        with open(self.path, "rb") as file:
            if self.begin:
                file.seek(self.begin - 1)
                file.readline()  # the rest of a line that begins before
            text = file.read(max(0, self.end - file.tell()))
            yield text if text.endswith(b"\n") or not text else text + file.readline()

    def first_line(self) -> int:
        """Return the number of the first line, for which all before it is read."""
        n_lines = 1
        with open(self.path, "rb") as file:
            if self.begin:
                while piece := file.read(min(_PIECE, self.begin - file.tell())):
                    n_lines += piece.count(b"\n")
                file.seek(self.begin - 1)
                n_lines += file.read(1) != b"\n"
        return n_lines


def ranges_of(paths: Iterable[str], size: int) -> list[Range]:
    """Return files cut into ranges of about ``size`` bytes; one that is compressed stays whole."""
    return [part for path in paths for part in _ranges_of_file(path, size)]


def numbered(read: Callable[[int], Read], part: Range) -> Read:
    """Return what ``read`` makes of a range, given the number of its first line, which only errors need."""
    try:
        return read(1)
    except ValueError:
        if not part.begin:
            raise
        return read(part.first_line())


def as_paths(path: PathLike | Iterable[PathLike]) -> list[str]:
    """Return one path or several as a list; raise on what is no file that can be read at any place."""
    paths = [path] if isinstance(path, str | os.PathLike) else list(path)
    if not paths:
        raise ValueError("path must be a file or a list of files; got none.")
    for one in paths:
        if is_stream(one) and (one == "-" or Path(one).exists()):
            raise ValueError(f"path must be a file, which can be read in parts; got {name_of(one)}.")
    return [os.path.abspath(os.fspath(one)) for one in paths]


def _ranges_of_file(path: str, size: int) -> Iterator[Range]:
    n_bytes = os.path.getsize(path)
    if is_archive(path):
        yield Range(path, 0, None)
        return
    for begin in range(0, max(1, n_bytes), size):
        yield Range(path, begin, min(begin + size, n_bytes))
