"""Provide the learned state of a regressor on cells: a running mean and a model of the residuals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from isokern import _core
from isokern.engines import engine_of
from isokern.learners.commits import blocks, can_change, twin, twins
from isokern.learners.steps import Steps
from isokern.learners.targets import Weights, some
from isokern.learners.weights import CellModel, CellWeights, new_model
from isokern.parts import Part, State, need, need_array


@dataclass(eq=False)
class Residuals(Part):
    """Model of the differences between targets and the mean of the targets before them, and the sums of that mean."""

    in_place: ClassVar = ("sums",)

    model: Any  # CellWeights or SupportVectors
    sums: NDArray[np.float64] = field(default_factory=lambda: np.zeros(2))  # of weighted targets, and of their weights

    @classmethod
    def begun(cls, learner: Any, starts: NDArray[np.int64]) -> Self:
        """Return the untrained state of a learner on the cells of a map."""
        return cls(new_model(learner, starts, n_columns=1))

    @property
    def mean(self) -> float:
        """Mean of the targets so far."""
        copied, copies = twin(self)
        _core.copy_model(self.model.clock, copies)
        return _mean(copied.sums)

    def learn(
        self, cells: NDArray[Any], targets: NDArray[np.float64], weights: Weights, steps: Steps, *, is_new: bool = True
    ) -> None:
        """Learn in order the difference of each target to the mean of the targets before it, in place and by blocks."""
        for part in blocks(len(targets)):
            self._learn_block(cells[part], targets[part], some(weights, part), steps.rule([0], is_new=is_new))

    def _learn_block(self, cells: Any, targets: NDArray[np.float64], weights: Weights, rule: Any) -> None:
        masses = np.ones(len(targets)) if weights is None else weights
        # Running sums from the first row on, so that results do not depend on how a stream is split into calls.
        total = np.cumsum(np.concatenate([self.sums[:1], masses * targets]))
        mass = np.cumsum(np.concatenate([self.sums[1:], masses]))
        # Without a mean before it, the first row uses its own target.
        means = np.divide(total[:-1], mass[:-1], out=targets.copy(), where=mass[:-1] > 0)
        copies = [(self.sums, np.array([total[-1], mass[-1]]))]
        self.model.learn(cells, targets - means, weights, rule, copies=copies)

    def writable(self) -> Self:
        """Return this state if a block can be learned in place, in one step; else a copy to learn it in."""
        return self if isinstance(self.model, CellWeights) and can_change(self.model, self) else self.snapshot()

    def snapshot(self) -> Self:
        """Return a copy of one moment, even while another thread learns."""
        model, copied = twins(self.model, self)
        return type(self)(model, copied.sums)

    def predictions(self, cells: Any, n_jobs: int | None) -> Any:
        """Return the predicted target of each row."""
        copied, copies = twin(self)
        return engine_of(cells).scores(cells, self.model, n_jobs, copies)[:, 0] + _mean(copied.sums)

    def state(self) -> State:
        """Return the parts of one moment."""
        return Part.state(self.snapshot())

    def check(self) -> None:
        """Raise ValueError unless the model has one score and the sums are numbers."""
        need(isinstance(self.model, CellModel), "model must be a CellWeights or SupportVectors")
        need(self.model.n_columns == 1, "model must have one score")
        need_array(self.sums, np.float64, 1, "sums")
        need(len(self.sums) == 2, "sums must be two numbers")

    @classmethod
    def merge(cls, parts: Sequence[Self], shares: NDArray[np.float64]) -> Self:
        """Return the weighted mean of states on one map."""
        mass = float(shares @ [part.sums[1] for part in parts])
        total = mass * float(shares @ [_mean(part.sums) for part in parts])
        return cls(CellWeights.merge([part.model for part in parts], shares), np.array([total, mass]))

    def check_mergeable(self, other: Residuals, name: str) -> None:
        """Do nothing: all states can be merged."""


def _mean(sums: NDArray[np.float64]) -> float:
    return float(sums[0] / sums[1]) if sums[1] > 0 else 0.0
