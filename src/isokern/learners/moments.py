"""Keep the running mean and standard deviation of the targets of a regression, which standardise them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from isokern.learners.commits import Copies
from isokern.learners.targets import Weights
from isokern.parts import Part, need, need_array

Table = NDArray[np.float64]


class Standard(NamedTuple):
    """Targets of rows less their means, the units to measure them in, and what to copy to count the rows."""

    residuals: Table
    units: Table
    copies: Copies
    means: Table  # of the targets before each row, 0 before the first

    def values(self, n_columns: int, *, standardised: bool) -> tuple[Table, Table | None]:
        """Return what the core learns: residuals and units for each column of scores, or no units."""
        n_each = n_columns // self.residuals.shape[1]  # quantiles of an output
        residuals, units = (np.repeat(table, n_each, axis=1) for table in (self.residuals, self.units))
        return residuals, units if standardised else None


@dataclass(eq=False)
class Moments(Part):
    """Sums behind the weighted mean and standard deviation of the targets so far, by output.

    The rows of ``sums``: weighted targets, weights, the first target, weighted squares of the differences to it. The
    first target keeps the squares exact where targets are far from 0.
    """

    in_place: ClassVar = ("sums",)

    sums: Table  # (4, n_outputs)

    @classmethod
    def none(cls, n_outputs: int) -> Self:
        """Return the moments of no targets."""
        return cls(np.zeros((4, n_outputs)))

    @property
    def means(self) -> NDArray[np.float64]:
        """Mean of each output, 0 without targets."""
        return np.divide(self.sums[0], self.sums[1], out=np.zeros(self.sums.shape[1]), where=self.sums[1] > 0)

    def next(self, targets: Table, weights: Weights) -> Standard:
        """Return the next targets of a stream, (n, n_outputs), less the mean of those before them.

        Units are standard deviations up to and with each row. All sums run from the first row on, so that results do
        not depend on how a stream is split into calls.
        """
        masses = np.ones((len(targets), 1)) if weights is None else weights[:, None]
        first = self.sums[2] if self.sums[1].any() else targets[np.argmax(masses > 0)]
        total, mass, squares = (
            np.cumsum(np.concatenate([before[None], np.broadcast_to(values, targets.shape)]), axis=0)
            for before, values in zip(
                self.sums[[0, 1, 3]], (masses * targets, masses, masses * (targets - first) ** 2), strict=True
            )
        )
        # Without a mean before it, the first row uses its own target.
        has_mean = mass[:-1] > 0
        means = np.divide(total[:-1], mass[:-1], out=np.zeros_like(targets), where=has_mean)
        residuals = np.where(has_mean, targets - means, 0.0)
        units = _deviations(total[1:], mass[1:], squares[1:], first)
        units = np.where(units > 0, units, np.where(residuals != 0, np.abs(residuals), 1.0))
        copies: Copies = [(self.sums, np.stack([total[-1], mass[-1], first, squares[-1]]))]
        return Standard(residuals, units, copies, means)

    def again(self, targets: Table) -> Standard:
        """Return targets that have been counted before, less the mean of all; nothing is counted."""
        units = _deviations(self.sums[0], self.sums[1], self.sums[3], self.sums[2])
        units = np.broadcast_to(np.where(units > 0, units, 1.0), targets.shape)
        means = np.broadcast_to(self.means, targets.shape)
        return Standard(targets - means, np.ascontiguousarray(units), [], means)

    def check(self) -> None:
        """Raise ValueError unless there are four finite sums for each output."""
        need_array(self.sums, np.float64, 2, "sums")
        need(self.sums.shape[0] == 4 and self.sums.shape[1] > 0, "sums must have four rows and a column per output")
        need(np.isfinite(self.sums).all(), "sums must be finite")
        need((self.sums[[1, 3]] >= 0).all(), "sums of weights and squares must be at least 0")

    @classmethod
    def merge(cls, parts: Sequence[Self], shares: NDArray[np.float64]) -> Self:
        """Return the mean of the means and of the second moments, by shares."""
        first = parts[0].sums[2]
        mass = np.tensordot(shares, [part.sums[1] for part in parts], 1)
        means = np.tensordot(shares, [part.means for part in parts], 1)
        squares = np.tensordot(shares, [part.squares_about(first) for part in parts], 1)
        return cls(np.stack([mass * means, mass, first, mass * squares]))

    def check_mergeable(self, other: Moments, name: str) -> None:
        """Raise ValueError if other moments, which errors call ``name``, have another number of outputs."""
        n, found = self.sums.shape[1], other.sums.shape[1]
        if n != found:
            raise ValueError(f"models must have the same outputs; got {n}, and {found} in {name}.")

    def squares_about(self, point: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the mean square of the differences between targets and a point."""
        deviations = _deviations(self.sums[0], self.sums[1], self.sums[3], self.sums[2])
        return deviations**2 + (self.means - point) ** 2 * (self.sums[1] > 0)


def _deviations(total: Table, mass: Table, squares: Table, first: Table) -> Table:
    """Return standard deviations, 0 without targets."""
    mass = np.where(mass > 0, mass, 1.0)
    return np.sqrt(np.maximum(squares / mass - (total / mass - first) ** 2, 0.0))
