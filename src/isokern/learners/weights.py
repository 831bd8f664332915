"""Provide the models of online gradient descent on cells: a weight per cell (primal), or support vectors (dual)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from isokern import _core
from isokern.fitted_map import FittedMap
from isokern.forest import LeafSum
from isokern.learners.classes import Rearrangement
from isokern.learners.clock import Clock
from isokern.learners.commits import Copies, copy_arrays, twins
from isokern.learners.features import leaf_sum
from isokern.learners.steps import averages, schedule_of
from isokern.learners.targets import Weights
from isokern.parts import Part, is_count, need, need_array

Table = NDArray[np.float64]


@dataclass(eq=False)
class CellWeights(Part):
    """Weights of cells, one row per cell and one column per score; a score is the mean of the weights of t cells.

    Learning changes the tables and the clock in place, in one call of the core under the lock of the clock.
    """

    in_place: ClassVar = ("values", "sums", "squares")

    starts: NDArray[np.int64]  # index of the first cell of each partitioning among all cells, and the total
    values: Table  # weights divided by the clock's scale, of shape (number of cells, n_columns)
    sums: Table | None = None  # for the mean of the weights over all rows, if that mean predicts; see table()
    squares: Table | None = None  # sums of squared gradients, for AdaGrad
    clock: Clock = field(default_factory=Clock)
    naive: bool = False  # whether scores are computed from all t * n_cells products instead of t weights
    # Cache of moment(): the values that it was made of, and the copy.
    _moment: tuple[Table, CellWeights] | None = field(default=None, init=False)

    @classmethod
    def zeros(cls, starts: NDArray[np.int64], n_columns: int, *, average: bool, adagrad: bool, naive: bool) -> Self:
        """Return untrained weights."""
        sums, squares = ((np.zeros((starts[-1], n_columns)) if wanted else None) for wanted in (average, adagrad))
        return cls(starts, np.zeros((starts[-1], n_columns)), sums, squares, naive=naive)

    @property
    def n_columns(self) -> int:
        """Number of scores."""
        return self.values.shape[1]

    def learn(
        self,
        cells: Any,
        targets: Any,
        factors: Weights,
        rule: _core.Rule,
        *,
        scores: Table | None = None,
        copies: Copies | None = None,
    ) -> None:
        """Learn rows in order, in one step with ``copies``; ``scores`` receives each row's scores before its update."""
        tables = (self.values, self.sums, self.squares)
        _core.learn_primal(
            cells, self.starts, targets, factors, rule, self.naive, *tables, self.clock, scores, copies or []
        )

    def score(self, cells: NDArray[Any], threads: int, copies: Copies | None = None) -> Table:
        """Return the scores of rows, (n, n_columns), and make ``copies`` at the same moment."""
        scores = np.empty((len(cells), self.n_columns))
        _core.score_primal(
            cells, self.starts, self.values, self.sums, self.clock, self.naive, scores, threads, copies or []
        )
        return scores

    def moment(self) -> CellWeights:
        """Return a copy that no thread changes, for those who read the tables; the same one until rows are learned."""
        kept = self._moment
        if kept is None or kept[0] is not self.values or kept[1].clock.rounds != self.clock.rounds:
            kept = self._moment = (self.values, *twins(self))
        return kept[1]

    # The latest weights are scale * values; their mean over all rounds is (scale_sum * values - sums) / rounds. A score
    # is the sum of the row's entries of table(), times factor.

    @property
    def factor(self) -> float:
        """Factor from the sum of a row's entries of ``table`` to its score."""
        t = len(self.starts) - 1
        return self.clock.scale / t if self.sums is None else 1.0 / (max(1, self.clock.rounds) * t)

    def table(self) -> Table:
        """Return the weights that predict, up to ``factor``."""
        return self.values if self.sums is None else self.clock.scale_sum * self.values - self.sums

    def as_sums(self, fitted: FittedMap, term: Any = None) -> tuple[LeafSum, None]:
        """Return the scores as sums over the trees of a map; a mean over the rounds is folded into the leaves."""
        t = float(len(self.starts) - 1)
        if self.sums is None:
            return leaf_sum(fitted, (0,), self.values, self.clock.scale, t), None
        return leaf_sum(fitted, (0,), self.table(), 1.0, max(1, self.clock.rounds) * t), None

    def current(self) -> Table:
        """Return the latest weights, even if their mean predicts."""
        return self.clock.scale * self.values

    def replace_current(self, weights: Table) -> None:
        """Replace the latest weights; the number of rows learned stays."""
        self.values = weights
        self.clock = Clock(self.clock.rounds, self.clock.n_support, n_rows=self.clock.n_rows)

    def rearrange(self, change: Rearrangement) -> Self:
        """Return the weights with rearranged columns."""
        values, sums = _rearranged(self.values, change), _rearranged(self.sums, change)
        squares = None if self.squares is None else np.ascontiguousarray(self.squares[:, change.columns])
        return type(self)(self.starts, values, sums, squares, Clock.of(self.clock), self.naive)

    def check(self) -> None:
        """Raise ValueError unless all tables have a row per cell and a column per score."""
        _check_tables(self.starts, self.values, self.sums, self.squares)
        need(len(self.values) == self.starts[-1], "values must have a row per cell")
        need(isinstance(self.clock, Clock), "clock must be a Clock")

    @classmethod
    def merge(cls, parts: Sequence[Self], shares: NDArray[np.float64]) -> Self:
        """Return the weighted mean of models on one map, including all that later steps depend on."""
        first = parts[0]
        clock = Clock.merge([part.clock for part in parts], shares)
        values = _mean((part.current() for part in parts), shares)
        # The new clock has a scale_sum of 0, so the mean over the rounds is -sums / rounds.
        averaged = (part.table() / max(1, part.clock.rounds) for part in parts)
        sums = None if first.sums is None else -float(max(1, clock.rounds)) * _mean(averaged, shares)
        squares = None if first.squares is None else _mean((part.squares for part in parts), shares)
        return cls(first.starts, values, sums, squares, clock, first.naive)


