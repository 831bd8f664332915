"""The lines of text files, plain or compressed, and of standard input, in pieces as they come."""

from __future__ import annotations

import os
import select
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from isokern.data.archives import DamagedError, decompressed

PathLike = str | os.PathLike[str]

STDIN = "-"
_PIECE = 2**22  # bytes
_LONGEST_LINE = 2**28
_PATIENCE = 200  # milliseconds


def name_of(path: PathLike) -> str:
    """Return a file's name as errors give it."""
    return "standard input" if path == STDIN else Path(path).name


def is_stream(path: PathLike) -> bool:
    """Return whether a path can be read but once, as it comes: standard input, a pipe or a device."""
    return path == STDIN or not Path(path).is_file()


def line_chunks(path: PathLike) -> Iterator[bytes]:
    """Yield the content of a text file in pieces that end with a line, as soon as whole lines are there.

    Parameters
    ----------
    path : str or path
        A file, plain or compressed by gzip, bzip2, xz or Zstandard, which its first bytes tell; "-" is standard input.

    Yields
    ------
    piece : bytes
        Whole lines; only the last line of the last piece may lack its newline.
    """
    n_lines = 0
    tail = bytearray()
    try:
        for piece in _pieces(path):
            first, end = piece.find(b"\n"), piece.rfind(b"\n") + 1
            if len(tail) + (first if end else len(piece)) > _LONGEST_LINE:
                raise ValueError(f"{name_of(path)}, line {n_lines + 1}: longer than {_LONGEST_LINE:,} bytes.")
            if end:
                yield b"".join((tail, memoryview(piece)[:end]))
                n_lines += piece.count(b"\n")
                tail.clear()
            tail += memoryview(piece)[end:]
    except DamagedError as damage:
        raise ValueError(f"{name_of(path)}, line {n_lines + 1}: {damage}") from damage
    if tail:
        yield bytes(tail)


def _pieces(path: PathLike) -> Iterator[bytes]:
    """Yield the decompressed content, reading ahead unless it comes as a stream."""
    with _opened(path) as file:
        if is_stream(path):
            yield from decompressed(_arriving(file), _PIECE)
        else:
            yield from _ahead(decompressed(iter(lambda: file.read(_PIECE), b""), _PIECE))


def _arriving(file: Any) -> Iterator[bytes]:
    """Yield what comes from a pipe, as it comes.

    A signal that arrives just before a read would wait for the next bytes, so the wait for them is cut short now and
    then.
    """
    wait = _waiting_for(file)
    while piece := file.read1(_PIECE):
        yield piece
        wait()


def _waiting_for(file: Any) -> Callable[[], None]:
    """Return a function that waits until there is something to read, where the system can tell."""
    try:
        poll = select.poll()
        poll.register(file.fileno(), select.POLLIN)
    except (AttributeError, OSError):  # no such call, or no such file
        return lambda: None

    def wait() -> None:
        while not poll.poll(_PATIENCE):
            pass

    return wait


def _ahead(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield pieces, each read while the one before is at work."""
    coming = _Coming(pieces)
    while piece := coming.result():
        coming = _Coming(pieces)
        yield piece


class _Coming(threading.Thread):
    """A piece that is being read.

    Nobody has to wait for it: a reader that is left unfinished may be cleared away by the garbage collector, at a
    moment when waiting for a thread, as an executor would, can wait forever.
    """

    def __init__(self, pieces: Iterator[bytes]) -> None:
        super().__init__(daemon=True)
        self._pieces = pieces
        self._piece = b""
        self._error: BaseException | None = None
        self.start()

    def run(self) -> None:
        """Read it."""
        try:
            self._piece = next(self._pieces, b"")
        except BaseException as error:  # to be raised where the piece is wanted
            self._error = error

    def result(self) -> bytes:
        """Return the piece once it is there; no bytes at the end."""
        self.join()
        if self._error is not None:
            raise self._error
        return self._piece


def _opened(path: PathLike) -> AbstractContextManager[Any]:
    return nullcontext(sys.stdin.buffer) if path == STDIN else open(path, "rb")
