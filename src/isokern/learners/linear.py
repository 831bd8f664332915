"""Provide the linear model behind the rivals that approximate a kernel by dense features."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from isokern import _core
from isokern.learners.targets import Weights, some
from isokern.parts import Part, need, need_array
from isokern.rows import CoreRows, n_rows, row_blocks

Scores = NDArray[np.float64]  # of shape (n, n_columns)
Features = Callable[[CoreRows], NDArray[np.float64]]


@dataclass(eq=False)
class LinearModel(Part):
    """Weights of dense features, (n_features, n_columns), and, for averaged prediction, their sums over the updates."""

    values: NDArray[np.float64]
    sums: NDArray[np.float64] | None
    n_updates: NDArray[np.int64]

    @classmethod
    def begun(cls, values: NDArray[np.float64], *, average: bool) -> Self:
        """Return a model that starts with these weights."""
        values = np.ascontiguousarray(values)
        return cls(values, np.zeros_like(values) if average else None, np.zeros(values.shape[1], dtype=np.int64))

    @property
    def n_columns(self) -> int:
        """Number of scores."""
        return self.values.shape[1]

    def learn(
        self,
        features: Features,
        table: Any,
        targets: Any,
        factors: Weights,
        rule: _core.Rule,
        *,
        clock: _core.Clock,
        scores: Scores | None = None,
    ) -> None:
        """Learn the features of rows in order, in copies of the arrays; ``scores`` receives those before updates."""
        self.values, self.n_updates = self.values.copy(), self.n_updates.copy()
        self.sums = None if self.sums is None else self.sums.copy()
        for rows, part, weights, out in learning_blocks(table, targets, factors, scores):
            _core.learn_linear(features(rows), part, weights, rule, self.values, self.sums, self.n_updates, clock, out)

    def score(self, features: Features, table: Any, threads: int) -> NDArray[np.float64]:
        """Return the scores of rows, (n, n_columns)."""
        weights = self.values
        if self.sums is not None:
            weights = np.where(self.n_updates > 0, self.sums / np.maximum(self.n_updates, 1), self.values)
        parts = [project(features(rows), weights, threads) for _, rows in row_blocks(table)]
        return finite_scores(np.concatenate(parts))

    def check(self) -> None:
        """Raise ValueError unless the shapes of weights, sums and counts match."""
        need_array(self.values, np.float64, 2, "values")
        need_array(self.n_updates, np.int64, 1, "n_updates")
        if self.sums is not None:
            need_array(self.sums, np.float64, 2, "sums")
            need(self.sums.shape == self.values.shape, "sums must have the shape of values")
        need(len(self.n_updates) == self.n_columns, "n_updates must have one per score")


def learning_blocks(
    table: Any, targets: NDArray[Any], factors: Weights, scores: Scores | None
) -> Iterator[tuple[CoreRows, Any, Weights, Scores | None]]:
    """Yield rows in the core's form, their targets, the factors of their steps and their scores, block by block."""
    for begin, rows in row_blocks(table):
        part = slice(begin, begin + n_rows(rows))
        yield rows, targets[part], some(factors, part), some(scores, part)


def project(rows: CoreRows, matrix: NDArray[np.float64], threads: int) -> NDArray[np.float64]:
    """Return rows times a matrix; the result of a row does not depend on the other rows, as it may in BLAS."""
    projected = np.empty((n_rows(rows), matrix.shape[1]))
    _core.project(rows, np.ascontiguousarray(matrix), projected, threads)
    return projected


def random_directions(n_columns: int, n_directions: int, rng: np.random.RandomState) -> NDArray[np.float64]:
    """Return directions, (n_columns, n_directions), orthogonal in groups of n_columns, as long as Gaussian vectors."""
    groups = []
    for begin in range(0, n_directions, n_columns):
        size = min(n_columns, n_directions - begin)
        directions, _ = np.linalg.qr(rng.standard_normal((n_columns, size)))
        groups.append(directions * np.sqrt(rng.chisquare(n_columns, size=size)))
    return np.hstack(groups)


def finite_scores(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return scores; raise ValueError if kernel values or steps were too large for them."""
    if not np.isfinite(scores).all():
        raise ValueError(
            "scores must be finite; got overflow from large kernel values or steps. Scale X or lower learning_rate."
        )
    return scores
