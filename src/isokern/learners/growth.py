"""Let the map of a stream grow: trees are drawn from the first rows, and split their leaves as more rows come.

The first trees are drawn from 16 rows. After 64 and 256 rows, they are drawn anew from all rows so far, which are then
learned again: trees that keep the splits of the first 16 rows are less accurate.
From then on, at each fourfold number of rows, samples of the rows so far are isolated inside the leaves. A new cell
takes over the weight of the cell that it is part of, so no score changes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from isokern.fitted_map import FittedMap
from isokern.learners.features import ScaleCells, Scales, scale_cells
from isokern.learners.warm_up import Batch, WarmUp, rows_in_memory
from isokern.parts import Part, need, need_array

FIRST_ROWS = 16  # from which the trees are drawn
_RATIO = 4  # of the numbers of rows at which they grow
_ROWS_PER_CELL = 2
MOST_CELLS = 16_384
_REDRAWN_ROWS = 256  # up to here, trees are drawn anew instead
_HASH_BITS = 53
SQUARES_SHARE = 1 / 16  # of a cell's sum of squared gradients that its parts take over, so that they take long steps


@dataclass(frozen=True, eq=False)
class FirstRows(Part):
    """All rows of a stream so far, to draw its map anew from. Immutable: adding rows returns a new object."""

    seed: int
    n_next: int  # number of rows at which the map is drawn next
    held: WarmUp  # one batch

    @classmethod
    def begun(cls, batch: Batch, seed: int) -> Self:
        """Return the first rows of a stream, from which its first map was drawn."""
        return cls(seed, len(batch.targets) * _RATIO, WarmUp().holding(batch))

    @property
    def batch(self) -> Batch:
        """The rows with their targets and weights."""
        return self.held.batches[0]

    @property
    def n_cells(self) -> int:
        """Number of points to isolate in the next trees."""
        return self.n_next // _ROWS_PER_CELL

    def keeping(self, batch: Batch, first: int) -> Self:
        """Return the rows with more from number ``first`` on; of those kept before, such rows were never learned."""
        learned = WarmUp((self.batch.some(slice(first)),))
        return replace(self, held=WarmUp((learned.followed_by(batch),)))

    def further(self, most_cells: int) -> FirstRows | Growth:
        """Return what to begin with after the map has been drawn; ``most_cells`` may be added to a tree at a time."""
        if self.n_next == _REDRAWN_ROWS:
            return Growth.begun(self.batch, self.seed, most_cells)
        return replace(self, n_next=self.n_next * _RATIO)

    def check(self) -> None:
        """Raise ValueError unless there are rows of one batch, up to the next map."""
        need(len(self.held.batches) == 1 and 0 < self.held.n <= self.n_next <= _REDRAWN_ROWS, "held must be a few rows")


@dataclass(frozen=True, eq=False)
class Growth(Part):
    """Random rows of a stream, kept to grow its map from. Immutable: adding rows returns a new object.

    Of the rows before the next growth, those with the smallest hashes of their row numbers are kept. So they depend on
    the stream alone, not on how it is cut into calls.
    """

    seed: int
    n_most: int  # rows to keep
    n_next: int  # number of rows at which the map grows next
    limit: int  # hashes of the rows to keep are at most this
    numbers: NDArray[np.int64]  # numbers of the rows that are kept, ascending
    held: WarmUp  # these rows with their targets

    @classmethod
    def begun(cls, batch: Batch, seed: int, most_cells: int) -> Self:
        """Return the growth of a map that was drawn from the first rows."""
        n = len(batch.targets)
        n_most = min(most_cells, max(rows_in_memory(batch.table), _REDRAWN_ROWS))
        return cls(seed, n_most, n, 0, np.arange(n), WarmUp((batch._replace(weights=None),))).further()

    @property
    def n_cells(self) -> int:
        """Number of points to isolate in the next growth."""
        return min(self.n_next // _ROWS_PER_CELL, self.n_most)

    def grown(self, former: FittedMap, threads: int, **how: Any) -> tuple[FittedMap, NDArray[np.int32]]:
        """Return the map after its next growth, and the former leaf of each new one."""
        return former.grown(self.batch.table, self.n_cells, self.seed + self.n_next, threads, **how)

    @property
    def is_last(self) -> bool:
        """Whether the next growth is the last one."""
        return self.n_cells == self.n_most

    def keeping(self, batch: Batch, first: int) -> Self:
        """Return the growth with rows from number ``first`` on; of those kept before, such rows were never learned."""
        begun = self._up_to(first)
        numbers = np.arange(first, first + len(batch.targets))
        is_kept = _hashes(numbers, self.seed) <= self.limit
        if not is_kept.any():
            return begun
        held = begun.held.gathering(batch.some(is_kept)._replace(weights=None))
        return replace(begun, numbers=np.concatenate([begun.numbers, numbers[is_kept]]), held=held)

    def _up_to(self, n: int) -> Self:
        n_kept = int(np.searchsorted(self.numbers, n))
        return self if n_kept == len(self.numbers) else self._some(slice(n_kept))

    def _some(self, rows: Any) -> Self:
        return replace(self, numbers=self.numbers[rows], held=WarmUp((self.batch.some(rows),)))

    def further(self) -> Self:
        """Return the growth to begin with after the map has grown."""
        n_next = self.n_next * _RATIO
        limit = _limit(n_next, self.n_most, self.seed)
        return replace(self._some(_hashes(self.numbers, self.seed) <= limit), n_next=n_next, limit=limit)

    @property
    def batch(self) -> Batch:
        """The rows that are kept, in their order."""
        return self.held.batches[0] if len(self.held.batches) == 1 else self.held.joined()

    def state(self) -> dict[str, Any]:
        """Return the fields, with all rows in one batch."""
        return super().state() | {"held": WarmUp((self.batch,))}

    def check(self) -> None:
        """Raise ValueError unless there is a number for each row that is kept."""
        need_array(self.numbers, np.int64, 1, "numbers")
        is_sound = self.held.n == len(self.numbers) > 0 and (np.diff(self.numbers) > 0).all()
        need(is_sound, "numbers must ascend and have one for each row")
        need(self.n_most > 0 and self.n_next >= FIRST_ROWS, "n_most and n_next must be positive")


def first_cells(table: Any) -> int:
    """Return the number of points to isolate in the trees that a stream begins with."""
    return int(table.shape[0]) // _ROWS_PER_CELL


def _hashes(numbers: NDArray[np.int64], seed: int) -> NDArray[np.int64]:
    """Return a random number of 53 bits for each row: the finaliser of SplitMix64."""
    z = (numbers.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(seed)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((z ^ (z >> np.uint64(31))) >> np.uint64(64 - _HASH_BITS)).astype(np.int64)


def _limit(n_rows: int, n_most: int, seed: int) -> int:
    """Return the largest of the ``n_most`` smallest hashes of the first rows."""
    if n_rows <= n_most:
        return 2**_HASH_BITS
    return int(np.partition(_hashes(np.arange(n_rows), seed), n_most - 1)[n_most - 1])


class Heirs:
    """For each cell of a map that has grown, the former cell that it is part of."""

    def __init__(self, former: FittedMap, grown: FittedMap, parents: NDArray[np.int32]) -> None:
        self.former, self.grown, self._parents = former, grown, parents
        self._kept: dict[Scales, tuple[NDArray[Any], NDArray[Any], NDArray[Any]]] = {}

    def take(self, scales: Scales, cells: NDArray[Any]) -> NDArray[Any]:
        """Return the cells of one scale after growth, (number of cells, 2, n_columns), given those before.

        Parts of a cell take over its weight, the first number of a column, and a share of the other.
        """
        after = scale_cells(self.grown, scales)
        if not after.grows:
            return cells
        if scales not in self._kept:
            index = self._index(scale_cells(self.former, scales), after)
            is_divided = np.bincount(index[index >= 0], minlength=len(cells)) > 1
            self._kept[scales] = index, np.flatnonzero(is_divided), np.flatnonzero(index < 0)
        index, divided, unused = self._kept[scales]
        shared = cells.copy()
        shared[divided, 1:] *= SQUARES_SHARE
        taken = shared.take(index, axis=0)
        taken[unused] = 0.0
        return taken

    def _index(self, before: ScaleCells, after: ScaleCells) -> NDArray[np.int64]:
        """Return the former cell of each cell of a scale; -1 for cells that no leaf has."""
        first = len(before.starts) - 1 - len(self._parents)  # columns of cells that belong to other trees
        former = np.where(self._parents < 0, -1, self._parents + before.starts[first:-1, None])
        return np.concatenate([np.arange(after.starts[first]), former.ravel()])
