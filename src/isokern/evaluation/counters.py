"""What metrics need to know of all rows so far, in memory that does not grow with their number."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isokern.evaluation.learner import Outputs


class Confusion:
    """How often rows of each class were predicted as each class; it grows when there are new classes."""

    needs = "predictions"

    def __init__(self) -> None:
        self.classes: NDArray[Any] | None = None
        self.counts = np.zeros((0, 0), dtype=np.int64)

    def add(self, truth: NDArray[Any], given: Outputs) -> None:
        """Count rows."""
        parts = [part for part in (self.classes, given.classes, truth, given.predictions) if part is not None]
        classes = np.unique(np.concatenate(parts))
        if self.classes is not None and len(classes) > len(self.classes):
            place = np.searchsorted(classes, self.classes)
            counts = np.zeros((len(classes), len(classes)), dtype=np.int64)
            counts[np.ix_(place, place)] = self.counts
            self.counts = counts
        elif self.classes is None:
            self.counts = np.zeros((len(classes), len(classes)), dtype=np.int64)
        self.classes = classes
        np.add.at(self.counts, (np.searchsorted(classes, truth), np.searchsorted(classes, given.predictions)), 1)

    def balanced_accuracy(self) -> float:
        """Return the mean share of rows predicted right, over the classes there were rows of."""
        n_rows = self.counts.sum(axis=1)
        return _mean(self.counts.diagonal()[n_rows > 0] / n_rows[n_rows > 0])

    def f1(self) -> float:
        """Return F1 of the second of two classes; of more, the mean over those that rows had or were given."""
        n_either = self.counts.sum(axis=0) + self.counts.sum(axis=1)
        is_counted = n_either > 0
        if len(n_either) <= 2:
            is_counted[:1] = False
        return _mean(2 * self.counts.diagonal()[is_counted] / n_either[is_counted])

    def kappa(self) -> float:
        """Return Cohen's kappa: how far predictions agree with the truth beyond chance."""
        n = float(self.counts.sum())
        by_chance = float(self.counts.sum(axis=0, dtype=float) @ self.counts.sum(axis=1, dtype=float))
        return ratio(n * float(self.counts.trace()) - by_chance, n * n - by_chance)

    def state(self) -> dict[str, Any]:
        """Return plain values and arrays."""
        return {"classes": [] if self.classes is None else self.classes.tolist(), "counts": self.counts.copy()}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self.classes = np.array(state["classes"]) if len(state["classes"]) else None
        self.counts = state["counts"].copy()


class Sums:
    """Base of what is kept as a few running sums, all of them numbers."""

    def state(self) -> dict[str, Any]:
        """Return plain values."""
        return dict(vars(self))

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        vars(self).update(state)


class Surprise(Sums):
    """Running sum of the logarithms of the probabilities that the true classes were given."""

    needs = "probabilities"

    def __init__(self) -> None:
        self.n, self.total = 0, 0.0

    def add(self, truth: NDArray[Any], given: Outputs) -> None:
        """Count rows; a class that the learner does not know has the smallest probability."""
        assert given.classes is not None and given.probabilities is not None
        place = np.searchsorted(given.classes, truth).clip(max=len(given.classes) - 1)
        shares = np.where(given.classes[place] == truth, given.probabilities[np.arange(len(truth)), place], 0.0)
        smallest = np.finfo(np.float64).eps
        self.total -= float(np.log(shares.clip(smallest, 1 - smallest)).sum())
        self.n += len(truth)

    def log_loss(self) -> float:
        """Return the mean negative logarithm."""
        return ratio(self.total, self.n)


class Errors(Sums):
    """Running sums of a regressor's errors, and of what its targets differ from their mean."""

    needs = "predictions"

    def __init__(self) -> None:
        self.n, self.mean = 0, 0.0
        self.absolute, self.squared, self.spread = 0.0, 0.0, 0.0

    def add(self, truth: NDArray[Any], given: Outputs) -> None:
        """Count rows."""
        errors = truth - given.predictions
        self.absolute += float(np.abs(errors).sum())
        self.squared += float(errors @ errors)
        n, mean = len(truth), float(truth.mean())
        # The sums of squares around two means join into one around the common mean.
        away = mean - self.mean
        self.spread += float(np.square(truth - mean).sum()) + away**2 * self.n * n / (self.n + n)
        self.n += n
        self.mean += away * n / self.n

    def mae(self) -> float:
        """Return the mean absolute error."""
        return ratio(self.absolute, self.n)

    def rmse(self) -> float:
        """Return the root of the mean squared error."""
        return math.sqrt(ratio(self.squared, self.n))

    def r2(self) -> float:
        """Return the share of the targets' variance that is predicted."""
        return 1.0 - ratio(self.squared, self.spread)


def ratio(numerator: float, denominator: float) -> float:
    """Return a quotient, NaN where there is none."""
    return float(numerator / denominator) if denominator > 0 else math.nan


def _mean(values: NDArray[np.float64]) -> float:
    return float(values.mean()) if len(values) else math.nan
