"""Train support vector machines on kernels and feature maps, and choose psi for them by cross-validation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler
from sklearn.svm import SVC, LinearSVC

from isokern import IKSVC, IsolationKernel, _core
from isokern.checks import n_threads
from isokern.data.catalogue import Dataset
from isokern.experiments import settings
from isokern.experiments.experiment import Cell, Plan
from isokern.experiments.measuring import Stopwatch, load_rows
from isokern.experiments.methods import search_rows
from isokern.experiments.searches import recall
from isokern.kernels import NamedKernel, gamma_from_data, gamma_from_psi
from isokern.rows import core_rows

Kernel = Callable[[Any, Any], NDArray[np.float64]]
Measurements = dict[str, Any]
_TEST_BLOCK = 1000  # rows


def named_kernel(name: str, gamma: float = 1.0) -> Kernel:
    """Return one of the project's kernels as a function of two tables."""
    kernel = NamedKernel(name, gamma, 0.0, 1, normalised=False)
    return lambda X, Z: kernel.matrix(core_rows(X, 0, X.shape[0]), core_rows(Z, 0, Z.shape[0]), n_threads(None))


def cells_kernel(cells: NDArray[Any], others: NDArray[Any]) -> NDArray[np.float64]:
    """Return the Isolation Kernel of rows that are given by their cells."""
    shares = np.empty((len(cells), len(others)))
    _core.match_cells(cells, others, shares, n_threads(None))
    return shares


def voronoi_kernel(psi: int, seed: int, device: str | None = None) -> IsolationKernel:
    """Return the paper's IK_a."""
    return IsolationKernel("voronoi", settings.N_PARTITIONINGS, psi, device=device, random_state=seed)


def map_rows(kernel: IsolationKernel, data: Dataset) -> tuple[Dataset, dict[str, float]]:
    """Fit a kernel to the training rows; return the data with cells for rows, and the time of all this."""
    watch = Stopwatch()
    kernel.fit(data.X_train)
    mapped = data._replace(X_train=kernel.apply(data.X_train), X_test=kernel.apply(data.X_test))
    return mapped, watch.seconds("map_")


def train_libsvm(kernel: Kernel, data: Dataset) -> Measurements:
    """Train LIBSVM on a kernel's matrix, and test it block by block."""
    n = settings.LIBSVM_ROWS
    data = data._replace(X_train=data.X_train[:n], y_train=data.y_train[:n])
    watch = Stopwatch()
    machine = SVC(kernel="precomputed").fit(kernel(data.X_train, data.X_train), data.y_train)
    support = data.X_train[machine.support_]
    n_correct = 0
    for begin in range(0, len(data.y_test), _TEST_BLOCK):
        part = slice(begin, begin + _TEST_BLOCK)
        labels = data.y_test[part]
        values = np.zeros((len(labels), len(data.y_train)))  # SVC reads the columns of the support vectors only
        values[:, machine.support_] = kernel(data.X_test[part], support)
        n_correct += int(np.sum(machine.predict(values) == labels))
    return {"n_learned": len(data.y_train), "accuracy": n_correct / len(data.y_test), **watch.seconds()}


def train_liblinear(feature_map: Any, data: Dataset, seed: int, C: float) -> Measurements:
    """Train LIBLINEAR on a feature map, and test it."""
    watch = Stopwatch()
    train, test = feature_map.fit_transform(data.X_train), feature_map.transform(data.X_test)
    mapping, watch = watch.seconds("map_"), Stopwatch()
    machine = _liblinear(seed, C).fit(train, data.y_train)
    accuracy = float(machine.score(test, data.y_test))
    return {"n_columns": int(train.shape[1]), "accuracy": accuracy, **watch.seconds(), **mapping}


def _liblinear(seed: int, C: float) -> LinearSVC:
    return LinearSVC(C=C, tol=settings.LIBLINEAR_TOLERANCE, random_state=seed)


def linear_machine(kernel: IsolationKernel, seed: int, C: float = 1.0) -> IKSVC:
    """Return an unfitted machine for LIBLINEAR's problem on the cells of a kernel."""
    return IKSVC(kernel=kernel, C=C, tol=settings.LIBLINEAR_TOLERANCE, random_state=seed)


def cells_accuracy(machine: Any, cells: NDArray[Any], y: NDArray[np.int64]) -> float:
    """Return the accuracy, for classes 0 and 1, on rows that are given by their cells."""
    return float(np.mean((machine.decision_function_cells(cells) > 0) == y))


