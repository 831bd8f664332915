"""Support vector machines for the experiments: psi by cross-validation, LIBSVM on a kernel, LIBLINEAR on a map."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC, LinearSVC

from isokern import IKSVC, IsolationKernel, _core
from isokern.checks import n_threads
from isokern.data.catalogue import Dataset
from isokern.experiments import settings
from isokern.experiments.datasets import load_rows
from isokern.experiments.experiment import Cell, Plan, Record
from isokern.experiments.measuring import Stopwatch
from isokern.experiments.methods import search_rows
from isokern.experiments.showing import having
from isokern.kernels import NamedKernel, gamma_from_data, gamma_from_psi
from isokern.learners.folds import MappedPart, Split, map_folds, split_rows
from isokern.rows import core_rows

Kernel = Callable[[Any, Any], NDArray[np.float64]]
_TEST_BLOCK = 1000


def load_machine_rows(cell: Cell, plan: Plan) -> Dataset:
    """Return a cell's data set; at quick scale fewer rows than other experiments take, since LIBSVM's cost is cubic."""
    return load_rows(cell["dataset"], plan, cell["seed"], settings.MACHINE_ROWS)


def for_libsvm(data: Dataset) -> Dataset:
    """Return a data set with no more rows to learn from than a Gram matrix can be held of."""
    n = settings.LIBSVM_ROWS
    return data._replace(X_train=data.X_train[:n], y_train=data.y_train[:n])


# -- LIBSVM


def named_kernel(name: str, gamma: float = 1.0) -> Kernel:
    """Return one of the project's kernels as a function of two tables."""
    kernel = NamedKernel(name, gamma, 0.0, 1, normalised=False)

    def matrix(X: Any, Z: Any) -> NDArray[np.float64]:
        return kernel.matrix(core_rows(X, 0, X.shape[0]), core_rows(Z, 0, Z.shape[0]), n_threads(None))

    return matrix


def cells_kernel(cells: NDArray[Any], others: NDArray[Any]) -> NDArray[np.float64]:
    """Return the Isolation Kernel of rows that were mapped before."""
    shares = np.empty((len(cells), len(others)))
    _core.match_cells(cells, others, shares, n_threads(None))
    return shares


def libsvm_accuracy(kernel: Kernel, data: Dataset) -> float:
    """Train LIBSVM on a kernel's matrix and return its accuracy on the test rows, a block at a time."""
    machine = SVC(kernel="precomputed").fit(kernel(data.X_train, data.X_train), data.y_train)
    support = data.X_train[machine.support_]
    n_correct = 0
    for begin in range(0, len(data.y_test), _TEST_BLOCK):
        part = slice(begin, begin + _TEST_BLOCK)
        labels = data.y_test[part]
        values = np.zeros((len(labels), len(data.y_train)))  # all but the support vectors' columns count for nothing
        values[:, machine.support_] = kernel(data.X_test[part], support)
        n_correct += int(np.sum(machine.predict(values) == labels))
    return n_correct / len(data.y_test)


def gram_notes(records: Sequence[Record]) -> list[str]:
    """Return that LIBSVM did not learn from all rows, if so."""
    if not any(record["n_learned"] < record["n_train"] for record in having(records, "n_learned")):
        return []
    return [f"LIBSVM learns from a sample of {settings.LIBSVM_ROWS:,} rows, whose Gram matrix takes 3.2 GB."]


# -- LIBLINEAR


def linear_accuracy(train: Any, test: Any, data: Dataset, seed: int) -> float:
    """Train LIBLINEAR, with its own defaults, on the maps of rows, and return its accuracy on the test rows."""
    machine = LinearSVC(tol=settings.LIBLINEAR_TOLERANCE, random_state=seed)
    return float(machine.fit(train, data.y_train).score(test, data.y_test))


def ik_machine(kernel: IsolationKernel, seed: int) -> IKSVC:
    """Return the same machine on a fitted Isolation Kernel's cells."""
    return IKSVC(kernel=kernel, tol=settings.LIBLINEAR_TOLERANCE, random_state=seed)


def cells_accuracy(machine: Any, cells: NDArray[Any], y: NDArray[np.int64]) -> float:
    """Return the accuracy, for the classes 0 and 1, of a learner on rows that were mapped before."""
    return float(np.mean((machine.decision_function_cells(cells) > 0) == y))


# -- the Isolation Kernel


def voronoi_kernel(psi: int, seed: int, device: str | None = None) -> IsolationKernel:
    """Return the paper's IK_a."""
    return IsolationKernel("voronoi", settings.N_PARTITIONINGS, psi, device=device, random_state=seed)


def map_rows(kernel: IsolationKernel, data: Dataset) -> tuple[NDArray[Any], NDArray[Any], dict[str, float]]:
    """Draw a kernel from the rows to learn from; return the cells of all rows, and how long all this took."""
    watch = Stopwatch()
    kernel.fit(data.X_train)
    train, test = kernel.apply(data.X_train), kernel.apply(data.X_test)
    return train, test, watch.seconds("map_")


# -- psi by cross-validation


def laplacian_psi(data: Dataset, plan: Plan, seed: int) -> int:
    """Return the psi whose Laplacian kernel, of lambda = ln(psi)/d, does best with LIBSVM in cross-validation."""
    X, y = search_rows(data.X_train, data.y_train, plan)
    # A Laplacian kernel is a power of any other, so that one matrix serves all psi.
    gamma = gamma_from_data("laplacian", X, np.random.RandomState(seed))
    base = named_kernel("laplacian", gamma)(X, X)
    candidates, scores = settings.N_CELLS_SEARCHED[plan.scale], []
    for psi in candidates:
        gram = base ** (gamma_from_psi(psi, X.shape[1]) / gamma)
        scores.append(np.mean([_gram_accuracy(gram, y, split) for split in _splits(X, y)]))
    return candidates[int(np.argmax(scores))]


@cache  # several cells and experiments ask for it
def isolation_psi(dataset: str, plan: Plan, seed: int) -> int:
    """Return the psi with which the machine on Voronoi cells does best in cross-validation."""
    data = load_rows(dataset, plan, seed)
    X, y = search_rows(data.X_train, data.y_train, plan)
    splits = _splits(X, y)
    n_least = min(len(train) for train, _ in splits)
    sizes = [psi for psi in settings.N_CELLS_SEARCHED[plan.scale] if psi <= n_least]
    scores = [
        [_part_accuracy(part(), y, split, seed) for part in parts]
        for split, parts in zip(splits, map_folds(voronoi_kernel(sizes[0], seed), X, splits, sizes), strict=True)
    ]
    return sizes[int(np.mean(scores, axis=0).argmax())]


def _splits(X: Any, y: NDArray[np.int64]) -> list[Split]:
    return split_rows(StratifiedKFold(settings.N_FOLDS), X, y)


def _gram_accuracy(gram: NDArray[np.float64], y: NDArray[np.int64], split: Split) -> float:
    train, test = split
    machine = SVC(kernel="precomputed").fit(gram[np.ix_(train, train)], y[train])
    return float(machine.score(gram[np.ix_(test, train)], y[test]))


def _part_accuracy(part: MappedPart, y: NDArray[np.int64], split: Split, seed: int) -> float:
    train, test = split
    machine = ik_machine(part.kernel, seed).fit_cells(part.train, y[train])
    return cells_accuracy(machine, part.test, y[test])
