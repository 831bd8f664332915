"""Probabilities from scores, learned from the scores that rows had before they were learned."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

from isokern.checks import own_arrays

_WINDOW = 4096


class ScoreWindow:
    """The scores of the most recent rows before their own update, and their classes."""

    size = _WINDOW

    def __init__(self, n_columns: int) -> None:
        self.scores = np.zeros((self.size, n_columns))
        self.classes = np.zeros(self.size, dtype=np.intp)
        self.n_seen = 0
        self._sharpness: tuple[int, float] | None = None

    def add(self, scores: NDArray[np.float64], classes: NDArray[np.intp]) -> None:
        """Take in the last rows of a stream, of which only as many as fit may be given."""
        own_arrays(self)
        places = (self.n_seen + np.arange(len(scores))) % self.size
        self.scores[places] = scores
        self.classes[places] = classes
        self.n_seen += len(scores)

    def rearrange(self, columns: Sequence[int], signs: Sequence[float], place: NDArray[np.intp]) -> None:
        """Make new columns out of old ones, each times a sign, and give the classes new numbers."""
        self.scores = self.scores[:, columns] * np.asarray(signs)
        self.classes = place[self.classes]

    def sharpness(self, n_classes: int) -> float:
        """Return the positive factor of the scores that makes their softmax likeliest."""
        if self._sharpness is None or self._sharpness[0] != self.n_seen:
            n = min(self.n_seen, self.size)
            scores = self.scores[:n, :n_classes]
            if n_classes == 2:  # one score f, for the second class; that of the first is 0
                scores = np.column_stack([np.zeros(n), scores[:, 0]])
            self._sharpness = (self.n_seen, _fit_sharpness(scores, self.classes[:n]))
        return self._sharpness[1]


def favour(probabilities: NDArray[np.float64], best: NDArray[np.intp]) -> NDArray[np.float64]:
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
