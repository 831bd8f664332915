"""Read text files, compressed or not, and standard input in chunks of whole lines."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager, nullcontext
from pathlib import Path
from threading import Thread
from typing import Any

from isokern.data.archives import CorruptArchiveError, decompressed

PathLike = str | os.PathLike[str]

STDIN = "-"
_PIECE = 2**22  # bytes
_LONGEST_LINE = 2**28  # bytes
_POLL_TIMEOUT = 200  # milliseconds


def name_of(path: PathLike) -> str:
    """Return a file's name for error messages."""
    return "standard input" if path == STDIN else Path(path).name


def is_stream(path: PathLike) -> bool:
    """Return whether a path can be read only once: standard input, a pipe or a device."""
    return path == STDIN or not Path(path).is_file()


@contextmanager
def open_lines(path: PathLike) -> Iterator[Iterator[bytes]]:
    """Open a text file as an iterator of chunks of whole lines, each available as soon as possible.

    Compressed files are recognised by their first bytes. Only the last line of the last chunk may lack its newline.
    """
    with nullcontext(sys.stdin.buffer) if path == STDIN else open(path, "rb") as file:
        yield _line_chunks(_pieces(file, is_stream(path)), name_of(path))


def _line_chunks(pieces: Iterator[bytes], name: str) -> Iterator[bytes]:
    n_lines = 0
    tail = bytearray()
    try:
        for piece in pieces:
            first, end = piece.find(b"\n"), piece.rfind(b"\n") + 1
            if len(tail) + (first if end else len(piece)) > _LONGEST_LINE:
                raise ValueError(f"{name}, line {n_lines + 1}: must be at most {_LONGEST_LINE:,} bytes long.")
            if end:
                yield b"".join((tail, memoryview(piece)[:end]))
                n_lines += piece.count(b"\n")
                tail.clear()
            tail += memoryview(piece)[end:]
    except CorruptArchiveError as error:
        raise ValueError(f"{name}, line {n_lines + 1}: {error}") from error
    if tail:
        yield bytes(tail)


def _pieces(file: Any, is_stream: bool) -> Iterator[bytes]:
    """Return the decompressed content; files are read ahead, streams are read as data arrive."""
    if is_stream:
        return decompressed(_arriving(file), _PIECE)
    return _read_ahead(decompressed(iter(lambda: file.read(_PIECE), b""), _PIECE))


def _arriving(file: Any) -> Iterator[bytes]:
    """Yield data from a pipe as they arrive.

    Python handles a signal only between system calls. A signal just before a blocking read would wait for the next
    data, so this polls with a timeout first.
    """
    poll = _poll(file)
    while piece := file.read1(_PIECE):
        yield piece
        while poll is not None and not poll.poll(_POLL_TIMEOUT):
            pass


def _poll(file: Any) -> Any:
    """Return a poll object for a file, or None where the system or the file has none."""
    try:
        poll = select.poll()
        poll.register(file.fileno(), select.POLLIN)
    except (AttributeError, OSError):
        return None
    return poll


def _read_ahead(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield pieces; a thread reads the next one while the caller works on the current one."""
    coming = _read_in_thread(pieces)
    while piece := coming.result():
        coming = _read_in_thread(pieces)
        yield piece


def _read_in_thread(pieces: Iterator[bytes]) -> Future[bytes]:
    """Return the next piece as a future; empty bytes mark the end.

    An executor would join its thread when an unfinished generator is garbage-collected, which can deadlock. Nobody
    joins this daemon thread.
    """
    future: Future[bytes] = Future()

    def read() -> None:
        try:
            future.set_result(next(pieces, b""))
        except BaseException as error:
            future.set_exception(error)

    Thread(target=read, daemon=True).start()
    return future
