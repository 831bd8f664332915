"""Read CSV and Parquet files, whole or block by block. Needs pyarrow, the extra ``tables``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from isokern.data.columns import TableOptions
from isokern.data.csv import csv_column_names, csv_pieces
from isokern.data.layouts import Layout
from isokern.data.lines import STDIN, PathLike, name_of
from isokern.data.parquet import parquet_column_names, parquet_pieces
from isokern.data.rebatching import check_sizes, joined, rebatched


def read_csv(
    path: PathLike,
    *,
    label: str | None = None,
    columns: Sequence[str] | None = None,
    drop: Sequence[str] | None = None,
    types: Mapping[str, str] | None = None,
    dates: str | None = None,
    separator: str | None = None,
    header: bool = True,
    sparse: bool = False,
    dtype: DTypeLike = np.float64,
) -> tuple[Any, Any]:
    r"""Read a CSV file with numbers, words and missing values.

    Numbers become numbers, and so do true and false: 1 and 0. Any other text stays text: a category, which estimators
    with trees take as it is. Empty fields are missing values, and so are these words, if they are not quoted: NA, N/A,
    n/a, #NA, #N/A, #N/A N/A, NULL, null, NaN, nan, -NaN, -nan, 1.#IND, -1.#IND, 1.#QNAN, -1.#QNAN and a single space.

    The first rows settle the type of each column: those in the first 4 MiB of a file, or in the first block of
    :func:`iter_csv`. A column without values there is a column of numbers. A later field that does not fit is an error.

    Parameters
    ----------
    path : str or path
        A file, plain or compressed, or "-" for standard input; see :func:`read_libsvm`. Fields may be quoted, but must
        not contain a newline.
    label : str, default=None
        Name of the label column; None means that there are no labels.
    columns : list of str, default=None
        Names of the feature columns, in the order wanted; None means all except the label and a nameless first column,
        which is an index that pandas has written.
    drop : list of str, default=None
        Names of columns to leave out.
    types : dict from str to {"number", "text"}, default=None
        Types of columns whose first rows should not decide, such as ``{"zip": "text"}``.
    dates : {None, "number"}, default=None
        None refuses columns of dates and times. "number" reads dates as seconds since 1970, in UTC unless they have a
        time zone, and times of day as seconds since midnight.
    separator : str, default=None
        The character between fields. None means a tab if the file's name has the suffix .tsv; else the one of comma,
        semicolon, tab and vertical bar that cuts the first 20 lines into equally many fields, and into the most. If it
        is not a comma and all first values of a column are like "0,5" or "2", some with a comma, numbers have decimal
        commas.
    header : bool, default=True
        Whether the first line names the columns. If not, their names are their positions: "0", "1", ...
    sparse : bool, default=False
        Whether X is CSR instead of a dense array; text and missing values are then errors.
    dtype : {numpy.float64, numpy.float32}, default=numpy.float64
        Type of the numbers in X.

    Returns
    -------
    X : array, CSR matrix or pyarrow.Table of shape (n, n_features)
        A table, with nulls for missing values, if any column is text. Otherwise an array, with NaN for them.
    y : array of shape (n,) or None
        If all labels in the first rows are numbers: float64, with NaN for missing labels. Otherwise: str, with None
        for missing labels. Without a label column, None.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from isokern.data import read_csv
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "rows.csv"
    >>> _ = path.write_text("age,job,income\n39,clerk,low\n,NA,high\n")
    >>> X, y = read_csv(path, label="income")
    >>> X.to_pylist(), y
    ([{'age': 39.0, 'job': 'clerk'}, {'age': None, 'job': None}], array(['low', 'high'], dtype=object))
    >>> read_csv(path, label="income", columns=["age"])[0]
    array([[39.], [nan]])
    """
    options = TableOptions(label, columns, drop, types, dates, sparse, dtype).checked()
    return joined(list(csv_pieces(path, options, Layout.checked(separator, header))))


def iter_csv(
    path: PathLike,
    size: int = 1000,
    *,
    label: str | None = None,
    columns: Sequence[str] | None = None,
    drop: Sequence[str] | None = None,
    types: Mapping[str, str] | None = None,
    dates: str | None = None,
    separator: str | None = None,
    header: bool = True,
    initial: int | None = None,
    sparse: bool = False,
    dtype: DTypeLike = np.float64,
) -> Iterator[tuple[Any, Any]]:
    r"""Read a CSV file block by block, in constant memory; a block is returned as soon as its last line arrives.

    Parameters
    ----------
    path, label, columns, drop, types, dates, separator, header, sparse, dtype
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
    check_sizes(size, initial)
    options = TableOptions(label, columns, drop, types, dates, sparse, dtype).checked()
    return rebatched(csv_pieces(path, options, Layout.checked(separator, header), initial or size), size, initial)


def read_parquet(
    path: PathLike,
    *,
    label: str | None = None,
    columns: Sequence[str] | None = None,
    drop: Sequence[str] | None = None,
    types: Mapping[str, str] | None = None,
    dates: str | None = None,
    sparse: bool = False,
    dtype: DTypeLike = np.float64,
) -> tuple[Any, Any]:
    """Read a Parquet file.

    Parameters
    ----------
    path : str or path
        A file; Parquet cannot be read from standard input.
    label, columns, drop, types, dates, sparse, dtype
        See :func:`read_csv`. Columns may hold numbers of any type, bools, text, dictionaries of text, and nulls.

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
    options = TableOptions(label, columns, drop, types, dates, sparse, dtype).checked()
    return joined(list(_parquet(path, options)))


def iter_parquet(
    path: PathLike,
    size: int = 1000,
    *,
    label: str | None = None,
    columns: Sequence[str] | None = None,
    drop: Sequence[str] | None = None,
    types: Mapping[str, str] | None = None,
    dates: str | None = None,
    initial: int | None = None,
    sparse: bool = False,
    dtype: DTypeLike = np.float64,
) -> Iterator[tuple[Any, Any]]:
    """Read a Parquet file block by block, in constant memory; the blocks are like those of :func:`iter_csv`.

    Parameters
    ----------
    path, label, columns, drop, types, dates, sparse, dtype
        See :func:`read_parquet`.
    size, initial
        See :func:`blocks`.

    Returns
    -------
    iterator of (X, y)
    """
    options = TableOptions(label, columns, drop, types, dates, sparse, dtype).checked()
    return rebatched(_parquet(path, options), size, initial)


def feature_names(path: PathLike, kind: str, layout: Layout, options: TableOptions) -> list[str]:
    """Return the names of the feature columns of a file of kind "csv" or "parquet"."""
    names = csv_column_names(path, layout) if kind == "csv" else parquet_column_names(path)
    return options.features(names, name_of(path))


def _parquet(path: PathLike, options: TableOptions) -> Iterator[tuple[Any, Any]]:
    if path == STDIN:
        raise ValueError('path must be a file; got "-". Parquet cannot be read from a pipe; save it to a file first.')
    return parquet_pieces(path, options)
