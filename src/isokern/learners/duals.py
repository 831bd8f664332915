"""Models that keep support vectors, for kernels of the classic kind."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from isokern import _core
from isokern.kernels import NamedKernel, OwnKernel
from isokern.learners.budgets import Budget
from isokern.learners.linear import finite_scores, project
from isokern.learners.warm_up import learning_blocks
from isokern.rows import CoreRows, CsrRows, core_rows, n_rows, row_blocks


class KernelDual:
    """All support vectors of a named kernel, in the core."""

    def __init__(
        self, kernel: NamedKernel, n_features: int, n_columns: int, n_jobs: int, *, average: bool = False
    ) -> None:
        self.kernel, self.n_features, self.n_columns, self.n_jobs = kernel, n_features, n_columns, n_jobs
        self.average = average
        self.machine = _core.KernelMachine(kernel.spec, n_features, n_columns)
        self.clock = _core.Clock()

    def learn(self, table: Any, targets: Any, weights: Any, rule: _core.Rule, scores: None = None) -> None:
        """Learn from rows in order."""
        for rows, part, factors in learning_blocks(table, targets, weights):
            self.machine.learn(rows, part, factors, rule, self.clock, self.n_jobs)

    def score(self, table: Any, threads: int) -> NDArray[np.float64]:
        """Return the scores of rows, (n, n_columns)."""
        scores = np.empty((table.shape[0], self.n_columns))
        for begin, rows in row_blocks(table):
            rounds = self.clock.rounds if self.average else 0
            self.machine.score(rows, rounds, scores[begin : begin + n_rows(rows)], threads)
        return finite_scores(scores)

    def support(self) -> tuple[CsrRows, NDArray[np.float64], NDArray[np.int64]]:
        """Return the support vectors, their coefficients, (n, n_columns), and the rounds before each was added."""
        values, columns, starts, alpha, births = self.machine.support()
        rows = CsrRows(values, columns, starts, self.n_features)
        return rows, np.ascontiguousarray(alpha.reshape(self.n_columns, -1).T), births

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"machine": self.support()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ |= state
        self.machine = _core.KernelMachine(self.kernel.spec, self.n_features, self.n_columns)
        self.machine.add(*state["machine"])


class BudgetedDual:
    """Support vectors kept by a budget, or all of them for kernels that only Python can compute.

    Rows come in blocks: the kernel between a block and all points it may meet is computed at once.
    """

    _BLOCK = 256

    def __init__(self, kernel: NamedKernel | OwnKernel, budgets: list[Budget], n_jobs: int) -> None:
        self.kernel, self.budgets, self.n_jobs = kernel, budgets, n_jobs
        self.points: Any = None
        self.clock = Counts()

    @property
    def n_columns(self) -> int:
        """The number of scores."""
        return len(self.budgets)

    def learn(self, table: Any, targets: Any, weights: Any, rule: _core.Rule, scores: None = None) -> None:
        """Learn from rows in order."""
        for begin in range(0, table.shape[0], self._BLOCK):
            end = min(begin + self._BLOCK, table.shape[0])
            self._learn_block(
                table[begin:end], targets[begin:end], np.ones(end - begin) if weights is None else weights[begin:end]
            )

    def _learn_block(self, block: Any, targets: NDArray[np.int32], weights: NDArray[np.float64]) -> None:
        points = block if self.points is None else _stack(self.points, block)
        n_old = points.shape[0] - block.shape[0]
        rows, candidates = _core_form(block), _core_form(points)
        values = self.kernel.matrix(rows, candidates, self.n_jobs)
        for r in range(block.shape[0]):
            self.clock.rounds += 1
            changes = [
                budget.learn(values[r], n_old + r, 1.0 if targets[r] == k else -1.0, weights[r])
                for k, budget in enumerate(self.budgets)
            ]
            self.clock.n_support += any(changes)
        self._keep(points)

    def _keep(self, points: Any) -> None:
        """Keep only the points that a budget still uses."""
        used = np.unique(np.concatenate([budget.points for budget in self.budgets]))
        self.points = points[used] if len(used) else None
        for budget in self.budgets:
            budget.points = np.searchsorted(used, budget.points)

    def score(self, table: Any, threads: int) -> NDArray[np.float64]:
        """Return the scores of rows, (n, n_columns)."""
        scores = np.zeros((table.shape[0], self.n_columns))
        if self.points is None:
            return scores
        points = _core_form(self.points)
        for begin, rows in row_blocks(table):
            values = self.kernel.matrix(rows, points, threads)
            for k, budget in enumerate(self.budgets):
                part = project(np.ascontiguousarray(values[:, budget.points]), budget.alpha[:, None], threads)
                scores[begin : begin + n_rows(rows), k] = part[:, 0]
        return finite_scores(scores)


class Counts:
    """Rounds and support vectors so far."""

    def __init__(self) -> None:
        self.rounds = 0
        self.n_support = 0


def _core_form(table: Any) -> CoreRows:
    return core_rows(table, 0, table.shape[0])


def _stack(first: Any, second: Any) -> Any:
    if sparse.issparse(first) or sparse.issparse(second):
        return sparse.vstack([sparse.csr_array(first), sparse.csr_array(second)], format="csr")
    return np.concatenate([first, second])
