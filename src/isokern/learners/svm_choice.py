"""Choose the features and C of a support vector machine by the rows that it was not trained on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isokern.fitted_map import LARGEST_AUTO, auto_n_cells
from isokern.learners.calibration import ScoreWindow
from isokern.learners.svm import Kind, Problem, Rows, Solution, Stop, Table
from isokern.learners.targets import some
from isokern.parts import Part, need, need_array
from isokern.progress import tell

COSTS = (0.03, 0.1, 0.3, 1.0, 3.0)  # ascending, because each machine starts from the one before it
_PATIENCE = 2  # costs in succession that do not improve the accuracy, before larger ones are left out
_N_FOLDS = 5  # one of them is held out
_MOST_ROWS = 40_000  # that the choice is made with
_FEW_ROWS = 4_000  # up to here, each fold is held out in turn
_LOOSE = Stop(0.3, 0.01, 20)  # while choosing


class Fold(NamedTuple):
    """Rows to train on and rows to compare machines on."""

    train: Rows
    held_out: NDArray[np.intp]


@dataclass(eq=False)
class Chosen(Part):
    """Machines that were compared, their accuracies on held-out rows, and which of them was chosen."""

    candidates: list[str]
    accuracies: NDArray[np.float64]
    number: int

    def report(self) -> dict[str, Any]:
        """Return what users see."""
        chosen = self.candidates[self.number]
        return {"candidates": self.candidates, "accuracies": self.accuracies.tolist(), "chosen": chosen}

    def check(self) -> None:
        """Raise ValueError unless there is an accuracy for each machine."""
        need_array(self.accuracies, np.float64, 1, "accuracies")
        need(len(self.accuracies) == len(self.candidates) > self.number, "accuracies must have one per candidate")


class Choice(NamedTuple):
    """The machine that was chosen, a solution to start from, and the calibration of its scores."""

    kind: Kind
    C: float
    start: Solution | None = None  # None: what given parameters lead to does not depend on whether rows are held out
    inverse_temperature: float | None = None  # None without held-out rows
    chosen: Chosen | None = None


def kinds_of(learner: Any) -> list[Kind]:
    """Return the features that a learner's parameters leave; the first wins ties."""
    is_own = learner.kernel is not None or not isinstance(learner.partitioning, str)
    cells = "two" if learner.n_cells == learner.n_scales == "auto" and not is_own else "every"
    plain, with_linear = Kind(cells, linear=False), Kind(cells, linear=True)
    if learner.linear != "auto":
        return [with_linear if learner.linear else plain]
    return [plain] if is_own else [plain, with_linear, Kind("", linear=True)]


def costs_of(learner: Any) -> list[float]:
    """Return the values of C that a learner's parameters leave."""
    return list(COSTS) if isinstance(learner.C, str) else [float(learner.C)]


def is_open(learner: Any) -> bool:
    """Return whether a learner's parameters leave a choice."""
    return len(kinds_of(learner)) * len(costs_of(learner)) > 1


def map_choice(learner: Any, n_rows: int) -> dict[str, Any]:
    """Return the parameters of the kernel that a learner leaves open: twice the cells, if there is a choice of C."""
    if learner.n_cells != "auto" or not is_open(learner) or not isinstance(learner.partitioning, str):
        return {}
    n_cells = min(n_rows, 2 * auto_n_cells(n_rows), LARGEST_AUTO)
    return {"n_cells": n_cells, "n_scales": learner.n_scales}


def sample_rows(n_rows: int, rng: np.random.RandomState) -> NDArray[np.intp]:
    """Return the rows to choose with: all of few, a sample of many."""
    return np.sort(rng.permutation(n_rows)[:_MOST_ROWS])


