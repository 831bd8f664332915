"""What online gradient descent learns: one weight for each cell, or the support vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isokern import _core
from isokern.arrays import is_foreign, like, to_host
from isokern.checks import own_arrays
from isokern.devices import foreign_scores

Table = NDArray[np.float64]


class Coefficients:
    """Coefficients, (n, n_columns), column k for the k-th score; with ``average``, also what their mean needs."""

    def __init__(self, n: int, n_columns: int, *, average: bool) -> None:
        self.values: Table = np.zeros((n, n_columns))
        self.sums: Table | None = np.zeros((n, n_columns)) if average else None
        self.clock = _core.Clock()

    @property
    def n_columns(self) -> int:
        """The number of scores."""
        return self.values.shape[1]

    def rearrange(self, columns: Sequence[int], signs: Sequence[float]) -> None:
        """Make new columns out of old ones, each times a sign."""
        self.values = np.ascontiguousarray(self.values[:, columns] * np.asarray(signs))
        if self.sums is not None:
            self.sums = np.ascontiguousarray(self.sums[:, columns] * np.asarray(signs))


class CellWeights(Coefficients):
    """One row of weights for each cell. ``naive`` computes scores by all t·psi products instead of t gathers."""

    def __init__(self, starts: NDArray[np.int64], n_columns: int, *, average: bool, adagrad: bool, naive: bool) -> None:
        super().__init__(int(starts[-1]), n_columns, average=average)
        self.starts = starts
        self.naive = naive
        self.squares: Table | None = np.zeros_like(self.values) if adagrad else None

    def learn(
        self, cells: Any, targets: Any, row_weights: Table | None, rule: _core.Rule, scores: Table | None
    ) -> None:
        """Learn from rows in order; ``scores`` takes each row's scores before it is learned."""
        own_arrays(self)
        tables = (self.values, self.sums, self.squares)
        _core.learn_primal(
            cells, self.starts, targets, row_weights, rule, self.naive, *tables, clock=self.clock, scores=scores
        )

    def score(self, cells: NDArray[Any], threads: int) -> Table:
        """Return the scores of rows, (n, n_columns)."""
        if is_foreign(cells):
            return self._score_foreign(cells)
        scores = np.empty((len(cells), self.n_columns))
        _core.score_primal(cells, self.starts, self.values, self.sums, self.clock, self.naive, scores, threads)
        return scores

    def _score_foreign(self, cells: Any) -> Any:
        """Return the scores where the cells are; weights, their sums and the clock as in cpp/online.hpp."""
        clock, t, values, sums = self.clock, len(self.starts) - 1, self.values, self.sums
        if sums is None:
            factor, make = clock.scale / t, lambda: values
        else:
            factor, make = 1.0 / (max(1, clock.rounds) * t), lambda: clock.scale_sum * values - sums
        return factor * foreign_scores(cells, self.starts, self, table=values, rounds=clock.rounds, make=make)

    def rearrange(self, columns: Sequence[int], signs: Sequence[float]) -> None:
        """Make new columns out of old ones, each times a sign."""
        super().rearrange(columns, signs)
        if self.squares is not None:
            self.squares = np.ascontiguousarray(self.squares[:, columns])


class SupportVectors(Coefficients):
    """The rows that changed the model, as cells, with their coefficients: memory and time grow with their number."""

    def __init__(self, starts: NDArray[np.int64], n_columns: int, dtype: Any, *, average: bool) -> None:
        super().__init__(0, n_columns, average=average)
        self.starts = starts
        self.cells: NDArray[Any] = np.zeros((0, len(starts) - 1), dtype=dtype)
        self.n = 0

    def learn(
        self, cells: Any, targets: Any, row_weights: Table | None, rule: _core.Rule, scores: Table | None
    ) -> None:
        """Learn from rows in order; ``scores`` takes each row's scores before it is learned."""
        own_arrays(self)
        self._make_room(self.n + len(cells))
        tables = (self.cells, self.n, self.values, self.sums)
        self.n = _core.learn_dual(
            cells, self.starts, targets, row_weights, rule, *tables, clock=self.clock, scores=scores
        )

    def score(self, cells: NDArray[Any], threads: int) -> Table:
        """Return the scores of rows, (n, n_columns)."""
        if is_foreign(cells):
            return like(self.score(to_host(cells).astype(self.cells.dtype), threads), cells)
        scores = np.empty((len(cells), self.n_columns))
        _core.score_dual(cells, self.starts, self.cells, self.n, self.values, self.sums, self.clock, scores, threads)
        return scores

    def _make_room(self, n: int) -> None:
        if n > len(self.cells):
            room = max(n, 2 * len(self.cells))
            self.cells = _extend(self.cells, room)
            self.values = _extend(self.values, room)
            self.sums = None if self.sums is None else _extend(self.sums, room)


def _extend(array: NDArray[Any], n_rows: int) -> NDArray[Any]:
    larger = np.zeros((n_rows, array.shape[1]), dtype=array.dtype)
    larger[: len(array)] = array
    return larger
