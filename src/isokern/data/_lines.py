"""The lines of text files, plain or compressed, and of standard input, in pieces as they come."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import stat
import sys
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

PathLike = str | os.PathLike[str]

STDIN = "-"
_PIECE = 2**22  # bytes
_LONGEST_LINE = 2**28


def name_of(path: PathLike) -> str:
    """Return a file's name as errors give it."""
    return "standard input" if path == STDIN else Path(path).name


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
    for piece in _pieces(path):
        end = piece.rfind(b"\n") + 1
        if end:
            lines = bytes(tail) + piece[:end]
            n_lines += lines.count(b"\n")
            yield lines
            tail = bytearray(piece[end:])
        else:
            tail += piece
        if len(tail) > _LONGEST_LINE:
            raise ValueError(f"{name_of(path)}, line {n_lines + 1}: longer than {_LONGEST_LINE:,} bytes.")
    if tail:
        yield bytes(tail)


def _pieces(path: PathLike) -> Iterator[bytes]:
    """Yield the decompressed content, reading ahead where the source is a file rather than a pipe."""
    with _opened(path) as (file, is_pipe):
        read = file.read1 if is_pipe else file.read
        pieces = iter(lambda: read(_PIECE), b"")
        try:
            yield from pieces if is_pipe else _ahead(pieces)
        except _damages() as error:
            raise ValueError(f"{name_of(path)}: cannot be read to its end: {error}") from error


def _ahead(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield pieces, each read while the one before is at work."""
    with ThreadPoolExecutor(max_workers=1) as pool:
        coming = pool.submit(next, pieces, b"")
        while piece := coming.result():
            coming = pool.submit(next, pieces, b"")
            yield piece


@contextmanager
def _opened(path: PathLike) -> Iterator[tuple[Any, bool]]:
    """Open a file for reading what it holds once decompressed; say, too, whether it is a pipe."""
    if path == STDIN:
        yield _decompressed(sys.stdin.buffer), True
        return
    with open(path, "rb") as file:
        yield _decompressed(file), not stat.S_ISREG(os.fstat(file.fileno()).st_mode)


def _decompressed(file: BinaryIO) -> Any:
    start = file.peek(6)  # type: ignore[attr-defined]
    for magic, opened in _FORMATS.items():
        if start.startswith(magic):
            return opened(file)
    return file


def _open_zstd(file: BinaryIO) -> Any:
    return _zstd().ZstdFile(file)


def _zstd() -> Any:
    try:
        if sys.version_info >= (3, 14):
            from compression import zstd
        else:
            from backports import zstd
    except ImportError as error:
        raise ImportError("Zstandard files need a package: pip install isokern[zstd]") from error
    return zstd


def _damages() -> tuple[type[Exception], ...]:
    """Return what reading a damaged or truncated archive can raise."""
    known = (EOFError, OSError, lzma.LZMAError, zlib.error)
    try:
        return (*known, _zstd().ZstdError)
    except ImportError:
        return known


# first bytes -> how to open what they begin
_FORMATS: dict[bytes, Any] = {
    b"\x1f\x8b": lambda file: gzip.GzipFile(fileobj=file, mode="rb"),
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ\x00": lzma.LZMAFile,
    b"\x28\xb5\x2f\xfd": _open_zstd,
}
