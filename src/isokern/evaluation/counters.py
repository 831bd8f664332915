"""Keep what metrics need to know of all rows so far, in constant memory (except ``AllScores``)."""

from __future__ import annotations

import copy
import math
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from isokern.evaluation.learner import Outputs
from isokern.parts import is_count, need, need_array

_N_BINS = 2**16
_SMALLEST_EXPONENT = 63  # the biased float32 exponent of 2**-64, to which smaller scores are rounded


class Counter:
    """The base of counters: their attributes are plain values and arrays, and are their state."""

    def state(self) -> dict[str, Any]:
        """Return a copy of the state."""
        return copy.deepcopy(vars(self))

    @classmethod
    def from_state(cls, state: Any, n_rows: int) -> Self:
        """Rebuild a counter of ``n_rows`` rows; raise ValueError if it cannot be one."""
        counter = cls()
        need(isinstance(state, dict) and state.keys() == vars(counter).keys(), f"{cls.__name__} must be complete")
        vars(counter).update(copy.deepcopy(state))
        counter.check(n_rows)
        return counter

    def check(self, n_rows: int) -> None:
        """Raise ValueError unless this is a counter of ``n_rows`` rows."""


class Sums(Counter):
    """The base of counters that are sums: all numbers but ``mean`` are at least 0, and ``n`` is that of the rows."""

    n: int

    def check(self, n_rows: int) -> None:
        """Raise ValueError unless the sums are those of ``n_rows`` rows."""
        need(is_count(self.n) and self.n == n_rows, f"n must be the number of labelled rows, {n_rows}")
        sums = {name: value for name, value in vars(self).items() if name != "n"}
        need(all(isinstance(value, float) for value in sums.values()), f"sums must be numbers; got {sums}")
        is_negative = any(value < 0 for name, value in sums.items() if name != "mean")
        need(not is_negative, f"sums must be at least 0; got {sums}")


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

    def check(self, n_rows: int) -> None:
        """Raise ValueError unless the matrix has a row and a column for each class, and counts ``n_rows`` rows."""
        is_list = isinstance(self.classes, list) and all(isinstance(label, str | int | float) for label in self.classes)
        need(is_list and np.unique(self.classes).tolist() == self.classes, "classes must be sorted labels")
        need_array(self.counts, np.int64, 2, "counts")
        need(self.counts.shape == (len(self.classes),) * 2, "counts must have a row and a column for each class")
        need(_are_counts(self.counts, n_rows) and self.counts.sum() == n_rows, f"counts must be of {n_rows} rows")

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
        return _ratio(n * float(self.counts.trace()) - by_chance, n * n - by_chance)


class LogLoss(Sums):
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
        return _ratio(self.total, self.n)


class Errors(Sums):
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
        return _ratio(self.absolute, self.n)

    def rmse(self) -> float:
        """Return the root mean squared error."""
        return math.sqrt(_ratio(self.squared, self.n))

    def r2(self) -> float:
        """Return the share of the targets' variance that is explained."""
        return 1.0 - _ratio(self.squared, self.spread)


class ScoreHistograms(Counter):
    """A histogram of the scores of each of two classes; a bin is at most 0.4 % of its score wide."""

    needs = "scores"

    def __init__(self) -> None:
        self.counts = np.zeros((2, _N_BINS), dtype=np.int64)

    def add(self, truth: NDArray[Any], given: Outputs) -> None:
        """Add rows."""
        for k, scores in enumerate(_by_class(truth, given)):
            self.counts[k] += np.bincount(score_bins(scores), minlength=_N_BINS)

    def check(self, n_rows: int) -> None:
        """Raise ValueError unless there are two histograms of at most ``n_rows`` rows."""
        need_array(self.counts, np.int64, 2, "counts")
        need(self.counts.shape == (2, _N_BINS), f"counts must be 2 histograms of {_N_BINS} bins")
        need(_are_counts(self.counts, n_rows) and self.counts.sum() <= n_rows, f"counts must be of {n_rows} rows")

    def auc(self) -> float:
        """Return how often a row of the second class scores higher than one of the first; ties count half."""
        first, second = self._occupied()
        below = np.cumsum(first) - first / 2
        return _ratio(float(second @ below), first.sum() * second.sum())

    def average_precision(self) -> float:
        """Return the mean, over the rows of the second class, of the precision at their score."""
        first, second = self._occupied()[:, ::-1]
        precision = np.cumsum(second) / np.cumsum(first + second)
        return _ratio(float(second @ precision), second.sum())

    def _occupied(self) -> NDArray[np.float64]:
        """Return the counts of the bins that are not empty, as floats, because products of integers could overflow."""
        return self.counts[:, self.counts.any(axis=0)].astype(np.float64)


class AllScores(ScoreHistograms):
    """The scores of all rows of two classes, which are a histogram with one bin per distinct score."""

    def __init__(self) -> None:
        self.scores = (np.empty(0), np.empty(0))

    def add(self, truth: NDArray[Any], given: Outputs) -> None:
        """Add rows."""
        first, second = (np.append(*pair) for pair in zip(self.scores, _by_class(truth, given), strict=True))
        self.scores = (first, second)

    def _occupied(self) -> NDArray[np.float64]:
        bins = np.unique(np.concatenate(self.scores))
        counts = [np.bincount(np.searchsorted(bins, scores), minlength=len(bins)) for scores in self.scores]
        return np.array(counts, dtype=np.float64)


def _are_counts(counts: NDArray[np.int64], most: int) -> bool:
    return not counts.size or (counts.min() >= 0 and counts.max() <= most)


def score_bins(scores: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the bins of scores, from 0; a larger score never has a lower bin.

    A bin is the score as a 16-bit float: a sign, 7 bits of exponent for 2^-64 to 2^64, and 8 bits of mantissa.
    """
    sizes = np.minimum(np.abs(scores), 2.0**64).astype(np.float32).view(np.uint32).astype(np.int64)
    steps = (sizes - (_SMALLEST_EXPONENT << 23)).clip(0, 2**30 - 1) >> 15
    return np.where(scores < 0, _N_BINS // 2 - 1 - steps, _N_BINS // 2 + steps)


def _by_class(truth: NDArray[Any], given: Outputs) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the scores of the first and of the second class; none while the learner knows only one class."""
    assert given.classes is not None and given.scores is not None
    classes = np.union1d(given.classes, truth)
    if len(classes) > 2:
        raise ValueError(f'metrics must not name "auc" or "average_precision" for more than 2 classes; got {classes}.')
    if len(given.classes) < 2:
        return np.empty(0), np.empty(0)
    scores = given.scores if given.scores.ndim == 1 else given.scores[:, 1]
    is_second = truth == classes[1]
    return scores[~is_second], scores[is_second]


def _ratio(numerator: float, denominator: float) -> float:
    """Return a quotient; NaN if the denominator is zero."""
    return float(numerator / denominator) if denominator > 0 else math.nan


def _mean(values: NDArray[np.float64]) -> float:
    return float(values.mean()) if len(values) else math.nan
