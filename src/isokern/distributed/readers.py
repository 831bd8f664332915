"""Files larger than memory as Dask collections: each block is a range of a file's bytes, read where it is needed.

All workers must see the files under the same paths. A compressed file cannot be entered in the middle and is one block.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import dask.array as da
import numpy as np
from dask import delayed
from numpy.typing import DTypeLike

from isokern.checks import is_integer
from isokern.data.columns import feature_names
from isokern.data.csv import csv_range, csv_reader
from isokern.data.libsvm import Part, Source, checked_source
from isokern.data.lines import PathLike
from isokern.data.parquet import RowGroups, parquet_column_names, parquet_pieces, row_groups
from isokern.data.ranges import Range, as_paths, numbered, ranges_of
from isokern.data.rebatching import joined
from isokern.data.tables import check_tables
from isokern.distributed.cluster import Cluster
from isokern.rows import csr_class

_BLOCK = 2**26
Paths = PathLike | Iterable[PathLike]


def read_libsvm(
    path: Paths,
    *,
    n_features: int | None = None,
    zero_based: bool | str = "auto",
    dtype: DTypeLike = np.float64,
    block_bytes: int = _BLOCK,
    client: Any = None,
) -> tuple[Any, Any]:
    r"""Read LIBSVM files into a Dask array of CSR blocks, and their labels.

    Parameters
    ----------
    path : str, path or list of them
        Files, each of which is cut into blocks, unless it is compressed.
    n_features, zero_based, dtype
        As of :func:`isokern.data.read_libsvm`. What is not said of the layout is found by reading the files once
        beforehand, on the workers; the lengths of blocks are then known, too.
    block_bytes : int, default=2**26
        About how many bytes of a file make a block.
    client : distributed.Client or None, default=None
        The cluster; None means the current client, or threads of this process if there is none.

    Returns
    -------
    X : Dask array of shape (n, n_features)
        Lazy.
    y : Dask array of shape (n,)
        Lazy, in the same blocks.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from isokern.distributed import read_libsvm
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "rows.txt"
    >>> _ = path.write_text("+1 1:0.5\n-1 2:1\n+1 3:2\n")
    >>> X, y = read_libsvm(path, block_bytes=10)
    >>> X.chunks, y.compute()
    (((2, 1), (3,)), array([ 1., -1.,  1.]))
    """
    paths, parts = _parts(path, block_bytes)
    source = checked_source(paths[0], n_features, zero_based, dtype, 1)
    lengths = [np.nan] * len(parts)
    if not source.is_known:
        extents = Cluster(client).compute([delayed(_extent)(source, part) for part in parts])
        lengths = [extent[1] for extent in extents]
        source = source.known(extent[0] for extent in extents)
    blocks = [delayed(_libsvm_block, nout=2)(source, part) for part in parts]
    return _collections(blocks, lengths, source.n_features, csr_class()((0, 0), dtype=dtype), np.float64)


def read_csv(
    path: Paths,
    *,
    label: str | None = None,
    columns: Sequence[str] | None = None,
    sparse: bool = False,
    dtype: DTypeLike = np.float64,
    block_bytes: int = _BLOCK,
) -> tuple[Any, Any]:
    r"""Read CSV files into a Dask array of unknown length, and their labels.

    Parameters
    ----------
    path : str, path or list of them
        Files, each with a line of names, each of which is cut into blocks, unless it is compressed.
    label, columns, sparse, dtype
        As of :func:`isokern.data.read_csv`. Where columns are not named, they are those of the first file.
    block_bytes : int, default=2**26
        About how many bytes of a file make a block.

    Returns
    -------
    X : Dask array of shape (n, n_features)
        Lazy.
    y : Dask array of shape (n,) or None
        Lazy, in the same blocks.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from isokern.distributed import read_csv
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "rows.csv"
    >>> _ = path.write_text("a,b,y\n1,2,no\n3,4,yes\n5,6,yes\n")
    >>> X, y = read_csv(path, label="y", block_bytes=10)
    >>> X.compute(), y.compute()
    (array([[1., 2.], [3., 4.], [5., 6.]]), array(['no', 'yes', 'yes'], dtype=object))
    """
    check_tables(label, columns, dtype)
    paths, parts = _parts(path, block_bytes)
    readers = {paths[0]: csv_reader(paths[0], label, columns, sparse, dtype)}
    first = readers[paths[0]]
    for other in paths[1:]:
        readers[other] = csv_reader(other, label, first.features, sparse, dtype)
        readers[other].labels_are_text = first.labels_are_text
    blocks = [delayed(csv_range, nout=2)(readers[part.path], part) for part in parts]
    labels = None if label is None else object if first.labels_are_text else np.float64
    return _collections(blocks, [np.nan] * len(parts), len(first.features), _no_rows(sparse, dtype), labels)


def read_parquet(
    path: Paths,
    *,
    label: str | None = None,
    columns: Sequence[str] | None = None,
    sparse: bool = False,
    dtype: DTypeLike = np.float64,
    block_bytes: int = _BLOCK,
) -> tuple[Any, Any]:
    """Read Parquet files into a Dask array, and their labels.

    Parameters
    ----------
    path : str, path or list of them
        Files, whose row groups are the blocks.
    label, columns, sparse, dtype
        As of :func:`isokern.data.read_parquet`. Where columns are not named, they are those of the first file.
    block_bytes : int, default=2**26
        Row groups are put together while they have fewer bytes.

    Returns
    -------
    X : Dask array of shape (n, n_features)
        Lazy.
    y : Dask array of shape (n,) or None
        Lazy, in the same blocks.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import pyarrow
    >>> from pyarrow.parquet import write_table
    >>> from isokern.distributed import read_parquet
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "rows.parquet"
    >>> write_table(pyarrow.table({"a": range(25), "y": range(25)}), path, row_group_size=10)
    >>> X, y = read_parquet(path, label="y", block_bytes=1)
    >>> X.chunks
    ((10, 10, 5), (1,))
    """
    check_tables(label, columns, dtype)
    _check_block_bytes(block_bytes)
    paths = as_paths(path)
    features = feature_names(parquet_column_names(paths[0]), label, columns, paths[0])
    parts = [part for one in paths for part in row_groups(one, block_bytes)]
    _, no_labels = next(parquet_pieces(paths[0], label, features, sparse, dtype))
    blocks = [delayed(_parquet_block, nout=2)(part, label, features, sparse, dtype) for part in parts]
    labels = None if label is None else no_labels.dtype
    return _collections(blocks, [part.n_rows for part in parts], len(features), _no_rows(sparse, dtype), labels)


def _parts(path: Paths, block_bytes: int) -> tuple[list[str], list[Range]]:
    _check_block_bytes(block_bytes)
    paths = as_paths(path)
    return paths, ranges_of(paths, block_bytes)


def _check_block_bytes(block_bytes: int) -> None:
    if not is_integer(block_bytes, at_least=1):
        raise ValueError(f"block_bytes must be an integer of at least 1; got {block_bytes!r}.")


def _extent(source: Source, part: Range) -> tuple[Part, int]:
    """Return the smallest and the largest column of a range as a part of two values, and its number of rows."""
    rows = _libsvm_parts(source, part)
    ends = [end for one in rows if len(one.columns) for end in (one.columns.min(), one.columns.max())]
    columns = np.array([min(ends), max(ends)] if ends else [], dtype=np.int32)
    return Part(np.empty(0), np.empty(0), columns, np.zeros(1, np.int64)), sum(len(one.labels) for one in rows)


def _libsvm_block(source: Source, part: Range) -> tuple[Any, Any]:
    return source.table(_libsvm_parts(source, part))


def _libsvm_parts(source: Source, part: Range) -> list[Part]:
    of_file = source._replace(path=part.path)
    return numbered(lambda line: list(of_file.parts(part.texts(), first_line=line)), part)


def _parquet_block(
    groups: RowGroups, label: str | None, features: list[str], sparse: bool, dtype: DTypeLike
) -> tuple[Any, Any]:
    return joined(list(parquet_pieces(groups.path, label, features, sparse, dtype, groups=groups)))


def _no_rows(sparse: bool, dtype: DTypeLike) -> Any:
    return csr_class()((0, 0), dtype=dtype) if sparse else np.empty((0, 0), dtype=dtype)


def _collections(blocks: list[Any], lengths: Sequence[float], width: Any, no_rows: Any, labels: Any) -> tuple[Any, Any]:
    """Return blocks of (X, y) as Dask arrays; without a type of labels there are none."""
    tables = [da.from_delayed(X, (n, width), meta=no_rows) for (X, _), n in zip(blocks, lengths, strict=True)]
    X = da.concatenate(tables, allow_unknown_chunksizes=True)
    if labels is None:
        return X, None
    columns = [da.from_delayed(y, (n,), dtype=labels) for (_, y), n in zip(blocks, lengths, strict=True)]
    return X, da.concatenate(columns, allow_unknown_chunksizes=True)
