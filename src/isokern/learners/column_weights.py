"""Learn from targets which columns the trees of a map should split: columns that tell nothing are drawn rarely.

An isolation tree chooses columns at random. Where most of them tell nothing about the target, most splits are wasted.
A first forest of plain isolation trees shows how much the splits of each column reduce the variance of the target, see
``cpp/trees/relevance.hpp``. A second forest draws columns in proportion to the root of that. The map does so, too, if
the second forest predicts better. It may not: of an image, each pixel tells little, but all of them together tell most.

Trees that are redrawn along a stream need no first forest: those redrawn before them tell what the next ones should
split.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from isokern import _core
from isokern.checks import n_threads
from isokern.fitted_map import draw_samples
from isokern.learners.kernel_source import draw_seed
from isokern.learners.moments import within_limits
from isokern.partitionings import IsolationTrees
from isokern.parts import Part, need, need_array
from isokern.rows import core_rows

_FEWEST_TREES, _MOST_TREES = 100, 400  # more of them for more columns
_COMPARED_TREES = 100
_ROWS_PER_CELL = 8
_FEWEST_ROWS, _MOST_ROWS = 1000, 8192  # whose targets are looked at; fewer tell little but chance
_MOST_CLASSES = 256  # that are told apart
_MOST_COLUMNS = 4096  # more have too few splits each
# The weight of a column that tells nothing by itself. All of these together weigh as much as a few that tell most.
_LEAST, _LEAST_TOGETHER = 1 / 32, 4.0
# Along a stream:
_PERIOD = 1000  # rows for which weights stay the same
_FEWEST_REMEMBERED, _REMEMBERED_PER_COLUMN = 10, 0.5  # trees that count: more of them for more columns
_LEAST_IN_STREAM = 1 / 8  # so that a column that becomes important is drawn often enough to show it


def chosen_weights(learner: Any, table: Any, targets: NDArray[Any], rng: np.random.RandomState) -> dict[str, Any]:
    """Return the kernel's parameter for columns, if a learner leaves it open.

    ``targets`` are labels, of shape (n,), or numbers, of shape (n, n_outputs).
    """
    is_open = isinstance(learner.column_weights, str) and learner.kernel is None and learner.partitioning == "tree"
    if not is_open or not 1 < table.shape[1] <= _MOST_COLUMNS or table.shape[0] < _FEWEST_ROWS:
        return {}
    threads = n_threads(learner.n_jobs)
    return {"column_weights": learned_weights(table, targets, learner.is_categorical_, draw_seed(rng), threads)}


def learned_weights(
    table: Any, targets: NDArray[Any], is_categorical: NDArray[np.bool_] | None, seed: int, threads: int
) -> NDArray[np.float64] | None:
    """Return a weight from 0 to 1 for each column; None if they do not help. See ``chosen_weights``."""
    n, d = table.shape
    which = np.sort(draw_samples(n, 1, min(n, _MOST_ROWS), seed)[0])
    rows, numbers = core_rows(table[which], 0, len(which)), _as_numbers(targets[which])
    n_cells = max(2, len(which) // _ROWS_PER_CELL)
    how: Any = {"max_depth": None, "categorical": () if is_categorical is None else np.flatnonzero(is_categorical)}

    def grown(n_trees: int, weights: Any) -> tuple[IsolationTrees, NDArray[Any]]:
        samples = draw_samples(len(which), n_trees, min(n_cells, len(which)), seed)
        trees = IsolationTrees.learn(rows, samples, seed, threads, column_weights=weights, **how)
        leaves: NDArray[Any] = np.empty((len(which), n_trees), dtype=np.min_scalar_type(trees.n_cells - 1))
        trees.apply(rows, leaves, threads)
        return trees, leaves

    trees, leaves = grown(min(max(d, _FEWEST_TREES), _MOST_TREES), None)
    weights = _weights(_relevance(trees, leaves, numbers))
    if weights is None:
        return None
    are_classes = targets.ndim == 1
    plain = _error(leaves[:, :_COMPARED_TREES], numbers, are_classes=are_classes)
    weighted = _error(grown(_COMPARED_TREES, weights)[1], numbers, are_classes=are_classes)
    return weights if weighted < plain else None


@dataclass(frozen=True, eq=False)
class StreamWeights(Part):
    """Weights of columns along a stream, and what the trees redrawn so far tell about them. Immutable.

    The weights of a period of rows come from the trees that were redrawn before it, so they do not depend on how the
    stream is split into calls.
    """

    period: int
    weights: NDArray[np.float64] | None  # of this period; None means all alike
    gains: NDArray[np.float64]  # by column, faded sums over trees
    visits: NDArray[np.float64]

    @classmethod
    def begun(cls, n_columns: int) -> Self | None:
        """Return equal weights; None for tables that do not get weights."""
        if not 1 < n_columns <= _MOST_COLUMNS:
            return None
        return cls(0, None, np.zeros(n_columns), np.zeros(n_columns))

    @staticmethod
    def period_of(row: int) -> int:
        """Return the period of a row of the stream."""
        return row // _PERIOD

    def entering(self, period: int) -> Self:
        """Return the weights of a period, this one or a later one."""
        if period == self.period:
            return self
        return replace(self, period=period, weights=_weights(_per_visit(self.gains, self.visits), _LEAST_IN_STREAM))

    def seeing(self, trees: IsolationTrees, which: int, leaves: NDArray[Any], targets: NDArray[np.float64]) -> Self:
        """Return the weights after a tree was redrawn, given the leaves, (n, 1), and targets of recent rows."""
        begin, end = trees.arrays["starts"][which : which + 2]
        nodes = trees.arrays["column"][begin:end], trees.arrays["left"][begin:end], np.array([0, end - begin])
        found = _core.split_gains(*nodes, trees.n_cells, trees.n_columns, leaves, targets)
        fade = 1.0 - 1.0 / max(_FEWEST_REMEMBERED, _REMEMBERED_PER_COLUMN * trees.n_columns)
        return replace(self, gains=fade * self.gains + found[0], visits=fade * self.visits + found[1])

    def check(self) -> None:
        """Raise ValueError unless there are numbers for each column."""
        for name in ("gains", "visits"):
            need_array(getattr(self, name), np.float64, 1, name)
            need(np.isfinite(getattr(self, name)).all(), f"{name} must be finite")
        need(len(self.gains) == len(self.visits), "gains and visits must have one number per column")
        if self.weights is not None:
            need_array(self.weights, np.float64, 1, "weights")
            is_sound = len(self.weights) == len(self.gains) and ((self.weights > 0) & (self.weights <= 1)).all()
            need(is_sound, "weights must be above 0 and at most 1, one per column")


def as_numbers_by_rows(targets: NDArray[Any]) -> Callable[[slice], NDArray[np.float64]]:
    """Return a function that returns the targets of some rows as numbers; other rows change no gain of a split."""
    if targets.ndim == 1:
        classes, codes = np.unique(targets, return_inverse=True)
        if len(classes) <= _MOST_CLASSES:  # columns of classes that some rows do not have are zero
            numbers = np.eye(len(classes))[codes]
            return lambda rows: numbers[rows]
    return lambda rows: _as_numbers(targets[rows])


def _as_numbers(targets: NDArray[Any]) -> NDArray[np.float64]:
    """Return a column of zeros and ones for each class, or numbers in units of their deviation."""
    if targets.ndim == 1:
        classes = np.unique(targets, return_inverse=True)[1] % _MOST_CLASSES
        return np.eye(classes.max() + 1)[classes]
    targets = within_limits(targets)
    deviation = targets.std(axis=0)
    return (targets - targets.mean(axis=0)) / np.where(deviation > 0.0, deviation, 1.0)


def _relevance(trees: IsolationTrees, leaves: NDArray[Any], targets: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean gain of a split of each column, per row."""
    column, left, starts = (trees.arrays[name] for name in ("column", "left", "starts"))
    gains, visits = _core.split_gains(column, left, starts, trees.n_cells, trees.n_columns, leaves, targets)
    return _per_visit(gains, visits)


