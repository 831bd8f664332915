"""Give devices blocks of rows, from a table on the host or from another library's array."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from isokern.arrays import ForeignRows, device_of, has_float64, is_csr, namespace, to_host
from isokern.devices.operations import csr_tensor, dense_of_csr
from isokern.devices.pytorch import Link
from isokern.rows import CoreRows, CsrRows, as_scipy, check_block_finite, check_finite, core_rows
from isokern.scaling import Scaling


class OnDevice(Protocol):
    """Partitionings on a device, for rows of one dtype."""

    n_columns: int
    column_numbers: Any  # old column -> column that the mapper reads; None if it reads all of them

    @property
    def bytes_per_row(self) -> int:
        """Peak memory to map one row."""

    def prepare(self, rows: Any) -> tuple[Any, ...]:
        """Convert rows, of NumPy or on the device, to the input of ``find``."""

    def find(self, rows: tuple[Any, ...]) -> tuple[Any, Any]:
        """Return the cells of prepared rows, (n, t), and which rows are undecided."""


class Table:
    """Rows of a table on the host: scaled and prepared there, then sent to a device."""

    def __init__(self, table: Any, scaling: Scaling | None, link: Link, xp: Any) -> None:
        self._table, self._scaling, self._link = table, scaling, link
        self.xp, self.device, self.n = xp, link.device, table.shape[0]
        self.is_sparse = sparse.issparse(table)
        self.has_float64 = has_float64(xp, link.device)
        self.row_dtype = np.dtype(np.float32 if table.dtype == np.float32 and scaling is None else np.float64)

    def block(self, mapper: OnDevice, begin: int, end: int) -> tuple[Any, ...]:
        """Return rows begin to end on the device, prepared for a mapper."""
        rows = self._scaled(core_rows(self._table, begin, end))
        if isinstance(rows, CsrRows) and (self.has_float64 or rows.values.dtype == np.float32):
            values, columns, starts = (self._link.send(part) for part in rows[:3])
            return mapper.prepare(dense_of_csr((values, columns, starts), mapper.n_columns, mapper.column_numbers))
        return tuple(self._link.send(part) for part in mapper.prepare(as_dense(rows, mapper)))

    def take(self, numbers: NDArray[np.int64]) -> Table:
        """Return some of the rows."""
        return Table(self._table[numbers], self._scaling, self._link, self.xp)

    def core_rows(self, numbers: NDArray[np.int64]) -> CoreRows:
        """Return some of the rows for the compiled core."""
        return self._scaled(core_rows(self._table[numbers], 0, len(numbers)))

    def _scaled(self, rows: CoreRows) -> CoreRows:
        return rows if self._scaling is None else self._scaling.apply(rows)


class Foreign:
    """Rows of another library's array, scaled and prepared where they are."""

    def __init__(self, rows: ForeignRows, scaling: Scaling | None) -> None:
        X, names, self._allow_nan = rows
        self.xp, self.device, self.n = namespace(X), device_of(X), X.shape[0]
        self._X, self._scaling, self._names = X, scaling, names
        self.has_float64 = has_float64(self.xp, self.device)
        dtype = X.dtype
        self._is_narrow = self.xp.isdtype(dtype, "real floating") and dtype != self.xp.float64
        self.row_dtype = np.dtype(np.float32 if self._is_narrow and scaling is None else np.float64)
        self.is_sparse = is_csr(X)
        self._csr = _csr_parts(X) if self.is_sparse else None
        if scaling is not None and self.has_float64:
            self._offset, self._divisor = (
                self.xp.asarray(part, device=self.device) for part in (scaling.offset, scaling.divisor)
            )
        if self._csr is not None and not bool(self.xp.all(self.xp.isfinite(self._csr[0]))):
            check_finite(to_host(X), names)
        if self._csr is not None and scaling is not None and scaling.offset.any():
            scaling.apply(core_rows(to_host(X), 0, 1))  # raises: an offset would make the zeros nonzero

    @property
    def can_stay(self) -> bool:
        """Whether the device has the precision for these rows; otherwise the host maps them."""
        return self.has_float64 or (self._is_narrow and self._scaling is None)

    def block(self, mapper: OnDevice, begin: int, end: int) -> tuple[Any, ...]:
        """Return rows begin to end, prepared for a mapper."""
        xp = self.xp
        rows = self._X[begin:end, :] if self._csr is None else self._dense_block(mapper, begin, end)
        rows = xp.astype(rows, getattr(xp, self.row_dtype.name), copy=False)
        if self._scaling is not None and self._csr is None:
            rows = (rows - self._offset) / self._divisor
        return mapper.prepare(rows)

    def _dense_block(self, mapper: OnDevice, begin: int, end: int) -> Any:
        values, columns, starts, bounds = self._csr  # type: ignore[misc]
        first, last = int(bounds[begin]), int(bounds[end])
        values, columns = values[first:last], columns[first:last]
        if self._scaling is not None:
            values = values.double() / self._divisor[columns.long()]
        return dense_of_csr((values, columns, starts[begin : end + 1]), mapper.n_columns, mapper.column_numbers)

    def take(self, numbers: NDArray[np.int64]) -> Foreign:
        """Return some of the rows."""
        if self._csr is None:
            rows = self._rows(numbers)
        else:
            table = self._on_host[numbers]
            parts = (self.xp.asarray(part, device=self.device) for part in (table.indptr, table.indices, table.data))
            rows = csr_tensor(*parts, n_columns=table.shape[1])
        return Foreign(ForeignRows(rows, self._names, self._allow_nan), self._scaling)

    def core_rows(self, numbers: NDArray[np.int64]) -> CoreRows:
        """Return some of the rows for the compiled core; raise if they are not finite."""
        table = to_host(self._rows(numbers)) if self._csr is None else self._on_host[numbers]
        rows = core_rows(table, 0, table.shape[0])
        if not isinstance(rows, CsrRows):
            is_bad = np.isinf(rows) if self._allow_nan else ~np.isfinite(rows)
            for row in np.flatnonzero(is_bad.any(axis=1)):
                check_block_finite(rows[row : row + 1], int(numbers[row]), self._names, allow_nan=self._allow_nan)
        return rows if self._scaling is None else self._scaling.apply(rows)

    def _rows(self, numbers: NDArray[np.int64]) -> Any:
        return self.xp.take(self._X, self.xp.asarray(numbers, device=self.device), axis=0)

    @cached_property
    def _on_host(self) -> Any:
        return to_host(self._X)


def _csr_parts(X: Any) -> tuple[Any, Any, Any, NDArray[Any]]:
    """Return values, columns and starts of a CSR tensor, and a host copy of the starts, by which blocks are cut."""
    starts = X.crow_indices()
    return X.values(), X.col_indices(), starts, to_host(starts)


def as_dense(rows: CoreRows, mapper: OnDevice) -> NDArray[Any]:
    """Return rows as a dense array of the columns that a mapper reads."""
    table = as_scipy(rows)
    if not sparse.issparse(table):
        return table
    if mapper.column_numbers is None:
        return table.toarray()
    numbers = np.asarray(to_host(mapper.column_numbers))
    columns = sparse.csr_array((table.data, numbers[table.indices], table.indptr), (table.shape[0], mapper.n_columns))
    return columns.toarray()
