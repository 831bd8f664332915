"""Linear models on dense features, for rivals that approximate a kernel by them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from isokern import _core
from isokern.checks import own_arrays
from isokern.rows import CoreRows, n_rows


class LinearModel:
    """Weights of dense features, (n_features, n_columns), and, with ``average``, their sums over the updates."""

    def __init__(self, values: NDArray[np.float64], *, average: bool) -> None:
        self.values = np.ascontiguousarray(values)
        self.sums: NDArray[np.float64] | None = np.zeros_like(self.values) if average else None
        self.n_updates = np.zeros(values.shape[1], dtype=np.int64)

    def learn(self, features: Any, targets: Any, weights: Any, rule: _core.Rule, clock: _core.Clock) -> None:
        """Learn from rows of features in order."""
        own_arrays(self)
        _core.learn_linear(features, targets, weights, rule, self.values, self.sums, self.n_updates, clock)

    def score(self, features: NDArray[np.float64], threads: int) -> NDArray[np.float64]:
        """Return the scores of rows of features, (n, n_columns)."""
        return finite_scores(project(features, self.coefficients(), threads))

    def coefficients(self) -> NDArray[np.float64]:
        """Return the weights to predict with: their mean over the updates, where there were any."""
        if self.sums is None:
            return self.values
        return np.where(self.n_updates > 0, self.sums / np.maximum(self.n_updates, 1), self.values)


def project(rows: CoreRows, matrix: NDArray[np.float64], threads: int) -> NDArray[np.float64]:
    """Return rows times a matrix, each row computed by itself."""
    projected = np.empty((n_rows(rows), matrix.shape[1]))
    _core.project(rows, np.ascontiguousarray(matrix), projected, threads)
    return projected


def random_directions(n_columns: int, n_directions: int, rng: np.random.RandomState) -> NDArray[np.float64]:
    """Return directions of normal length that are orthogonal in groups of n_columns, (n_columns, n_directions)."""
    groups = []
    for begin in range(0, n_directions, n_columns):
        size = min(n_columns, n_directions - begin)
        directions, _ = np.linalg.qr(rng.standard_normal((n_columns, size)))
        groups.append(directions * np.sqrt(rng.chisquare(n_columns, size=size)))
    return np.hstack(groups)


def finite_scores(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return scores, or raise if a kernel's values or the steps taken were too large for them."""
    if not np.isfinite(scores).all():
        raise ValueError(
            "scores must be finite, but kernel values or steps were too large; scale X, or use a smaller learning_rate."
        )
    return scores
