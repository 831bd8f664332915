"""Validate input once, and pass it to the compiled core in blocks, copying only where necessary.

``read_rows`` turns any input into a *table*: a NumPy array or SciPy CSR matrix of numbers. Categorical columns hold the
codes of ``isokern.frames``; only estimators whose tags allow it get NaN, for missing values, and nobody gets infinity.
Code that receives a table does not validate it again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn import get_config
from sklearn.utils import check_array, get_tags
from sklearn.utils.validation import validate_data

from isokern import _core
from isokern.arrays import check_detached, is_foreign, to_host
from isokern.frames import Columns, are_dicts, in_memory, in_order, is_frame, needs_encoding, resolve

FLOATS = (np.dtype(np.float32), np.dtype(np.float64))
_BLOCK_ROWS = 8192
_VIEW_ROWS = 2**18  # of a block that takes no memory, for maps that are faster on many rows
_FEW_ROWS = 3  # always one block: skips the computation of the block size
_BLOCK_VALUES = 2**21
_COMPRESSED_AXIS = {"csr": 0, "bsr": 0, "csc": 1}


class CsrRows(NamedTuple):
    """Sparse rows in the core's format: CSR with ascending columns in each row."""

    values: NDArray[Any]
    columns: NDArray[np.int32]
    starts: NDArray[np.int64]
    n_columns: int

    def state(self) -> dict[str, Any]:
        """Return the fields by name, see ``isokern.parts``."""
        return self._asdict()

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Rebuild rows from their state."""
        return cls(**state)

    def check(self) -> None:
        """Do nothing: the core validates sparse rows on every call."""


CoreRows = NDArray[Any] | CsrRows


def input_tags(tags: Any, *, trees: bool = False) -> Any:
    """Return tags of an estimator that takes sparse input and, with trees, missing values and categories.

    The tag for categories stays unset, because scikit-learn's checks would then test with integers only.
    """
    tags.input_tags.sparse = True
    tags.input_tags.allow_nan = trees
    return tags


def read_rows(
    estimator: Any, X: Any, *, reset: bool, min_rows: int = 2, kernel: Any = None, n_counted: int | None = None
) -> Any:
    """Validate rows and return them as a table. This is the only place where input is validated.

    Parameters
    ----------
    estimator : estimator
        With ``reset``, stores the number and names of the columns, and which of them are categorical; without it, X
        must match them. Columns in another order are put right by their names.
    X : {array-like, sparse matrix, data frame, list of dicts} of shape (n, d)
        Arrays of other libraries, such as tensors, are copied to the host.
    reset : bool
    min_rows : int, default=2
        Minimum number of rows with ``reset``; otherwise the minimum is 1.
    kernel : IsolationKernel, default=None
        With ``reset``, the kernel that decides on categorical columns and, if it is fitted, on the order of columns.
    n_counted : int, default=None
        Number of rows whose categories are counted in ``categories_``. None means all with ``reset``, else none.

    Returns
    -------
    table : ndarray or CSR matrix
        Numeric dtypes are kept; with categories, float64. Estimators whose tags allow it get NaN for missing values.
    """
    if not reset and _is_plain(estimator, X):  # validate_data takes longer than predicting a few rows
        if _core.find_nonfinite(X.ravel()) >= 0:
            check_block_finite(X, 0, None, allow_nan=has_trees(estimator))
        return X
    X = in_memory(X)
    if is_foreign(X):
        check_detached(X)
        X = to_host(X)
    if sparse.issparse(X):
        check_sparse(X)
    reader = _ColumnReader(estimator, kernel, reset)
    if reset:
        reader.forget()
    if reader.names is not None and is_frame(X):
        X = in_order(X, reader.names)
    check = {"accept_sparse": "csr", "dtype": "numeric", "ensure_all_finite": False}
    check["ensure_min_samples"] = min_rows if reset else 1
    if reader.are_in(X):
        table = check_array(reader.encoded(X, n_counted), **check)
    else:
        table = validate_data(estimator, X, reset=reset, **check)
    if table.shape[1] > np.iinfo(np.int32).max:
        raise ValueError(f"X must have fewer than 2^31 columns; got {table.shape[1]}.")
    check_finite(table, getattr(estimator, "feature_names_in_", None), allow_nan=has_trees(estimator))
    return table


def has_trees(estimator: Any) -> bool:
    """Return whether an estimator takes missing values and categories, as isolation trees do."""
    return bool(get_tags(estimator).input_tags.allow_nan)


class _ColumnReader(NamedTuple):
    """Reads columns that an estimator must encode: names, categories and missing values; see ``read_rows``."""

    estimator: Any
    kernel: Any
    reset: bool

    @property
    def known(self) -> Any:
        """Whoever knows the columns already: a fitted kernel, or the estimator after its first rows; else None."""
        known = self.kernel if self.reset else self.estimator
        return known if hasattr(known, "n_features_in_") else None

    @property
    def names(self) -> Any:
        """Names that the columns must have, or None."""
        return getattr(self.known, "feature_names_in_", None)

    @property
    def features(self) -> Any:
        """The parameter ``categorical_features``; without it, the estimator takes no categories."""
        return getattr(self.kernel or self.estimator, "categorical_features", "from_dtype")

    def forget(self) -> None:
        """Forget the categories of earlier rows; a fitted kernel knows which columns have some."""
        self.estimator.is_categorical_ = getattr(self.known, "is_categorical_", None)
        vars(self.estimator).pop("categories_", None)

    def are_in(self, X: Any) -> bool:
        """Return whether X must be encoded."""
        if self.known is None:
            is_asked = not (self.features is None or isinstance(self.features, str))
        else:
            is_asked = getattr(self.known, "is_categorical_", None) is not None
        return is_asked or needs_encoding(X)

    def encoded(self, X: Any, n_counted: int | None) -> NDArray[np.float64]:
        """Return X as numbers; with ``reset``, store its columns in the estimator. Count categories there."""
        if sparse.issparse(X):
            raise ValueError("X must be dense, because it has categorical columns; got a sparse matrix.")
        columns = Columns.of(X, self.names)
        if are_dicts(X):
            self._check_keys(columns)
        else:
            validate_data(self.estimator, X, reset=self.reset, skip_check_array=True)
        if self.known is None:
            self.estimator.is_categorical_ = self._settled(columns, X)
        table = columns.encoded(self.estimator.is_categorical_)
        if n_counted is None:
            n_counted = columns.n_rows if self.reset else 0
        self._count(columns, table, n_counted)
        return table

    def _check_keys(self, columns: Columns) -> None:
        """Store the keys of dicts as the names of columns, or raise if the columns have none."""
        if self.reset:
            self.estimator.n_features_in_ = len(columns.columns)
            self.estimator.feature_names_in_ = np.array(columns.names, dtype=object)
        elif self.names is None:
            raise ValueError("X must have columns without names, as in fit; got dicts.")

    def _settled(self, columns: Columns, X: Any) -> NDArray[np.bool_] | None:
        """Return which columns are categorical, or None; raise if the estimator takes none."""
        if isinstance(self.features, str) and isinstance(X, np.ndarray) and X.dtype.kind in "UST":
            raise ValueError(
                f"X must not be an array of text, in which numbers are text, too; got dtype {X.dtype}. Pass a data "
                "frame or an array of objects, or list the columns of categories in categorical_features."
            )
        is_categorical = resolve(self.features, columns)
        if is_categorical is not None and not has_trees(self.estimator):
            raise ValueError(
                f"X must hold numbers; got text or categories in {columns.name(int(is_categorical.argmax()))}. "
                'Isolation trees, partitioning="tree", take categories; for all others encode the column, for example '
                "with sklearn.preprocessing.OneHotEncoder."
            )
        return is_categorical

    def _count(self, columns: Columns, table: NDArray[np.float64], n: int) -> None:
        """Count the categories of the first n rows."""
        if self.estimator.is_categorical_ is None or n == 0:
            return
        before = getattr(self.estimator, "categories_", {})
        found = columns.categories(table, self.estimator.is_categorical_, n)
        self.estimator.categories_ = {j: before[j].joined(part) if j in before else part for j, part in found.items()}


def _is_plain(estimator: Any, X: Any) -> bool:
    """Return whether X is a C-contiguous float array with the right number of columns and no names to compare."""
    return (
        type(X) is np.ndarray
        and X.ndim == 2
        and X.shape[0] > 0
        and X.shape[1] == estimator.n_features_in_
        and X.dtype in FLOATS
        and X.flags.c_contiguous
        and not hasattr(estimator, "feature_names_in_")
        and getattr(estimator, "is_categorical_", None) is None
    )


def row_blocks(table: Any, *, large_views: bool = False) -> Iterator[tuple[int, CoreRows]]:
    """Yield (index of the first row, rows in the core's format) for consecutive blocks of a table.

    Blocks of contiguous float arrays and canonical CSR matrices are views. Other input is converted block by block, so
    a large table is never copied as a whole. With ``large_views``, views of dense arrays have more rows.
    """
    n = table.shape[0]
    if n <= _FEW_ROWS:
        yield 0, core_rows(table, 0, n)
        return
    per_row = table.nnz / max(1, n) if sparse.issparse(table) else table.shape[1]
    size = int(min(max(_BLOCK_VALUES / max(1.0, per_row), 256), _BLOCK_ROWS))
    if large_views and isinstance(table, np.ndarray) and table.dtype in FLOATS and table.flags.c_contiguous:
        size = _VIEW_ROWS
    for begin in range(0, n, size):
        yield begin, core_rows(table, begin, min(begin + size, n))


def check_finite(table: Any, names: NDArray[Any] | None = None, *, allow_nan: bool = False) -> None:
    """Raise if a table contains infinity or NaN; the error names the column and the first such row.

    ``allow_nan`` allows NaN in dense tables: sparse rows hold numbers only.
    """
    if table.dtype.kind in "biu":
        return
    if not sparse.issparse(table) and table.flags.c_contiguous and table.dtype in FLOATS:
        check_block_finite(table, 0, names, allow_nan=allow_nan)  # all at once
        return
    for begin, rows in row_blocks(table):
        check_block_finite(rows, begin, names, allow_nan=allow_nan)


def check_sparse(X: Any) -> None:
    """Raise if the arrays of a sparse matrix contradict each other or its shape.

    SciPy checks this when a matrix is made, but arrays can be replaced later. Its functions do not check, and may then
    read or write memory that is not theirs.
    """
    if X.ndim != 2:
        raise ValueError(f"X must have 2 dimensions; got {X.ndim}.")
    if X.format not in ("coo", *_COMPRESSED_AXIS):
        return
    if not isinstance(X.data, np.ndarray) or X.data.ndim != (3 if X.format == "bsr" else 1):
        raise ValueError(f"X.data must be an array of values; got {type(X.data).__name__} of shape {np.shape(X.data)}.")
    if X.format == "coo":
        for name, n in zip(("row", "col"), X.shape, strict=True):
            _check_indices(X, name, n, len(X.data))
    else:
        shape = np.floor_divide(X.shape, X.blocksize) if X.format == "bsr" else X.shape
        axis = _COMPRESSED_AXIS[X.format]
        _check_integers(X, "indptr", shape[axis] + 1)
        if X.indptr[0] != 0 or (X.indptr[1:] < X.indptr[:-1]).any():
            raise ValueError("X.indptr must begin with 0 and never decrease.")
        _check_indices(X, "indices", shape[1 - axis], int(X.indptr[-1]))


def _check_indices(X: Any, name: str, n: int, n_used: int) -> None:
    """Raise unless an array has an integer for each value, and the first ``n_used`` of them are from 0 to n - 1."""
    if n_used > len(X.data):
        raise ValueError(f"X.data must have at least {n_used} values, the last of X.indptr; got {len(X.data)}.")
    _check_integers(X, name, len(X.data))
    used = getattr(X, name)[:n_used]
    if n_used and (used.min() < 0 or used.max() >= n):
        raise ValueError(f"X.{name} must be from 0 to {n - 1}; got {used.min()} to {used.max()}.")


def _check_integers(X: Any, name: str, length: int) -> None:
    array = getattr(X, name)
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "iu":
        raise ValueError(f"X.{name} must be an array of integers; got {getattr(array, 'dtype', type(array).__name__)}.")
    if array.shape != (length,):
        raise ValueError(f"X.{name} must have the shape ({length},); got {array.shape}.")


def core_rows(X: Any, begin: int, end: int) -> CoreRows:
    """Return rows begin to end of X in the core's format."""
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
    """Return the CSR class that scikit-learn is configured to return."""
    return sparse.csr_array if get_config().get("sparse_interface") == "sparray" else sparse.csr_matrix


def _as_float(values: NDArray[Any]) -> NDArray[Any]:
    return values if values.dtype in FLOATS else values.astype(np.float64)


def _canonical(rows: CsrRows) -> CsrRows:
    """Sort the columns of each row and sum duplicate entries."""
    table = as_scipy(rows).copy()
    table.check_format(full_check=True)  # raises if an index is out of range
    table.sum_duplicates()
    starts = table.indptr.astype(np.int64)
    return CsrRows(table.data, table.indices.astype(np.int32), starts, rows.n_columns)


def check_block_finite(rows: CoreRows, first_row: int, names: NDArray[Any] | None, *, allow_nan: bool = False) -> None:
    """Raise if rows contain infinity or NaN; ``first_row`` is the index of the first of them in the input."""
    is_sparse = isinstance(rows, CsrRows)
    values = rows.values if isinstance(rows, CsrRows) else rows.ravel()
    place = _core.find_nonfinite(values, allow_nan and not is_sparse)
    if place < 0:
        return
    if isinstance(rows, CsrRows):
        row = int(np.searchsorted(rows.starts, place, side="right")) - 1
        column = int(rows.columns[place])
    else:
        row, column = divmod(place, rows.shape[1])
    what = "NaN" if np.isnan(values[place]) else "infinity"
    name = f" ({names[column]!r})" if names is not None else ""
    cure = 'Isolation trees, partitioning="tree", take missing values in dense rows. ' if what == "NaN" else ""
    raise ValueError(
        f"X must be finite; got {what} in column {column}{name}, first in row {first_row + row}. {cure}"
        "Fill or drop such values first, for example with sklearn.impute.SimpleImputer."
    )
