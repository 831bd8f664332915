"""What is made of cells on a device: features, similarities, scores and labels."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from isokern.arrays import device_of, has_float64, like, namespace
from isokern.devices.operations import csr_tensor, is_torch, memory_budget

# owner -> (its table, how far it had learned, where the copy is, the copy)
_KEPT: WeakKeyDictionary[Any, tuple[NDArray[Any], int, str, Any]] = WeakKeyDictionary()


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


def foreign_scores(
    cells: Any, starts: NDArray[np.int64], owner: Any, *, table: NDArray[Any], rounds: int, make: Callable[[], Any]
) -> Any:
    """Return the sums over each row's cells of the rows of a table there, (n, n_columns).

    ``make`` gives that table; its copy is kept until ``table`` is another or ``rounds`` has changed.
    """
    xp, device = namespace(cells), device_of(cells)
    kept = _KEPT.get(owner)
    if kept is None or not (kept[0] is table and kept[1:3] == (rounds, str(device))):
        kept = _KEPT[owner] = (table, rounds, str(device), like(make(), cells))
    weights, (n, t) = kept[3], cells.shape
    places = cells + like(starts[:-1].astype(np.int32), cells)
    size = max(1, memory_budget(xp, device) // (16 * t * weights.shape[1]))
    parts = []
    for begin in range(0, n, size):
        part = xp.reshape(places[begin : min(begin + size, n), :], (-1,))
        parts.append(xp.sum(xp.reshape(xp.take(weights, part, axis=0), (-1, t, weights.shape[1])), axis=1))
    return xp.concat(parts, axis=0)


def foreign_labels(scores: Any, classes: NDArray[Any]) -> Any:
    """Return the class of the largest score there; one column of scores speaks for the second class where positive."""
    xp = namespace(scores)
    places = xp.argmax(scores, axis=1) if scores.ndim == 2 else xp.astype(scores > 0, xp.int32)
    return xp.take(like(classes, scores), places, axis=0)
