"""Compute features, similarities, scores and labels from cells, in the library and on the device of the cells."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Protocol
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from isokern import _core
from isokern.arrays import device_of, has_float64, like, namespace
from isokern.devices.operations import csr_tensor, is_torch, memory_budget


class CellTable(Protocol):
    """Weights of cells: a row's score is ``factor`` times the sum of its cells' rows in ``table()``."""

    starts: NDArray[np.int64]
    values: NDArray[np.float64]
    clock: _core.Clock

    @property
    def factor(self) -> float:
        """The factor of all scores."""

    def table(self) -> NDArray[np.float64]:
        """Return the weights, (number of cells, number of scores)."""


# weights -> (their array, (rows learned, device of the copy), the copy of their table): the key of the copy's validity.
_KEPT: WeakKeyDictionary[Any, tuple[NDArray[Any], tuple[int, str], Any]] = WeakKeyDictionary()


def foreign_features(cells: Any, starts: NDArray[np.int64], *, single: bool, sparse_output: bool) -> Any:
    """Return the one-hot encoding of cells: a CSR tensor of PyTorch, or a dense array."""
    xp, (n, t) = namespace(cells), cells.shape
    dtype, value = _dtype(cells, single), 1.0 / math.sqrt(t)
    if sparse_output and is_torch(xp):
        columns = cells + like(starts[:-1].astype(np.int32), cells)
        values = xp.full((n * t,), value, dtype=dtype, device=cells.device)
        row_starts = like(np.arange(n + 1, dtype=np.int32) * t, cells)
        return csr_tensor(row_starts, columns.reshape(-1), values, n_columns=int(starts[-1]))
    numbers = xp.arange(int(starts[1]), dtype=cells.dtype, device=device_of(cells))
    is_cell = xp.expand_dims(cells, axis=2) == numbers
    return xp.astype(xp.reshape(is_cell, (n, int(starts[-1]))), dtype) * value


def foreign_shares(first: Any, second: Any, *, single: bool) -> Any:
    """Return, for each row of ``first`` and each of ``second``, the fraction of equal cells."""
    xp, t, dtype = namespace(first), first.shape[1], _dtype(first, single)

    def shares(rows: Any) -> Any:
        is_same = xp.expand_dims(rows, axis=1) == xp.expand_dims(second, axis=0)
        return xp.astype(xp.sum(xp.astype(is_same, xp.int32), axis=2), dtype) / t

    return _in_blocks(shares, first, 4 * second.shape[0] * t)


def foreign_scores(cells: Any, weights: CellTable) -> Any:
    """Return the scores of rows, (n, n_columns); the weights' copy on the device is cached until they change."""
    xp, t = namespace(cells), cells.shape[1]
    state = (weights.clock.rounds, str(device_of(cells)))
    kept = _KEPT.get(weights)
    if kept is None or kept[0] is not weights.values or kept[1] != state:
        kept = _KEPT[weights] = (weights.values, state, like(weights.table(), cells))
    table = kept[2]

    def sums(positions: Any) -> Any:
        values = xp.take(table, xp.reshape(positions, (-1,)), axis=0)
        return xp.sum(xp.reshape(values, (-1, t, table.shape[1])), axis=1)

    positions = cells + like(weights.starts[:-1].astype(np.int32), cells)
    return weights.factor * _in_blocks(sums, positions, 16 * t * table.shape[1])


def foreign_labels(scores: Any, classes: NDArray[Any]) -> Any:
    """Return the class with the largest score; a single column of scores is positive for the second class."""
    xp = namespace(scores)
    positions = xp.argmax(scores, axis=1) if scores.ndim == 2 else xp.astype(scores > 0, xp.int32)
    return xp.take(like(classes, scores), positions, axis=0)


def _dtype(cells: Any, single: bool) -> Any:
    xp = namespace(cells)
    return xp.float32 if single or not has_float64(xp, device_of(cells)) else xp.float64


def _in_blocks(function: Callable[[Any], Any], rows: Any, bytes_per_row: int) -> Any:
    """Apply a function to blocks of rows that fit the memory budget, and concatenate the results."""
    xp, n = namespace(rows), rows.shape[0]
    size = max(1, memory_budget(xp, device_of(rows)) // bytes_per_row)
    return xp.concat([function(rows[begin : min(begin + size, n), :]) for begin in range(0, n, size)], axis=0)
