"""Probabilities from scores, learned from the scores that rows had before they were learned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import log_expit, log_softmax, softmax

from isokern.checks import own_arrays
from isokern.learners.classes import Rearrangement
from isokern.parts import Part, is_count, need, need_array


@dataclass(eq=False)
class ScoreWindow(Part):
    """The scores of the most recent rows before their own update, and their classes."""

    size: ClassVar[int] = 4096

    scores: NDArray[np.float64]
    """(size, n_columns), of which the row of number i since the start is at place i mod size."""
    classes: NDArray[np.intp]
    n_seen: int = 0
    _sharpness: tuple[int, float] | None = field(default=None, init=False)  # found when so many rows had been seen

    @classmethod
    def empty(cls, n_columns: int) -> Self:
        """Return a window that has seen no row."""
        return cls(np.zeros((cls.size, n_columns)), np.zeros(cls.size, dtype=np.intp))

    def add(self, scores: NDArray[np.float64], classes: NDArray[np.intp]) -> None:
        """Take in the last rows of a stream, of which only as many as fit may be given."""
        own_arrays(self)
        places = (self.n_seen + np.arange(len(scores))) % self.size
        self.scores[places] = scores
        self.classes[places] = classes
        self.n_seen += len(scores)

    def rearrange(self, change: Rearrangement) -> Self:
        """Return a window with columns made out of these, and new numbers of classes."""
        scores = self.scores[:, change.columns] * np.asarray(change.signs)
        return type(self)(scores, change.numbers[self.classes], self.n_seen)

    def sharpness(self, n_classes: int) -> float:
        """Return the positive factor of the scores that makes their softmax likeliest: one over the temperature."""
        if self._sharpness is None or self._sharpness[0] != self.n_seen:
            n = min(self.n_seen, self.size)
            scores = self.scores[:n, :n_classes]
            if n_classes == 2:  # one score f, for the second class; that of the first is 0
                scores = np.column_stack([np.zeros(n), scores[:, 0]])
            self._sharpness = (self.n_seen, _fit_sharpness(scores, self.classes[:n]))
        return self._sharpness[1]

    def check(self) -> None:
        """Raise unless there is a class for each row of scores."""
        need_array(self.scores, np.float64, 2, "scores")
        need_array(self.classes, np.intp, 1, "classes")
        need(len(self.scores) == len(self.classes) == self.size, f"a window must have {self.size} rows")
        need(is_count(self.n_seen), "n_seen must be a count")

    @classmethod
    def merge(cls, windows: Sequence[Self], shares: NDArray[np.float64]) -> Self:
        """Return a window of the last rows of each, as many as its share."""
        joined = cls.empty(windows[0].scores.shape[1])
        for window, share in zip(windows, shares, strict=True):
            n = min(window.n_seen, window.size, int(np.ceil(share * window.size)))
            places = (window.n_seen - n + np.arange(n)) % window.size
            joined.add(window.scores[places], window.classes[places])
        return joined


def probabilities(scores: NDArray[np.float64], n_classes: int, window: ScoreWindow | None) -> NDArray[np.float64]:
    """Return the probability of each class, (n, n_classes), the most probable of which has the largest score.

    Without a window the scores are those of logistic loss, which are logits already.
    """
    if n_classes == 1:
        return np.ones((len(scores), 1))
    columns = scores if scores.ndim == 2 else np.column_stack([np.zeros(len(scores)), scores])
    if window is not None:
        logarithms = window.sharpness(n_classes) * columns
    else:
        logarithms = log_expit(columns) if scores.ndim == 2 else columns
    return _favour(softmax(logarithms, axis=1), columns.argmax(axis=1))


def _favour(probabilities: NDArray[np.float64], best: NDArray[np.intp]) -> NDArray[np.float64]:
    """Make the best class of each row its most probable one, where rounding has made two alike."""
    rows = np.arange(len(best))
    largest = probabilities.max(axis=1)
    is_tied = (probabilities == largest[:, None]).sum(axis=1) > 1
    probabilities[rows[is_tied], best[is_tied]] = np.nextafter(largest[is_tied], 2.0)
    return probabilities


def _fit_sharpness(scores: NDArray[np.float64], classes: NDArray[np.intp]) -> float:
    # One right and one wrong row of score 1, so that even perfect scores give a finite factor.
    one = np.zeros((2, scores.shape[1]))
    one[:, 1] = 1.0
    scores, classes = np.vstack([scores, one]), np.concatenate([classes, [1, 0]])
    rows = np.arange(len(scores))

    def loss(log_factor: float) -> float:
        return -float(log_softmax(np.exp(log_factor) * scores, axis=1)[rows, classes].sum())

    return float(np.exp(minimize_scalar(loss, bounds=(-12.0, 12.0), method="bounded").x))
