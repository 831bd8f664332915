"""Cut rows into blocks: arrays in memory, or a stream of pieces of any length."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from isokern.checks import is_integer
from isokern.rows import check_sparse


def blocks(X: Any, y: Any = None, size: int = 1000, *, initial: int | None = None) -> Iterator[tuple[Any, Any]]:
    """Yield consecutive blocks of rows and their labels.

    Blocks of arrays and of CSR are views.

    Parameters
    ----------
    X : array, sparse matrix, data frame or list of shape (n, n_features)
        Sparse matrices other than CSR are converted once.
    y : array, series or list of length n, optional
        Labels; without them, the second item of each pair is None.
    size : int, default=1000
        Number of rows in a block; the last block may have fewer.
    initial : int, optional
        Number of rows in the first block; None means ``size``.

    Returns
    -------
    iterator of (X, y)

    Examples
    --------
    >>> import numpy as np
    >>> from isokern.data import blocks
    >>> [len(X) for X, y in blocks(np.zeros((25, 3)), np.zeros(25), size=10, initial=3)]
    [3, 10, 10, 2]
    """
    n = _n_rows(X, "X")
    if y is not None and _n_rows(y, "y") != n:
        raise ValueError(f"y must have one label for each of the {n} rows of X; got {_n_rows(y, 'y')}.")
    if sparse.issparse(X):
        check_sparse(X)
        X = X.tocsr()
    return rebatched([(X, y)], size, initial)


def rebatched(pieces: Iterable[tuple[Any, Any]], size: int, initial: int | None = None) -> Iterator[tuple[Any, Any]]:
    """Cut a stream of (X, y) pieces into blocks; yield each block as soon as its last row arrives.

    A block within one piece is a view. A block that spans several pieces is concatenated once.
    """
    check_sizes(size, initial)
    return _rebatched(pieces, size, initial or size)


def check_sizes(size: int, initial: int | None) -> None:
    """Raise unless both are valid numbers of rows."""
    if not is_integer(size, at_least=1):
        raise ValueError(f"size must be an integer of at least 1; got {size!r}.")
    if initial is not None and not is_integer(initial, at_least=1):
        raise ValueError(f"initial must be None or an integer of at least 1; got {initial!r}.")


def joined(parts: list[tuple[Any, Any]]) -> tuple[Any, Any]:
    """Concatenate consecutive (X, y) pieces, at least one."""
    if len(parts) == 1:
        return parts[0]
    tables, labels = zip(*parts, strict=True)
    return _stacked(tables), None if labels[0] is None else np.concatenate(labels)


def _stacked(tables: Sequence[Any]) -> Any:
    if sparse.issparse(tables[0]):
        return sparse.vstack(tables, format="csr")
    if isinstance(tables[0], np.ndarray):
        return np.concatenate(tables)
    import pyarrow

    return pyarrow.concat_tables(tables)


def _rebatched(pieces: Iterable[tuple[Any, Any]], size: int, missing: int) -> Iterator[tuple[Any, Any]]:
    """Yield blocks of ``size`` rows, the first one of ``missing`` rows."""
    held: list[tuple[Any, Any]] = []
    for X, y in pieces:
        begin, n = 0, _n_rows(X, "X")
        while begin < n:
            end = min(n, begin + missing)
            held.append((_rows(X, begin, end), None if y is None else _rows(y, begin, end)))
            missing -= end - begin
            begin = end
            if missing == 0:
                block, held, missing = joined(held), [], size
                yield block
    if held:
        yield joined(held)


def _n_rows(rows: Any, name: str) -> int:
    try:
        return int(rows.shape[0]) if hasattr(rows, "shape") else len(rows)
    except (TypeError, IndexError):
        message = f"{name} must be an array, a sparse matrix, a data frame or a list; got {type(rows).__name__}."
        raise TypeError(message) from None


def _rows(table: Any, begin: int, end: int) -> Any:
    """Return rows begin to end: a view of arrays and of CSR."""
    if not sparse.issparse(table):
        return table.iloc[begin:end] if hasattr(table, "iloc") else table[begin:end]
    # SciPy's slicing and its constructor would copy the values.
    rows = type(table)((end - begin, table.shape[1]), dtype=table.dtype)
    first, last = table.indptr[begin], table.indptr[end]
    rows.data, rows.indices = table.data[first:last], table.indices[first:last]
    rows.indptr = table.indptr[begin : end + 1] - first
    return rows
