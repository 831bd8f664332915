"""Keep what metrics need to know of all rows so far, in constant memory (except ``AllScores``)."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from isokern.evaluation.learner import Outputs
from isokern.parts import is_count, need, need_array

N_CALIBRATION_BINS = 15
_MOST_HISTOGRAMS = 100  # classes with a histogram of scores
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


class PerClass(Counter):
    """The base of counters that keep one array of sums for each class; they grow with the classes."""

    _SHAPE: tuple[int, ...]
    _DTYPE: type = np.int64

    def __init__(self) -> None:
        self.classes: list[Any] = []
        self.sums: NDArray[Any] = np.zeros((0, *self._SHAPE), dtype=self._DTYPE)

    def check(self, n_rows: int) -> None:
        """Raise ValueError unless there are sums for each class, none of which exceeds ``n_rows``."""
        is_list = isinstance(self.classes, list) and all(isinstance(label, str | int | float) for label in self.classes)
        need(is_list and np.unique(self.classes).tolist() == self.classes, "classes must be sorted labels")
        need_array(self.sums, self._DTYPE, 1 + len(self._SHAPE), "sums")
        need(self.sums.shape == (len(self.classes), *self._SHAPE), f"sums must be {self._SHAPE} for each class")
        within = not self.sums.size or -n_rows <= self.sums.min() <= self.sums.max() <= n_rows
        need(within, f"sums must be those of {n_rows} rows")

    def _with_classes_of(self, *labels: NDArray[Any] | None) -> NDArray[Any]:
        """Make room for the classes among labels; return all classes so far, in the order of the sums."""
        parts = [part for part in (self.classes, *labels) if part is not None and len(part)]
        classes = np.unique(np.concatenate(parts))
        if len(classes) > len(self.classes):
            sums: NDArray[Any] = np.zeros((len(classes), *self._SHAPE), dtype=self._DTYPE)
            if self.classes:
                sums[np.searchsorted(classes, self.classes)] = self.sums
            self.classes, self.sums = classes.tolist(), sums
        return classes


class ClassCounts(PerClass):
    """For each class, the rows of the class, the rows predicted as the class, and the rows that are both."""

    needs = "predictions"
    _SHAPE = (3,)

    def add(self, truth: NDArray[Any], given: Outputs) -> None:
        """Add rows."""
        classes = self._with_classes_of(given.classes, truth, given.predictions)
        correct = truth[truth == given.predictions]
        for k, labels in enumerate((truth, given.predictions, correct)):
            self.sums[:, k] += np.bincount(np.searchsorted(classes, labels), minlength=len(classes))

    def check(self, n_rows: int) -> None:
        """Raise ValueError unless ``n_rows`` rows are counted."""
        super().check(n_rows)
        own, predicted, correct = self.sums.T
        are_counts = self.sums.min(initial=0) == 0 and (correct <= np.minimum(own, predicted)).all()
        need(are_counts and own.sum() == predicted.sum() == n_rows, f"sums must be those of {n_rows} rows")

    def balanced_accuracy(self) -> float:
        """Return the mean recall of the classes that have rows."""
        own, _, correct = self.sums[self.sums[:, 0] > 0].T
        return _mean(correct / own)

    def f1(self) -> float:
        """Return F1 of the second of two classes, or the mean F1 of more classes that have rows or predictions."""
        return _over_classes([_ratio(2 * correct, own + predicted) for own, predicted, correct in self.sums.tolist()])

    def kappa(self) -> float:
        """Return Cohen's kappa: the agreement of predictions and labels beyond chance."""
        own, predicted, correct = self.sums.T.astype(np.float64)
        n, by_chance = float(own.sum()), float(own @ predicted)
        return _ratio(n * float(correct.sum()) - by_chance, n * n - by_chance)


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


class Calibration(PerClass):
    """For each class, in bins of its probability, the sum of the probabilities less the number of its rows."""

    needs = "probabilities"
    _SHAPE, _DTYPE = (N_CALIBRATION_BINS,), np.float64

    def __init__(self) -> None:
        super().__init__()
        self.n = 0

    def add(self, truth: NDArray[Any], given: Outputs) -> None:
        """Add rows; a class that the learner does not know has probability 0."""
        assert given.classes is not None and given.probabilities is not None
        classes = self._with_classes_of(given.classes, truth)
        shares = np.zeros((len(truth), len(classes)))
        shares[:, np.searchsorted(classes, given.classes)] = given.probabilities
        inner_edges = np.arange(1, N_CALIBRATION_BINS) / N_CALIBRATION_BINS
        bins = np.searchsorted(inner_edges, shares)
        np.add.at(self.sums, (np.arange(len(classes)), bins), shares - (truth[:, np.newaxis] == classes))
        self.n += len(truth)

    def check(self, n_rows: int) -> None:
        """Raise ValueError unless the sums are those of ``n_rows`` rows."""
        super().check(n_rows)
        need(is_count(self.n) and self.n == n_rows, f"n must be the number of labelled rows, {n_rows}")

    def calibration_error(self) -> float:
        """Return the expected calibration error of the second of two classes, or the mean of those of more classes.

        That of a class is sum_b n_b / n |mean probability - share of the class's rows| over the bins b, where n_b
        cancels out. The mean is the classwise ECE of Kull et al., "Beyond temperature scaling", NeurIPS, 2019.
        """
        return _over_classes([_ratio(gap, self.n) for gap in np.abs(self.sums).sum(axis=1).tolist()])


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


