"""The paper's data sets, read as the paper uses them, and fetched where they are not at hand."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isokern.checks import one_of
from isokern.data.datasets import PAPER, STAND_INS, DatasetInfo, find_file, places, stem_of
from isokern.data.download import download as fetch
from isokern.data.libsvm import read_libsvm

_SPLIT_SEED = 0


class Dataset(NamedTuple):
    """Rows to learn from and rows to test on, and their labels."""

    X_train: Any
    y_train: NDArray[np.int64]
    X_test: Any
    y_test: NDArray[np.int64]
    name: str


def list_datasets(*, stand_ins: bool = False) -> list[DatasetInfo]:
    """Return what is known of the paper's eleven data sets.

    Parameters
    ----------
    stand_ins : bool, default=False
        Whether to add the substitutes for some of them, which are smaller or rebuilt, and never downloaded.

    Returns
    -------
    list of DatasetInfo
        In the paper's order. ``info.find()`` tells where the files are, if they are there.

    Examples
    --------
    >>> from isokern.data import list_datasets
    >>> for info in list_datasets()[-3:]:
    ...     print(info.name, info.n_train, info.n_test, info.n_features)
    a9a 32561 16281 123
    covertype 464810 116202 54
    ijcnn1 49990 91701 22
    """
    return [*PAPER, *STAND_INS] if stand_ins else list(PAPER)


def load_dataset(
    name: str,
    folder: str | os.PathLike[str] | None = None,
    *,
    two_classes: bool = True,
    download: bool = True,
    n_jobs: int | None = None,
) -> Dataset:
    """Read one of the paper's data sets, split into training and test rows as there.

    Where there is no official split, rows are drawn at random, always the same ones.

    Parameters
    ----------
    name : str
        A name that :func:`list_datasets` lists.
    folder : str or path, default=None
        Where the files are, as at the LIBSVM site or packed in another way (bz2, xz, gz, zst or not at all). None means
        the folder that the environment variable ISOKERN_DATA names, then the cache.
    two_classes : bool, default=True
        Whether labels are 0 and 1: 1 is the larger of two labels, or stands for the labels that the paper makes one
        class where there are more. Otherwise, the integers in the files.
    download : bool, default=True
        Whether files that are not there are fetched from the LIBSVM site, into ``folder`` or the cache.
    n_jobs : int, default=None
        Threads for reading; None means as many as OpenMP allows.

    Returns
    -------
    Dataset
        The named tuple (X_train, y_train, X_test, y_test, name). X is an array, or CSR where fewer than one value in a
        hundred is not 0; float64, or float32 where an array would otherwise take more than a gigabyte. Pixels lie
        between 0 and 1.

    Examples
    --------
    >>> from isokern.data import load_dataset
    >>> load_dataset("a9a")  # doctest: +SKIP
    >>> load_dataset("a9b")
    Traceback (most recent call last):
    ValueError: name must be one of ...; got "a9b". Did you mean "a9a"?
    """
    info = _info(name)
    paths = info.find(folder) or _fetched(info, folder, download)
    parts = [_read(info, path, n_jobs) for path in paths]
    train, test = parts if len(parts) == 2 else _split(info, *parts[0], paths[0])
    for path, (_, y), n in zip((paths[0], paths[-1]), (train, test), (info.n_train, info.n_test), strict=True):
        _check_rows(path, len(y), n)
    labels = [_labels(info, y, train[1], two_classes) for _, y in (train, test)]
    return Dataset(train[0], labels[0], test[0], labels[1], info.name)


def _info(name: str) -> DatasetInfo:
    known = {info.name: info for info in (*PAPER, *STAND_INS)}
    if name in known:
        return known[name]
    raise ValueError(f'name must be one of {one_of(known)}; got "{name}".{did_you_mean(name, known)}')


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a hint for an error: the most similar known name, or nothing if none is similar."""
    near = difflib.get_close_matches(str(name), known, n=1, cutoff=0.5)
    return f' Did you mean "{near[0]}"?' if near else ""


def _read(info: DatasetInfo, path: Path, n_jobs: int | None) -> tuple[Any, NDArray[np.float64]]:
    X, y = read_libsvm(path, n_features=info.n_features, zero_based=False, dtype=info.dtype, n_jobs=n_jobs)
    if info.divisor != 1.0:
        X.data /= X.dtype.type(info.divisor)
    return X if info.is_sparse else X.toarray(), y


def _split(info: DatasetInfo, X: Any, y: NDArray[np.float64], path: Path) -> Any:
    """Return rows drawn at random, as many as in the paper, and the others."""
    _check_rows(path, len(y), info.n_train + info.n_test)
    # This generator is the one whose numbers NumPy promises never to change.
    order = np.random.RandomState(_SPLIT_SEED).permutation(len(y))
    train, test = order[: info.n_train], order[info.n_train :]
    return (X[train], y[train]), (X[test], y[test])


def _check_rows(path: Path, n: int, expected: int) -> None:
    if n != expected:
        raise ValueError(
            f"{path} must have {expected:,} rows; got {n:,}. It is another file, or not whole: replace it."
        )


def _labels(info: DatasetInfo, y: NDArray[Any], y_train: NDArray[Any], two_classes: bool) -> NDArray[np.int64]:
    if not two_classes:
        return y.astype(np.int64)
    return np.isin(y, info.second_class or y_train.max()).astype(np.int64)


def _fetched(info: DatasetInfo, folder: str | os.PathLike[str] | None, may_download: bool) -> tuple[Path, ...]:
    """Return the paths of the files, those that are not there downloaded."""
    target = places(folder)[-1]
    if not info.urls:
        raise FileNotFoundError(
            _missing(info, folder, f"it only stands in for {info.stands_for}: it is not at the site")
        )
    if not may_download:
        raise FileNotFoundError(_missing(info, folder, "download=False"))
    paths = []
    for url, file in zip(info.urls, info.files, strict=True):
        try:
            paths.append(find_file(target, stem_of(file)) or fetch(url, target))
        except OSError as error:
            raise FileNotFoundError(_missing(info, folder, f"the download of {url} failed: {error}")) from error
    return tuple(paths)


def _missing(info: DatasetInfo, folder: str | os.PathLike[str] | None, why: str) -> str:
    named = "" if folder is not None else ", or set ISOKERN_DATA to the folder that has them"
    return (
        f"{info.name} is not in {' or '.join(map(str, places(folder)))}, and {why}. "
        f"Put {' and '.join(info.files)} there (packed as bz2, xz, gz or zst, or not packed){named}."
    )
