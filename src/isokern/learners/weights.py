"""What online gradient descent learns on cells: one weight for each cell, or the support vectors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from isokern import _core
from isokern.checks import own_arrays
from isokern.learners.classes import Rearrangement
from isokern.learners.clock import Clock
from isokern.learners.targets import Weights
from isokern.parts import Part, is_count, need, need_array

Table = NDArray[np.float64]


@dataclass(eq=False)
class CellWeights(Part):
    """One row of weights for each cell, column k for the k-th score; a score is the mean of its t cells' weights."""

    starts: NDArray[np.int64]
    """Where each partitioning's cells start among all cells."""
    values: Table
    """The weights, (number of cells, n_columns), but for the clock's scale."""
    sums: Table | None = None
    """What the mean of the weights over all rows needs, if that is what predicts."""
    squares: Table | None = None
    """AdaGrad's sums of squared gradients, if steps follow them."""
    clock: Clock = field(default_factory=Clock)
    naive: bool = False
    """Whether scores are computed by all t * n_cells products instead of t gathers."""

    @classmethod
    def zeros(cls, starts: NDArray[np.int64], n_columns: int, *, average: bool, adagrad: bool, naive: bool) -> Self:
        """Return the weights before anything is learned."""
        sums, squares = ((np.zeros((starts[-1], n_columns)) if wanted else None) for wanted in (average, adagrad))
        return cls(starts, np.zeros((starts[-1], n_columns)), sums, squares, naive=naive)

    @property
    def n_columns(self) -> int:
        """The number of scores."""
        return self.values.shape[1]

    def learn(self, cells: Any, targets: Any, factors: Weights, rule: _core.Rule, scores: Table | None = None) -> None:
        """Learn from rows in order; ``scores`` takes each row's scores before it is learned."""
        own_arrays(self)
        tables = (self.values, self.sums, self.squares)
        _core.learn_primal(
            cells, self.starts, targets, factors, rule, self.naive, *tables, clock=self.clock, scores=scores
        )

    def score(self, cells: NDArray[Any], threads: int) -> Table:
        """Return the scores of rows, (n, n_columns)."""
        scores = np.empty((len(cells), self.n_columns))
        _core.score_primal(cells, self.starts, self.values, self.sums, self.clock, self.naive, scores, threads)
        return scores

    # The weights that predict are factor * t * table(): of them w = scale v, their mean (scale_sum v - sums) / rounds.

    @property
    def factor(self) -> float:
        """What the sum of a row's weights in ``table`` is multiplied by to be its score."""
        t = len(self.starts) - 1
        return self.clock.scale / t if self.sums is None else 1.0 / (max(1, self.clock.rounds) * t)

    def table(self) -> Table:
        """Return what scores are sums of, but for ``factor``."""
        return self.values if self.sums is None else self.clock.scale_sum * self.values - self.sums

    def current(self) -> Table:
        """Return the last weights, whether or not it is their mean that predicts."""
        return self.clock.scale * self.values

    def replace_current(self, weights: Table) -> None:
        """Put others in the place of the last weights; as many rows stay learned."""
        self.values, self.clock = weights, Clock(self.clock.rounds, self.clock.n_support)

    def rearrange(self, change: Rearrangement) -> Self:
        """Return the weights with columns made out of these."""
        signs = np.asarray(change.signs)
        values = np.ascontiguousarray(self.values[:, change.columns] * signs)
        sums = None if self.sums is None else np.ascontiguousarray(self.sums[:, change.columns] * signs)
        squares = None if self.squares is None else np.ascontiguousarray(self.squares[:, change.columns])
        return type(self)(self.starts, values, sums, squares, self.clock, self.naive)

    def check(self) -> None:
        """Raise unless all tables have a row for each cell and one number of columns."""
        _check_tables(self.starts, self.values, self.sums, self.squares)
        need(len(self.values) == self.starts[-1], "weights must have a row for each cell")
        need(isinstance(self.clock, Clock), "the clock must be one")

    @classmethod
    def merge(cls, parts: Sequence[Self], shares: NDArray[np.float64]) -> Self:
        """Return the mean of weights of one map's cells; all that later steps depend on is averaged, too."""
        first = parts[0]
        rounds = int(np.rint(shares @ [float(part.clock.rounds) for part in parts]))
        n_support = int(np.rint(shares @ [float(part.clock.n_support) for part in parts]))
        values = _mean((part.current() for part in parts), shares)
        # Of a clock whose scale_sum is 0, the averaged weights are -sums / rounds.
        averaged = (part.table() / max(1, part.clock.rounds) for part in parts)
        sums = None if first.sums is None else -float(max(1, rounds)) * _mean(averaged, shares)
        squares = None if first.squares is None else _mean((part.squares for part in parts), shares)
        return cls(first.starts, values, sums, squares, Clock(rounds, n_support), first.naive)


