"""Plan when the trees of a map that renews itself are redrawn, and redraw them from recent rows.

Trees live for different numbers of rows, 512 to 32,768 in seven steps, a ladder of lives: after a change, short-lived
trees soon know nothing but the new rows, while long-lived ones keep what does not change. A tree of a young stream
lives as many rows as there have been before it. Lives vary at random by a quarter, so that renewals spread out. Two
trees are never renewed at the same row: the second one waits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from isokern import _core
from isokern.adaptive_trees import AdaptiveTrees, scaled_cells
from isokern.learners.column_weights import StreamWeights, as_numbers_by_rows
from isokern.learners.recent import RecentRows
from isokern.learners.targets import Weights, some
from isokern.learners.warm_up import Batch
from isokern.partitionings import IsolationTrees
from isokern.parts import Part, need, need_array
from isokern.rows import core_rows

N_CELLS = 256  # of a ladder tree
_FIRST_LIFE, _N_LIVES = 512, 7
MOST_ROWS = 2000  # from which a tree is drawn
_MOST_REPLAYED = 512  # rows that a new tree learns; more of them gain nothing
_BITS = 2**64 - 1
_FEWEST_ROWS = 16  # from which a tree is drawn; with fewer, it waits


class Due(NamedTuple):
    """A tree to be renewed."""

    row: int  # after so many of the next rows
    tree: int
    n_rows: int  # rows before it to draw the tree from
    number: int  # of the new tree among all


@dataclass(frozen=True, eq=False)
class Ladder(Part):
    """The next renewal of each tree. Immutable; everything goes by the number of rows."""

    seed: int
    due: NDArray[np.int64]  # by tree, number of rows at which it is renewed
    n_renewed: NDArray[np.int64]  # by tree, how often it has been
    columns: StreamWeights | None  # how often new trees split each column; None means all alike

    @classmethod
    def begun(cls, n_trees: int, n_columns: int, seed: int) -> Self:
        """Return the ladder of trees that are all due."""
        none = np.zeros(n_trees, dtype=np.int64)
        return cls(seed, none, none, StreamWeights.begun(n_columns))

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return len(self.due)

    def planned(self, n_before: int, n: int, recent: RecentRows) -> tuple[list[Due], Self]:
        """Return the renewals due along the next n rows, and the ladder after them.

        ``n_before`` is the number of rows so far, ``recent`` the last of them.
        """
        due, n_renewed, row = self.due.copy(), self.n_renewed.copy(), n_before
        n_recent = recent.n - n_before
        found: list[Due] = []
        while True:
            tree = int(due.argmin())
            row = max(int(due[tree]), row + 1)
            if row > n_before + n:
                return found, replace(self, due=due, n_renewed=n_renewed)
            life = min(_FIRST_LIFE << tree % _N_LIVES, row)
            number = int(n_renewed[tree]) * self.n_trees + tree
            n_rows = min(life, recent.n_most, n_recent + row)
            if n_rows < _FEWEST_ROWS:
                due[tree] = row + _FEWEST_ROWS
                continue
            found.append(Due(row - n_before, tree, n_rows, number))
            n_renewed[tree] += 1
            due[tree] = row + max(_FEWEST_ROWS, life * (768 + _mixed(self.seed + number) % 512) // 1024)

    def check(self) -> None:
        """Raise ValueError unless there is a number for each tree."""
        for name in ("due", "n_renewed"):
            need_array(getattr(self, name), np.int64, 1, name)
            need((getattr(self, name) >= 0).all(), f"{name} must be at least 0")
        need(len(self.due) == len(self.n_renewed) > 0, "due and n_renewed must have one number per tree")


def _mixed(number: int) -> int:
    """Return 64 random bits for a number: the finaliser of SplitMix64, which is faster here than an array of NumPy."""
    z = (number + 1) * 0x9E3779B97F4A7C15 & _BITS
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & _BITS
    z = (z ^ z >> 27) * 0x94D049BB133111EB & _BITS
    return z ^ z >> 31


class Renewal(NamedTuple):
    """A tree that is renewed while rows are learned, and the rows of the past that it learns first."""

    row: int  # after so many of the rows
    tree: int
    cells: NDArray[Any]  # of the past rows, (n_past, n_scales)
    targets: NDArray[Any]
    weights: Weights

    def of(self, targets: Any, factors: Weights, square: float = 0.0) -> _core.Renewal:
        """Return the core's form, with targets and row weights as a model learns them."""
        return _core.Renewal(self.row, self.tree * self.cells.shape[1], self.cells, targets, factors, square)