def non_negative(data: Dataset) -> Dataset:
    """Scale columns to [0, 1] by the training rows, and clip test rows at 0; zeros of CSR rows stay zeros."""
    scaler = (MaxAbsScaler if sparse.issparse(data.X_train) else MinMaxScaler)().fit(data.X_train)
    train, test = (scaler.transform(X) for X in (data.X_train, data.X_test))
    clipped = [X.maximum(0) if sparse.issparse(X) else np.maximum(X, 0) for X in (train, test)]
    return data._replace(X_train=clipped[0], X_test=clipped[1])


def laplacian_psi(data: Dataset, plan: Plan, seed: int) -> int:
    """Return the psi whose Laplacian kernel, with lambda = ln(psi)/d, is the most accurate with LIBSVM."""
    X, y = search_rows(data.X_train, data.y_train, plan, is_slow=True)
    # Every Laplacian kernel is a power of any other, so one matrix serves all psi.
    gamma = gamma_from_data("laplacian", X, np.random.RandomState(seed))
    base = named_kernel("laplacian", gamma)(X, X)
    candidates, scores = settings.N_CELLS_SEARCHED[plan.scale], []
    for psi in candidates:
        gram = base ** (gamma_from_psi(psi, X.shape[1]) / gamma)
        machine, folds = SVC(kernel="precomputed"), StratifiedKFold(settings.N_FOLDS)
        scores.append(cross_val_score(machine, gram, y, cv=folds).mean())
    return candidates[int(np.argmax(scores))]


def isolation_choice(cell: Cell, plan: Plan) -> tuple[int, float]:
    """Return psi and C with which the machine on Voronoi cells is the most accurate: psi with C = 1, then C."""
    data, seed = load_rows(cell, plan), cell["seed"]
    X, y = search_rows(data.X_train, data.y_train, plan)
    ranges = [list(settings.N_CELLS_SEARCHED[plan.scale]), list(settings.COSTS_SEARCHED[plan.scale])]
    search = {"dataset": cell["dataset"], "seed": seed, "method": "IK_a-SVM", "candidates": ranges}
    found = recall(search, y, plan, lambda: dict(zip(("psi", "C"), _isolation_search(X, y, plan, seed), strict=True)))
    return found["psi"], found["C"]


def _isolation_search(X: Any, y: NDArray[np.int64], plan: Plan, seed: int) -> tuple[int, float]:
    folds = StratifiedKFold(settings.N_FOLDS)
    n_least = min(len(train) for train, _ in folds.split(X, y))
    sizes = [psi for psi in settings.N_CELLS_SEARCHED[plan.scale] if psi <= n_least]
    machine = linear_machine(voronoi_kernel(sizes[0], seed), seed)
    search = GridSearchCV(machine, {"kernel__n_cells": sizes}, cv=folds, refit=False).fit(X, y)
    psi = search.best_params_["kernel__n_cells"]
    kernel = voronoi_kernel(psi, seed).fit(X)
    cells = kernel.apply(X)

    def accuracy(C: float, train: Any, test: Any) -> float:
        return cells_accuracy(linear_machine(kernel, seed, C).fit_cells(cells[train], y[train]), cells[test], y[test])

    return psi, _best_cost(accuracy, cells, y, plan)


def liblinear_cost(X: Any, y: NDArray[np.int64], plan: Plan, seed: int) -> float:
    """Return the C with which LIBLINEAR is the most accurate on the rows of a feature map."""
    X, y = search_rows(X, y, plan)

    def accuracy(C: float, train: Any, test: Any) -> float:
        return float(_liblinear(seed, C).fit(X[train], y[train]).score(X[test], y[test]))

    return _best_cost(accuracy, X, y, plan)


def _best_cost(accuracy: Callable[[float, Any, Any], float], X: Any, y: NDArray[np.int64], plan: Plan) -> float:
    """Return the smallest C of those with the highest accuracy in cross-validation."""
    costs, folds = settings.COSTS_SEARCHED[plan.scale], list(StratifiedKFold(settings.N_FOLDS).split(X, y))
    if len(costs) == 1:
        return costs[0]
    return costs[int(np.argmax([np.mean([accuracy(C, *fold) for fold in folds]) for C in costs]))]
