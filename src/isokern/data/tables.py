"""Read CSV and Parquet files, whole or block by block. Needs pyarrow, the extra ``tables``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from isokern.data.columns import TableOptions, check_pyarrow
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
    r"""Read a CSV file whose header names the columns.

    Parameters
    ----------
    path : str or path
        A file, plain or compressed, or "-" for standard input; see :func:`read_libsvm`. The delimiter is a comma.
        Fields may be quoted, but must not contain a newline.
    label : str, default=None
        Name of the label column; None means that there are no labels.
    columns : list of str, default=None
        Names of the feature columns, in the order wanted; None means all except the label. They must hold numbers.
    sparse : bool, default=False
        Whether X is CSR instead of a dense array.
    dtype : {numpy.float64, numpy.float32}, default=numpy.float64
        Type of X.

    Returns
    -------
    X : array or CSR matrix of shape (n, n_features)
    y : array of shape (n,) or None
        If all labels in the first lines are numbers: float64, with NaN for missing labels. Otherwise: str, with None
        for missing labels. Without a label column, None.

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
    return joined(list(csv_pieces(path, TableOptions.checked(label, columns, sparse, dtype))))


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
    r"""Read a CSV file block by block, in constant memory; a block is returned as soon as its last line arrives.

    Parameters
    ----------
    path, label, columns, sparse, dtype
        See :func:`read_csv`.
    size, initial
        See :func:`blocks`.

    Returns
    -------
    iterator of (X, y)

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from isokern.data import iter_csv
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "rows.csv"
    >>> _ = path.write_text("a,b,y\n1,2,0\n3,4,1\n5,6,1\n")
    >>> [(X.tolist(), y.tolist()) for X, y in iter_csv(path, 2, label="y")]
    [([[1.0, 2.0], [3.0, 4.0]], [0.0, 1.0]), ([[5.0, 6.0]], [1.0])]
    """
    return rebatched(csv_pieces(path, TableOptions.checked(label, columns, sparse, dtype)), size, initial)


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
        See :func:`read_csv`. Features may be numbers or bools, labels also text.

    Returns
    -------
    X, y
        See :func:`read_csv`.

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
    return joined(list(_parquet(path, label, columns, sparse, dtype)))


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
    """Read a Parquet file block by block, in constant memory; the blocks are like those of :func:`iter_csv`.

    Parameters
    ----------
    path, label, columns, sparse, dtype
        See :func:`read_parquet`.
    size, initial
        See :func:`blocks`.

    Returns
    -------
    iterator of (X, y)
    """
    return rebatched(_parquet(path, label, columns, sparse, dtype), size, initial)


def column_names(path: PathLike, kind: str) -> list[str]:
    """Return the column names of a file of kind "csv" or "parquet"."""
    check_pyarrow()
    return {"csv": csv_column_names, "parquet": parquet_column_names}[kind](path)


def _parquet(path: PathLike, *options: Any) -> Iterator[tuple[Any, Any]]:
    if path == STDIN:
        raise ValueError('path must be a file; got "-". Parquet cannot be read from a pipe; save it to a file first.')
    return parquet_pieces(path, TableOptions.checked(*options))
