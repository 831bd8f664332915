"""Compute features, similarities, scores and labels from cells, in the library and on the device of the cells."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from isokern import _core
from isokern.arrays import device_of, has_float64, like, namespace
from isokern.devices.operations import csr_tensor, memory_budget
from isokern.fitted_map import FittedMap


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


def csr_features(cells: Any, fitted: FittedMap, *, single: bool) -> Any:
    """Return the one-hot encoding of a tensor of cells as a CSR tensor."""
    n, n_stored = cells.shape
    columns = cells + like(fitted.starts[:-1].astype(np.int32), cells)
    row_starts = like(np.arange(n + 1, dtype=np.int32) * n_stored, cells)
    values = namespace(cells).tile(_values(cells, fitted, single), (n,))
    return csr_tensor(row_starts, columns.reshape(-1), values, n_columns=fitted.width)


def dense_features(cells: Any, fitted: FittedMap, *, single: bool) -> Any:
    """Return the one-hot encoding of cells as a dense array; all partitionings must have as many cells."""
    xp, values = namespace(cells), _values(cells, fitted, single)
    numbers = xp.arange(int(fitted.starts[1]), dtype=cells.dtype, device=device_of(cells))
    is_cell = xp.expand_dims(cells, axis=2) == numbers
    features = xp.astype(is_cell, values.dtype) * xp.expand_dims(values, axis=1)
    return xp.reshape(features, (cells.shape[0], fitted.width))


def foreign_shares(first: Any, second: Any, weights: NDArray[np.float64], *, single: bool) -> Any:
    """Return, for each row of ``first`` and each of ``second``, the fraction of equal cells, weighted by scale."""
    xp, dtype, n_scales = namespace(first), _dtype(first, single), len(weights)
    t = first.shape[1] // n_scales

    def weighted(counts: Any) -> Any:
        return sum(float(weight) * counts[..., scale] for scale, weight in enumerate(weights))

    # Both sums are rounded alike, so equal rows have a share of exactly 1.
    total = weighted(xp.full((1, 1, n_scales), t, dtype=dtype, device=device_of(first)))

    def shares(rows: Any) -> Any:
        is_same = xp.expand_dims(rows, axis=1) == xp.expand_dims(second, axis=0)
        is_same = xp.reshape(xp.astype(is_same, xp.int32), (*is_same.shape[:2], t, n_scales))
        return weighted(xp.astype(xp.sum(is_same, axis=2), dtype)) / total

    return _in_blocks(shares, first, 4 * second.shape[0] * first.shape[1])


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


def _values(cells: Any, fitted: FittedMap, single: bool) -> Any:
    """Return the values of a row's features beside its cells."""
    return namespace(cells).astype(like(fitted.feature_values, cells), _dtype(cells, single))


def _dtype(cells: Any, single: bool) -> Any:
    xp = namespace(cells)
    return xp.float32 if single or not has_float64(xp, device_of(cells)) else xp.float64


def _in_blocks(function: Callable[[Any], Any], rows: Any, bytes_per_row: int) -> Any:
    """Apply a function to blocks of rows that fit the memory budget, and concatenate the results."""
    xp, n = namespace(rows), rows.shape[0]
    size = max(1, memory_budget(xp, device_of(rows)) // bytes_per_row)
    return xp.concat([function(rows[begin : min(begin + size, n), :]) for begin in range(0, n, size)], axis=0)
