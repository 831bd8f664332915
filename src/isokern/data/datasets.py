"""What is known of the paper's data sets, and where their files are looked for."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pooch

SITE = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets"
_SUFFIXES = ("", ".bz2", ".xz", ".gz", ".zst")


@dataclass(frozen=True)
class DatasetInfo:
    """What is known of a data set before it is read.

    Attributes
    ----------
    name : str
        As in the paper.
    n_train, n_test : int
        The number of rows to learn from, and to test on.
    n_features : int
        The number of columns.
    density : float
        The share of values that are not 0.
    n_classes : int
        The number of classes in the files.
    files : tuple of str
        The files' names at the LIBSVM site: training and test rows, or one file that is split at random.
    folder : str or None
        Where they are at the LIBSVM site; None for those that are not there.
    second_class : tuple of int
        The labels that make up the second class where more than two are made two.
    divisor : float
        What the values in the files are divided by.
    also_called : tuple of str
        Other names under which a file without an official split is found.
    stands_for : str or None
        The name of the data set that this one is a substitute for.
    note : str
        What else to keep in mind.
    """

    name: str
    n_train: int
    n_test: int
    n_features: int
    density: float
    files: tuple[str, ...]
    folder: str | None = "binary"
    n_classes: int = 2
    second_class: tuple[int, ...] = ()
    divisor: float = 1.0
    also_called: tuple[str, ...] = ()
    stands_for: str | None = None
    note: str = ""

    @property
    def is_sparse(self) -> bool:
        """Whether fewer than one value in a hundred is not 0; then rows are read as CSR."""
        return self.density < 0.01

    @property
    def dtype(self) -> type[np.floating[Any]]:
        """float32 where an array of float64 would take more than a gigabyte, else float64."""
        n_bytes = 8 * (self.n_train + self.n_test) * self.n_features
        return np.float32 if not self.is_sparse and n_bytes > 2**30 else np.float64

    @property
    def urls(self) -> tuple[str, ...]:
        """The addresses of the files; none for a substitute."""
        return () if self.folder is None else tuple(f"{SITE}/{self.folder}/{file}" for file in self.files)

    def find(self, folder: str | os.PathLike[str] | None = None) -> tuple[Path, ...] | None:
        """Return the paths of the files, or None if they are not all in one place.

        Parameters
        ----------
        folder : str or path, default=None
            Where to look; None means the folder that the environment variable ISOKERN_DATA names, then the cache.
        """
        for place in places(folder):
            for stems in self._stems():
                paths = [find_file(place, stem) for stem in stems]
                if all(paths):
                    return tuple(path for path in paths if path)
        return None

    def _stems(self) -> Iterator[tuple[str, ...]]:
        """Yield the sets of files, named without endings such as .bz2, that the rows can be read from."""
        first, *others = (stem_of(file) for file in self.files)
        if others:
            yield (first, *others)
            return
        for stem in (first, *self.also_called):
            yield (stem,)
            yield (f"{stem}.train", f"{stem}.test")


def places(folder: str | os.PathLike[str] | None) -> list[Path]:
    """Return the folders to look into; what is downloaded goes into the last."""
    if folder is not None:
        return [Path(folder).expanduser()]
    named = os.environ.get("ISOKERN_DATA")
    return [*([Path(named).expanduser()] if named else []), Path(pooch.os_cache("isokern"))]


def stem_of(file: str) -> str:
    """Return a file's name without the ending of a packed file."""
    return next(file.removesuffix(suffix) for suffix in reversed(_SUFFIXES) if file.endswith(suffix))


def find_file(folder: Path, stem: str) -> Path | None:
    """Return the path of a file, packed or not, or None if it is not there."""
    return next((path for suffix in _SUFFIXES if (path := folder / f"{stem}{suffix}").is_file()), None)


# In the order of the paper's table: name, rows to learn from and to test on, columns, share that is not 0. Then files.
PAPER = (
    DatasetInfo("url", 30_000, 2_366_130, 3_231_961, 0.000036, ("url_combined.bz2",)),
    DatasetInfo("news20.binary", 15_997, 3_999, 1_355_191, 0.0003, ("news20.binary.bz2",)),
    DatasetInfo("rcv1.binary", 20_242, 677_399, 47_236, 0.0016, ("rcv1_train.binary.bz2", "rcv1_test.binary.bz2")),
    DatasetInfo("real-sim", 57_848, 14_461, 20_958, 0.0024, ("real-sim.bz2",)),
    DatasetInfo(
        "smallNORB",
        24_300,
        24_300,
        18_432,
        1.0,
        ("smallNORB.xz", "smallNORB.t.xz"),
        folder="multiclass",
        n_classes=5,
        second_class=(1, 4),
        divisor=255.0,
    ),
    DatasetInfo(
        "cifar-10",
        50_000,
        10_000,
        3_072,
        0.998,
        ("cifar10.bz2", "cifar10.t.bz2"),
        folder="multiclass",
        n_classes=10,
        second_class=(0, 2, 3, 4, 5),
        divisor=255.0,
    ),
    DatasetInfo("epsilon", 400_000, 100_000, 2_000, 1.0, ("epsilon_normalized.xz", "epsilon_normalized.t.xz")),
    DatasetInfo(
        "mnist",
        60_000,
        10_000,
        780,
        0.193,
        ("mnist.bz2", "mnist.t.bz2"),
        folder="multiclass",
        n_classes=10,
        second_class=(3, 4, 6, 7, 9),
        divisor=255.0,
    ),
    DatasetInfo("a9a", 32_561, 16_281, 123, 0.113, ("a9a", "a9a.t")),
    DatasetInfo(
        "covertype",
        464_810,
        116_202,
        54,
        0.221,
        ("covtype.libsvm.binary.scale.bz2",),
        also_called=("covtype.binary.scale",),
    ),
    DatasetInfo("ijcnn1", 49_990, 91_701, 22, 0.591, ("ijcnn1.bz2", "ijcnn1.t.bz2")),
)

STAND_INS = (
    DatasetInfo(
        "url-subset",
        2_400,
        600,
        3_231_961,
        0.000036,
        ("url_subset",),
        folder=None,
        stands_for="url",
        note="3,000 of its rows, with all of its columns; split at random.",
    ),
    DatasetInfo(
        "news20-rebuilt",
        15_962,
        3_991,
        1_350_639,
        0.0003,
        ("news20_rebuilt.train", "news20_rebuilt.test"),
        folder=None,
        stands_for="news20.binary",
        note="Made anew from the articles: close to the official file, not equal to it.",
    ),
    DatasetInfo(
        "rcv1-subset",
        18_999,
        4_750,
        47_236,
        0.0016,
        ("rcv1_subset.train", "rcv1_subset.test"),
        folder=None,
        stands_for="rcv1.binary",
        note="23,749 of its documents; not the official split.",
    ),
    DatasetInfo(
        "ijcnn1-train",
        39_992,
        9_998,
        22,
        0.591,
        ("ijcnn1.tr",),
        folder=None,
        stands_for="ijcnn1",
        note="Its training rows only, split at random; columns 1 to 10 filled in by their period of ten.",
    ),
)
