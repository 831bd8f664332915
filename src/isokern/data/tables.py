"""CSV and Parquet: rows with named columns, in memory or block by block. Needs pyarrow, the extra ``tables``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from isokern.data.columns import check_options
from isokern.data.csv import csv_column_names, csv_pieces
from isokern.data.lines import STDIN, PathLike
from isokern.data.parquet import parquet_column_names, parquet_pieces
from isokern.data.rebatching import joined, rebatched


def read_csv(
    path: PathLike,
    *,
    label: str | None = None,
    columns: Sequence[str] | None = None,
    sparse: bool = False,
    dtype: DTypeLike = np.float64,
) -> tuple[Any, Any]:
    r"""Read a CSV file whose first line names the columns.

    Parameters
    ----------
    path : str or path
        A file, plain or compressed by gzip, bzip2, xz or Zstandard; "-" is standard input. Fields are separated by
        commas; they may be quoted, but must end on their line.
    label : str, default=None
        The name of the label column; None means that there is none.
    columns : list of str, default=None
        The names of the feature columns, in the order wanted; None means all but the label. They must hold numbers.
    sparse : bool, default=False
        Whether X is CSR rather than an array.
    dtype : numpy.float32 or numpy.float64, default=numpy.float64
        Of the features.

    Returns
    -------
    X : array or CSR matrix of shape (n, n_features)
    y : array of shape (n,) or None
        Numbers as float64, a missing one as NaN; or, if the first lines have others, text as str, a missing one as
        None. Without a label column, None.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from isokern.data import read_csv
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "rows.csv"
    >>> _ = path.write_text("age,sex,income\n39,0,low\n52,1,high\n")
    >>> X, y = read_csv(path, label="income")
    >>> X, y
    (array([[39., 0.], [52., 1.]]), array(['low', 'high'], dtype=object))
    """
    check_tables(label, columns, dtype)
    return joined(list(csv_pieces(path, label, columns, sparse, dtype)))


def iter_csv(
    path: PathLike,
    size: int = 1000,
    *,
    label: str | None = None,
    columns: Sequence[str] | None = None,
    initial: int | None = None,
    sparse: bool = False,
    dtype: DTypeLike = np.float64,
) -> Iterator[tuple[Any, Any]]:
    r"""Read a CSV file block by block, in memory that does not grow with its length.

    A block is there as soon as its last line is, so that a pipe can be followed.

    Parameters
    ----------
    path : str or path
        As in :func:`read_csv`.
    size : int, default=1000
        The number of rows in a block; the last has what is left.
    label, columns, sparse, dtype
        As in :func:`read_csv`.
    initial : int, default=None
        The number of rows in the first block, where it is to differ.

    Returns
    -------
    iterator of (X, y)
        The blocks, as of :func:`read_csv`. Whether labels are numbers or text is decided by the first lines, once.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from isokern.data import iter_csv
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "rows.csv"
    >>> _ = path.write_text("a,b,y\n1,2,0\n3,4,1\n5,6,1\n")
    >>> [(X.tolist(), y.tolist()) for X, y in iter_csv(path, 2, label="y")]
    [([[1.0, 2.0], [3.0, 4.0]], [0.0, 1.0]), ([[5.0, 6.0]], [1.0])]
    """
    check_tables(label, columns, dtype)
    return rebatched(csv_pieces(path, label, columns, sparse, dtype), size, initial)


def read_parquet(
    path: PathLike,
    *,
    label: str | None = None,
    columns: Sequence[str] | None = None,
    sparse: bool = False,
    dtype: DTypeLike = np.float64,
) -> tuple[Any, Any]:
    """Read a Parquet file.

    Parameters
    ----------
    path : str or path
        A file; Parquet cannot be read from standard input.
    label, columns, sparse, dtype
        As in :func:`read_csv`. Features may be numbers or bools, labels text, too.

    Returns
    -------
    X, y
        As of :func:`read_csv`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import pyarrow
    >>> from pyarrow.parquet import write_table
    >>> from isokern.data import read_parquet
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "rows.parquet"
    >>> write_table(pyarrow.table({"age": [39, 52], "member": [False, True], "y": [-1, 1]}), path)
    >>> read_parquet(path, label="y")
    (array([[39., 0.], [52., 1.]]), array([-1., 1.]))
    """
    _check_parquet(path, label, columns, dtype)
    return joined(list(parquet_pieces(path, label, columns, sparse, dtype)))


def iter_parquet(
    path: PathLike,
    size: int = 1000,
    *,
    label: str | None = None,
    columns: Sequence[str] | None = None,
    initial: int | None = None,
    sparse: bool = False,
    dtype: DTypeLike = np.float64,
) -> Iterator[tuple[Any, Any]]:
    """Read a Parquet file block by block, in memory that does not grow with its length.

    Parameters
    ----------
    path, label, columns, sparse, dtype
        As in :func:`read_parquet`.
    size : int, default=1000
        The number of rows in a block; the last has what is left.
    initial : int, default=None
        The number of rows in the first block, where it is to differ.

    Returns
    -------
    iterator of (X, y)
        The blocks, as of :func:`read_parquet`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import pyarrow
    >>> from pyarrow.parquet import write_table
    >>> from isokern.data import iter_parquet
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "rows.parquet"
    >>> write_table(pyarrow.table({"a": range(25)}), path)
    >>> [len(X) for X, y in iter_parquet(path, 10, initial=3)]
    [3, 10, 10, 2]
    """
    _check_parquet(path, label, columns, dtype)
    return rebatched(parquet_pieces(path, label, columns, sparse, dtype), size, initial)


def column_names(path: PathLike, kind: str) -> list[str]:
    """Return the names of the columns of a file of kind "csv" or "parquet"."""
    check_tables(None, None, np.float64)
    return {"csv": csv_column_names, "parquet": parquet_column_names}[kind](path)


def check_tables(label: Any, columns: Any, dtype: DTypeLike) -> None:
    """Raise unless the options can be, and pyarrow is there."""
    check_options(label, columns, dtype)
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise ImportError("CSV and Parquet files need a package: pip install isokern[tables]") from error


def _check_parquet(path: PathLike, label: Any, columns: Any, dtype: DTypeLike) -> None:
    if path == STDIN:
        raise ValueError(
            'path must be a file; got "-", and Parquet cannot be read from a pipe. Save it to a file first.'
        )
    check_tables(label, columns, dtype)
