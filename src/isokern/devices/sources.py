"""Where rows come from: a table on the host, or an array of another library; they are placed block by block."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from isokern.arrays import ForeignRows, device_of, has_float64, is_csr, namespace, to_host
from isokern.devices.operations import csr_tensor, write_out
from isokern.devices.pytorch import Link
from isokern.rows import CoreRows, CsrRows, as_scipy, check_block_finite, check_finite, core_rows
from isokern.scaling import Scaling


class OnDevice(Protocol):
    """Partitionings on a device, for rows of one type."""

    n_columns: int
    column_numbers: Any

    @property
    def bytes_per_row(self) -> int:
        """Bytes that finding the cells of one row takes at its peak."""

    def place(self, rows: Any) -> tuple[Any, ...]:
        """Return rows, of NumPy or on the device, as ``find`` takes them."""

    def find(self, rows: tuple[Any, ...]) -> tuple[Any, Any]:
        """Return the cells of placed rows, (n, t), and which of the rows are left open."""


class Table:
    """Rows of a table, scaled and placed on the host and sent to a device."""

    def __init__(self, table: Any, scaling: Scaling | None, link: Link, xp: Any) -> None:
        self._table, self._scaling, self._link = table, scaling, link
        self.xp, self.device, self.n = xp, link.device, table.shape[0]
        self.is_sparse = sparse.issparse(table)
        self.has_float64 = has_float64(xp, link.device)
        self.row_dtype = np.dtype(np.float32 if table.dtype == np.float32 and scaling is None else np.float64)

    def place(self, mapper: OnDevice, begin: int, end: int) -> tuple[Any, ...]:
        """Return rows begin to end as a mapper takes them, on its device."""
        rows = core_rows(self._table, begin, end)
        rows = rows if self._scaling is None else self._scaling.apply(rows)
        if isinstance(rows, CsrRows) and (self.has_float64 or rows.values.dtype == np.float32):
            values, columns, starts = (self._link.send(part) for part in rows[:3])
            return mapper.place(write_out((values, columns, starts), mapper.n_columns, mapper.column_numbers))
        return tuple(self._link.send(part) for part in mapper.place(as_dense(rows, mapper)))

    def take(self, numbers: NDArray[np.int64]) -> Table:
        """Return some of the rows."""
        return Table(self._table[numbers], self._scaling, self._link, self.xp)

    def core_rows(self, numbers: NDArray[np.int64]) -> CoreRows:
        """Return some of the rows as the compiled core takes them."""
        table = self._table[numbers]
        rows = core_rows(table, 0, table.shape[0])
        return rows if self._scaling is None else self._scaling.apply(rows)


class Foreign:
    """Rows of an array of another library, scaled and placed where they are."""

    def __init__(self, rows: ForeignRows, scaling: Scaling | None) -> None:
        X, names = rows
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
            scaling.apply(core_rows(to_host(X), 0, 1))  # raises, since it would move zeros

    @property
    def can_stay(self) -> bool:
        """Whether the device computes all that these rows need; else they go by way of the host."""
        return self.has_float64 or (self._is_narrow and self._scaling is None)

    def place(self, mapper: OnDevice, begin: int, end: int) -> tuple[Any, ...]:
        """Return rows begin to end as a mapper takes them."""
        xp = self.xp
        rows = self._X[begin:end, :] if self._csr is None else self._written_out(mapper, begin, end)
        rows = xp.astype(rows, getattr(xp, self.row_dtype.name), copy=False)
        if self._scaling is not None and self._csr is None:
            rows = (rows - self._offset) / self._divisor
        return mapper.place(rows)

    def _written_out(self, mapper: OnDevice, begin: int, end: int) -> Any:
        values, columns, starts, bounds = self._csr  # type: ignore[misc]
        first, last = int(bounds[begin]), int(bounds[end])
        values, columns = values[first:last], columns[first:last]
        if self._scaling is not None:
            values = values.double() / self._divisor[columns.long()]
        return write_out((values, columns, starts[begin : end + 1]), mapper.n_columns, mapper.column_numbers)

    def take(self, numbers: NDArray[np.int64]) -> Foreign:
        """Return some of the rows."""
        if self._csr is None:
            rows = self._rows(numbers)
        else:
            table = self._on_host[numbers]
            parts = (self.xp.asarray(part, device=self.device) for part in (table.indptr, table.indices, table.data))
            rows = csr_tensor(*parts, n_columns=table.shape[1])
        return Foreign(ForeignRows(rows, self._names), self._scaling)

    def _rows(self, numbers: NDArray[np.int64]) -> Any:
        return self.xp.take(self._X, self.xp.asarray(numbers, device=self.device), axis=0)

    @cached_property
    def _on_host(self) -> Any:
        return to_host(self._X)

    def core_rows(self, numbers: NDArray[np.int64]) -> CoreRows:
        """Return some of the rows as the compiled core takes them; raise if they are not finite."""
        table = to_host(self._rows(numbers)) if self._csr is None else self._on_host[numbers]
        rows = core_rows(table, 0, table.shape[0])
        if not isinstance(rows, CsrRows):
            bad = np.flatnonzero(~np.isfinite(rows).all(axis=1))
            if len(bad):
                check_block_finite(rows[bad[:1]], int(numbers[bad[0]]), self._names)
        return rows if self._scaling is None else self._scaling.apply(rows)


def _csr_parts(X: Any) -> tuple[Any, Any, Any, NDArray[Any]]:
    """Return values, columns and starts of a CSR tensor, and the starts on the host, where blocks are cut."""
    starts = X.crow_indices()
    return X.values(), X.col_indices(), starts, to_host(starts)


def as_dense(rows: CoreRows, mapper: OnDevice) -> NDArray[Any]:
    """Return rows as a dense array, with the columns that a mapper looks at."""
    table = as_scipy(rows)
    if not sparse.issparse(table):
        return table
    if mapper.column_numbers is None:
        return table.toarray()
    numbers = np.asarray(to_host(mapper.column_numbers))
    columns = sparse.csr_array((table.data, numbers[table.indices], table.indptr), (table.shape[0], mapper.n_columns))
    return columns.toarray()
