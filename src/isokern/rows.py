"""What counts as rows of input, and how the core gets to see them: in blocks, copied only where they must be."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn import get_config
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from isokern import _core
from isokern.arrays import check_detached, is_foreign, to_host

_BLOCK_ROWS = 8192
_BLOCK_VALUES = 2**21


class CsrRows(NamedTuple):
    """Sparse rows as the core takes them: in each row the columns ascend."""

    values: NDArray[Any]
    columns: NDArray[np.int32]
    starts: NDArray[np.int64]
    n_columns: int


CoreRows = NDArray[Any] | CsrRows


class RowsEstimator(BaseEstimator):
    """An estimator whose rows may be sparse."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def check_rows(estimator: Any, X: Any, *, reset: bool, min_rows: int = 2) -> Any:
    """Return X as an array or CSR of numbers, as yet unchecked for NaN; with ``reset``, learn its columns.

    An array of another library, such as a tensor, comes to the host.
    """
    if is_foreign(X):
        check_detached(X)
        X = to_host(X)
    X = validate_data(
        estimator,
        X,
        reset=reset,
        accept_sparse="csr",
        dtype="numeric",
        ensure_all_finite=False,
        ensure_min_samples=min_rows if reset else 1,
    )
    if X.shape[1] > np.iinfo(np.int32).max:
        raise ValueError(f"X must have fewer than 2^31 columns; got {X.shape[1]}.")
    return X


def row_blocks(X: Any, names: NDArray[Any] | None = None) -> Iterator[tuple[int, CoreRows]]:
    """Yield (number of the first row, rows) for consecutive blocks of X, each checked to be finite.

    Blocks of float32 and float64 arrays and of canonical CSR with int32 indices are views; anything else is converted
    block by block, so that a large input never exists twice.
    """
    per_row = X.nnz / max(1, X.shape[0]) if sparse.issparse(X) else X.shape[1]
    size = int(np.clip(_BLOCK_VALUES / max(1.0, per_row), 256, _BLOCK_ROWS))
    for begin in range(0, X.shape[0], size):
        rows = core_rows(X, begin, min(begin + size, X.shape[0]))
        check_block_finite(rows, begin, names)
        yield begin, rows


def check_finite(X: Any, names: NDArray[Any] | None = None) -> None:
    """Raise if X holds NaN or infinity."""
    if not sparse.issparse(X) and X.flags.c_contiguous and X.dtype in (np.float32, np.float64):
        check_block_finite(X, 0, names)  # as it is, all at once
    else:
        for _ in row_blocks(X, names):
            pass


def core_rows(X: Any, begin: int, end: int) -> CoreRows:
    """Return rows begin to end of X in the core's form."""
    if not sparse.issparse(X):
        return np.ascontiguousarray(_as_float(X[begin:end]))
    first, last = int(X.indptr[begin]), int(X.indptr[end])
    starts = X.indptr[begin : end + 1].astype(np.int64) - first
    columns = np.ascontiguousarray(X.indices[first:last], dtype=np.int32)
    rows = CsrRows(np.ascontiguousarray(_as_float(X.data[first:last])), columns, starts, X.shape[1])
    return rows if _core.is_canonical(columns, starts, X.shape[1]) else _canonical(rows)


def n_rows(rows: CoreRows) -> int:
    """Return the number of rows."""
    return len(rows.starts) - 1 if isinstance(rows, CsrRows) else rows.shape[0]


def n_columns(rows: CoreRows) -> int:
    """Return the number of columns."""
    return rows.n_columns if isinstance(rows, CsrRows) else rows.shape[1]


def as_scipy(rows: CoreRows) -> Any:
    """Return rows as a NumPy array or a SciPy CSR array."""
    if not isinstance(rows, CsrRows):
        return rows
    return sparse.csr_array((rows.values, rows.columns, rows.starts), shape=(n_rows(rows), rows.n_columns))


def csr_class() -> Any:
    """Return the class of the CSR that scikit-learn is set to give."""
    return sparse.csr_array if get_config().get("sparse_interface") == "sparray" else sparse.csr_matrix


def _as_float(values: NDArray[Any]) -> NDArray[Any]:
    return values if values.dtype in (np.float32, np.float64) else values.astype(np.float64)


def _canonical(rows: CsrRows) -> CsrRows:
    """Sort the columns of each row and add up repeated entries."""
    table = as_scipy(rows).copy()
    table.check_format(full_check=True)  # raises on columns and starts that lie outside
    table.sum_duplicates()
    starts = table.indptr.astype(np.int64)
    return CsrRows(table.data, table.indices.astype(np.int32), starts, rows.n_columns)


def check_block_finite(rows: CoreRows, first_row: int, names: NDArray[Any] | None) -> None:
    """Raise if rows, the first of which has that number, hold NaN or infinity."""
    values = rows.values if isinstance(rows, CsrRows) else rows.reshape(-1)
    place = _core.find_nonfinite(values)
    if place < 0:
        return
    if isinstance(rows, CsrRows):
        row = int(np.searchsorted(rows.starts, place, side="right")) - 1
        column = int(rows.columns[place])
    else:
        row, column = divmod(place, rows.shape[1])
    what = "NaN" if np.isnan(values[place]) else "infinity"
    name = f" ({names[column]!r})" if names is not None else ""
    raise ValueError(
        f"X must be finite; got {what} in column {column}{name}, first in row {first_row + row}. "
        "Fill or drop such values first, for example with sklearn.impute.SimpleImputer."
    )
