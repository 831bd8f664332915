"""Read the paper's data sets as the paper uses them, and download missing files."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isokern.checks import one_of
from isokern.data.cifar import is_cifar, read_cifar
from isokern.data.datasets import GENERATED, PAPER, STAND_INS, DatasetInfo, find_file, search_folders, stem_of
from isokern.data.generated import generate
from isokern.data.libsvm import read_libsvm

_SPLIT_SEED = 0


class Dataset(NamedTuple):
    """Training and test rows with their labels."""

    X_train: Any
    y_train: NDArray[np.int64]
    X_test: Any
    y_test: NDArray[np.int64]
    name: str


def list_datasets(*, stand_ins: bool = False) -> list[DatasetInfo]:
    """Return descriptions of the paper's eleven data sets.

    Parameters
    ----------
    stand_ins : bool, default=False
        Whether to add substitutes for some of them, which are smaller, rebuilt or generated, and never downloaded.

    Returns
    -------
    list of DatasetInfo
        In the paper's order. ``info.find()`` returns the paths of the files, if they are available; ``info.checksums``
        are the SHA-256 that downloads must have, where they are known.

    Examples
    --------
    >>> from isokern.data import list_datasets
    >>> for info in list_datasets()[-3:]:
    ...     print(info.name, info.n_train, info.n_test, info.n_features)
    a9a 32561 16281 123
    covertype 464810 116202 54
    ijcnn1 49990 91701 22
    """
    return [*PAPER, *STAND_INS, *GENERATED] if stand_ins else list(PAPER)


def load_dataset(
    name: str,
    folder: str | os.PathLike[str] | None = None,
    *,
    two_classes: bool = True,
    download: bool = True,
    n_jobs: int | None = None,
) -> Dataset:
    """Read one of the paper's data sets, with the paper's split into training and test rows.

    Without an official split, the rows are split at random, always in the same way.

    Parameters
    ----------
    name : str
        A name that :func:`list_datasets` lists.
    folder : str or path, default=None
        The folder with the files of the LIBSVM site, compressed (bz2, xz, gz, zst) or not; for cifar-10 also its own
        binary files or their archive. None means the folder in the environment variable ISOKERN_DATA, then the cache.
    two_classes : bool, default=True
        Whether labels are 0 and 1: 1 is the larger of two labels or, if there are more, stands for the labels that the
        paper combines to one class. Otherwise, labels are the integers in the files.
    download : bool, default=True
        Whether to download missing files from the LIBSVM site, into ``folder`` or the cache; needs the extra ``cli``.
        The SHA-256 is checked where ``info.checksums`` has it; for other files, a line in the log says that none is
        known.
    n_jobs : int, default=None
        The number of threads for reading; None means ``$OMP_NUM_THREADS`` or else all CPUs.

    Returns
    -------
    Dataset
        The named tuple (X_train, y_train, X_test, y_test, name). X is CSR if fewer than 1 % of the values are nonzero,
        else an array; float64, or float32 if an array of float64 would take more than a gigabyte. Pixels are scaled to
        [0, 1].

    Examples
    --------
    >>> from isokern.data import load_dataset
    >>> load_dataset("a9a")  # doctest: +SKIP
    >>> load_dataset("a9b")
    Traceback (most recent call last):
    ValueError: name must be one of ...; got "a9b". Did you mean "a9a"?
    """
    known = {info.name: info for info in list_datasets(stand_ins=True)}
    if name not in known:
        raise ValueError(f'name must be one of {one_of(known)}; got "{name}".{did_you_mean(name, known)}')
    info = known[name]
    train, test = _parts(info, folder, download, n_jobs) if info.files else generate(info)
    labels = [_labels(info, y, train[1], two_classes) for _, y in (train, test)]
    return Dataset(train[0], labels[0], test[0], labels[1], info.name)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a hint for an error: the most similar known name, or nothing if none is similar."""
    near = difflib.get_close_matches(str(name), known, n=1, cutoff=0.5)
    return f' Did you mean "{near[0]}"?' if near else ""


def _parts(info: DatasetInfo, folder: str | os.PathLike[str] | None, may_download: bool, n_jobs: int | None) -> Any:
    """Return the rows and labels of the training and of the test part."""
    paths = info.find(folder) or _fetch_missing(info, folder, may_download)
    parts: list[tuple[Any, Any]] = (
        [_read(info, path, n_jobs) for path in paths] if not is_cifar(paths) else read_cifar(paths, info.dtype)
    )
    train, test = parts if len(parts) == 2 else _split(info, *parts[0], paths[0])
    for path, (_, y), n in zip((paths[0], paths[-1]), (train, test), (info.n_train, info.n_test), strict=True):
        _check_rows(path, len(y), n)
    return train, test


def _read(info: DatasetInfo, path: Path, n_jobs: int | None) -> tuple[Any, NDArray[np.float64]]:
    X, y = read_libsvm(path, n_features=info.n_features, zero_based=False, dtype=info.dtype, n_jobs=n_jobs)
    if info.divisor != 1.0:
        X.data /= X.dtype.type(info.divisor)
    return X if info.is_sparse else X.toarray(), y


def _split(info: DatasetInfo, X: Any, y: NDArray[np.float64], path: Path) -> Any:
    """Return as many random rows as the paper trains on, and the others."""
    _check_rows(path, len(y), info.n_train + info.n_test)
    # NumPy promises never to change the numbers of this generator.
    order = np.random.RandomState(_SPLIT_SEED).permutation(len(y))
    train, test = order[: info.n_train], order[info.n_train :]
    return (X[train], y[train]), (X[test], y[test])


def _check_rows(path: Path, n: int, expected: int) -> None:
    if n != expected:
        raise ValueError(
            f"{path} must have {expected:,} rows; got {n:,}. Replace it: it is another file or incomplete."
        )


def _labels(info: DatasetInfo, y: NDArray[Any], y_train: NDArray[Any], two_classes: bool) -> NDArray[np.int64]:
    if not two_classes:
        return y.astype(np.int64)
    return np.isin(y, info.second_class or y_train.max()).astype(np.int64)


def _fetch_missing(info: DatasetInfo, folder: str | os.PathLike[str] | None, may_download: bool) -> tuple[Path, ...]:
    """Return the paths of the files after missing ones were downloaded."""
    if not info.urls:
        raise FileNotFoundError(_missing(info, folder, f"the site does not have this stand-in for {info.stands_for}"))
    if not may_download:
        raise FileNotFoundError(_missing(info, folder, "download=False"))
    fetch = _downloader(info.name)
    target, paths = search_folders(folder)[-1], []
    for url, file, sha256 in zip(info.urls, info.files, info.checksums, strict=True):
        try:
            paths.append(find_file(target, stem_of(file)) or fetch(url, target, sha256))
        except OSError as error:
            raise FileNotFoundError(_missing(info, folder, f"the download of {url} failed: {error}")) from error
    return tuple(paths)


def _downloader(name: str) -> Callable[[str, Path, str | None], Path]:
    try:
        from isokern.data.download import download
    except ImportError as error:
        raise ImportError(f"downloading {name} needs packages: pip install isokern[cli]") from error
    return download


def _missing(info: DatasetInfo, folder: str | os.PathLike[str] | None, reason: str) -> str:
    named = "" if folder is not None else ", or set ISOKERN_DATA to the folder that has them"
    searched = " or ".join(map(str, search_folders(folder))) or "$ISOKERN_DATA"
    return (
        f"{info.name} is not in {searched}, and {reason}. "
        f"Put {' and '.join(info.files)} there (compressed as bz2, xz, gz or zst, or not compressed){named}."
    )
