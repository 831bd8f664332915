r"""Refine the weights of the online rounds by L-BFGS, with exact gradients summed over all partitions.

The objective is that of the online steps: (1/n) sum_r s_r sum_k L(c_rk f_k(x_r)) + (shrinkage / 2t) |w|^2, where
f_k(x) = (1/t) sum_i w[i, phi_i(x), k] + sum_j z_j v[j, k] with the columns z_j of the linear term, if there is one, and
s_r is the weight of row r. The curvature along a weight is proportional to the mean square of its feature, for a cell
the number of its rows, so the optimiser works on w * sqrt(count / n), and the like for v. This diagonal preconditioner
replaces hundreds of steps by a few.

Weights of several scales are folded into the leaves of trees, which then have the sums along their paths. Workers see
the leaves only, so their steps cost as much as those on one scale.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import expit

from isokern.distributed.blocks import Block, Ground, Mapped, Rows
from isokern.distributed.design import CellFeatures, Design, LinearFeatures, Table
from isokern.learners import IKOGDClassifier
from isokern.learners.calibration import ScoreWindow
from isokern.learners.classes import ClassBook
from isokern.learners.features import Scales, scale_cells
from isokern.learners.weights import CellWeights
from isokern.rows import as_scipy

_logger = logging.getLogger("isokern.distributed")

# Loss, and its derivative with respect to the margin m = c f.
SMOOTH: dict[str, Callable[[Table], tuple[Table, Table]]] = {
    "squared_hinge": lambda m: (np.maximum(0.0, 1.0 - m) ** 2, -2.0 * np.maximum(0.0, 1.0 - m)),
    "logistic": lambda m: (np.logaddexp(0.0, -m), -expit(-m)),
}


class Problem(NamedTuple):
    """What all partitions need besides the weights."""

    loss: str
    book: ClassBook
    class_factors: Table
    starts: NDArray[np.int64] | None  # of the cells; None for a linear model
    t: int = 1
    scales: Scales | None = None  # whose cells are features; None means the codes themselves

    def design(self, rows: Rows, ground: Ground) -> Design:
        """Return the features of rows."""
        parts: list[CellFeatures | LinearFeatures] = []
        if self.starts is not None:
            scales = self.scales
            cells = rows.codes if scales is None else scale_cells(ground.kernel.map_, scales).of(rows.codes, 1)
            parts.append(CellFeatures(cells, self.starts, self.t))
        if rows.table is not None and ground.term is not None:
            parts.append(LinearFeatures(as_scipy(ground.term.rows(rows.table)), ground.term.constant, self.t))
        return Design(parts)

    def classes_of(self, rows: Rows) -> tuple[NDArray[np.intp], Table]:
        """Return the class indices of rows, and the weights of their losses."""
        classes = self.book.numbers(rows.labels)
        factors = self.class_factors[classes]
        return classes, factors if rows.weights is None else factors * rows.weights


def problem_of(learner: IKOGDClassifier) -> tuple[Problem, Any]:
    """Return the problem of a learner, and the matrix that folds its weights into those that workers see, if any."""
    model, book, fitted = learner.learned_.model, learner.learned_.book, learner.kernel_.map_
    common = (learner.loss, book, book.class_factors(learner.class_weight))
    if isinstance(model, CellWeights):
        return Problem(*common, model.starts, len(model.starts) - 1), None
    if not model.scales:
        return Problem(*common, None), None
    known = scale_cells(fitted, model.scales)
    if known.paths is None:
        return Problem(*common, known.starts, fitted.n_partitionings, model.scales), None
    folding, n_linear = known.folding(), 0 if model.linear_values is None else len(model.linear_values)
    folding = sparse.block_diag([folding, sparse.eye_array(n_linear)], format="csr") if n_linear else folding
    return Problem(*common, fitted.code_map.starts, fitted.n_partitionings), folding


def refine(mapped: Mapped, learner: IKOGDClassifier, n_steps: int) -> None:
    """Run up to ``n_steps`` L-BFGS steps and set the weights with the highest accuracy on held-out rows."""
    model, n_columns = learner.learned_.model, learner.learned_.book.n_columns
    problem, folding = problem_of(learner)
    n, squares = mapped.reduce(_count, _join, problem)
    squares = squares if folding is None else folding.T @ squares
    unit = np.repeat(np.sqrt(n / np.where(squares > 0, squares, 1.0)), n_columns)
    best = _Best(n_steps)

    def objective(z: Table) -> tuple[float, Table]:
        w = (z * unit).reshape(-1, n_columns)
        sums = mapped.reduce(_sums_of_block, _join, w if folding is None else folding @ w, problem)
        loss = sums.loss / n + 0.5 * learner.shrinkage / problem.t * float((w * w).sum())
        best.consider(w, sums.n_right if sums.n_held_out else -loss)
        gradient = sums.gradient if folding is None else folding.T @ sums.gradient
        return loss, (gradient / n + learner.shrinkage / problem.t * w).ravel() * unit

    start = model.current().ravel() / unit
    options = {"maxiter": n_steps, "ftol": 0.0, "gtol": 0.0}  # only n_steps and early stopping end the descent
    minimize(objective, start, jac=True, method="L-BFGS-B", callback=best.stop_if_past, options=options)
    model.replace_current(best.weights)
    _calibrate(mapped, learner, problem, best.weights if folding is None else folding @ best.weights)


class _Best:
    """Early stopping: keep the best weights so far, because late steps overfit."""

    patience = 4

    def __init__(self, n_steps: int) -> None:
        self.weights: Table = np.empty((0, 0))
        self._merit, self._n_worse = -np.inf, 0
        self._n_steps, self._step = n_steps, 0

    def consider(self, weights: Table, merit: float) -> None:
        """Keep weights if they are the best so far."""
        self._n_worse += 1
        if merit > self._merit:
            self.weights, self._merit, self._n_worse = np.ascontiguousarray(weights), merit, 0

    def stop_if_past(self, _: Table) -> None:
        """Stop if the last few weights were no improvement; SciPy calls this after each step."""
        self._step += 1
        _logger.info("step %d of at most %d", self._step, self._n_steps)
        if self._n_worse >= self.patience:
            raise StopIteration


def _calibrate(mapped: Mapped, learner: IKOGDClassifier, problem: Problem, w: Table) -> None:
    """Calibrate probabilities on the held-out rows, if there are any."""
    scores, classes = mapped.reduce(_score_held_out, _join_scores, w, problem)
    if len(classes):
        learner.learned_.window = ScoreWindow.empty(problem.book.n_columns)
        learner.learned_.window.add(scores[-ScoreWindow.size :], classes[-ScoreWindow.size :])


class Counts(NamedTuple):
    """Number of rows of partitions, and the sums of squares of their features."""

    n: float
    squares: Table


def _count(block: Block, number: int, ground: Ground, problem: Problem) -> Counts:
    return Counts(float(len(block.learned.labels)), problem.design(block.learned, ground).squares())


class Sums(NamedTuple):
    """Sums over the rows of partitions; counts are weighted."""

    loss: float
    gradient: Table
    n_right: float
    n_held_out: float


def _sums_of_block(block: Block, number: int, ground: Ground, w: Table, problem: Problem) -> Sums:
    """Return the loss and gradient of the training rows, and the accuracy on the held-out rows."""
    rows, held_out = block
    loss, gradient = loss_and_gradient(rows, ground, w, problem)
    classes, factors = problem.classes_of(held_out)
    scores = problem.design(held_out, ground).times(w)
    found = scores.argmax(axis=1) if scores.shape[1] > 1 else scores[:, 0] > 0
    return Sums(loss, gradient, float(factors @ (found == classes)), float(factors.sum()))


def loss_and_gradient(rows: Rows, ground: Ground, w: Table, problem: Problem) -> tuple[float, Table]:
    """Return the loss of rows and its gradient with respect to the weights."""
    classes, factors = problem.classes_of(rows)
    design = problem.design(rows, ground)
    scores = design.times(w)
    c = np.where(problem.book.targets(classes)[:, None] == np.arange(scores.shape[1]), 1.0, -1.0)
    losses, derivatives = SMOOTH[problem.loss](c * scores)
    return float(factors @ losses.sum(axis=1)), design.transposed_times(factors[:, None] * c * derivatives)


def _score_held_out(
    block: Block, number: int, ground: Ground, w: Table, problem: Problem
) -> tuple[Table, NDArray[np.intp]]:
    return problem.design(block.held_out, ground).times(w), problem.classes_of(block.held_out)[0]


def _join_scores(parts: list[tuple[Table, NDArray[np.intp]]]) -> tuple[Table, NDArray[np.intp]]:
    scores, classes = zip(*parts, strict=True)
    return np.concatenate(scores), np.concatenate(classes)


def _join(parts: list[Any]) -> Any:
    """Add named tuples field by field."""
    return type(parts[0])(*(sum(values[1:], start=values[0]) for values in zip(*parts, strict=True)))
