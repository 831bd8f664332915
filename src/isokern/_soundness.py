"""Checks that the parts of a model that comes from a file fit each other, as those of a model that has learned do.

A file may be made by anybody. What the compiled core is given must fit, or it would read and write beyond its arrays;
the core checks what it can for each call, and what only holds between parts is checked here, once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from isokern.feature_map import IsolationKernel
from isokern.kernels import NamedKernel, check_kernel
from isokern.learners._cells import CellLearner
from isokern.learners.adaraker import AdaRakerModel
from isokern.learners.budgets import Budget
from isokern.learners.calibration import ScoreWindow
from isokern.learners.classes import OnlineClassifier
from isokern.learners.duals import BudgetedDual, Counts, KernelDual
from isokern.learners.fogd import FourierModel
from isokern.learners.linear import LinearModel
from isokern.learners.nogd import NystromModel
from isokern.learners.svc import IKSVC
from isokern.learners.warm_up import HeldRows, OnlineLearner
from isokern.learners.weights import CellWeights, Coefficients, SupportVectors
from isokern.partitionings import IsolationTrees, VoronoiCells
from isokern.rows import CoreRows, CsrRows, core_rows, n_columns, n_rows
from isokern.scaling import Scaling

_LARGEST_ROUND = 2**61
_LARGEST_SCORES = 2**20  # each takes memory, even before there is a support vector
_LARGEST_WRITTEN_OUT = 2**30  # bytes that sparse points may take when written out, unless the file is large itself
_LARGEST_FACTOR = 128
_FEW_COLUMNS = 2048  # up to here the core writes sparse points out


def need(condition: object, rule: str) -> None:
    """Raise unless a rule holds."""
    if not condition:
        raise ValueError(f"{rule}.")


def check_points(rows: CoreRows, n_bytes_more: int = 0) -> None:
    """Raise unless points are rows, and those that are sparse take no absurd memory when the core writes them out."""
    need(isinstance(rows, np.ndarray | CsrRows), "points must be rows")
    if not isinstance(rows, CsrRows) or rows.n_columns > _FEW_COLUMNS:
        return
    n_bytes = sum(array.nbytes for array in rows[:3]) + n_bytes_more
    written_out = 8 * n_rows(rows) * rows.n_columns
    need(
        written_out <= max(_LARGEST_WRITTEN_OUT, _LARGEST_FACTOR * n_bytes),
        f"sparse points must not take {_LARGEST_FACTOR} times their own size when written out; they take {written_out} "
        "bytes. Keep such a model with joblib",
    )


def check_trees(trees: IsolationTrees) -> None:
    """Raise unless trees have cells; the core has checked all else."""
    need(_is_count(trees.n_cells, at_least=1), "n_cells must be at least 1")


def check_scaling(scaling: Scaling) -> None:
    """Raise unless there is one offset and one divisor for each column."""
    _need_array(scaling.offset, np.float64, 1, "offset")
    _need_array(scaling.divisor, np.float64, 1, "divisor")
    need(scaling.offset.shape == scaling.divisor.shape, "offset and divisor must have one length")


def check_isolation_kernel(kernel: IsolationKernel) -> None:
    """Raise unless a kernel is unfitted, or its cells are those of its partitionings."""
    if not {"_partitionings", "_cell_starts", "n_cells_"} & vars(kernel).keys():
        return
    match kernel._partitionings:
        case IsolationTrees(n_cells=n_cells, n_columns=d, arrays=arrays):
            t = len(arrays["starts"]) - 1
        case VoronoiCells(samples=samples, points=points):
            (t, n_cells), d = samples.shape, n_columns(points)
        case other:
            raise ValueError(f"partitionings must be trees or Voronoi cells; got a {type(other).__name__}.")
    starts = kernel._cell_starts
    _need_array(starts, np.int64, 1, "starts of cells")
    need(np.array_equal(starts, np.arange(t + 1) * n_cells), "starts of cells must be those of the partitionings")
    need(type(kernel.n_cells_) is int and kernel.n_cells_ == n_cells, "n_cells_ must be that of the partitionings")
    need(kernel.n_features_in_ == d, "n_features_in_ must be the number of columns of the partitionings")
    scaling = kernel._scaling
    need(scaling is None or (isinstance(scaling, Scaling) and scaling.offset.shape == (d,)), "scaling must fit columns")


def check_coefficients(model: CellWeights | SupportVectors) -> None:
    """Raise unless the tables of coefficients are of one shape, with a row for each cell or support vector."""
    _need_array(model.values, np.float64, 2, "weights")
    for table in (model.sums, getattr(model, "squares", None)):
        _need_like(table, model.values)
    starts = model.starts
    _need_array(starts, np.int64, 1, "starts of cells")
    need(len(starts) > 1 and starts[0] == 0 and (np.diff(starts) > 0).all(), "starts of cells must ascend from 0")
    if isinstance(model, SupportVectors):
        n, t = model.cells.shape
        need(t == len(starts) - 1 and model.cells.dtype.kind == "u", "support vectors must be cells of the kernel")
        need(n == len(model.values) and _is_count(model.n) and model.n <= n, "support vectors must have coefficients")
    else:
        need(len(model.values) == starts[-1], "weights must have a row for each cell")


def check_linear(model: LinearModel) -> None:
    """Raise unless weights, their sums and the counts of their updates fit."""
    _need_array(model.values, np.float64, 2, "weights")
    _need_array(model.n_updates, np.int64, 1, "numbers of updates")
    _need_like(model.sums, model.values)
    need(len(model.n_updates) == model.values.shape[1], "there must be a number of updates for each column")


def check_fourier(model: FourierModel) -> None:
    """Raise unless there are two weights for each frequency."""
    _need_array(model.frequencies, np.float64, 2, "frequencies")
    need(isinstance(model.linear, LinearModel), "the linear model must be one")
    need(len(model.linear.values) == 2 * model.frequencies.shape[1], "there must be two weights for each frequency")


def check_nystrom(model: NystromModel) -> None:
    """Raise unless landmarks, projection and weights fit, and no more support vectors wait than become landmarks."""
    need(isinstance(model.first, KernelDual), "the first model must keep support vectors")
    need(_is_count(model.n_landmarks, at_least=1) and _is_count(model.rank, at_least=1), "sizes must be positive")
    if model.linear is None:
        need(model.first.machine.size < model.n_landmarks, "there must be fewer support vectors than landmarks")
        return
    need(isinstance(model.linear, LinearModel), "the linear model must be one")
    check_points(model.landmarks)
    _need_array(model.projection, np.float64, 2, "projection")
    shape = (n_rows(model.landmarks), len(model.linear.values))
    need(model.projection.shape == shape, "projection must have a row for each landmark")


def check_dual_state(state: dict[str, Any]) -> None:
    """Raise unless the core can make a machine of so many support vectors and scores."""
    rows, alpha, births = state["machine"]
    need(isinstance(state["kernel"], NamedKernel) and isinstance(rows, CsrRows), "support vectors must be of a kernel")
    _need_array(alpha, np.float64, 2, "coefficients")
    _need_array(births, np.int64, 1, "births")
    need(alpha.shape[1] == state["n_columns"] <= _LARGEST_SCORES, "coefficients must have a column for each score")
    need(((births >= 0) & (births <= state["clock"].rounds)).all(), "births must be rounds that have been")
    check_points(rows, alpha.nbytes + births.nbytes)


def check_named_kernel(kernel: NamedKernel) -> None:
    """Raise unless a kernel and its parameters are known."""
    need(isinstance(kernel.name, str), "a kernel must have a name")
    check_kernel(kernel.name, kernel.gamma, None, kernel.coef0, kernel.degree)


def check_budgeted(model: BudgetedDual) -> None:
    """Raise unless budgets point to points that are there."""
    need(type(model.budgets) is list, "budgets must be a list")
    n = 0 if model.points is None else model.points.shape[0]
    if sparse.issparse(model.points):
        check_points(core_rows(model.points, 0, n))
    for budget in model.budgets:
        need(isinstance(budget, Budget), "budgets must be budgets")
        _need_array(budget.points, np.intp, 1, "numbers of points")
        _need_array(budget.alpha, np.float64, 1, "coefficients")
        need(len(budget.points) == len(budget.alpha), "points must have coefficients")
        need(((budget.points >= 0) & (budget.points < n)).all(), "budgets must use points that are there")


def check_counts(counts: Counts) -> None:
    """Raise unless counts are counts."""
    need(_is_count(counts.rounds) and counts.rounds <= _LARGEST_ROUND, "rounds must be a count")
    need(_is_count(counts.n_support) and counts.n_support <= counts.rounds, "n_support must be at most rounds")


def check_adaraker(model: AdaRakerModel) -> None:
    """Raise unless the experts' arrays fit the kernels and the rounds."""
    need(isinstance(model.clock, Counts), "the clock must count")
    _need_array(model.directions, np.float64, 2, "directions")
    _need_array(model.bandwidths, np.float64, 1, "bandwidths")
    shape = (model.n_columns, int(model.clock.rounds).bit_length(), len(model.bandwidths))
    need(model.theta.shape == (*shape, 2 * model.directions.shape[1]), "theta must have a row for each kernel")
    need(model.weights.shape == shape, "weights must have one for each kernel")
    need(model.confidences.shape == shape[:2], "confidences must have one for each expert")


