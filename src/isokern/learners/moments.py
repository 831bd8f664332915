"""Keep the running mean and standard deviation of the targets of a regression, which standardise them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from isokern import _core
from isokern.learners.commits import Copies, copy_arrays
from isokern.learners.targets import Weights
from isokern.parts import Part, State, need, need_array

Table = NDArray[np.float64]
Limits = tuple[Table, Table]

# Rows of Moments.sums, see ``cpp/online/moments.hpp``: the sums behind mean and deviation, the limits, recent targets.
_TOTAL, _MASS, _FIRST, _SQUARES, _N, _CENTRE, _SPREAD = range(7)
_N_SUMS = 13
_FEW_ROWS = 256  # the last batch that a growing map is drawn from; ``centres_and_spreads`` leaves out half of it
_NOT_NEGATIVE = [_MASS, _SQUARES, _N, _SPREAD, 8, 10, 11, 12]


class Standard(NamedTuple):
    """Targets of rows less their means, the units to measure them in, and what to copy to count the rows."""

    residuals: Table  # of targets within the limits
    units: Table
    weights: Weights  # of the rows; 0 for those that have a target beyond its limits
    copies: Copies
    means: Table  # of the targets before each row, 0 before the first
    limits: Limits

    def values(self, n_columns: int, *, standardised: bool) -> tuple[Table, Table | None]:
        """Return what the core learns: residuals and units for each column of scores, or no units."""
        n_each = n_columns // self.residuals.shape[1]  # quantiles of an output
        residuals, units = (np.repeat(table, n_each, axis=1) for table in (self.residuals, self.units))
        return residuals, units if standardised else None

    def at(self, row: int, targets: Table, weights: Weights) -> Standard:
        """Return other targets, with mean, unit and limits of a row."""
        low, high = (limit[row] for limit in self.limits)
        residuals, units = targets.clip(low, high) - self.means[row], np.broadcast_to(self.units[row], targets.shape)
        weights = _weights_within(targets, weights, (low, high))
        return self._replace(residuals=residuals, units=units, weights=weights, copies=[])


@dataclass(eq=False)
class Moments(Part):
    """Sums behind the weighted mean and standard deviation of the targets so far, by output.

    A target that is far from all others counts as one at a limit, so that it cannot ruin what is learned from the
    others; a lasting change is followed. See ``cpp/online/moments.hpp``.
    """

    in_place: ClassVar = ("sums",)

    sums: Table  # (13, n_outputs)

    @classmethod
    def none(cls, n_outputs: int) -> Self:
        """Return the moments of no targets."""
        return cls(np.zeros((_N_SUMS, n_outputs)))

    @classmethod
    def begun(cls, first: Table) -> Self:
        """Return the moments of no targets, with limits from those of a first batch of rows, none of them counted."""
        moments = cls.none(first.shape[1])
        if len(first):
            moments.sums[[_CENTRE, _SPREAD]] = centres_and_spreads(first)
        return moments

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Return the moments of this state, which has no limits in older files."""
        sums = state["sums"]
        if np.ndim(sums) == 2 and len(sums) == _N:
            older = cls(np.concatenate([sums, np.zeros((_N_SUMS - _N, sums.shape[1]))]))
            older.sums[_CENTRE] = older.means
            return older
        return cls(sums)

    @property
    def means(self) -> NDArray[np.float64]:
        """Mean of each output, 0 without targets."""
        total, mass = self.sums[[_TOTAL, _MASS]]
        return np.divide(total, mass, out=np.zeros(len(mass)), where=mass > 0)

    @classmethod
    def mean_of(cls, targets: Table, weights: Weights) -> NDArray[np.float64]:
        """Return the mean of the targets of a first batch, (n_outputs,)."""
        moments = cls.begun(targets)
        copy_arrays(moments.next(targets, weights).copies)
        return moments.means

    def next(self, targets: Table, weights: Weights) -> Standard:
        """Return the next targets of a stream, (n, n_outputs), less the mean of those before them.

        Units are standard deviations up to and with each row. All sums run from the first row on, so that results do
        not depend on how a stream is split into calls.
        """
        after, found = self.sums.copy(), np.empty((5, *targets.shape))
        _core.count_targets(np.ascontiguousarray(targets), weights, after, found)
        residuals, units, means, low, high = found
        learned = _weights_within(targets, weights, (low, high))
        return Standard(residuals, units, learned, [(self.sums, after)], means, (low, high))

    def again(self, targets: Table, weights: Weights) -> Standard:
        """Return targets that have been counted before, less the mean of all; nothing is counted."""
        standard = self.next(targets, np.zeros(len(targets)))
        return standard._replace(weights=_weights_within(targets, weights, standard.limits), copies=[])

    def check(self) -> None:
        """Raise ValueError unless there are finite sums for each output."""
        need_array(self.sums, np.float64, 2, "sums")
        need(self.sums.shape[0] == _N_SUMS and self.sums.shape[1] > 0, "sums must have 13 rows and a column per output")
        need(np.isfinite(self.sums).all(), "sums must be finite")
        need((self.sums[_NOT_NEGATIVE] >= 0).all(), "sums of weights and squares must be at least 0")

    @classmethod
    def merge(cls, parts: Sequence[Self], shares: NDArray[np.float64]) -> Self:
        """Return the mean of the means and of the second moments, by shares."""
        merged, first = cls.none(parts[0].sums.shape[1]), parts[0].sums[_FIRST]
        mass, n = (np.tensordot(shares, [part.sums[row] for part in parts], 1) for row in (_MASS, _N))
        means = np.tensordot(shares, [part.means for part in parts], 1)
        squares = np.tensordot(shares, [part.squares_about(first) for part in parts], 1)
        merged.sums[: _CENTRE + 1] = mass * means, mass, first, mass * squares, n, means
        return merged

    def check_mergeable(self, other: Moments, name: str) -> None:
        """Raise ValueError if other moments, which errors call ``name``, have another number of outputs."""
        n, found = self.sums.shape[1], other.sums.shape[1]
        if n != found:
            raise ValueError(f"models must have the same outputs; got {n}, and {found} in {name}.")

    def squares_about(self, point: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the mean square of the differences between targets and a point."""
        mass = self.sums[_MASS]
        squares = np.divide(self.sums[_SQUARES], mass, out=np.zeros(len(mass)), where=mass > 0)
        from_first = self.means - self.sums[_FIRST]
        variances = np.where(mass > 0, np.maximum(squares - from_first**2, 0.0), 0.0)
        return variances + (self.means - point) ** 2 * (mass > 0)


def _weights_within(targets: Table, weights: Weights, limits: Limits) -> Weights:
    """Return the weights of rows, 0 for those that have a target beyond its limits."""
    is_beyond = ((targets < limits[0]) | (targets > limits[1])).any(axis=1)
    if not is_beyond.any():
        return weights
    return np.where(is_beyond, 0.0, 1.0 if weights is None else weights)


def centres_and_spreads(targets: Table) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the median of each output, and the largest distance from it after those of the farthest targets.

    These are half of a small batch, which tells little, but only 1 in 1,000 of a large one, so that large values that
    are rare, but not single, are learned.
    """
    centres, n = np.median(targets, axis=0), len(targets)
    n_left_out = max(min(n // 2, _FEW_ROWS**2 // (2 * n)), n // 1000)
    return centres, np.sort(np.abs(targets - centres), axis=0)[n - 1 - n_left_out]


def within_limits(targets: Table) -> Table:
    """Return targets of which those far from all others are at a limit."""
    numbers, nothing = targets.astype(np.float64, copy=False), np.zeros(len(targets))
    return numbers.clip(*Moments.begun(numbers).next(numbers, nothing).limits)
