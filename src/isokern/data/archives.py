"""Decompress and compress gzip, bzip2, xz and Zstandard streams.

The first bytes choose the format for reading, the file name's suffix for writing. An archive of a few bytes may ask its
decompressor for gigabytes, so memory is limited to 256 MiB, or the MiB in the environment variable
ISOKERN_ARCHIVE_MEMORY. This is enough for all presets of ``xz`` and ``zstd``.
"""

from __future__ import annotations

import bz2
import gzip
import itertools
import lzma
import os
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, BinaryIO

_MEMORY_VARIABLE = "ISOKERN_ARCHIVE_MEMORY"


class ArchiveError(Exception):
    """Raised if an archive is truncated or corrupt, or needs too much memory."""


def decompressed(pieces: Iterator[bytes], size: int) -> tuple[Iterator[bytes], bool]:
    """Return an iterator over the decompressed content of a stream, and whether the stream was compressed.

    The iterator gives at most ``size`` bytes at a time, as soon as they are available. A stream that is not compressed
    passes unchanged. Archives may be concatenated, as parallel compressors write them,
    and padded with zero bytes, as on tapes. Python's own readers ignore other trailing data; here they are an error,
    because they may be the remaining rows.
    """
    start = _beginning(pieces)
    pieces = itertools.chain([start], pieces)
    for magic, new_decoder in _DECODERS.items():
        if start.startswith(magic):
            return _decoded(pieces, new_decoder, size), True
    return pieces, False


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
        raise ArchiveError("the archive is truncated.")


def _outputs(decoder: Any, data: bytes, size: int) -> Iterator[bytes]:
    """Yield everything that a decoder can decompress so far."""
    is_full = True
    while is_full and not decoder.eof:
        try:
            output = decoder.decompress(data, size)
        except MemoryError:
            raise
        except Exception as error:  # each format has its own exception class
            if "memory" in str(error).lower():  # neither lzma nor zstd has a class for this
                raise ArchiveError(
                    f"the archive must need at most {_memory_limit() >> 20} MiB of memory; it asks for more. "
                    f"If you trust it, set {_MEMORY_VARIABLE} to a larger number of MiB."
                ) from error
            raise ArchiveError(f"the archive is corrupt: {error}") from error
        if output:
            yield output
        is_full, data = len(output) == size, b""


def _memory_limit() -> int:
    """Return the number of bytes that a decompressor may take."""
    given = os.environ.get(_MEMORY_VARIABLE, "256")
    if not (given.isdecimal() and int(given) > 0):
        raise ValueError(f"{_MEMORY_VARIABLE} must be a positive integer, a number of MiB; got {given!r}.")
    return int(given) << 20


def _xz_decoder() -> Any:
    return lzma.LZMADecompressor(memlimit=_memory_limit())


def _zstd_decoder() -> Any:
    zstd = _zstd()
    largest = zstd.DecompressionParameter.window_log_max
    return zstd.ZstdDecompressor(options={largest: min(_memory_limit().bit_length() - 1, largest.bounds()[1])})


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
    b"\xfd7zXZ\x00": _xz_decoder,
    b"\x28\xb5\x2f\xfd": _zstd_decoder,
}

_COMPRESSORS: dict[str, Callable[[BinaryIO], Any]] = {
    # Without a timestamp, the same rows give the same bytes.
    ".gz": lambda file: gzip.GzipFile(fileobj=file, mode="wb", mtime=0),
    ".bz2": partial(bz2.BZ2File, mode="wb"),
    ".xz": partial(lzma.LZMAFile, mode="wb"),
    ".zst": _open_zstd,
}
