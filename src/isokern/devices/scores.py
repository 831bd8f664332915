"""What is made of cells on a device: features, similarities, scores and labels."""

from __future__ import annotations

import math
from typing import Any, Protocol
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from isokern import _core
from isokern.arrays import device_of, has_float64, like, namespace
from isokern.devices.operations import csr_tensor, is_torch, memory_budget


class CellTable(Protocol):
    """Weights of cells: a score is ``factor`` times the sum of the rows of ``table()`` that are a row's cells."""

    starts: NDArray[np.int64]
    values: NDArray[np.float64]
    clock: _core.Clock

    @property
    def factor(self) -> float:
        """The factor of all scores."""

    def table(self) -> NDArray[np.float64]:
        """Return the weights, (number of cells, number of scores)."""


# weights -> (their array, how far they had learned and where the copy is, the copy of their table)
_KEPT: WeakKeyDictionary[Any, tuple[NDArray[Any], tuple[int, str], Any]] = WeakKeyDictionary()


def foreign_features(cells: Any, starts: NDArray[np.int64], *, single: bool, sparse_output: bool) -> Any:
    """Return the one-hot form of cells: a CSR tensor of PyTorch, or a dense array."""
    xp, (n, t) = namespace(cells), cells.shape
    dtype = xp.float32 if single or not has_float64(xp, device_of(cells)) else xp.float64
    value = 1.0 / math.sqrt(t)
    if sparse_output and is_torch(xp):
        columns = cells + like(starts[:-1].astype(np.int32), cells)
        values = xp.full((n * t,), value, dtype=dtype, device=cells.device)
        row_starts = like(np.arange(n + 1, dtype=np.int32) * t, cells)
        return csr_tensor(row_starts, columns.reshape(-1), values, n_columns=int(starts[-1]))
    numbers = xp.arange(int(starts[1]), dtype=cells.dtype, device=device_of(cells))
    is_cell = xp.expand_dims(cells, axis=2) == numbers
    return xp.astype(xp.reshape(is_cell, (n, int(starts[-1]))), dtype) * value


def foreign_shares(first: Any, second: Any, *, single: bool) -> Any:
    """Return the share of equal cells of each row of ``first`` and each of ``second``."""
    xp, device = namespace(first), device_of(first)
    (n, t), m = first.shape, second.shape[0]
    dtype = xp.float32 if single or not has_float64(xp, device) else xp.float64
    size = max(1, memory_budget(xp, device) // (4 * m * t))
    parts = []
    for begin in range(0, n, size):
        is_same = xp.expand_dims(first[begin : min(begin + size, n), :], axis=1) == xp.expand_dims(second, axis=0)
        parts.append(xp.astype(xp.sum(xp.astype(is_same, xp.int32), axis=2), dtype) / t)
    return xp.concat(parts, axis=0)


def foreign_scores(cells: Any, weights: CellTable) -> Any:
    """Return the scores of rows there, (n, n_columns); the table's copy is kept until the weights change."""
    xp, device, starts = namespace(cells), device_of(cells), weights.starts
    state = (weights.clock.rounds, str(device))
    kept = _KEPT.get(weights)
    if kept is None or kept[0] is not weights.values or kept[1] != state:
        kept = _KEPT[weights] = (weights.values, state, like(weights.table(), cells))
    table, (n, t) = kept[2], cells.shape
    places = cells + like(starts[:-1].astype(np.int32), cells)
    size = max(1, memory_budget(xp, device) // (16 * t * table.shape[1]))
    parts = []
    for begin in range(0, n, size):
        part = xp.reshape(places[begin : min(begin + size, n), :], (-1,))
        parts.append(xp.sum(xp.reshape(xp.take(table, part, axis=0), (-1, t, table.shape[1])), axis=1))
    return weights.factor * xp.concat(parts, axis=0)


def foreign_labels(scores: Any, classes: NDArray[Any]) -> Any:
    """Return the class of the largest score there; one column of scores speaks for the second class where positive."""
    xp = namespace(scores)
    places = xp.argmax(scores, axis=1) if scores.ndim == 2 else xp.astype(scores > 0, xp.int32)
    return xp.take(like(classes, scores), places, axis=0)
