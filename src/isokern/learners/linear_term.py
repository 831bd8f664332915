"""Provide the rows of a linear term beside the kernel: standardised columns, hashed categories and a constant."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from isokern.forest import LinearSum
from isokern.parts import Part, need, need_array
from isokern.rows import CoreRows, CsrRows, as_scipy, core_rows
from isokern.scaling import fitted_scaler

_N_BUCKETS = 2**18  # weights of all categorical columns together
_FEWEST_BUCKETS = 64  # of each
_TYPICAL = 100.0  # medians of the distances to a column's median, beyond which values do not count in its statistics
_LOOKED_AT = 512  # rows that tell this median
_LARGEST = 30.0  # standardised values beyond count as this much, so that no row rules a weight for good
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # odd, of random bits: spreads the codes of categories
NO_LINEAR_TERM = (
    "linear must be False for cells, which say nothing about the columns of rows; got a model with a linear term. Give "
    "it the rows themselves, or linear=False."
)


@dataclass(frozen=True, eq=False)
class LinearTerm(Part):
    """How a row becomes the features of a linear model, whose kernel has a mean diagonal of 1.

    Dense columns are standardised and missing numbers count as the mean; sparse rows are only divided, so that they
    stay sparse. A category has one of the weights that its column shares among all categories by a hash. A constant
    makes the intercept. The statistics are those of the rows that the map was drawn from, without values that are far
    from all others of their column.
    """

    offset: NDArray[np.float64]  # by column; none for sparse rows, which are not centred
    factor: NDArray[np.float64]  # by column; 0 for constant and for categorical ones
    categorical: NDArray[np.int64]  # numbers of the categorical columns
    constant: float

    @classmethod
    def learn(cls, table: Any, is_categorical: NDArray[np.bool_] | None) -> Self:
        """Return the term for a table of rows."""
        d = table.shape[1]
        categorical = np.flatnonzero(is_categorical) if is_categorical is not None else np.empty(0, dtype=np.int64)
        if sparse.issparse(table):
            sizes = _typical_sizes(np.abs(table.data))
            largest = float(sizes.max(initial=0.0)) or 1.0  # so that no square overflows
            norm = largest * math.sqrt(2.0 * float(((sizes / largest) ** 2).sum()) / table.shape[0])
            return cls(np.empty(0), np.full(d, 1.0 / norm if norm > 0.0 else 0.0), categorical, math.sqrt(0.5))
        with np.errstate(over="ignore", invalid="ignore"):
            scaler = fitted_scaler("standard", table, _Limits.of(table[:: 1 + table.shape[0] // _LOOKED_AT]).within)
            # Columns whose statistics overflow are left out, like constant ones, which scikit-learn divides by 1.
            varies = (np.sqrt(scaler.var_) == scaler.scale_) & np.isfinite(scaler.mean_) & np.isfinite(scaler.scale_)
        varies[categorical] = False
        constant = 1.0 / math.sqrt(varies.sum() + len(categorical) + 1)
        factor = constant / np.where(varies, scaler.scale_, np.inf)
        return cls(np.where(varies, scaler.mean_, 0.0), factor, categorical, constant)

    def grown(self, table: Any) -> Self:
        """Return the term with dense columns that have been constant before; their weights are still 0."""
        if not len(self.offset):
            return self
        later = LinearTerm.learn(table, np.isin(np.arange(self.n_columns), self.categorical))
        is_new = self.factor == 0.0
        factor = np.where(is_new, later.factor * (self.constant / later.constant), self.factor)
        return replace(self, offset=np.where(is_new, later.offset, self.offset), factor=factor)

    @property
    def n_columns(self) -> int:
        """Number of columns of the rows."""
        return len(self.factor)

    @property
    def n_weights(self) -> int:
        """Number of weights of a score, the intercept included."""
        return self.n_weights_of(self.n_columns, len(self.categorical))

    @staticmethod
    def n_weights_of(n_columns: int, n_categorical: int) -> int:
        """Return the number of weights of a score of rows with so many columns, some of them categorical."""
        return n_columns + n_categorical * _n_buckets(n_categorical) + 1

    @property
    def _n_buckets(self) -> int:
        """Number of weights of a categorical column."""
        return _n_buckets(len(self.categorical))

    def rows(self, table: Any) -> CoreRows:
        """Return the features of a table's rows, without the constant, as float32."""
        rows = core_rows(table, 0, table.shape[0])
        if isinstance(rows, CsrRows) and len(self.offset):
            rows = as_scipy(rows).toarray()  # the term was learned from dense rows, in which a zero is not the mean
        if isinstance(rows, CsrRows):
            return rows._replace(values=self._clipped(rows.values * self.factor[rows.columns]))
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = np.subtract(rows, self.offset if len(self.offset) else 0.0, dtype=np.float64)
            scaled *= self.factor
        clipped = self._clipped(scaled)
        return self._with_categories(rows, clipped) if len(self.categorical) else clipped

    def _clipped(self, values: NDArray[np.float64]) -> NDArray[np.float32]:
        """Return values within the limits, 0 where they are missing; changes ``values``."""
        largest = _LARGEST * self.constant
        np.clip(values, -largest, largest, out=values)
        values[np.isnan(values)] = 0.0
        return values.astype(np.float32)

    def _with_categories(self, rows: NDArray[Any], scaled: NDArray[np.float32]) -> CsrRows:
        """Return CSR rows: all columns, then one weight of each categorical column; 0 for a missing category."""
        n, d, width = len(rows), rows.shape[1], len(self.categorical)
        codes = rows[:, self.categorical]
        is_missing = np.isnan(codes)
        hashed = np.where(is_missing, 0.0, codes).astype(np.uint64) * _MULTIPLIER >> np.uint64(32)
        buckets = (hashed % np.uint64(self._n_buckets)).astype(np.int64)
        places = d + np.arange(width) * self._n_buckets + buckets
        columns = np.hstack([np.broadcast_to(np.arange(d), (n, d)), places]).astype(np.int32)
        values = np.hstack([scaled, np.where(is_missing, 0.0, self.constant).astype(np.float32)])
        starts = np.arange(n + 1, dtype=np.int64) * (d + width)
        return CsrRows(values.ravel(), columns.ravel(), starts, self.n_weights - 1)

    def linear_sum(self, weights: NDArray[np.float32]) -> LinearSum:
        """Return the part of scores that these weights of the features make, (n_weights, n_scores)."""
        offset = self.offset if len(self.offset) else np.zeros(self.n_columns)
        limit, constant = _LARGEST * self.constant, np.float32(self.constant)
        return LinearSum(offset, self.factor, limit, constant, self.categorical, self._n_buckets, weights)

    def equals(self, other: LinearTerm | None) -> bool:
        """Return whether another term gives the same features."""
        return other is not None and all(np.array_equal(vars(self)[name], vars(other)[name]) for name in vars(self))

    def check(self) -> None:
        """Raise ValueError unless all columns have finite statistics."""
        for name in ("offset", "factor"):
            need_array(getattr(self, name), np.float64, 1, name)
            need(np.isfinite(getattr(self, name)).all(), f"{name} must be finite")
        need(len(self.offset) in (0, self.n_columns), "offset must have one entry per column, or none")
        ascends = np.diff(self.categorical, prepend=-1).min(initial=1) > 0
        need(ascends and self.categorical.max(initial=-1) < self.n_columns, "categorical must be ascending columns")
        need(0.0 < self.constant <= 1.0, "constant must be from 0 to 1")


