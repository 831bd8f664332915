"""Keep what metrics need to know of all rows so far, in memory that does not grow with the number of rows."""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isokern.evaluation.learner import Outputs


class Counter:
    """The base of counters: their attributes are plain values and arrays, and are their state."""

    def state(self) -> dict[str, Any]:
        """Return a copy of the state."""
        return copy.deepcopy(vars(self))

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a state."""
        vars(self).update(copy.deepcopy(state))


class Confusion(Counter):
    """A confusion matrix (true class, predicted class), which grows with the classes."""

    needs = "predictions"

    def __init__(self) -> None:
        self.classes: list[Any] = []
        self.counts = np.zeros((0, 0), dtype=np.int64)

    def add(self, truth: NDArray[Any], given: Outputs) -> None:
        """Add rows."""
        parts = (self.classes, given.classes, truth, given.predictions)
        classes = np.unique(np.concatenate([part for part in parts if part is not None and len(part)]))
        if len(classes) > len(self.classes):
            counts = np.zeros((len(classes), len(classes)), dtype=np.int64)
            if self.classes:
                place = np.searchsorted(classes, self.classes)
                counts[np.ix_(place, place)] = self.counts
            self.classes, self.counts = classes.tolist(), counts
        np.add.at(self.counts, (np.searchsorted(classes, truth), np.searchsorted(classes, given.predictions)), 1)

    def balanced_accuracy(self) -> float:
        """Return the mean recall of the classes that have rows."""
        n_rows = self.counts.sum(axis=1)
        return _mean(self.counts.diagonal()[n_rows > 0] / n_rows[n_rows > 0])

    def f1(self) -> float:
        """Return F1 of the second of two classes, or the mean F1 of more classes that have rows or predictions."""
        n_either = self.counts.sum(axis=0) + self.counts.sum(axis=1)
        is_counted = n_either > 0
        if len(n_either) <= 2:
            is_counted[:1] = False
        return _mean(2 * self.counts.diagonal()[is_counted] / n_either[is_counted])

    def kappa(self) -> float:
        """Return Cohen's kappa: the agreement of predictions and labels beyond chance."""
        n = float(self.counts.sum())
        by_chance = float(self.counts.sum(axis=0, dtype=float) @ self.counts.sum(axis=1, dtype=float))
        return ratio(n * float(self.counts.trace()) - by_chance, n * n - by_chance)


class LogLoss(Counter):
    """The sum of the negative logarithms of the true classes' probabilities."""

    needs = "probabilities"

    def __init__(self) -> None:
        self.n, self.total = 0, 0.0

    def add(self, truth: NDArray[Any], given: Outputs) -> None:
        """Add rows; a class that the learner does not know has the smallest probability."""
        assert given.classes is not None and given.probabilities is not None
        place = np.searchsorted(given.classes, truth).clip(max=len(given.classes) - 1)
        shares = np.where(given.classes[place] == truth, given.probabilities[np.arange(len(truth)), place], 0.0)
        smallest = np.finfo(np.float64).eps
        self.total -= float(np.log(shares.clip(smallest, 1 - smallest)).sum())
        self.n += len(truth)

    def log_loss(self) -> float:
        """Return the mean."""
        return ratio(self.total, self.n)


class Errors(Counter):
    """Sums of a regressor's absolute and squared errors, and of the targets' squared deviations from their mean."""

    needs = "predictions"

    def __init__(self) -> None:
        self.n, self.mean = 0, 0.0
        self.absolute, self.squared, self.spread = 0.0, 0.0, 0.0

    def add(self, truth: NDArray[Any], given: Outputs) -> None:
        """Add rows."""
        errors = truth - given.predictions
        self.absolute += float(np.abs(errors).sum())
        self.squared += float(errors @ errors)
        n, mean = len(truth), float(truth.mean())
        # Chan et al.'s parallel variance: merge the squared deviations from two means into those from the common mean.
        away = mean - self.mean
        self.spread += float(np.square(truth - mean).sum()) + away**2 * self.n * n / (self.n + n)
        self.n += n
        self.mean += away * n / self.n

    def mae(self) -> float:
        """Return the mean absolute error."""
        return ratio(self.absolute, self.n)

    def rmse(self) -> float:
        """Return the root mean squared error."""
        return math.sqrt(ratio(self.squared, self.n))

    def r2(self) -> float:
        """Return the share of the targets' variance that is explained."""
        return 1.0 - ratio(self.squared, self.spread)


def ratio(numerator: float, denominator: float) -> float:
    """Return a quotient; NaN if the denominator is zero."""
    return float(numerator / denominator) if denominator > 0 else math.nan


def _mean(values: NDArray[np.float64]) -> float:
    return float(values.mean()) if len(values) else math.nan