def make_folds(numbers: NDArray[np.intp], rng: np.random.RandomState) -> list[Fold]:
    """Return rows to train on and rows to hold out, for each class in proportion.

    Few rows are all held out, in turn; of many, one fold. A class of fewer than five rows is not held out; of no other
    classes, there are no folds.
    """
    order = rng.permutation(len(numbers))
    order = order[np.argsort(numbers[order], kind="stable")]
    place = np.arange(len(order)) - np.searchsorted(numbers[order], numbers[order])  # of a row in its class
    counts = np.bincount(numbers)[numbers[order]]
    fold_of = np.where(place < counts // _N_FOLDS * _N_FOLDS, place % _N_FOLDS, -1)
    n_folds = _N_FOLDS if len(order) <= _FEW_ROWS else 1
    folds = [Fold(np.sort(order[fold_of != k]).astype(np.int32), order[fold_of == k]) for k in range(n_folds)]
    return folds if (fold_of == 0).any() else []


def choose(problem: Problem, learner: Any, numbers: NDArray[np.intp], rng: np.random.RandomState) -> Choice:
    """Return the machine with the highest accuracy on held-out rows, among those that a learner's parameters leave.

    The first kind of features is trained with all values of C, the others with those around its best one. Rows count by
    their costs: with balanced class weights, the chosen machine has the best balanced accuracy.
    """
    kinds, costs = kinds_of(learner), costs_of(learner)
    n_rows, rows = len(numbers), sample_rows(len(numbers), rng)
    problem, numbers = problem.some(rows), numbers[rows]
    folds = make_folds(numbers, rng)
    if not folds:
        return without_choice(learner)
    paths = [_path(problem, kinds[0], costs, numbers, folds, learner=learner)]
    around = costs[max(0, int(np.argmax(paths[0].accuracies)) - 1) :]
    paths += [_path(problem, kind, around, numbers, folds, learner=learner) for kind in kinds[1:]]
    accuracies = np.concatenate([path.accuracies for path in paths])
    names = [f"{path.kind.name}, C = {cost:g}" for path in paths for cost in path.costs]
    chosen = Chosen(names, accuracies, int(np.argmax(accuracies))) if is_open(learner) else None
    best = max(paths, key=lambda path: max(path.accuracies))  # the first of equal ones
    held_out = np.concatenate([fold.held_out for fold in folds])
    factor = _inverse_temperature(best.scores, numbers[held_out])
    start = best.solution.spread(rows, n_rows) if is_open(learner) else None
    return Choice(best.kind, best.costs[int(np.argmax(best.accuracies))], start, factor, chosen)


def without_choice(learner: Any) -> Choice:
    """Return the machine of given parameters; for those that are open, the first kind and C = 1."""
    costs = costs_of(learner)
    return Choice(kinds_of(learner)[0], costs[0] if len(costs) == 1 else 1.0)


class _Path(NamedTuple):
    """Machines of one kind with ascending costs; the best one's solution for the first fold and held-out scores."""

    kind: Kind
    costs: list[float]
    accuracies: list[float]
    solution: Solution
    scores: Table


def _path(
    problem: Problem,
    kind: Kind,
    costs: Sequence[float],
    numbers: NDArray[np.intp],
    folds: Sequence[Fold],
    *,
    learner: Any,
) -> _Path:
    """Train with ascending costs, each machine from the one before it, until larger ones do not improve."""
    solutions = [problem.start(kind, keeps_alpha=True) for _ in folds]
    held_out = np.concatenate([fold.held_out for fold in folds])
    rows = [problem.features[fold.held_out] for fold in folds]
    accuracies: list[float] = []
    for cost in costs:
        for fold, solution in zip(folds, solutions, strict=True):
            problem.solve(solution, fold.train, cost, _LOOSE)
        scores = np.concatenate([solution.scores(part) for solution, part in zip(solutions, rows, strict=True)])
        accuracies.append(_accuracy(scores, numbers[held_out], some(problem.costs, held_out)))
        tell(learner, f"{kind.name}, C = {cost:g}: accuracy of {accuracies[-1]:.4f} on held-out rows")
        n_worse = len(accuracies) - 1 - int(np.argmax(accuracies))
        if n_worse == 0:
            best = solutions[0].copy(), scores
        elif n_worse == _PATIENCE:
            break
    return _Path(kind, list(costs[: len(accuracies)]), accuracies, *best)


def _accuracy(scores: Table, numbers: NDArray[np.intp], weights: Any) -> float:
    predicted = scores.argmax(axis=1) if scores.shape[1] > 1 else (scores[:, 0] > 0).astype(np.intp)
    is_right = predicted == numbers
    return float(np.average(is_right, weights=weights if weights is not None and weights.any() else None))


def _inverse_temperature(scores: Table, numbers: NDArray[np.intp]) -> float:
    window = ScoreWindow.empty(scores.shape[1])
    window.add(scores, numbers)
    return window.inverse_temperature(max(2, scores.shape[1]))
