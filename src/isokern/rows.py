"""What counts as rows of input, and how the core gets to see them: in blocks, copied only where they must be.

Rows are validated once, on the way in: ``read_rows`` gives a *table*, a NumPy array or SciPy CSR of finite numbers, and
whatever is given a table relies on that.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn import get_config
from sklearn.utils.validation import validate_data

from isokern import _core
from isokern.arrays import check_detached, is_foreign, to_host

FLOATS = (np.dtype(np.float32), np.dtype(np.float64))
_BLOCK_ROWS = 8192
_FEW_ROWS = 3  # that are one block however blocks are cut
_BLOCK_VALUES = 2**21


class CsrRows(NamedTuple):
    """Sparse rows as the core takes them: in each row the columns ascend."""

    values: NDArray[Any]
    columns: NDArray[np.int32]
    starts: NDArray[np.int64]
    n_columns: int

    def state(self) -> dict[str, Any]:
        """Return the fields by name, see ``isokern.parts``."""
        return self._asdict()

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Return the rows that have this state."""
        return cls(**state)

    def check(self) -> None:
        """Do nothing: the core looks at sparse rows whenever it is given some."""


CoreRows = NDArray[Any] | CsrRows


def accept_sparse(tags: Any) -> Any:
    """Return the tags of an estimator whose rows may be sparse."""
    tags.input_tags.sparse = True
    return tags


def read_rows(estimator: Any, X: Any, *, reset: bool, min_rows: int = 2) -> Any:
    """Return rows as an array or CSR of finite numbers; the one place where input is validated.

    Parameters
    ----------
    estimator : estimator
        With ``reset`` it learns the number and names of the columns, else X must have those that it knows.
    X : {array-like, sparse matrix, data frame} of shape (n, d)
        An array of another library, such as a tensor, comes to the host.
    reset : bool
    min_rows : int, default=2
        How many rows there must be with ``reset``; without it, one is enough.

    Returns
    -------
    table : ndarray or CSR, of X's own dtype if that is numeric
    """
    if not reset and _is_plain(estimator, X):  # scikit-learn's checks take longer than to predict a few rows
        check_block_finite(X, 0, None)
        return X
    if is_foreign(X):
        check_detached(X)
        X = to_host(X)
    table = validate_data(
        estimator,
        X,
        reset=reset,
        accept_sparse="csr",
        dtype="numeric",
        ensure_all_finite=False,
        ensure_min_samples=min_rows if reset else 1,
    )
    if table.shape[1] > np.iinfo(np.int32).max:
        raise ValueError(f"X must have fewer than 2^31 columns; got {table.shape[1]}.")
    check_finite(table, getattr(estimator, "feature_names_in_", None))
    return table


def _is_plain(estimator: Any, X: Any) -> bool:
    """Return whether X is an array that needs no conversion, has the right columns, and no names to compare."""
    return (
        type(X) is np.ndarray
        and X.ndim == 2
        and X.shape[0] > 0
        and X.shape[1] == estimator.n_features_in_
        and X.dtype in FLOATS
        and X.flags.c_contiguous
        and not hasattr(estimator, "feature_names_in_")
    )


def row_blocks(table: Any) -> Iterator[tuple[int, CoreRows]]:
    """Yield (number of the first row, rows) for consecutive blocks of a table.

    Blocks of float32 and float64 arrays and of canonical CSR with int32 indices are views; anything else is converted
    block by block, so that a large input never exists twice.
    """
    n = table.shape[0]
    if n <= _FEW_ROWS:
        yield 0, core_rows(table, 0, n)
        return
    per_row = table.nnz / max(1, n) if sparse.issparse(table) else table.shape[1]
    size = int(min(max(_BLOCK_VALUES / max(1.0, per_row), 256), _BLOCK_ROWS))
    for begin in range(0, n, size):
        yield begin, core_rows(table, begin, min(begin + size, n))


def check_finite(table: Any, names: NDArray[Any] | None = None) -> None:
    """Raise if a table holds NaN or infinity; the error names the column and the first such row."""
    if table.dtype.kind in "biu":
        return
    if not sparse.issparse(table) and table.flags.c_contiguous and table.dtype in FLOATS:
        check_block_finite(table, 0, names)  # all at once
        return
    for begin, rows in row_blocks(table):
        check_block_finite(rows, begin, names)


def core_rows(X: Any, begin: int, end: int) -> CoreRows:
    """Return rows begin to end of X in the core's form."""
    if isinstance(X, np.ndarray):
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
    return values if values.dtype in FLOATS else values.astype(np.float64)


def _canonical(rows: CsrRows) -> CsrRows:
    """Sort the columns of each row and add up repeated entries."""
    table = as_scipy(rows).copy()
    table.check_format(full_check=True)  # raises on columns and starts that lie outside
    table.sum_duplicates()
    starts = table.indptr.astype(np.int64)
    return CsrRows(table.data, table.indices.astype(np.int32), starts, rows.n_columns)


def check_block_finite(rows: CoreRows, first_row: int, names: NDArray[Any] | None) -> None:
    """Raise if rows, the first of which has that number, hold NaN or infinity."""
    values = rows.values if isinstance(rows, CsrRows) else rows.ravel()
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
