"""Provide the models that keep support vectors of classic and custom kernels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import gen_batches

from isokern import _core
from isokern.kernels import CustomKernel, NamedKernel
from isokern.learners.budgets import Budget
from isokern.learners.clock import Clock
from isokern.learners.linear import Scores, finite_scores, learning_blocks, project
from isokern.learners.targets import Weights
from isokern.learners.warm_up import stack_tables
from isokern.partitionings import check_points
from isokern.parts import Part, State, need, need_array
from isokern.rows import CoreRows, CsrRows, core_rows, n_rows, row_blocks

_BLOCK = 256  # rows
# The core densifies support vectors of so many columns, more if the first one is dense (cpp/rivals/kernel_points.cpp).
_PANEL_COLUMNS, _DENSE_COLUMNS = 4096, 32_768
_LARGEST_SCORES = 2**20  # a file with more is refused, because each score takes memory without any support vector


@dataclass(eq=False)
class KernelDual(Part):
    """All support vectors of a named kernel, kept by the compiled core.

    The core only adds to them, so several models can share one machine: each is the first ``size`` of its vectors.
    """

    kernel: NamedKernel
    n_features: int
    n_columns: int
    n_jobs: int
    average: bool = False
    clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        self.machine, self.size = self._new_machine(), 0

    def _new_machine(self) -> _core.KernelMachine:
        return _core.KernelMachine(self.kernel.spec, self.n_features, self.n_columns)

    def learn(
        self, table: Any, targets: Any, factors: Weights, rule: _core.Rule, *, scores: Scores | None = None
    ) -> None:
        """Learn rows in order; ``scores`` receives each row's scores before its update."""
        self.clock = Clock.of(self.clock)
        if self.machine.size != self.size:  # another model, or a block that was interrupted, has added vectors
            support, self.machine = self.support(), self._new_machine()
            self.machine.add(*support)
        for rows, part, weights, out in learning_blocks(table, targets, factors, scores):
            self.machine.learn(rows, part, weights, rule, self.clock, self.n_jobs, self.average, out)
        self.size = self.machine.size

    def score(self, table: Any, threads: int) -> NDArray[np.float64]:
        """Return the scores of rows, (n, n_columns)."""
        scores = np.empty((table.shape[0], self.n_columns))
        rounds = self.clock.rounds if self.average else 0
        for begin, rows in _small_blocks(table):
            self.machine.score(rows, self.size, rounds, scores[begin : begin + n_rows(rows)], threads)
        return finite_scores(scores)

    def support(self) -> tuple[CsrRows, NDArray[np.float64], NDArray[np.int64]]:
        """Return the support vectors, their coefficients, (n, n_columns), and the round in which each was added."""
        values, columns, starts, alpha, births = self.machine.support(self.size)
        rows = CsrRows(values, columns, starts, self.n_features)
        return rows, np.ascontiguousarray(alpha.reshape(self.n_columns, -1).T), births

    def state(self) -> State:
        """Return the fields and the support vectors."""
        return super().state() | {"support": self.support()}

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Return the model of this state; raise ValueError if its support vectors are invalid."""
        given = dict(state)
        rows, alpha, births = given.pop("support")
        need(isinstance(given["kernel"], NamedKernel), "kernel must be a NamedKernel")
        need(isinstance(rows, CsrRows), "support vectors must be CSR rows")
        need_array(alpha, np.float64, 2, "coefficients")
        need_array(births, np.int64, 1, "births")
        need(alpha.shape[1] == given["n_columns"] <= _LARGEST_SCORES, "coefficients must have a column per score")
        need(((births >= 0) & (births <= given["clock"].rounds)).all(), "births must not be later than the clock")
        is_dense = len(rows.starts) > 1 and 2 * rows.starts[1] > rows.n_columns
        check_points(rows, alpha.nbytes + births.nbytes, densified_up_to=_DENSE_COLUMNS if is_dense else _PANEL_COLUMNS)
        model = cls(**given)
        model.machine.add(rows, alpha, births)
        model.size = model.machine.size
        return model


@dataclass(eq=False)
class BudgetedDual(Part):
    """Support vectors within a budget, or all of them for kernels that only Python can compute.

    Rows are learned block by block, so that the kernel between a block and all points is computed at once.
    """

    kernel: NamedKernel | CustomKernel
    budgets: list[Budget]  # one per score
    n_jobs: int
    points: Any = None  # rows that are a support vector of any budget
    clock: Clock = field(default_factory=Clock)

    @property
    def n_columns(self) -> int:
        """Number of scores."""
        return len(self.budgets)

    def learn(
        self, table: Any, targets: Any, factors: Weights, rule: _core.Rule, *, scores: Scores | None = None
    ) -> None:
        """Learn rows in order; ``scores`` receives each row's scores before its update."""
        self.budgets = [budget.copy() for budget in self.budgets]
        for part in gen_batches(table.shape[0], _BLOCK):
            block = table[part]
            weights = np.ones(block.shape[0]) if factors is None else factors[part]
            n_support = self._learn_block(block, targets[part], weights, None if scores is None else scores[part])
            self.clock = self.clock.later(block.shape[0], n_support, is_new=rule.is_new)

    def _learn_block(
        self, block: Any, targets: NDArray[np.int32], weights: NDArray[np.float64], scores: Scores | None
    ) -> int:
        """Return the number of rows that changed a budget."""
        points = block if self.points is None else stack_tables([self.points, block])
        n_old = points.shape[0] - block.shape[0]
        values = self.kernel.matrix(_core_form(block), _core_form(points), self.n_jobs)
        n_support = 0
        for r in range(block.shape[0]):
            if scores is not None:
                scores[r] = [budget.score(values[r]) for budget in self.budgets]
            changes = [
                budget.learn(values[r], n_old + r, 1.0 if targets[r] == k else -1.0, weights[r])
                for k, budget in enumerate(self.budgets)
            ]
            n_support += any(changes)
        self._keep(points)
        return n_support

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
        """Raise ValueError unless the budgets refer to existing points."""
        need(isinstance(self.kernel, NamedKernel), "kernel must be a NamedKernel")
        need(type(self.budgets) is list, "budgets must be a list")
        need(
            len(set(map(id, self.budgets))) == len(self.budgets),
            "budgets must be different objects, as each one learns",
        )
        need(isinstance(self.clock, Clock), "clock must be a Clock")
        n = 0 if self.points is None else self.points.shape[0]
        if self.points is not None:
            need(self.points.dtype.kind in "biuf", "points must be numbers")
            check_points(core_rows(self.points, 0, n))
        for budget in self.budgets:
            need(isinstance(budget, Budget), "budgets must be of class Budget")
            need(((budget.points >= 0) & (budget.points < n)).all(), "budgets must refer to existing points")


def _small_blocks(table: Any) -> Iterator[tuple[int, CoreRows]]:
    """Yield (index of the first row, rows); blocks are small, because learning waits while one is scored."""
    for begin in range(0, table.shape[0], _BLOCK):
        yield begin, core_rows(table, begin, min(begin + _BLOCK, table.shape[0]))


def _core_form(table: Any) -> CoreRows:
    return core_rows(table, 0, table.shape[0])
