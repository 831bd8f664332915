"""Rows in blocks: of arrays that are at hand, and of a stream of pieces of any length."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from scipy import sparse

from isokern.checks import is_integer


def blocks(X: Any, y: Any = None, size: int = 1000, *, initial: int | None = None) -> Iterator[tuple[Any, Any]]:
    """Yield consecutive blocks of rows and their labels.

    Blocks of arrays and of CSR are views.

    Parameters
    ----------
    X : array, sparse matrix, data frame or list of shape (n, n_features)
        The rows. Sparse matrices other than CSR are converted once.
    y : array, series or list of length n, optional
        The labels; without them the second of each pair is None.
    size : int, default=1000
        The number of rows in a block; the last has what is left.
    initial : int, optional
        The number of rows in the first block, where it is to differ.

    Returns
    -------
    iterator of (X, y)
        The blocks, in the order of the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from isokern.data import blocks
    >>> [len(X) for X, y in blocks(np.zeros((25, 3)), np.zeros(25), size=10, initial=3)]
    [3, 10, 10, 2]
    """
    check_sizes(size, initial)
    n = _n_rows(X, "X")
    if y is not None and _n_rows(y, "y") != n:
        raise ValueError(f"y must have one label for each of the {n} rows of X; got {_n_rows(y, 'y')}.")
    X = X.tocsr() if sparse.issparse(X) else X
    return ((_rows(X, a, b), None if y is None else _rows(y, a, b)) for a, b in _bounds(n, size, initial))


def rebatched(pieces: Iterable[tuple[Any, Any]], size: int, initial: int | None = None) -> Iterator[tuple[Any, Any]]:
    """Cut a stream of (X, y) pieces into blocks, each as soon as its last row is there.

    ``X`` is an array or CSR, ``y`` an array or None. A block that lies within one piece is a view of it; one that spans
    several is joined once.
    """
    check_sizes(size, initial)
    return _rebatched(pieces, size, initial or size)


def check_sizes(size: int, initial: int | None) -> None:
    """Raise unless both can be numbers of rows in a block."""
    if not is_integer(size, at_least=1):
        raise ValueError(f"size must be an integer of at least 1; got {size!r}.")
    if initial is not None and not is_integer(initial, at_least=1):
        raise ValueError(f"initial must be None or an integer of at least 1; got {initial!r}.")


def joined(parts: list[tuple[Any, Any]]) -> tuple[Any, Any]:
    """Return consecutive (X, y) pieces, at least one, as one."""
    if len(parts) == 1:
        return parts[0]
    tables, labels = zip(*parts, strict=True)
    X = sparse.vstack(tables, format="csr") if sparse.issparse(tables[0]) else np.concatenate(tables)
    return X, None if labels[0] is None else np.concatenate(labels)


def _rebatched(pieces: Iterable[tuple[Any, Any]], size: int, wanted: int) -> Iterator[tuple[Any, Any]]:
    held: list[tuple[Any, Any]] = []
    missing = wanted
    for X, y in pieces:
        begin, n = 0, X.shape[0]
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


def _bounds(n: int, size: int, initial: int | None) -> Iterator[tuple[int, int]]:
    begin, end = 0, min(n, initial or size)
    while begin < n:
        yield begin, end
        begin, end = end, min(n, end + size)


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
    # SciPy's slices and its constructor would copy.
    rows = type(table)((end - begin, table.shape[1]), dtype=table.dtype)
    first, last = table.indptr[begin], table.indptr[end]
    rows.data, rows.indices = table.data[first:last], table.indices[first:last]
    rows.indptr = table.indptr[begin : end + 1] - first
    return rows