class _Limits(NamedTuple):
    """Limits of the values that count in the statistics of dense columns."""

    low: NDArray[np.float64]
    high: NDArray[np.float64]

    @classmethod
    def of(cls, table: Any) -> Self:
        """Return the limits that rows tell; NaN, which is none, for columns without different values."""
        rows = core_rows(table, 0, table.shape[0]).astype(np.float64)  # type: ignore[union-attr]
        centre = _middle(rows)
        distances = np.abs(rows - centre)
        reach = _TYPICAL * _middle(np.where(distances > 0.0, distances, np.nan))
        return cls(centre - reach, centre + reach)

    def within(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Return rows with values beyond the limits missing."""
        is_beyond = (rows < self.low) | (rows > self.high)
        return np.where(is_beyond, rows.dtype.type(np.nan), rows) if is_beyond.any() else rows


def _middle(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the upper median of each column, NaN for one without values."""
    n = np.maximum(len(rows) - np.isnan(rows).sum(axis=0), 1)
    return np.take_along_axis(np.sort(rows, axis=0), n[None] // 2, axis=0)[0]


def _typical_sizes(sizes: NDArray[Any]) -> NDArray[Any]:
    """Return the sizes of stored values without those far above all others."""
    stored = np.sort(sizes[:: 1 + len(sizes) // _LOOKED_AT])
    stored = stored[stored > 0.0]
    return sizes[sizes / _TYPICAL <= stored[len(stored) // 2]] if len(stored) else sizes


def _n_buckets(n_categorical: int) -> int:
    """Return the number of weights of each of so many categorical columns."""
    return max(_FEWEST_BUCKETS, _N_BUCKETS // max(1, n_categorical))
