"""Limit the number of support vectors of an online learner: one class per strategy of the literature.

A budget learns one score with targets y = +1 or -1. It stores its support vectors as indices ``points`` with signed
coefficients ``alpha``. Below, f is the score of the current row and ``k`` the kernel between the row and the support
vectors. All strategies need a kernel with k(x, x) = 1.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from isokern.checks import private
from isokern.parts import Part, need, need_array

_TINY = 1e-10  # squared distance from the span of the support vectors that counts as zero
_LARGEST = 10.0  # gamma of BOGD


@dataclass(eq=False)
class Budget(Part):
    """No limit: each row that violates the margin is added with coefficient eta y."""

    takes_rate: ClassVar[bool] = True  # whether the learning rate limits a step; else it is 1

    size: int
    rate: float
    shrinkage: float
    rng: np.random.Generator
    points: NDArray[np.intp] = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    alpha: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))

    def copy(self) -> Self:
        """Return a copy that learns on its own; learning replaces arrays, only the generator changes in place."""
        copied: Self = private(self)
        copied.rng = copy.deepcopy(self.rng)
        return copied

    def learn(self, values: NDArray[np.float64], point: int, y: float, weight: float) -> bool:
        """Learn a row and return whether anything changed.

        ``values`` holds the kernel between the row and all points, ``point`` is the index of the row among them, ``y``
        its target, +1 or -1, and ``weight`` the factor of its step.
        """
        k = values[self.points]
        f = float(k @ self.alpha)
        # A weighted step goes no further than to the margin, or than an unweighted one; see limited() in cpp/online.
        step = self.rate if self.takes_rate else 1.0
        return weight > 0 and self._learn(k, point, y, min(weight, max(1.0, (1.0 - y * f) / step)), f)

    def score(self, values: NDArray[np.float64]) -> float:
        """Return the score of a row, given the kernel between it and all points, as rows are scored that come together.

        It adds up in order, as ``project`` does, and so may differ from f in the last digits.
        """
        return float(np.cumsum(values[self.points] * self.alpha)[-1]) if len(self.points) else 0.0

    def _learn(self, k: Any, point: int, y: float, weight: float, f: float) -> bool:
        if y * f >= 1:
            return False
        self._add(point, self.rate * weight * y)
        return True

    @property
    def _is_full(self) -> bool:
        return len(self.points) >= self.size

    def _add(self, point: int, alpha: float) -> None:
        self.points = np.append(self.points, point)
        self.alpha = np.append(self.alpha, alpha)

    def _drop(self, place: int) -> None:
        self.points = np.delete(self.points, place)
        self.alpha = np.delete(self.alpha, place)

    def check(self) -> None:
        """Raise ValueError unless each support vector has a coefficient."""
        need(self.size >= 1 or type(self) is Budget, "size must be at least 1")
        need_array(self.points, np.intp, 1, "points")
        need_array(self.alpha, np.float64, 1, "alpha")
        need(len(self.points) == len(self.alpha), "alpha must have a coefficient per point")


class RandomBudget(Budget):
    """RBP (Cavallanti, Cesa-Bianchi and Gentile, 2007): on a mistake, add y; if full, drop a random support vector."""

    takes_rate: ClassVar[bool] = False

    def _learn(self, k: Any, point: int, y: float, weight: float, f: float) -> bool:
        if y * f > 0:
            return False
        if self._is_full:
            self._drop(int(self.rng.integers(len(self.points))))
        self._add(point, weight * y)
        return True


@dataclass(eq=False)
class KeepsMatrix(Budget):
    """Base of the budgets that keep the kernel matrix of their support vectors."""

    matrix: NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 0)))

    def check(self) -> None:
        """Raise ValueError unless the matrix has an entry for each pair of support vectors."""
        super().check()
        need_array(self.matrix, np.float64, 2, "matrix")
        need(self.matrix.shape == (len(self.points),) * 2, "matrix must have a row and a column per point")

    def _add_with(self, k: NDArray[np.float64], point: int, alpha: float) -> None:
        n = len(k)
        matrix = np.ones((n + 1, n + 1))
        matrix[:n, :n], matrix[n, :n], matrix[:n, n] = self.matrix, k, k
        self.matrix = matrix
        self._add(point, alpha)


@dataclass(eq=False)
class Forgetron(KeepsMatrix):
    """Forgetron (Dekel, Shalev-Shwartz and Singer, 2008): on a mistake, add y; if full, shrink all and drop the oldest.

    Self-tuned: the factor is the largest phi <= 1 with (delta phi)^2 + 2 delta phi (1 - phi mu) + Q <= (15/32) M.
    """

    takes_rate: ClassVar[bool] = False

    n_mistakes: int = 0
    damage: float = 0.0  # Q

    def _learn(self, k: Any, point: int, y: float, weight: float, f: float) -> bool:
        if y * f > 0:
            return False
        self.n_mistakes += 1
        was_full = self._is_full
        self._add_with(k, point, weight * y)
        if was_full:
            self._forget()
        return True

    def _forget(self) -> None:
        delta = abs(self.alpha[0])
        mu = math.copysign(1.0, self.alpha[0]) * float(self.matrix[0] @ self.alpha)
        # The condition on phi is a phi^2 + b phi + c <= 0.
        a, b, c = delta * delta - 2 * delta * mu, 2 * delta, self.damage - 15 / 32 * self.n_mistakes
        phi = 1.0
        if a + b + c > 0:
            phi = (-b + math.sqrt(b * b - 4 * a * c)) / (2 * a) if a != 0 else -c / b
            phi = min(1.0, max(0.0, phi))
        self.alpha = self.alpha * phi
        self.damage += (delta * phi) ** 2 + 2 * delta * phi * (1 - phi * mu)
        self._drop(0)
        self.matrix = self.matrix[1:, 1:]


@dataclass(eq=False)
class Projectron(KeepsMatrix):
    """Projectron (Orabona, Keshet and Caputo, 2009): on a mistake, add y; if full, project it onto the others."""

    takes_rate: ClassVar[bool] = False

    inverse: NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 0)))

    def _learn(self, k: Any, point: int, y: float, weight: float, f: float) -> bool:
        if y * f > 0:
            return self._learn_margin(k, y, weight, f)
        projection = self.inverse @ k
        distance = max(0.0, 1.0 - float(k @ projection))
        if self._is_full or distance < _TINY:
            self.alpha = self.alpha + weight * y * projection
        else:
            self._extend(projection, distance)
            self._add_with(k, point, weight * y)
        return True

    def _learn_margin(self, k: Any, y: float, weight: float, f: float) -> bool:
        """Ignore a row on the right side."""
        return False

    def _extend(self, projection: NDArray[np.float64], distance: float) -> None:
        """Update the inverse of the kernel matrix for one more point, by block inversion."""
        direction = np.append(projection, -1.0)
        self.inverse = np.pad(self.inverse, (0, 1)) + np.outer(direction, direction) / distance


class ProjectronPlusPlus(Projectron):
    """Projectron++ (same paper): also project rows on the right side but within the margin."""

    def _learn_margin(self, k: Any, y: float, weight: float, f: float) -> bool:
        loss = 1.0 - y * f
        projection = self.inverse @ k
        length = float(k @ projection)
        bound = 0.25 * math.sqrt((self.size + 1) / math.log(self.size + 1)) * math.sqrt(max(0.0, 1.0 - length))
        if loss <= bound or length <= 0:
            return False
        tau = min(loss / length, 2 * (loss - bound) / length, 1.0)
        self.alpha = self.alpha + tau * weight * y * projection
        return True


class PassiveAggressive(Budget):
    """BPA-S (Wang and Vucetic, 2010): a margin violation replaces the support vector whose removal costs least.

    tau = min(C, loss) with C = the learning rate; r minimises alpha_r^2 + beta_r^2 - 2 alpha_r beta_r k_r with
    beta_r = alpha_r k_r + tau y.
    """

    def _learn(self, k: Any, point: int, y: float, weight: float, f: float) -> bool:
        if y * f >= 1:
            return False
        step = min(self.rate, 1.0 - y * f) * weight * y
        if not self._is_full:
            self._add(point, step)
            return True
        beta = self.alpha * k + step
        place = int(np.argmin(self.alpha**2 + beta**2 - 2 * self.alpha * beta * k))
        self._drop(place)
        self._add(point, beta[place])
        return True


class BudgetedGradient(Budget):
    """BOGD (Zhao, Wang, Wu, Jin and Hoi, 2012): gradient steps with shrinkage; if full, drop a random support vector.

    Each round multiplies alpha by 1 - eta lambda. To make up for a dropped one, the others are multiplied by
    B / (B - 1) and clipped to |alpha| <= gamma eta with gamma = 10.
    """

    def _learn(self, k: Any, point: int, y: float, weight: float, f: float) -> bool:
        self.alpha = self.alpha * (1.0 - self.rate * self.shrinkage)
        if y * f >= 1:
            return False
        if self._is_full:
            self._drop(int(self.rng.integers(len(self.points))))
            largest = _LARGEST * self.rate
            self.alpha = np.clip(self.alpha * (self.size / (self.size - 1)), -largest, largest)
        self._add(point, self.rate * weight * y)
        return True


BUDGETS: dict[str, type[Budget]] = {
    "random": RandomBudget,
    "forgetron": Forgetron,
    "projectron": Projectron,
    "projectron++": ProjectronPlusPlus,
    "bpas": PassiveAggressive,
    "bogd": BudgetedGradient,
}
