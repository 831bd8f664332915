"""Read and write LIBSVM text: one row per line, ``label index:value index:value ...``."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from scipy import sparse

from isokern import _core
from isokern.checks import is_integer, n_threads
from isokern.data.archives import compressing
from isokern.data.lines import PathLike, first_lines, is_stream, name_of, open_lines, peek_lines
from isokern.data.rebatching import check_sizes, rebatched
from isokern.files import replacing
from isokern.rows import CsrRows, check_finite, check_sparse, csr_class, row_blocks

_LARGEST_INDEX = np.iinfo(np.int32).max


def read_libsvm(
    path: PathLike,
    *,
    n_features: int | None = None,
    zero_based: bool | str = "auto",
    dtype: DTypeLike = np.float64,
    n_jobs: int | None = None,
) -> tuple[Any, NDArray[np.float64]]:
    r"""Read a LIBSVM file.

    Parameters
    ----------
    path : str or path
        A file, plain or compressed with gzip, bzip2, xz or Zstandard; "-" is standard input. Decompressing may take
        256 MiB of memory, or as many MiB as the environment variable ISOKERN_ARCHIVE_MEMORY allows. A plain file
        without a newline at its end gives a warning, because it may have been cut off.
    n_features : int, default=None
        Number of columns; None means the largest index. Set it if a file, such as a test file, may lack the last
        columns, or to reject rows with larger indices.
    zero_based : bool or "auto", default="auto"
        Whether indices count from 0. "auto" means that they do if index 0 occurs, else they count from 1.
    dtype : {numpy.float64, numpy.float32}, default=numpy.float64
        Type of the values.
    n_jobs : int, default=None
        Number of threads; None means ``$OMP_NUM_THREADS`` or else all CPUs.

    Returns
    -------
    X : CSR matrix of shape (n, n_features)
    y : ndarray of shape (n,)
        Labels; NaN for those written ``?``.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from isokern.data import read_libsvm
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "rows.txt"
    >>> _ = path.write_text("+1 1:0.5 3:2\n-1 2:1  # a comment\n")
    >>> X, y = read_libsvm(path)
    >>> X.toarray(), y
    (array([[0.5, 0. , 2. ], [0. , 1. , 0. ]]), array([ 1., -1.]))
    """
    source = Source.checked(path, n_features, zero_based, dtype, n_jobs)
    with open_lines(path) as texts:
        parts = list(source.parts(texts))
    return source.known(parts).table(parts)


def iter_libsvm(
    path: PathLike,
    size: int = 1000,
    *,
    initial: int | None = None,
    n_features: int | None = None,
    zero_based: bool | str = "auto",
    dtype: DTypeLike = np.float64,
    n_jobs: int | None = None,
) -> Iterator[tuple[Any, NDArray[np.float64]]]:
    r"""Read a LIBSVM file block by block, in constant memory.

    If ``n_features`` or ``zero_based`` is not given, a file is read twice: first to find them. For standard input and
    pipes the first lines decide, and a later row that contradicts them is an error.

    Parameters
    ----------
    path, n_features, zero_based, dtype, n_jobs
        See :func:`read_libsvm`.
    size, initial
        See :func:`blocks`.

    Yields
    ------
    X : CSR matrix of shape (size, n_features)
    y : ndarray of shape (size,)

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from isokern.data import iter_libsvm
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "rows.txt"
    >>> _ = path.write_text("+1 1:0.5\n-1 2:1\n+1 3:2\n")
    >>> [(X.shape, y.tolist()) for X, y in iter_libsvm(path, size=2)]
    [((2, 3), [1.0, -1.0]), ((1, 3), [1.0])]
    """
    check_sizes(size, initial)
    source = Source.checked(path, n_features, zero_based, dtype, n_jobs)
    return rebatched(_tables(source, initial or size), size, initial)


def write_libsvm(path: PathLike, X: Any, y: ArrayLike, *, zero_based: bool = False) -> None:
    """Write a LIBSVM file; numbers get as many digits as reading them back exactly takes.

    Parameters
    ----------
    path : str or path
        The file, replaced atomically; .gz, .bz2, .xz or .zst at its end compress it.
    X : {array-like, sparse matrix} of shape (n, d)
        Zeros of a dense X are left out.
    y : array-like of shape (n,)
        Numeric labels; NaN is written ``?``.
    zero_based : bool, default=False
        Whether indices count from 0.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from isokern.data import write_libsvm
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "rows.txt"
    >>> write_libsvm(path, [[0.5, 0, 2], [0, 0.1, 0]], [1, -1])
    >>> print(path.read_text(), end="")
    1 1:0.5 3:2
    -1 2:0.1
    """
    if sparse.issparse(X):
        check_sparse(X)
    table = sparse.csr_array(X) if sparse.issparse(X) else sparse.csr_array(np.atleast_2d(np.asarray(X)))
    try:
        labels = np.ascontiguousarray(y, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"y must be numbers: {error}. Encode the classes as numbers first.") from error
    if table.shape[1] > _LARGEST_INDEX:
        raise ValueError(f"X must have at most {_LARGEST_INDEX} columns; got {table.shape[1]}.")
    if labels.shape != (table.shape[0],):
        raise ValueError(f"y must have one label for each of the {table.shape[0]} rows; got shape {labels.shape}.")
    if np.isinf(labels).any():
        raise ValueError("y must not be infinite.")
    check_finite(table)
    with replacing(path) as file, compressing(file, Path(path).suffix) as out:
        for begin, rows in row_blocks(table):
            assert isinstance(rows, CsrRows)
            doubles = rows._replace(values=rows.values.astype(np.float64, copy=False))
            part = labels[begin : begin + len(rows.starts) - 1]
            out.write(_core.write_libsvm(part, doubles, int(not zero_based)))


class Part(NamedTuple):
    """Parsed rows of one piece of text; column numbers are the indices in the text."""

    labels: NDArray[np.float64]
    values: NDArray[Any]
    columns: NDArray[np.int32]
    starts: NDArray[np.int64]


class Source(NamedTuple):
    """A file and the options to read it with; see :func:`read_libsvm`."""

    path: PathLike
    n_features: int | None
    zero_based: bool | str
    dtype: np.dtype[Any]
    n_jobs: int | None

    @classmethod
    def checked(cls, path: PathLike, n_features: Any, zero_based: Any, dtype: DTypeLike, n_jobs: int | None) -> Self:
        """Return the source; raise unless its options are valid."""
        if n_features is not None and not (is_integer(n_features, at_least=1) and n_features <= _LARGEST_INDEX):
            raise ValueError(f"n_features must be None or an integer from 1 to {_LARGEST_INDEX}; got {n_features!r}.")
        if not isinstance(zero_based, bool) and zero_based != "auto":
            raise ValueError(f'zero_based must be True, False or "auto"; got {zero_based!r}.')
        if np.dtype(dtype) not in (np.float64, np.float32):
            raise ValueError(f"dtype must be numpy.float64 or numpy.float32; got {dtype!r}.")
        return cls(path, n_features, zero_based, np.dtype(dtype), n_jobs)

    @property
    def is_known(self) -> bool:
        """Whether the number of columns and the base of the indices are known."""
        return self.n_features is not None and self.zero_based != "auto"

    def parts(self, texts: Iterable[bytes], cure: str = "", first_line: int = 1) -> Iterator[Part]:
        """Parse pieces of text; an error names the line, and gives the cure if an index is out of range."""
        first = 1 if self.zero_based is False else 0
        last = (self.n_features or _LARGEST_INDEX) - (self.zero_based is True)
        largest = float(np.finfo(self.dtype).max)
        n_lines = first_line - 1
        for text in texts:
            rows = _core.read_libsvm(text, first, last, largest, n_threads(self.n_jobs))
            labels, values, columns, starts, n, mistake = rows
            n_lines += n
            if mistake:
                cure = cure if " must be at " in mistake else ""
                raise ValueError(f"{name_of(self.path)}, line {n_lines}: {mistake}{cure}")
            columns += np.int32(first)
            yield Part(labels, values.astype(self.dtype, copy=False), columns, starts)

    def known(self, parts: Iterable[Part]) -> Source:
        """Return the source with missing options inferred from its rows."""
        smallest, largest = _LARGEST_INDEX, 0
        for part in parts:
            if len(part.columns):
                smallest, largest = min(smallest, int(part.columns.min())), max(largest, int(part.columns.max()))
        zero_based = smallest == 0 if self.zero_based == "auto" else bool(self.zero_based)
        found = largest + zero_based
        if found > (self.n_features or _LARGEST_INDEX):
            self._raise_on_too_many()
        return self._replace(n_features=self.n_features or max(1, found), zero_based=zero_based)

    def _raise_on_too_many(self) -> NoReturn:
        """Raise because index 0 occurs, and so does an index as large as the number of columns."""
        why = " Index 0 occurs, so indices count from 0."
        if not is_stream(self.path):
            with peek_lines(self.path) as texts:
                for _ in self._replace(zero_based=True).parts(texts, why):  # raises at the line
                    pass
        last = (self.n_features or _LARGEST_INDEX) - 1
        raise ValueError(f"{name_of(self.path)}: feature indices must be at most {last}.{why}")

    def table(self, parts: Sequence[Part]) -> tuple[Any, NDArray[np.float64]]:
        """Return all rows as CSR, and their labels."""
        labels = _joined((part.labels for part in parts), np.float64)
        sizes = _joined((np.diff(part.starts) for part in parts), np.int64)
        values = _joined((part.values for part in parts), self.dtype)
        columns = _joined((part.columns for part in parts), np.int32)
        return self.csr(values, columns, np.concatenate([[0], np.cumsum(sizes)])), labels

    def csr(self, values: NDArray[Any], columns: NDArray[np.int32], starts: NDArray[np.int64]) -> Any:
        """Return rows as CSR; ``columns`` are the indices in the text and are changed in place."""
        columns -= np.int32(not self.zero_based)
        starts = starts.astype(np.int32) if starts[-1] <= _LARGEST_INDEX else starts
        return csr_class()((values, columns, starts), shape=(len(starts) - 1, self.n_features))


def _tables(source: Source, n_probed: int) -> Iterator[tuple[Any, NDArray[np.float64]]]:
    """Yield (X, y) in pieces of any length, all with the same columns."""
    probe: list[bytes] = []
    cure = ""
    if not source.is_known and not is_stream(source.path):
        with peek_lines(source.path) as texts:
            source = source.known(source.parts(texts))
    with open_lines(source.path) as texts:
        if not source.is_known:
            probe = first_lines(texts, n_probed)
            source = source.known(source.parts(probe))
            cure = " The first lines suggest so; pass n_features and zero_based if they mislead."
        for part in source.parts(itertools.chain(probe, texts), cure):
            yield source.csr(part.values, part.columns, part.starts), part.labels


def _joined(arrays: Iterable[NDArray[Any]], dtype: DTypeLike) -> NDArray[Any]:
    return np.concatenate([np.empty(0, dtype), *arrays], dtype=dtype, casting="same_kind")
