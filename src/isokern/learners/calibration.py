"""Calibrate probabilities by temperature scaling, on the scores that rows had before they were learned."""

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
    """Ring buffer of the scores of the most recent rows before their own update, and of their classes."""

    size: ClassVar[int] = 4096

    scores: NDArray[np.float64]  # of shape (size, n_columns); the i-th row since the start is at place i mod size
    classes: NDArray[np.intp]
    n_seen: int = 0
    # Cache: n_seen when it was fitted, and the inverse temperature.
    _inverse_temperature: tuple[int, float] | None = field(default=None, init=False)

    @classmethod
    def empty(cls, n_columns: int) -> Self:
        """Return a window without rows."""
        return cls(np.zeros((cls.size, n_columns)), np.zeros(cls.size, dtype=np.intp))

    def add(self, scores: NDArray[np.float64], classes: NDArray[np.intp]) -> None:
        """Add the latest rows, at most ``size``."""
        own_arrays(self)
        places = (self.n_seen + np.arange(len(scores))) % self.size
        self.scores[places] = scores
        self.classes[places] = classes
        self.n_seen += len(scores)

    def rearrange(self, change: Rearrangement) -> Self:
        """Return the window with rearranged columns and renumbered classes."""
        scores = self.scores[:, change.columns] * np.asarray(change.signs)
        return type(self)(scores, change.numbers[self.classes], self.n_seen)

    def inverse_temperature(self, n_classes: int) -> float:
        """Return the positive factor of the scores that maximises the likelihood of their softmax."""
        if self._inverse_temperature is None or self._inverse_temperature[0] != self.n_seen:
            n = min(self.n_seen, self.size)
            scores = self.scores[:n, :n_classes]
            if n_classes == 2:  # one score, for the second class; the logit of the first is 0
                scores = np.column_stack([np.zeros(n), scores[:, 0]])
            self._inverse_temperature = (self.n_seen, _fit_inverse_temperature(scores, self.classes[:n]))
        return self._inverse_temperature[1]

    def check(self) -> None:
        """Raise ValueError unless there is a class for each row of scores."""
        need_array(self.scores, np.float64, 2, "scores")
        need_array(self.classes, np.intp, 1, "classes")
        need(len(self.scores) == len(self.classes) == self.size, f"scores and classes must have {self.size} rows")
        need(is_count(self.n_seen), "n_seen must be an integer of at least 0")

    @classmethod
    def merge(cls, windows: Sequence[Self], shares: NDArray[np.float64]) -> Self:
        """Return a window of the latest rows of each, in proportion to the shares."""
        joined = cls.empty(windows[0].scores.shape[1])
        for window, share in zip(windows, shares, strict=True):
            n = min(window.n_seen, window.size, int(np.ceil(share * window.size)))
            places = (window.n_seen - n + np.arange(n)) % window.size
            joined.add(window.scores[places], window.classes[places])
        return joined


def probabilities(scores: NDArray[np.float64], n_classes: int, window: ScoreWindow | None) -> NDArray[np.float64]:
    """Return the probability of each class, (n, n_classes); the highest score gets the highest probability.

    Without a window, scores must be logits, as those of logistic loss are.
    """
    if n_classes == 1:
        return np.ones((len(scores), 1))
    columns = scores if scores.ndim == 2 else np.column_stack([np.zeros(len(scores)), scores])
    if window is not None:
        logarithms = window.inverse_temperature(n_classes) * columns
    else:
        logarithms = log_expit(columns) if scores.ndim == 2 else columns
    return _break_ties(softmax(logarithms, axis=1), columns.argmax(axis=1))


def _break_ties(probabilities: NDArray[np.float64], best: NDArray[np.intp]) -> NDArray[np.float64]:
    """Raise the probability of the best class by one ulp where rounding has made it equal to another."""
    rows = np.arange(len(best))
    largest = probabilities.max(axis=1)
    is_tied = (probabilities == largest[:, None]).sum(axis=1) > 1
    probabilities[rows[is_tied], best[is_tied]] = np.nextafter(largest[is_tied], 2.0)
    return probabilities


def _fit_inverse_temperature(scores: NDArray[np.float64], classes: NDArray[np.intp]) -> float:
    # Add one correct and one wrong row of score 1, so that the optimum is finite even for perfect scores.
    one = np.zeros((2, scores.shape[1]))
    one[:, 1] = 1.0
    scores, classes = np.vstack([scores, one]), np.concatenate([classes, [1, 0]])
    rows = np.arange(len(scores))

    def loss(log_factor: float) -> float:
        return -float(log_softmax(np.exp(log_factor) * scores, axis=1)[rows, classes].sum())

    return float(np.exp(minimize_scalar(loss, bounds=(-12.0, 12.0), method="bounded").x))