@dataclass(eq=False)
class SupportVectors(Part):
    """Support vectors as cells, with coefficients; memory and time grow with their number.

    Learning replaces the arrays and the clock, so a shallow copy can learn without a change of the original.
    """

    in_place: ClassVar = ()

    starts: NDArray[np.int64]
    cells: NDArray[Any]  # cells of the support vectors, followed by spare capacity
    n: int  # number of support vectors
    values: Table
    sums: Table | None
    clock: Clock = field(default_factory=Clock)

    @classmethod
    def none(cls, starts: NDArray[np.int64], n_columns: int, dtype: Any, *, average: bool) -> Self:
        """Return a model without support vectors."""
        cells = np.zeros((0, len(starts) - 1), dtype=dtype)
        return cls(starts, cells, 0, np.zeros((0, n_columns)), np.zeros((0, n_columns)) if average else None)

    @property
    def n_columns(self) -> int:
        """Number of scores."""
        return self.values.shape[1]

    def learn(
        self,
        cells: Any,
        targets: Any,
        factors: Weights,
        rule: _core.Rule,
        *,
        scores: Table | None = None,
        copies: Copies | None = None,
    ) -> None:
        """Learn rows in order, then make ``copies``; ``scores`` receives each row's scores before its update."""
        room = self.n + len(cells)
        self.cells, self.values = _extended(self.cells, self.n, room), _extended(self.values, self.n, room)
        self.sums = None if self.sums is None else _extended(self.sums, self.n, room)
        self.clock = Clock.of(self.clock)
        tables = (self.cells, self.n, self.values, self.sums)
        self.n = _core.learn_dual(cells, self.starts, targets, factors, rule, *tables, clock=self.clock, scores=scores)
        copy_arrays(copies or [])

    def score(self, cells: NDArray[Any], threads: int, copies: Copies | None = None) -> Table:
        """Return the scores of rows, (n, n_columns), and make ``copies``."""
        scores = np.empty((len(cells), self.n_columns))
        _core.score_dual(cells, self.starts, self.cells, self.n, self.values, self.sums, self.clock, scores, threads)
        copy_arrays(copies or [])
        return scores

    def as_sums(self, fitted: FittedMap, term: Any = None) -> tuple[LeafSum, None]:
        """Raise ValueError: support vectors do not give the leaves of trees values."""
        raise ValueError('evaluation must be "primal", so that cells have weights; got "dual".')

    def rearrange(self, change: Rearrangement) -> Self:
        """Return the model with rearranged columns."""
        values, sums = _rearranged(self.values, change), _rearranged(self.sums, change)
        return type(self)(self.starts, self.cells, self.n, values, sums, Clock.of(self.clock))

    def check(self) -> None:
        """Raise ValueError unless support vectors are cells of the map and have coefficients."""
        _check_tables(self.starts, self.values, self.sums, None)
        n, t = self.cells.shape
        need(
            t == len(self.starts) - 1 and self.cells.dtype.kind == "u",
            "cells must be unsigned integers, one per partitioning",
        )
        need(n == len(self.values) and is_count(self.n) and self.n <= n, "values must have a row per support vector")
        need(isinstance(self.clock, Clock), "clock must be a Clock")


CellModel = CellWeights | SupportVectors


def new_model(learner: Any, starts: NDArray[np.int64], n_columns: int) -> CellModel:
    """Return the untrained model of a learner's parameters."""
    if learner.evaluation == "dual":
        dtype = np.min_scalar_type(int(np.diff(starts).max()) - 1)
        return SupportVectors.none(starts, n_columns, dtype, average=averages(learner))
    is_adagrad, is_naive = schedule_of(learner) == "adagrad", learner.evaluation == "naive"
    return CellWeights.zeros(starts, n_columns, average=averages(learner), adagrad=is_adagrad, naive=is_naive)


def _check_tables(starts: Any, values: Any, sums: Any, squares: Any) -> None:
    need_array(starts, np.int64, 1, "starts")
    need(len(starts) > 1 and starts[0] == 0 and (np.diff(starts) > 0).all(), "starts must ascend from 0")
    need_array(values, np.float64, 2, "values")
    for name, table in (("sums", sums), ("squares", squares)):
        is_alike = table is None or (table.dtype == np.float64 and table.shape == values.shape)
        need(is_alike, f"{name} must have the shape of values")


def _rearranged(table: Any, change: Rearrangement) -> Any:
    """Return a table with rearranged columns and their signs, or None."""
    return None if table is None else np.ascontiguousarray(table[:, change.columns] * np.asarray(change.signs))


def _mean(tables: Iterable[Any], shares: NDArray[np.float64]) -> Table:
    """Return the weighted mean; tables are added one by one, because they may be many and large."""
    total: Any = None
    for share, table in zip(shares, tables, strict=True):
        total = share * table if total is None else np.add(total, share * table, out=total)
    return total


def _extended(array: NDArray[Any], n: int, room: int) -> NDArray[Any]:
    """Return a copy of the first n rows, followed by zeros."""
    larger = np.zeros((room, array.shape[1]), dtype=array.dtype)
    larger[:n] = array[:n]
    return larger
