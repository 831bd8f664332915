"""Descend isolation trees on a device: all rows in all trees at once, level by level.

The state is the current node of each row in each tree, (n, t). A leaf is its own child, so every level is the same few
gathers for all rows. Trees are sorted by depth, and shallow trees drop out of later levels. The depths are known
beforehand, so the host never waits for the device.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from isokern.arrays import has_float64
from isokern.devices.operations import is_torch


class TreesOnDevice:
    """The nodes of all trees on a device, for rows of one dtype.

    Parameters
    ----------
    arrays, n_columns : see IsolationTrees
    xp, device : namespace and device
    row_dtype : float32 or float64
    compact : whether rows have only the columns that occur in a split, in order, and one more for all others
    """

    def __init__(
        self,
        arrays: dict[str, NDArray[Any]],
        n_columns: int,
        xp: Any,
        device: Any,
        row_dtype: Any,
        *,
        compact: bool = False,
    ) -> None:
        self.xp, self.device, self.row_dtype = xp, device, np.dtype(row_dtype)
        self._ranks = self.row_dtype == np.float64 and not has_float64(xp, device)
        starts, left = arrays["starts"], arrays["left"]
        self.n_partitionings = len(starts) - 1
        sizes = np.diff(starts)
        is_leaf = left < 0
        column, self.n_columns, numbers = np.where(is_leaf, 0, arrays["column"]), n_columns, None
        if compact:
            column, self.n_columns, numbers = _compact(column, n_columns)
        self.column_numbers = None if numbers is None else self._asarray(numbers)
        nodes = np.arange(len(left))
        first = np.where(is_leaf, nodes, left + np.repeat(starts[:-1], sizes))
        depths = tree_depths(first, is_leaf, starts)
        order = np.argsort(-depths, kind="stable")
        self._n_deeper = [int((depths > level).sum()) for level in range(int(depths.max(initial=0)))]
        self._roots = self._asarray(starts[:-1][order].astype(np.int32))
        self._back = self._asarray(np.argsort(order).astype(np.int32))
        self._first = self._asarray(first.astype(np.int32))
        self._column = self._asarray(column.astype(np.int64 if is_torch(xp) else np.int32))  # PyTorch gathers by int64
        self._split = self._asarray(np.where(is_leaf, self._never(), self._comparable(arrays["split"])))
        self._cell = self._asarray(np.where(is_leaf, ~left, 0).astype(np.int32))

    @property
    def bytes_per_row(self) -> int:
        """Peak memory to map one row."""
        return 8 * (3 * self.n_columns + 8 * self.n_partitionings)

    def prepare(self, rows: Any) -> tuple[Any, ...]:
        """Convert rows, of NumPy or on the device, to a dtype that the device can compare."""
        return (ordered_integers(rows) if self._ranks else rows,)

    def find(self, rows: tuple[Any, ...]) -> tuple[Any, Any]:
        """Return the cells of prepared rows, (n, t), and which rows are undecided: those that are not finite."""
        xp, (values,) = self.xp, rows
        nodes = xp.broadcast_to(self._roots, (values.shape[0], self.n_partitionings))
        ended = []
        for n_deeper in self._n_deeper:
            if n_deeper < nodes.shape[1]:
                ended.append(nodes[:, n_deeper:])
                nodes = nodes[:, :n_deeper]
            nodes = self._descend(values, nodes)
        nodes = xp.concat([nodes, *reversed(ended)], axis=1)
        cells = self._look_up(self._cell, xp.take(nodes, self._back, axis=1))
        return cells, ~xp.isfinite(xp.sum(values, axis=1))

    def _descend(self, rows: Any, nodes: Any) -> Any:
        """Return the nodes one level down: the left child if the row's value is below the split, else the right."""
        xp = self.xp
        values = xp.take_along_axis(rows, self._look_up(self._column, nodes), axis=1)
        is_right = values >= self._look_up(self._split, nodes)
        return self._look_up(self._first, nodes) + xp.astype(is_right, xp.int32)

    def _look_up(self, table: Any, nodes: Any) -> Any:
        return self.xp.reshape(self.xp.take(table, self.xp.reshape(nodes, (-1,)), axis=0), nodes.shape)

    def _comparable(self, split: NDArray[np.float64]) -> NDArray[Any]:
        """Convert splits to the rows' dtype so that the same rows are below them."""
        if self.row_dtype == np.float64:
            return ordered_integers(split) if self._ranks else split
        with np.errstate(over="ignore"):
            single = split.astype(np.float32)
        # A float32 is below the split if and only if it is below the smallest float32 that is at least the split.
        return np.where(single < split, np.nextafter(single, np.float32(np.inf)), single)

    def _never(self) -> Any:
        """Return a split that no row reaches."""
        return np.iinfo(np.int64).max if self._ranks else self.row_dtype.type(np.inf)

    def _asarray(self, values: NDArray[Any]) -> Any:
        return self.xp.asarray(values, device=self.device)


def _compact(column: NDArray[Any], n_columns: int) -> tuple[NDArray[Any], int, NDArray[np.int64]]:
    """Renumber the columns used in splits; return the nodes' columns, their number, and the new number of each."""
    used, column = np.unique(column, return_inverse=True)
    numbers = np.full(n_columns, len(used), dtype=np.int64)
    numbers[used] = np.arange(len(used))
    return column, len(used) + 1, numbers


def tree_depths(first: NDArray[np.int64], is_leaf: NDArray[np.bool_], starts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the depth of each tree; ``first`` holds the left child of each node."""
    depths = np.zeros(len(starts) - 1, dtype=np.int64)
    nodes, trees = starts[:-1], np.arange(len(depths))
    while True:
        is_inner = ~is_leaf[nodes]
        nodes, trees = np.repeat(first[nodes[is_inner]], 2), np.repeat(trees[is_inner], 2)
        if not len(nodes):
            return depths
        nodes[1::2] += 1
        depths[trees] += 1


def ordered_integers(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Map float64 values to integers of the same order, for devices without float64."""
    bits = (values + 0.0).view(np.int64)  # + 0.0 turns -0.0 into 0.0
    return np.where(bits < 0, np.iinfo(np.int64).min - bits, bits)