@dataclass(eq=False)
class SupportVectors(Part):
    """The rows that changed the model, as cells, with their coefficients: memory and time grow with their number."""

    starts: NDArray[np.int64]
    cells: NDArray[Any]
    """Cells of support vectors; there is room for more than there are."""
    n: int
    """How many support vectors there are."""
    values: Table
    sums: Table | None
    clock: Clock = field(default_factory=Clock)

    @classmethod
    def none(cls, starts: NDArray[np.int64], n_columns: int, dtype: Any, *, average: bool) -> Self:
        """Return the model before anything is learned."""
        cells = np.zeros((0, len(starts) - 1), dtype=dtype)
        return cls(starts, cells, 0, np.zeros((0, n_columns)), np.zeros((0, n_columns)) if average else None)

    @property
    def n_columns(self) -> int:
        """The number of scores."""
        return self.values.shape[1]

    def learn(self, cells: Any, targets: Any, factors: Weights, rule: _core.Rule, scores: Table | None = None) -> None:
        """Learn from rows in order; ``scores`` takes each row's scores before it is learned."""
        own_arrays(self)
        self._make_room(self.n + len(cells))
        tables = (self.cells, self.n, self.values, self.sums)
        self.n = _core.learn_dual(cells, self.starts, targets, factors, rule, *tables, clock=self.clock, scores=scores)

    def score(self, cells: NDArray[Any], threads: int) -> Table:
        """Return the scores of rows, (n, n_columns)."""
        scores = np.empty((len(cells), self.n_columns))
        _core.score_dual(cells, self.starts, self.cells, self.n, self.values, self.sums, self.clock, scores, threads)
        return scores

    def rearrange(self, change: Rearrangement) -> Self:
        """Return the model with columns made out of these."""
        signs = np.asarray(change.signs)
        values = np.ascontiguousarray(self.values[:, change.columns] * signs)
        sums = None if self.sums is None else np.ascontiguousarray(self.sums[:, change.columns] * signs)
        return type(self)(self.starts, self.cells, self.n, values, sums, self.clock)

    def check(self) -> None:
        """Raise unless support vectors are cells of the map and have coefficients."""
        _check_tables(self.starts, self.values, self.sums, None)
        n, t = self.cells.shape
        need(t == len(self.starts) - 1 and self.cells.dtype.kind == "u", "support vectors must be cells of the map")
        need(n == len(self.values) and is_count(self.n) and self.n <= n, "support vectors must have coefficients")
        need(isinstance(self.clock, Clock), "the clock must be one")

    def _make_room(self, n: int) -> None:
        if n > len(self.cells):
            room = max(n, 2 * len(self.cells))
            self.cells = _extend(self.cells, room)
            self.values = _extend(self.values, room)
            self.sums = None if self.sums is None else _extend(self.sums, room)


CellModel = CellWeights | SupportVectors


def new_model(learner: Any, starts: NDArray[np.int64], n_columns: int) -> CellModel:
    """Return the model that a learner's parameters ask for, before anything is learned."""
    if learner.evaluation == "dual":
        dtype = np.min_scalar_type(int(np.diff(starts).max()) - 1)
        return SupportVectors.none(starts, n_columns, dtype, average=learner.average)
    is_adagrad, is_naive = learner.schedule == "adagrad", learner.evaluation == "naive"
    return CellWeights.zeros(starts, n_columns, average=learner.average, adagrad=is_adagrad, naive=is_naive)


def _check_tables(starts: Any, values: Any, sums: Any, squares: Any) -> None:
    need_array(starts, np.int64, 1, "starts of cells")
    need(len(starts) > 1 and starts[0] == 0 and (np.diff(starts) > 0).all(), "starts of cells must ascend from 0")
    need_array(values, np.float64, 2, "weights")
    for table in (sums, squares):
        need(
            table is None or (table.dtype == np.float64 and table.shape == values.shape), "tables must be of one shape"
        )


def _mean(tables: Iterable[Any], shares: NDArray[np.float64]) -> Table:
    """Add up tables one by one, since there may be many and each is large."""
    total: Any = None
    for share, table in zip(shares, tables, strict=True):
        total = share * table if total is None else np.add(total, share * table, out=total)
    return total


def _extend(array: NDArray[Any], n_rows: int) -> NDArray[Any]:
    larger = np.zeros((n_rows, array.shape[1]), dtype=array.dtype)
    larger[: len(array)] = array
    return larger