def check_window(window: ScoreWindow) -> None:
    """Raise unless a window has a class for each row of scores."""
    _need_array(window.scores, np.float64, 2, "scores")
    _need_array(window.classes, np.intp, 1, "classes")
    need(len(window.scores) == len(window.classes) == window.size, f"a window must have {window.size} rows")
    need(_is_count(window.n_seen), "n_seen must be a count")


def check_held_rows(held: HeldRows) -> None:
    """Raise unless as many rows wait as are counted."""
    sizes = [(table.shape[0], len(targets)) for table, targets, _ in held._parts]
    need(all(n == m for n, m in sizes) and held.n == sum(n for n, _ in sizes), "rows held back must be counted")


def check_learner(learner: OnlineLearner) -> None:
    """Raise unless a learner's model has the scores and the cells that the learner is to have."""
    if isinstance(learner, OnlineClassifier) and hasattr(learner, "classes_"):
        _check_classes(learner)
    need(isinstance(getattr(learner, "_held", HeldRows()), HeldRows), "rows held back must be rows")
    if not learner._has_begun:
        return
    model, n_scores = learner._model, learner._n_columns()
    need(isinstance(model, tuple(_SCORES)), "the model must be one of a learner")
    need(_n_scores(model) == n_scores > 0, "the model must have the scores that the classes need")
    if isinstance(model, CellWeights | SupportVectors):
        need(isinstance(learner.kernel_, IsolationKernel), "the kernel must be an Isolation Kernel")
        need(np.array_equal(model.starts, learner.kernel_._cell_starts), "the model must be for the kernel's cells")
        model.starts = learner.kernel_._cell_starts  # one array, as before
    else:
        need(not isinstance(learner, CellLearner), "the model must be for cells")
    if hasattr(learner, "_window"):
        window = learner._window
        need(isinstance(window, ScoreWindow) and window.scores.shape[1] == n_scores, "the window must have its scores")
        need(((window.classes >= 0) & (window.classes < len(learner.classes_))).all(), "the window must know classes")


