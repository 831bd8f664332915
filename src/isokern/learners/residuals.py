"""Provide the learned state of a regressor on cells: a running mean and a model of the residuals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from isokern.engines import engine_of
from isokern.learners.steps import Steps
from isokern.learners.targets import Weights
from isokern.learners.weights import CellModel, CellWeights, new_model
from isokern.parts import Part, need


@dataclass(eq=False)
class Residuals(Part):
    """Model of the differences between targets and the mean of the targets before them, and the sums of that mean."""

    model: Any  # CellWeights or SupportVectors
    total: float = 0.0  # weighted sum of all targets
    mass: float = 0.0  # sum of their weights

    @classmethod
    def begun(cls, learner: Any, starts: NDArray[np.int64]) -> Self:
        """Return the untrained state of a learner on the cells of a map."""
        return cls(new_model(learner, starts, n_columns=1))

    @property
    def mean(self) -> float:
        """Mean of the targets so far."""
        return self.total / self.mass if self.mass > 0 else 0.0

    def learn(self, cells: NDArray[Any], targets: NDArray[np.float64], weights: Weights, steps: Steps) -> None:
        """Learn in order the difference of each target to the mean of the targets before it."""
        masses = np.ones(len(targets)) if weights is None else weights
        # Running sums from the first row on, so that results do not depend on how a stream is split into calls.
        totals = np.cumsum(np.concatenate([[self.total], masses * targets]))
        mass = np.cumsum(np.concatenate([[self.mass], masses]))
        # Without a mean before it, the first row uses its own target.
        means = np.divide(totals[:-1], mass[:-1], out=targets.copy(), where=mass[:-1] > 0)
        self.total, self.mass = float(totals[-1]), float(mass[-1])
        self.model.learn(cells, targets - means, weights, steps.rule([0]))

    def predictions(self, cells: Any, n_jobs: int | None) -> Any:
        """Return the predicted target of each row."""
        return engine_of(cells).scores(cells, self.model, n_jobs)[:, 0] + self.mean

    def check(self) -> None:
        """Raise ValueError unless the model has one score and the sums are numbers."""
        need(isinstance(self.model, CellModel), "model must be a CellWeights or SupportVectors")
        need(self.model.n_columns == 1, "model must have one score")
        need(type(self.total) is float and type(self.mass) is float, "total and mass must be floats")

    @classmethod
    def merge(cls, parts: Sequence[Self], shares: NDArray[np.float64]) -> Self:
        """Return the weighted mean of states on one map."""
        mass = float(shares @ [part.mass for part in parts])
        total = mass * float(shares @ [part.mean for part in parts])
        return cls(CellWeights.merge([part.model for part in parts], shares), total, mass)

    def check_mergeable(self, other: Residuals, name: str) -> None:
        """Do nothing: all states can be merged."""
