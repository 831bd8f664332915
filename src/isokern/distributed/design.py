"""Provide the features of rows as a matrix to multiply with weights: cells, the columns of a linear term, or both."""

from __future__ import annotations

from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isokern import _core

Table = NDArray[np.float64]


class CellFeatures(NamedTuple):
    """Features of cells: a row has 1/t in each of its cells."""

    cells: NDArray[Any]
    starts: NDArray[np.int64]
    t: int

    @property
    def n_weights(self) -> int:
        """Number of features."""
        return int(self.starts[-1])

    def times(self, weights: Table) -> Table:
        """Return the scores of rows, (n, n_columns)."""
        means = np.empty((len(self.cells), weights.shape[1]))
        _core.score_primal(self.cells, self.starts, weights, None, _core.Clock(), False, means, 1)
        return means * (self.cells.shape[1] / self.t)

    def transposed_times(self, values: Table) -> Table:
        """Return, by feature, the sums of its products with values of the rows."""
        sums = self._sums(values)
        sums /= self.t
        return sums

    def squares(self) -> Table:
        """Return the features' sums of squares, times t^2."""
        return self._sums(np.ones((len(self.cells), 1)))[:, 0]

    def _sums(self, values: Table) -> Table:
        sums = np.empty((self.n_weights, values.shape[1]))
        _core.sum_by_cell(self.cells, self.starts, np.ascontiguousarray(values), sums)
        return sums


class LinearFeatures(NamedTuple):
    """Features of a linear term: the columns of rows, and a constant."""

    rows: Any  # NumPy or CSR
    constant: float
    t: int

    @property
    def n_weights(self) -> int:
        """Number of features."""
        return self.rows.shape[1] + 1

    def times(self, weights: Table) -> Table:
        """Return the scores of rows, (n, n_columns)."""
        return self.rows @ weights[:-1] + self.constant * weights[-1]

    def transposed_times(self, values: Table) -> Table:
        """Return, by feature, the sums of its products with values of the rows."""
        return np.vstack([self.rows.T @ values, self.constant * values.sum(axis=0)])

    def squares(self) -> Table:
        """Return the features' sums of squares, times t^2."""
        squared = self.rows.astype(np.float64) ** 2
        return self.t**2 * np.append(squared.sum(axis=0), squared.shape[0] * self.constant**2)


class Design(NamedTuple):
    """The features of rows, kind by kind; weights are in one table, in the same order."""

    parts: list[CellFeatures | LinearFeatures]

    def times(self, weights: Table) -> Table:
        """Return the scores of rows, (n, n_columns)."""
        tables = np.split(weights, np.cumsum([part.n_weights for part in self.parts])[:-1])
        return reduce(np.add, (part.times(table) for part, table in zip(self.parts, tables, strict=True)))

    def transposed_times(self, values: Table) -> Table:
        """Return, by feature, the sums of its products with values of the rows."""
        return _joined([part.transposed_times(values) for part in self.parts])

    def squares(self) -> Table:
        """Return the features' sums of squares, times t^2."""
        return _joined([part.squares() for part in self.parts])


def _joined(tables: list[Table]) -> Table:
    return np.concatenate(tables) if len(tables) > 1 else tables[0]
