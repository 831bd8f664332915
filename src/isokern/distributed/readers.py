"""Read files larger than memory as Dask arrays: each block is a byte range of a file, read by the worker that needs it.

All workers must see the files under the same paths. A compressed file cannot be split and is one block.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import dask.array as da
import numpy as np
from dask import delayed
from numpy.typing import DTypeLike

from isokern.checks import is_integer
from isokern.data.columns import TableOptions, is_text
from isokern.data.csv import csv_range, csv_reader
from isokern.data.layouts import Layout
from isokern.data.libsvm import Part, Source
from isokern.data.lines import PathLike, name_of
from isokern.data.parquet import RowGroups, parquet_column_names, parquet_pieces, row_groups
from isokern.data.ranges import Range, as_paths, numbered, ranges_of
from isokern.data.rebatching import joined
from isokern.distributed.cluster import Cluster

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
    r"""Read LIBSVM files into a lazy Dask array of CSR blocks, and their labels.

    Parameters
    ----------
    path : str, path or list of them
        Files; those that are not compressed are cut into blocks.
    n_features, zero_based, dtype
        See :func:`isokern.data.read_libsvm`. Unless the first two are given, the workers read the files once to find
        them; the lengths of the blocks are then known, too.
    block_bytes : int, default=2**26
        Approximate size of a block in the file.
    client : distributed.Client or None, default=None
        The cluster; None means the current client, or threads of this process if there is none.

    Returns
    -------
    X : Dask array of shape (n, n_features)
    y : Dask array of shape (n,)
        In the same blocks.

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
    source = Source.checked(paths[0], n_features, zero_based, dtype, 1)
    lengths = [np.nan] * len(parts)
    if not source.is_known:
        extents = Cluster(client).compute([delayed(_extent)(source, part) for part in parts])
        lengths = [length for _, length in extents]
        source = source.known(extent for extent, _ in extents)
    blocks = [delayed(_libsvm_block, nout=2)(source, part) for part in parts]
    return _collections(blocks, lengths, source.table([]))


def read_csv(
    path: Paths,
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
    block_bytes: int = _BLOCK,
) -> tuple[Any, Any]:
    r"""Read CSV files into a lazy Dask array of unknown length, and their labels.

    Parameters
    ----------
    path : str, path or list of them
        Files with a header each; those that are not compressed are cut into blocks.
    label, columns, drop, types, dates, separator, header, sparse, dtype
        See :func:`isokern.data.read_csv`. All columns must hold numbers; by default, they are the first file's.
    block_bytes : int, default=2**26
        Approximate size of a block in the file.

    Returns
    -------
    X : Dask array of shape (n, n_features)
    y : Dask array of shape (n,) or None
        In the same blocks.

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
    options = TableOptions(label, columns, drop, types, dates, sparse, dtype).checked()
    paths, parts = _parts(path, block_bytes)
    layout = Layout.checked(separator, header)
    first = csv_reader(paths[0], options, layout)
    readers = {paths[0]: first}
    for other in paths[1:]:
        readers[other] = csv_reader(other, options._replace(columns=first.features), layout)
        readers[other].types = first.types
    blocks = [delayed(csv_range, nout=2)(readers[part.path], part) for part in parts]
    return _collections(blocks, [np.nan] * len(parts), _numbers(next(first.pieces([], 1)), paths[0]))


def read_parquet(
    path: Paths,
    *,
    label: str | None = None,
    columns: Sequence[str] | None = None,
    drop: Sequence[str] | None = None,
    types: Mapping[str, str] | None = None,
    dates: str | None = None,
    sparse: bool = False,
    dtype: DTypeLike = np.float64,
    block_bytes: int = _BLOCK,
) -> tuple[Any, Any]:
    """Read Parquet files into a lazy Dask array, and their labels.

    Parameters
    ----------
    path : str, path or list of them
        Files; their row groups become blocks.
    label, columns, drop, types, dates, sparse, dtype
        See :func:`isokern.data.read_parquet`. All columns must hold numbers; by default, they are the first file's.
    block_bytes : int, default=2**26
        Neighbouring row groups are merged up to this size.

    Returns
    -------
    X, y
        See :func:`read_csv`; the length is known.

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
    options = TableOptions(label, columns, drop, types, dates, sparse, dtype).checked()
    _check_block_bytes(block_bytes)
    paths = as_paths(path)
    options = options._replace(columns=options.features(parquet_column_names(paths[0]), paths[0]))
    parts = [part for one in paths for part in row_groups(one, block_bytes)]
    blocks = [delayed(_parquet_block, nout=2)(part, options) for part in parts]
    empty = _numbers(next(parquet_pieces(paths[0], options)), paths[0])
    return _collections(blocks, [part.n_rows for part in parts], empty)


def _parts(path: Paths, block_bytes: int) -> tuple[list[str], list[Range]]:
    _check_block_bytes(block_bytes)
    paths = as_paths(path)
    return paths, ranges_of(paths, block_bytes)


def _check_block_bytes(block_bytes: int) -> None:
    if not is_integer(block_bytes, at_least=1):
        raise ValueError(f"block_bytes must be an integer of at least 1; got {block_bytes!r}.")


def _extent(source: Source, part: Range) -> tuple[Part, int]:
    """Return a part with the smallest and the largest column of a range, and the range's number of rows."""
    rows = _libsvm_parts(source, part)
    ends = [end for one in rows if len(one.columns) for end in (one.columns.min(), one.columns.max())]
    columns = np.array([min(ends), max(ends)] if ends else [], dtype=np.int32)
    return Part(np.empty(0), np.empty(0), columns, np.zeros(1, np.int64)), sum(len(one.labels) for one in rows)


def _libsvm_block(source: Source, part: Range) -> tuple[Any, Any]:
    return source.table(_libsvm_parts(source, part))


def _libsvm_parts(source: Source, part: Range) -> list[Part]:
    of_file = source._replace(path=part.path)
    return numbered(lambda line: list(of_file.parts(part.texts(), first_line=line)), part)


def _parquet_block(groups: RowGroups, options: TableOptions) -> tuple[Any, Any]:
    return joined(list(parquet_pieces(groups.path, options, groups)))


def _numbers(empty: tuple[Any, Any], path: str) -> tuple[Any, Any]:
    """Return a block without rows; raise if it has columns of text, which Dask arrays cannot hold."""
    if not hasattr(empty[0], "schema"):
        return empty
    name = next(field.name for field in empty[0].schema if is_text(field.type))
    raise ValueError(
        f'{name_of(path)}: column "{name}" must hold numbers, since a Dask array does; got text. '
        f"Encode it, or leave it out with drop={[name]!r}."
    )


def _collections(blocks: list[Any], lengths: Sequence[float], empty: tuple[Any, Any]) -> tuple[Any, Any]:
    """Return blocks of (X, y) as two Dask arrays; ``empty`` is a block without rows, with None for no labels."""
    tables, labels = ([block[k] for block in blocks] for k in range(2))
    return _collection(tables, lengths, empty[0]), None if empty[1] is None else _collection(labels, lengths, empty[1])


def _collection(parts: list[Any], lengths: Sequence[float], empty: Any) -> Any:
    arrays = [da.from_delayed(part, (n, *empty.shape[1:]), meta=empty) for part, n in zip(parts, lengths, strict=True)]
    return da.concatenate(arrays, allow_unknown_chunksizes=True)
