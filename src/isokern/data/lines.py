"""Read text files, compressed or not, and standard input in chunks of whole lines."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager, nullcontext
from pathlib import Path
from threading import Thread
from typing import Any

from isokern.checks import warn_user
from isokern.data.archives import ArchiveError, decompressed
from isokern.system import input_poll

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
    This gives a warning, unless the file is compressed: an archive that is cut off is an error anyway.
    """
    with _opened(path) as (pieces, is_archive):
        chunks = _line_chunks(pieces, name_of(path))
        yield chunks if is_archive else _warn_if_cut_off(chunks, path)


@contextmanager
def peek_lines(path: PathLike) -> Iterator[Iterator[bytes]]:
    """Open a text file like :func:`open_lines`, to look at it before it is read; gives no warning."""
    with _opened(path) as (pieces, _):
        yield _line_chunks(pieces, name_of(path))


def first_lines(texts: Iterator[bytes], n: int) -> list[bytes]:
    """Take chunks until they have n lines, or the text ends."""
    chunks: list[bytes] = []
    for text in texts:
        chunks.append(text)
        n -= text.count(b"\n")
        if n <= 0:
            break
    return chunks


@contextmanager
def _opened(path: PathLike) -> Iterator[tuple[Iterator[bytes], bool]]:
    """Open a file; return its decompressed content, and whether it is an archive.

    Files are read ahead, streams are read as data arrive.
    """
    with nullcontext(sys.stdin.buffer) if path == STDIN else open(path, "rb") as file:
        if is_stream(path):
            yield decompressed(_arriving(file), _PIECE)
        else:
            pieces, is_archive = decompressed(iter(lambda: file.read(_PIECE), b""), _PIECE)
            yield _read_ahead(pieces), is_archive


def _warn_if_cut_off(chunks: Iterator[bytes], path: PathLike) -> Iterator[bytes]:
    last = b""
    for last in chunks:
        yield last
    if last.strip() and not last.endswith(b"\n"):
        warn_user(
            f"{name_of(path) if path == STDIN else os.fspath(path)}: the last line does not end with a newline, so the "
            "file may have been cut off. Compare it with its source; if it is complete, add the newline.",
        )


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
    except ArchiveError as error:
        raise ValueError(f"{name}, line {n_lines + 1}: {error}") from error
    if tail:
        yield bytes(tail)


def _arriving(file: Any) -> Iterator[bytes]:
    """Yield data from a pipe as they arrive.

    Python handles a signal only between system calls. A signal just before a blocking read would wait for the next
    data, so this polls with a timeout first.
    """
    poll = input_poll(file)
    while piece := file.read1(_PIECE):
        yield piece
        while poll is not None and not poll.poll(_POLL_TIMEOUT):
            pass


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
