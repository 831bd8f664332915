"""Calibrate probabilities by temperature scaling, on the scores that rows had before they were learned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import log_expit, log_softmax, softmax

from isokern.learners.classes import Rearrangement
from isokern.learners.commits import Copies, copy_arrays
from isokern.parts import Part, need, need_array


@dataclass(eq=False)
class ScoreWindow(Part):
    """Ring buffer of the scores of the most recent rows before their own update, and of their classes."""

    size: ClassVar[int] = 4096
    in_place: ClassVar = ("scores", "classes", "seen")

    scores: NDArray[np.float64]  # of shape (size, n_columns); the i-th row since the start is at place i mod size
    classes: NDArray[np.intp]
    seen: NDArray[np.int64] = field(default_factory=lambda: np.zeros(1, dtype=np.int64))  # number of rows added
    # Cache: n_seen when it was fitted, and the inverse temperature.
    _inverse_temperature: tuple[int, float] | None = field(default=None, init=False)

    @classmethod
    def empty(cls, n_columns: int) -> Self:
        """Return a window without rows."""
        return cls(np.zeros((cls.size, n_columns)), np.zeros(cls.size, dtype=np.intp))

    @property
    def n_seen(self) -> int:
        """Number of rows added so far."""
        return int(self.seen[0])

    def adding(self, scores: NDArray[np.float64], classes: NDArray[np.intp]) -> Copies:
        """Return the arrays (to, from) to copy in order to add the latest rows."""
        copies: Copies = [(self.seen, self.seen + len(scores))]
        begin = (self.n_seen + max(0, len(scores) - self.size)) % self.size
        scores, classes = scores[-self.size :], classes[-self.size :]
        n = min(len(scores), self.size - begin)  # the others go to the start
        for ring, rows in ((self.scores, scores), (self.classes, classes)):
            copies += [(ring[begin : begin + n], rows[:n]), (ring[: len(rows) - n], rows[n:])]
        return copies

    def add(self, scores: NDArray[np.float64], classes: NDArray[np.intp]) -> None:
        """Add the latest rows."""
        copy_arrays(self.adding(scores, classes))

    def rearrange(self, change: Rearrangement) -> Self:
        """Return the window with rearranged columns and renumbered classes."""
        scores = np.ascontiguousarray(self.scores[:, change.columns] * np.asarray(change.signs))
        return type(self)(scores, change.numbers[self.classes], self.seen.copy())

    def known_temperature(self, n_seen: int) -> float | None:
        """Return the inverse temperature after so many rows, if it has been fitted."""
        known = self._inverse_temperature
        return known[1] if known is not None and known[0] == n_seen else None

    def inverse_temperature(self, n_classes: int) -> float:
        """Return the positive factor of the scores that maximises the likelihood of their softmax."""
        factor = self.known_temperature(self.n_seen)
        if factor is None:
            rows = self.latest(min(self.n_seen, self.size))
            scores = self.scores[rows, :n_classes]
            if n_classes == 2:  # one score, for the second class; the logit of the first is 0
                scores = np.column_stack([np.zeros(len(rows)), scores[:, 0]])
            factor = _fit_inverse_temperature(scores, self.classes[rows])
            self._inverse_temperature = (self.n_seen, factor)
        return factor

    def take_temperature(self, copied: ScoreWindow) -> None:
        """Keep the temperature that was fitted to a copy of this window."""
        self._inverse_temperature = copied._inverse_temperature

    def latest(self, n: int) -> NDArray[np.int64]:
        """Return the places of the latest n rows, in the order in which they came."""
        return (self.n_seen - n + np.arange(n)) % self.size

    def check(self) -> None:
        """Raise ValueError unless there is a class for each row of scores."""
        need_array(self.scores, np.float64, 2, "scores")
        need_array(self.classes, np.intp, 1, "classes")
        need(len(self.scores) == len(self.classes) == self.size, f"scores and classes must have {self.size} rows")
        need_array(self.seen, np.int64, 1, "seen")
        need(len(self.seen) == 1 and self.n_seen >= 0, "seen must be one number of at least 0")

    @classmethod
    def merge(cls, windows: Sequence[Self], shares: NDArray[np.float64]) -> Self:
        """Return a window of the latest rows of each, in proportion to the shares."""
        joined = cls.empty(windows[0].scores.shape[1])
        for window, share in zip(windows, shares, strict=True):
            n = min(window.n_seen, window.size, int(np.ceil(share * window.size)))
            places = window.latest(n)
            joined.add(window.scores[places], window.classes[places])
        return joined


def probabilities(scores: NDArray[np.float64], n_classes: int, factor: float | None) -> NDArray[np.float64]:
    """Return the probability of each class, (n, n_classes); the highest score gets the highest probability.

    ``factor`` is the inverse temperature; without it, scores must be logits, as those of logistic loss are.
    """
    if n_classes == 1:
        return np.ones((len(scores), 1))
    columns = scores if scores.ndim == 2 else np.column_stack([np.zeros(len(scores)), scores])
    if factor is None and scores.ndim == 2:
        logarithms = log_expit(columns)
    else:
        logarithms = (1.0 if factor is None else factor) * columns
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
