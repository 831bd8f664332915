"""Read and write the file format of models: a JSON header and arrays, protected by a checksum.

Layout: a 64-byte preamble (magic number, format version, version of the writer, size of the header, size of the file),
the header as JSON, the arrays in the order of their descriptions in the header, each aligned to 64 bytes, and a BLAKE2b
digest of everything before it. Size and digest are verified before anything is decoded. The first 48 bytes are the same
in every format version, so that an old isokern can name the version that wrote a newer file.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import os
import re
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from isokern.files import replacing

FORMAT = 2
_MAGIC = b"\x89isokern"
_PREAMBLE = struct.Struct("<8sI36sQQ")
_ALIGNMENT = 64
_DIGEST_SIZE = 32
_CHUNK = 2**20
# The values that an empty array would have if its lengths of 0 were 1: tables without rows may be wide.
_LARGEST_EMPTY = 2**24
# Booleans, integers, floats, text and dates; nothing of width 0 and nothing that contains Python objects.
_DTYPE = re.compile(r"\|[biu]1|[<>]([iu][248]|f(2|4|8|16)|U[1-9]\d*|[mM]8(\[\d*[A-Za-z]+\])?)|\|S[1-9]\d*")


class BadFileError(ValueError):
    """An invalid file; ``open_container`` adds the path to the message."""


def describe_array(array: NDArray[Any]) -> dict[str, Any]:
    """Return the description of an array for the header."""
    return {"dtype": array.dtype.str, "shape": list(array.shape)}


def can_hold(dtype: np.dtype[Any]) -> bool:
    """Return whether arrays of a dtype can be saved."""
    return _DTYPE.fullmatch(dtype.str) is not None


def write_container(path: str | os.PathLike[str], header: Any, arrays: Sequence[NDArray[Any]], version: str) -> None:
    """Write a header and its arrays to a file atomically."""
    text = json.dumps(header, separators=(",", ":"), allow_nan=False).encode()
    size = _PREAMBLE.size + _padded(len(text)) + sum(_padded(array.nbytes) for array in arrays) + _DIGEST_SIZE
    digest = hashlib.blake2b(digest_size=_DIGEST_SIZE)
    with _replacing(path) as file:
        parts = [_PREAMBLE.pack(_MAGIC, FORMAT, version.encode(), len(text), size), text, *map(_bytes_of, arrays)]
        for part in parts:
            for piece in (part, bytes(_padded(len(part)) - len(part))):
                digest.update(piece)
                file.write(piece)
        file.write(digest.digest())


def is_container(path: str | os.PathLike[str]) -> bool:
    """Return whether a path is that of a file that begins like a container; a pipe is not read."""
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


def writer_of(path: str | os.PathLike[str]) -> str:
    """Return the version of isokern that wrote a file."""
    with open(path, "rb") as file:
        _, _, writer, _, _ = _PREAMBLE.unpack(file.read(_PREAMBLE.size))
    return _version(writer)


class ContainerReader:
    """A file with verified size and digest: gives the header, then the arrays in order."""

    def __init__(self, file: BufferedReader) -> None:
        self._file = file
        self.size = os.fstat(file.fileno()).st_size
        header_size = self._check_preamble()
        self._check_digest()
        self._at, self._end = _PREAMBLE.size + _padded(header_size), self.size - _DIGEST_SIZE
        if self._at > self._end:
            raise BadFileError("damaged: its header is longer than the file")
        file.seek(_PREAMBLE.size)
        self.header = json.loads(file.read(header_size))

    def read_array(self, description: dict[str, Any]) -> NDArray[Any]:
        """Read the next array into newly allocated memory."""
        dtype, shape = self._dtype(description["dtype"]), self._shape(description["shape"])
        n_bytes = dtype.itemsize * math.prod(shape)
        if n_bytes > self._end - self._at:
            raise BadFileError("damaged: an array is longer than the file")
        array = np.empty(shape, dtype)
        self._file.seek(self._at)
        self._at += _padded(n_bytes)
        if n_bytes and self._file.readinto(array.reshape(-1).view(np.uint8).data) != n_bytes:
            raise BadFileError("truncated")
        _check_values(array)
        return array.astype(dtype.newbyteorder("="), copy=False)

    def check_all_read(self) -> None:
        """Raise if the file contains more than its header describes."""
        if self._at != self._end:
            raise BadFileError("damaged: it holds more than its header describes")

    def check_count(self, count: Any, *, at_most: int = 0) -> int:
        """Return a size after validating that it is an integer of at most the file's size or ``at_most``."""
        if type(count) is not int or not 0 <= count <= max(self.size, at_most):
            raise BadFileError(f"damaged: a size must be a number of at least 0 and within the file; got {count!r}")
        return count

    def _check_preamble(self) -> int:
        preamble = self._file.read(_PREAMBLE.size)
        if preamble[: len(_MAGIC)] != _MAGIC[: len(preamble)] or not preamble:
            raise BadFileError("not an isokern file")
        if len(preamble) < _PREAMBLE.size:
            raise BadFileError("truncated")
        _, version, writer, header_size, size = _PREAMBLE.unpack(preamble)
        if version != FORMAT:
            cure = "Use that version or a newer one" if version > FORMAT else "Fit the model again and save it"
            raise BadFileError(f"format must be {FORMAT}; got {version}, written by isokern {_version(writer)}. {cure}")
        if self.size < size:
            raise BadFileError(f"truncated: it has {self.size} of {size} bytes")
        if self.size > size or size < _PREAMBLE.size + _DIGEST_SIZE:
            raise BadFileError(f"damaged: it has {self.size} bytes in place of {size}")
        return int(header_size)

    def _check_digest(self) -> None:
        digest = hashlib.blake2b(digest_size=_DIGEST_SIZE)
        self._file.seek(0)
        left = self.size - _DIGEST_SIZE
        while left and (chunk := self._file.read(min(left, _CHUNK))):
            digest.update(chunk)
            left -= len(chunk)
        if left or self._file.read(_DIGEST_SIZE) != digest.digest():
            raise BadFileError("damaged: its checksum does not match")

    def _dtype(self, name: Any) -> np.dtype[Any]:
        if not (isinstance(name, str) and _DTYPE.fullmatch(name)):
            raise BadFileError(f"damaged: a dtype must be of numbers or text; got {name!r}")
        dtype = np.dtype(name)
        self.check_count(dtype.itemsize)
        return dtype

    def _shape(self, shape: Any) -> tuple[int, ...]:
        if type(shape) is not list or len(shape) > 8:
            raise BadFileError(f"damaged: a shape must be a list of at most 8 numbers; got {shape!r}")
        sizes = tuple(self.check_count(n, at_most=_LARGEST_EMPTY) for n in shape)
        if 0 in sizes:  # it takes no bytes, but it can be iterated over, and other arrays are allocated by its lengths
            self.check_count(math.prod(itertools.takewhile(bool, sizes)))
            self.check_count(math.prod(filter(None, sizes)), at_most=_LARGEST_EMPTY)
        return sizes