class ScoreHistograms(PerClass):
    """For each class, histograms of its scores: of other rows, and of its own; a bin is at most 0.4 % of a score wide.

    A row counts for the classes that the learner knew when it predicted the row.
    """

    needs = "scores"
    _SHAPE = (2, _N_BINS)

    def add(self, truth: NDArray[Any], given: Outputs) -> None:
        """Add rows."""
        assert given.classes is not None
        scores, is_own = _scores_of_classes(truth, given)
        if not scores.size:
            return
        if scores.shape[1] > _MOST_HISTOGRAMS:
            raise ValueError(
                f'metrics must not name "auc" or "average_precision" for more than {_MOST_HISTOGRAMS} classes along a '
                f"stream, because each class needs 1 MiB; got {scores.shape[1]} classes."
            )
        place = np.searchsorted(self._with_classes_of(given.classes), given.classes)
        at = (2 * place + is_own) * _N_BINS + score_bins(scores)
        np.add.at(self.sums.reshape(-1), at.reshape(-1), 1)

    def check(self, n_rows: int) -> None:
        """Raise ValueError unless the histograms of each class are of at most ``n_rows`` rows."""
        super().check(n_rows)
        are_counts = self.sums.min(initial=0) == 0 and (self.sums.sum(axis=(1, 2)) <= n_rows).all()
        need(are_counts, f"sums must be histograms of at most {n_rows} rows")

    def auc(self) -> float:
        """Return how often a row of the second of two classes scores higher than one of the first; ties count half.

        With more classes, return the mean over classes of how often its rows score higher than other rows.
        """
        areas = []
        for others, own in self._occupied_bins():
            below = np.cumsum(others) - others / 2
            areas.append(_ratio(float(own @ below), others.sum() * own.sum()))
        return _over_classes(areas)

    def average_precision(self) -> float:
        """Return the mean, over the rows of the second class, of the precision at their score.

        With more classes, return the mean over the classes that have rows.
        """
        means = []
        for counts in self._occupied_bins():
            others, own = counts[:, ::-1]
            precision = np.cumsum(own) / np.cumsum(others + own)
            means.append(_ratio(float(own @ precision), own.sum()))
        return _over_classes(means)

    def _occupied_bins(self) -> Iterator[NDArray[np.float64]]:
        """Yield the counts of each class without empty bins, as floats, because products of integers could overflow."""
        for counts in self.sums:
            yield counts[:, counts.any(axis=0)].astype(np.float64)


class AllScores(ScoreHistograms):
    """All scores of rows that are added at once, which are histograms with one bin per distinct score."""

    def __init__(self) -> None:
        self.scores, self.is_own = np.empty((0, 0)), np.empty((0, 0), dtype=bool)

    def add(self, truth: NDArray[Any], given: Outputs) -> None:
        """Add rows."""
        self.scores, self.is_own = _scores_of_classes(truth, given)

    def _occupied_bins(self) -> Iterator[NDArray[np.float64]]:
        for scores, is_own in zip(self.scores.T, self.is_own.T, strict=True):
            _, place = np.unique(scores, return_inverse=True)
            yield np.array([np.bincount(place, weights=is_of_kind) for is_of_kind in (~is_own, is_own)])


def score_bins(scores: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the bins of scores, from 0; a larger score never has a lower bin.

    A bin is the score as a 16-bit float: a sign, 7 bits of exponent for 2^-64 to 2^64, and 8 bits of mantissa.
    """
    sizes = np.minimum(np.abs(scores), 2.0**64).astype(np.float32).view(np.uint32).astype(np.int64)
    steps = (sizes - (_SMALLEST_EXPONENT << 23)).clip(0, 2**30 - 1) >> 15
    return np.where(scores < 0, _N_BINS // 2 - 1 - steps, _N_BINS // 2 + steps)


def _scores_of_classes(truth: NDArray[Any], given: Outputs) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return each row's score of each class, and whether the row is of the class; no columns if there is one class."""
    assert given.classes is not None and given.scores is not None
    if len(given.classes) < 2:
        return np.empty((len(truth), 0)), np.empty((len(truth), 0), dtype=bool)
    scores = given.scores if given.scores.ndim == 2 else np.column_stack([-given.scores, given.scores])
    return scores, truth[:, np.newaxis] == given.classes


def _ratio(numerator: float, denominator: float) -> float:
    """Return a quotient; NaN if the denominator is zero."""
    return float(numerator / denominator) if denominator > 0 else math.nan


def _mean(values: NDArray[np.float64]) -> float:
    return float(values.mean()) if len(values) else math.nan


def _over_classes(values: list[float]) -> float:
    """Return the value of the second of two classes, or the mean of more; NaN stands for one that is not defined."""
    known = np.array(values[1:] if len(values) <= 2 else values)
    return _mean(known[~np.isnan(known)])
