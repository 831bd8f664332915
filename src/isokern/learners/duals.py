"""Models that keep support vectors, for kernels of the classic kind."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import gen_batches

from isokern import _core
from isokern.kernels import NamedKernel, OwnKernel
from isokern.learners.budgets import Budget
from isokern.learners.clock import Clock
from isokern.learners.linear import finite_scores, learning_blocks, project
from isokern.learners.targets import Weights
from isokern.partitionings import check_points
from isokern.parts import Part, State, need, need_array
from isokern.rows import CoreRows, CsrRows, core_rows, n_rows, row_blocks

_BLOCK = 256  # rows
_LARGEST_SCORES = 2**20  # each takes memory, even before there is a support vector


@dataclass(eq=False)
class KernelDual(Part):
    """All support vectors of a named kernel, in the core."""

    kernel: NamedKernel
    n_features: int
    n_columns: int
    n_jobs: int
    average: bool = False
    clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        self.machine = _core.KernelMachine(self.kernel.spec, self.n_features, self.n_columns)

    def learn(self, table: Any, targets: Any, factors: Weights, rule: _core.Rule) -> None:
        """Learn from rows in order."""
        for rows, part, weights in learning_blocks(table, targets, factors):
            self.machine.learn(rows, part, weights, rule, self.clock, self.n_jobs)

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

    def state(self) -> State:
        """Return the fields and the support vectors."""
        return super().state() | {"support": self.support()}

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Return the model that has this state, if the core can make a machine of it."""
        given = dict(state)
        rows, alpha, births = given.pop("support")
        need(isinstance(given["kernel"], NamedKernel) and isinstance(rows, CsrRows), "support vectors must be rows")
        need_array(alpha, np.float64, 2, "coefficients")
        need_array(births, np.int64, 1, "births")
        need(alpha.shape[1] == given["n_columns"] <= _LARGEST_SCORES, "coefficients must have a column for each score")
        need(((births >= 0) & (births <= given["clock"].rounds)).all(), "births must be rounds that have been")
        check_points(rows, alpha.nbytes + births.nbytes)
        model = cls(**given)
        model.machine.add(rows, alpha, births)
        return model


@dataclass(eq=False)
class BudgetedDual(Part):
    """Support vectors kept by a budget, or all of them for kernels that only Python can compute.

    Rows come in blocks: the kernel between a block and all points it may meet is computed at once.
    """

    kernel: NamedKernel | OwnKernel
    budgets: list[Budget]
    """One for each score."""
    n_jobs: int
    points: Any = None
    """The rows that are a support vector of some budget."""
    clock: Clock = field(default_factory=Clock)

    @property
    def n_columns(self) -> int:
        """The number of scores."""
        return len(self.budgets)

    def learn(self, table: Any, targets: Any, factors: Weights, rule: _core.Rule) -> None:
        """Learn from rows in order."""
        for part in gen_batches(table.shape[0], _BLOCK):
            block = table[part]
            self._learn_block(block, targets[part], np.ones(block.shape[0]) if factors is None else factors[part])

    def _learn_block(self, block: Any, targets: NDArray[np.int32], weights: NDArray[np.float64]) -> None:
        points = block if self.points is None else _stack(self.points, block)
        n_old = points.shape[0] - block.shape[0]
        rows, candidates = _core_form(block), _core_form(points)
        values = self.kernel.matrix(rows, candidates, self.n_jobs)
        n_support = 0
        for r in range(block.shape[0]):
            changes = [
                budget.learn(values[r], n_old + r, 1.0 if targets[r] == k else -1.0, weights[r])
                for k, budget in enumerate(self.budgets)
            ]
            n_support += any(changes)
        self._keep(points)
        self.clock = self.clock.later(block.shape[0], n_support)

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

    def check(self) -> None:
        """Raise unless budgets point to points that are there."""
        need(isinstance(self.kernel, NamedKernel), "the kernel must be one of a name")
        need(type(self.budgets) is list, "budgets must be a list")
        need(isinstance(self.clock, Clock), "the clock must be one")
        n = 0 if self.points is None else self.points.shape[0]
        if sparse.issparse(self.points):
            check_points(core_rows(self.points, 0, n))
        for budget in self.budgets:
            need(isinstance(budget, Budget), "each budget must be one of the strategies")
            need(((budget.points >= 0) & (budget.points < n)).all(), "budgets must use points that are there")


def _core_form(table: Any) -> CoreRows:
    return core_rows(table, 0, table.shape[0])


def _stack(first: Any, second: Any) -> Any:
    if sparse.issparse(first) or sparse.issparse(second):
        return sparse.vstack([sparse.csr_array(first), sparse.csr_array(second)], format="csr")
    return np.concatenate([first, second])