@contextmanager
def open_container(path: str | os.PathLike[str]) -> Iterator[ContainerReader]:
    """Open a file for reading; any defect raises a ValueError that begins with the path."""
    with open(path, "rb") as file:
        try:
            yield ContainerReader(file)
        except BadFileError as error:
            raise ValueError(f"{os.fspath(path)}: {error}.") from None
        except MemoryError:
            raise
        except Exception as error:
            raise ValueError(f"{os.fspath(path)}: damaged: {str(error) or type(error).__name__}") from error


@contextmanager
def _replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    folder = Path(path).parent
    if not folder.is_dir():
        raise FileNotFoundError(f"path must be in a folder that exists; got {os.fspath(path)}. Make {folder} first.")
    if Path(path).is_dir():
        raise IsADirectoryError(f"path must be that of a file; got the folder {os.fspath(path)}.")
    with replacing(path) as file:
        yield file


def _check_values(array: NDArray[Any]) -> None:
    """Raise if an array contains bytes that are invalid for its dtype."""
    if array.dtype.kind == "b" and array.size and array.view(np.uint8).max() > 1:
        raise BadFileError("damaged: a truth value must be 0 or 1")
    if array.dtype.kind == "U" and array.nbytes:
        codes = array.reshape(-1).view(np.dtype(np.uint32).newbyteorder(array.dtype.byteorder))
        if codes.max() > 0x10FFFF:
            raise BadFileError("damaged: text must be of Unicode characters")


def _bytes_of(array: NDArray[Any]) -> memoryview | bytes:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data if array.nbytes else b""


def _version(writer: bytes) -> str:
    return writer.rstrip(b"\0").decode("ascii", "replace")


def _padded(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT
