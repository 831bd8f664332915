"""Measure how well scores rank two classes: exactly from all scores, or in constant memory from histograms."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from isokern.evaluation.counters import Counter, ratio
from isokern.evaluation.learner import Outputs

_N_BINS = 2**16
_SMALLEST_EXPONENT = 63  # the biased float32 exponent of 2**-64, to which smaller scores are rounded


class ScoreHistograms(Counter):
    """A histogram of the scores of each of two classes; a bin is at most 0.4 % of its score wide."""

    needs = "scores"

    def __init__(self) -> None:
        self.counts = np.zeros((2, _N_BINS), dtype=np.int64)

    def add(self, truth: NDArray[Any], given: Outputs) -> None:
        """Add rows."""
        for k, scores in enumerate(_by_class(truth, given)):
            self.counts[k] += np.bincount(score_bins(scores), minlength=_N_BINS)

    def auc(self) -> float:
        """Return how often a row of the second class scores higher than one of the first; ties count half."""
        first, second = self._occupied()
        below = np.cumsum(first) - first / 2
        return ratio(float(second @ below), first.sum() * second.sum())

    def average_precision(self) -> float:
        """Return the mean, over the rows of the second class, of the precision at their score."""
        first, second = self._occupied()[:, ::-1]
        precision = np.cumsum(second) / np.cumsum(first + second)
        return ratio(float(second @ precision), second.sum())

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
