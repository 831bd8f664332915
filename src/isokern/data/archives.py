"""Decompress and compress gzip, bzip2, xz and Zstandard streams.

The first bytes choose the format for reading, the file name's suffix for writing.
"""

from __future__ import annotations

import bz2
import gzip
import itertools
import lzma
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, BinaryIO


class CorruptArchiveError(Exception):
    """Raised if an archive is truncated or corrupt."""


def decompressed(pieces: Iterator[bytes], size: int) -> Iterator[bytes]:
    """Yield the decompressed content of a stream, at most ``size`` bytes at a time, as soon as it is available.

    A stream that is not compressed passes unchanged. Archives may be concatenated, as parallel compressors write them,
    and padded with zero bytes, as on tapes. Python's own readers ignore other trailing data; here they are an error,
    because they may be the remaining rows.
    """
    start = _beginning(pieces)
    pieces = itertools.chain([start], pieces)
    for magic, new_decoder in _DECODERS.items():
        if start.startswith(magic):
            return _decoded(pieces, new_decoder, size)
    return pieces


def is_archive(path: str) -> bool:
    """Return whether a file starts with the magic number of an archive."""
    with open(path, "rb") as file:
        return file.read(8).startswith(tuple(_DECODERS))


def compressing(file: BinaryIO, suffix: str) -> AbstractContextManager[Any]:
    """Return a file that compresses into ``file`` if the suffix is .gz, .bz2, .xz or .zst, else ``file`` itself."""
    return _COMPRESSORS.get(suffix, nullcontext)(file)


def _beginning(pieces: Iterator[bytes]) -> bytes:
    """Read until the magic number is complete or ruled out, and return what was read."""
    start = b""
    for piece in pieces:
        start += piece
        if not any(magic.startswith(start) for magic in _DECODERS):
            break
    return start


def _decoded(pieces: Iterator[bytes], new_decoder: Callable[[], Any], size: int) -> Iterator[bytes]:
    decoder = new_decoder()
    for piece in pieces:
        rest = piece
        while rest := rest.lstrip(b"\0") if decoder.eof else rest:
            decoder = new_decoder() if decoder.eof else decoder
            yield from _outputs(decoder, rest, size)
            rest = decoder.unused_data
    if not decoder.eof:
        raise CorruptArchiveError("the archive is truncated.")


def _outputs(decoder: Any, data: bytes, size: int) -> Iterator[bytes]:
    """Yield everything that a decoder can decompress so far."""
    is_full = True
    while is_full and not decoder.eof:
        try:
            output = decoder.decompress(data, size)
        except MemoryError:
            raise
        except Exception as error:  # each format has its own exception class
            raise CorruptArchiveError(f"the archive is corrupt: {error}") from error
        if output:
            yield output
        is_full, data = len(output) == size, b""


class _GzipDecoder:
    """Give zlib the interface of bz2's, lzma's and zstd's decoders, which keep input that they have not used yet."""

    def __init__(self) -> None:
        self._decoder = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)

    def decompress(self, data: bytes, size: int) -> bytes:
        return self._decoder.decompress(self._decoder.unconsumed_tail + data, size)

    @property
    def eof(self) -> bool:
        return self._decoder.eof

    @property
    def unused_data(self) -> bytes:
        return self._decoder.unused_data


def _zstd() -> Any:
    try:
        if sys.version_info >= (3, 14):
            from compression import zstd
        else:
            from backports import zstd
    except ImportError as error:
        raise ImportError("Zstandard files need a package: pip install isokern[zstd]") from error
    return zstd


def _open_zstd(file: BinaryIO) -> Any:
    zstd = _zstd()
    return zstd.ZstdFile(file, "wb", options={zstd.CompressionParameter.checksum_flag: 1})


# Magic number -> decoder.
_DECODERS: dict[bytes, Callable[[], Any]] = {
    b"\x1f\x8b": _GzipDecoder,
    b"BZh": bz2.BZ2Decompressor,
    b"\xfd7zXZ\x00": lzma.LZMADecompressor,
    b"\x28\xb5\x2f\xfd": lambda: _zstd().ZstdDecompressor(),
}

_COMPRESSORS: dict[str, Callable[[BinaryIO], Any]] = {
    # Without a timestamp, the same rows give the same bytes.
    ".gz": lambda file: gzip.GzipFile(fileobj=file, mode="wb", mtime=0),
    ".bz2": partial(bz2.BZ2File, mode="wb"),
    ".xz": partial(lzma.LZMAFile, mode="wb"),
    ".zst": _open_zstd,
}
