"""Read cifar-10 in its own format: binary files of 10,000 images, or an archive of them."""

from __future__ import annotations

import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isokern.data.datasets import CIFAR_BATCHES, CIFAR_FILES, stem_of

_N_PIXELS = 3_072  # after a byte with the label: 32 x 32 red ones, then green, then blue
Part = tuple[NDArray[np.floating[Any]], NDArray[np.float64]]


def is_cifar(paths: Sequence[Path]) -> bool:
    """Return whether files have this format, by their names."""
    return stem_of(paths[0].name) in {stem_of(files[0]) for files in CIFAR_FILES}


def read_cifar(paths: Sequence[Path], dtype: type[np.floating[Any]]) -> list[Part]:
    """Return rows of pixels from 0 to 1, and labels, of the training and of the test part."""
    if len(paths) == 1:
        contents = _unpacked(paths[0])
    else:
        contents = {name: path.read_bytes() for name, path in zip(CIFAR_BATCHES, paths, strict=True)}
    batches = [_images(name, contents[name]) for name in CIFAR_BATCHES]
    return [_joined(batches[:-1], dtype), _joined(batches[-1:], dtype)]


def _unpacked(path: Path) -> dict[str, bytes]:
    """Return the files with images in an archive, whose folder may have any name."""
    contents = {}
    with tarfile.open(path) as archive:
        for member in archive:
            name = member.name.rpartition("/")[2]
            if name in CIFAR_BATCHES and (file := archive.extractfile(member)):
                contents[name] = file.read()
    if missing := set(CIFAR_BATCHES) - set(contents):
        raise ValueError(f"{path} must contain {min(missing)}. Replace it: it is another file or incomplete.")
    return contents


def _images(name: str, content: bytes) -> NDArray[np.uint8]:
    if len(content) % (1 + _N_PIXELS):
        raise ValueError(f"{name} must have {1 + _N_PIXELS:,} bytes for each image; got {len(content):,} bytes in all.")
    return np.frombuffer(content, np.uint8).reshape(-1, 1 + _N_PIXELS)


def _joined(batches: Sequence[NDArray[np.uint8]], dtype: type[np.floating[Any]]) -> Part:
    images = np.concatenate(batches)
    return images[:, 1:] / dtype(255), images[:, 0].astype(np.float64)
