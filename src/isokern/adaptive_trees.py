"""Provide the trees of a map that renews itself: ladder trees, redrawn one by one, and lasting trees, which grow."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isokern import _core
from isokern.partitionings import IsolationTrees, most_scales
from isokern.parts import Part, need
from isokern.rows import CoreRows, n_rows


@dataclass(eq=False)
class AdaptiveTrees(Part):
    """Trees of two kinds as the partitionings of one map, each with one scale.

    A ladder tree counts as several partitionings, one for each of its scales: tree i has columns i * n_scales to
    (i + 1) * n_scales of the cells, coarse to fine. All have room for ``ladder.n_cells`` cells, so that a tree can be
    replaced by another one. The lasting trees have the last columns.
    """

    ladder: IsolationTrees
    lasting: IsolationTrees

    def __post_init__(self) -> None:
        self.n_scales = most_scales(self.ladder.n_cells)

    @property
    def n_trees(self) -> int:
        """The number of trees of both kinds."""
        return self.ladder.n_trees + self.lasting.n_trees

    @property
    def n_columns(self) -> int:
        """The number of columns of rows."""
        return self.ladder.n_columns

    @property
    def n_ladder_columns(self) -> int:
        """The number of columns of cells that the ladder trees have."""
        return self.ladder.n_trees * self.n_scales

    def sizes(self, n_scales: int) -> NDArray[np.int64]:
        """Return the number of cells of each partitioning, (t, 1)."""
        need(n_scales == 1, f"n_scales must be 1; got {n_scales}")
        of_ladder = np.full(self.n_ladder_columns, self.ladder.n_cells)
        return np.concatenate([of_ladder, np.full(self.lasting.n_trees, self.lasting.n_cells)])[:, None]

    def apply(self, rows: CoreRows, cells: NDArray[Any], threads: int) -> None:
        """Write each row's cells into ``cells``, (n, t)."""
        found = scaled_cells(self.ladder, rows, cells.dtype, threads)
        cells[:, : self.n_ladder_columns] = found.reshape(len(cells), -1)
        leaves: NDArray[Any] = np.empty((len(cells), self.lasting.n_trees), dtype=cells.dtype)
        self.lasting.apply(rows, leaves, threads)
        cells[:, self.n_ladder_columns :] = leaves

    def grown(self, *args: Any, **how: Any) -> tuple[AdaptiveTrees, NDArray[np.int32]]:
        """Grow the lasting trees further; see ``IsolationTrees.grown``."""
        lasting, parents = self.lasting.grown(*args, **how)
        return replace(self, lasting=lasting), parents

    def check(self) -> None:
        """Raise ValueError unless both kinds of trees have the same columns."""
        need(self.ladder.n_columns == self.lasting.n_columns, "ladder and lasting must have the same columns")


def scaled_cells(trees: IsolationTrees, rows: CoreRows, dtype: Any, threads: int) -> NDArray[Any]:
    """Return the cells of rows at all scales of trees, (n, n_trees, n_scales)."""
    n_scales = most_scales(trees.n_cells)
    leaves: NDArray[Any] = np.empty((n_rows(rows), trees.n_trees), dtype=dtype)
    trees.apply(rows, leaves, threads)
    cells: NDArray[Any] = np.empty((len(leaves), trees.n_trees * n_scales), dtype=dtype)
    _core.expand_leaves(leaves, trees.paths(n_scales).astype(dtype, copy=False), cells, threads)
    return cells.reshape(len(leaves), trees.n_trees, n_scales)