def _per_visit(gains: NDArray[np.float64], visits: NDArray[np.float64]) -> NDArray[np.float64]:
    return gains / np.maximum(visits, 1.0)


def _weights(relevance: NDArray[np.float64], least: float = _LEAST) -> NDArray[np.float64] | None:
    """Return the weights of columns of this relevance, at least ``least``; None if it is no more than chance."""
    # By chance, a column that tells nothing comes out as far above zero as others below it.
    above_chance = np.maximum(relevance - max(0.0, -relevance.min()), 0.0)
    if not above_chance.any():
        return None
    return np.maximum(np.sqrt(above_chance / above_chance.max()), min(least, _LEAST_TOGETHER / len(relevance)))


def _error(leaves: NDArray[Any], targets: NDArray[np.float64], *, are_classes: bool) -> float:
    """Return the error of a forest, in which a row is predicted by the other rows in its leaves.

    The prediction is the mean over trees of the mean target of these rows. The error is the share of rows whose largest
    target is missed, or the mean squared error.
    """
    n, t = leaves.shape
    n_cells = int(leaves.max()) + 1
    cells = (leaves + np.arange(t) * n_cells).ravel()
    features = sparse.csr_array((np.ones(n * t), cells, np.arange(n + 1) * t), shape=(n, t * n_cells))
    n_others = features.sum(axis=0) - 1.0
    share = np.where(n_others > 0, 1.0 / np.maximum(n_others, 1.0), 0.0)
    sums = features @ ((features.T @ targets) * share[:, None]) - (features @ share)[:, None] * targets
    n_trees = features @ (n_others > 0).astype(np.float64)  # in which there are others
    predicted = np.where(n_trees[:, None] > 0, sums / np.maximum(n_trees, 1.0)[:, None], targets.mean(axis=0))
    if are_classes:
        return float(np.mean(predicted.argmax(axis=1) != targets.argmax(axis=1)))
    return float(np.mean((predicted - targets) ** 2))