def check_svc(model: IKSVC) -> None:
    """Raise unless a machine has a weight for each cell and score."""
    if not hasattr(model, "kernel_"):
        return
    _check_labels(model.classes_)
    n_scores = len(model.classes_) if len(model.classes_) > 2 else 1
    _need_array(model._weights, np.float64, 2, "weights")
    need(isinstance(model.kernel_, IsolationKernel), "the kernel must be an Isolation Kernel")
    need(model._weights.shape == (model.kernel_._cell_starts[-1], n_scores), "weights must have a row for each cell")
    _need_array(model.intercept_, np.float64, 1, "intercepts")
    need(len(model.intercept_) == n_scores, "there must be an intercept for each score")


_SCORES: dict[type, Any] = {
    Coefficients: lambda model: model.values.shape[1],
    KernelDual: lambda model: model.n_columns,
    BudgetedDual: lambda model: len(model.budgets),
    AdaRakerModel: lambda model: model.n_columns,
    FourierModel: lambda model: model.linear.values.shape[1],
    NystromModel: lambda model: model.first.n_columns,
}


def _n_scores(model: Any) -> int:
    return next(int(count(model)) for cls, count in _SCORES.items() if isinstance(model, cls))


def _check_classes(learner: OnlineClassifier) -> None:
    _check_labels(learner.classes_)
    _need_array(learner._counts, np.int64, 1, "counts")
    need(len(learner._counts) == len(learner.classes_), "there must be a count for each class")
    need(type(learner._is_open) is bool, "whether classes are open must be known")


def _check_labels(classes: NDArray[Any]) -> None:
    need(isinstance(classes, np.ndarray) and classes.ndim == 1 and len(classes), "classes must be labels")
    need(np.array_equal(np.unique(classes), classes), "classes must ascend")


def _is_count(value: object, *, at_least: int = 0) -> bool:
    return type(value) is int and value >= at_least


def _need_like(table: Any, values: NDArray[np.float64]) -> None:
    if table is not None:
        _need_array(table, np.float64, 2, "sums")
        need(table.shape == values.shape, "sums must have the shape of the weights")


def _need_array(value: object, dtype: type, n_dimensions: int, name: str) -> None:
    is_array = isinstance(value, np.ndarray) and value.dtype == dtype and value.ndim == n_dimensions
    need(is_array, f"{name} must be an array of {np.dtype(dtype)} of {n_dimensions} dimensions")