class Redrawn(NamedTuple):
    """Trees redrawn along a block of rows."""

    trees: dict[int, tuple[IsolationTrees, int]]  # by tree, the last one: (trees, which of them)
    renewals: list[Renewal]
    columns: StreamWeights | None

    def renewed(self, trees: AdaptiveTrees) -> AdaptiveTrees:
        """Return the trees after the block."""
        return replace(trees, ladder=trees.ladder.replaced(self.trees))


class Redrawing(NamedTuple):
    """What trees are redrawn from along a block of rows."""

    ladder: Ladder
    window: Batch  # rows before the block, and the block itself
    n_before: int  # number of the former
    end: int  # number of rows of the stream up to the block
    categorical: NDArray[np.int32]  # columns of categories
    threads: int

    @classmethod
    def of(cls, ladder: Ladder, recent: RecentRows, batch: Batch, categorical: NDArray[np.int32], threads: int) -> Self:
        """Return what trees are redrawn from along a batch that comes after recent rows."""
        window = recent.last_with(batch)
        return cls(ladder, window, len(window.targets) - len(batch.targets), recent.end, categorical, threads)

    def redraw(self, due: Sequence[Due], codes: NDArray[Any]) -> Redrawn:
        """Redraw trees, and put their cells into the codes of the block's rows after each renewal."""
        redrawn, numbers = Redrawn({}, [], self.ladder.columns), as_numbers_by_rows(self.window.targets)
        for _, group in groupby(due, lambda one: StreamWeights.period_of(self.end + one.row)):
            redrawn = self._redraw_period(list(group), codes, numbers, redrawn)
        return redrawn

    def _redraw_period(
        self,
        due: Sequence[Due],
        codes: NDArray[Any],
        numbers: Callable[[slice], NDArray[np.float64]],
        redrawn: Redrawn,
    ) -> Redrawn:
        """Redraw trees that have the same weights of columns; ``numbers`` returns the targets of rows of the window."""
        first = max(0, self.n_before - _MOST_REPLAYED)  # row of the window that new trees map first
        mapped = core_rows(self.window.table, first, len(self.window.targets))
        columns = redrawn.columns
        if columns is not None:
            columns = columns.entering(columns.period_of(self.end + due[0].row))
        drawn: dict[int, tuple[IsolationTrees, int, NDArray[Any]]] = {}
        for n_points, group in groupby(sorted(due, key=_n_points), _n_points):
            several = list(group)
            trees = self._grown(several, n_points, None if columns is None else columns.weights)
            cells = scaled_cells(trees, mapped, codes.dtype, self.threads)
            drawn |= {one.row: (trees, k, cells[:, k]) for k, one in enumerate(several)}
        for one in due:
            trees, k, cells = drawn[one.row]
            end, width = self.n_before + one.row, cells.shape[1]
            rows = slice(end - min(one.n_rows, _MOST_REPLAYED), end)
            past = np.ascontiguousarray(cells[rows.start - first : end - first])
            targets, weights = self.window.targets[rows], some(self.window.weights, rows)
            redrawn.renewals.append(Renewal(one.row, one.tree, past, targets, weights))
            redrawn.trees[one.tree] = trees, k
            codes[one.row :, one.tree * width : (one.tree + 1) * width] = cells[end - first :]
            if columns is not None:  # the cells of the finest scale are the leaves
                columns = columns.seeing(trees, k, np.ascontiguousarray(past[:, -1:]), numbers(rows))
        return redrawn._replace(columns=columns)

    def _grown(self, due: Sequence[Due], n_points: int, column_weights: NDArray[np.float64] | None) -> IsolationTrees:
        """Return trees that isolate so many random points each, of the rows before their renewals."""
        drawn = [_core.draw_samples(one.n_rows, 1, n_points, self.ladder.seed + one.number) for one in due]
        firsts = [self.n_before + one.row - one.n_rows for one in due]
        samples = np.stack([rows + first for rows, first in zip(drawn, firsts, strict=True)])
        rows = core_rows(self.window.table, 0, len(self.window.targets))
        numbers = np.array([one.number for one in due])
        how: Any = {"max_depth": None, "categorical": self.categorical, "n_cells": N_CELLS, "numbers": numbers}
        how["column_weights"] = column_weights
        return IsolationTrees.learn(rows, samples, self.ladder.seed, self.threads, **how)


def _n_points(due: Due) -> int:
    """Return how many points a tree isolates."""
    return min(N_CELLS, due.n_rows)
