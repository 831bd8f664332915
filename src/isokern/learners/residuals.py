"""Provide the learned state of a regressor without a race: moments of the targets, and a model of the residuals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from isokern import _core
from isokern.engines import engine_of
from isokern.forest import Numbers
from isokern.learners.commits import BLOCK, blocks, can_change, twin, twins
from isokern.learners.moments import Moments, Table
from isokern.learners.steps import Steps
from isokern.learners.targets import Weights, some
from isokern.learners.weights import CellModel, CellWeights, new_model
from isokern.parts import Part, State, need


class NumberScores(Part):
    """Base of the learned states of regressors: predictions of scores and means."""

    model: Any
    moments: Moments

    def answer(self, loss: str) -> Numbers:
        """Return what scores mean, for a model as a forest."""
        return Numbers(ascending=loss == "quantile")

    @property
    def intercept(self) -> NDArray[np.float64]:
        """What is added to scores: the means of the targets."""
        return np.broadcast_to(self.moments.means, self.model.n_columns).copy()

    @staticmethod
    def check_outputs(moments: Moments, model: Any) -> None:
        """Raise ValueError unless a model has scores for each output; a single output may have several quantiles."""
        need(moments.sums.shape[1] in (1, model.n_columns), "moments must have the outputs of the model")


@dataclass(eq=False)
class Residuals(NumberScores):
    """Model of the differences between targets and the mean of the targets before them, and the moments of targets."""

    model: Any  # CellWeights or SupportVectors
    moments: Moments

    @classmethod
    def begun(cls, learner: Any, starts: NDArray[np.int64], moments: Moments, n_columns: int) -> Self:
        """Return the untrained state of a learner on the cells of a map."""
        return cls(new_model(learner, starts, n_columns), moments)

    @property
    def means(self) -> NDArray[np.float64]:
        """Mean of the targets so far, by output."""
        copied, copies = twin(self.moments)
        _core.copy_model(self.model.clock, copies)
        return copied.means

    def learn(
        self,
        cells: Any,
        targets: Table,
        weights: Weights,
        steps: Steps,
        *,
        is_new: bool = True,
        answers: list[Table] | None = None,
    ) -> None:
        """Learn in order the difference of each target to the mean of the targets before it, in place and by blocks.

        ``answers`` receives the predictions for each block before its rows are learned.
        """
        rule = steps.rule([0] * self.model.n_columns, is_new=is_new)
        for part in blocks(len(targets)):
            standard = self.moments.next(targets[part], some(weights, part))
            values = standard.values(self.model.n_columns, standardised=steps.standardised)
            scores = None if answers is None else np.empty((len(values[0]), self.model.n_columns))
            self.model.learn(cells[part], values, standard.weights, rule, scores=scores, copies=standard.copies)
            if answers is not None and scores is not None:
                answers.append(scores + standard.means)

    def predictions(self, cells: Any, n_jobs: int | None) -> Any:
        """Return the predicted targets of rows, (n, n_columns)."""
        copied, copies = twin(self.moments)
        scores = engine_of(cells).scores(cells, self.model, n_jobs, copies)
        return scores + engine_of(scores).to_library(copied.means, scores)

    # -- the race that there is none of

    def narrowed(self) -> Self:
        """Return the state to learn the next rows with."""
        return self

    @property
    def until_narrowed(self) -> int:
        """Number of rows that may be learned before ``narrowed`` returns another state."""
        return BLOCK

    def writable(self) -> Self:
        """Return this state if a block can be learned in place, in one step; else a copy to learn it in."""
        is_in_place = isinstance(self.model, CellWeights) and can_change(self.model, self.moments)
        return self if is_in_place else self.snapshot()

    def snapshot(self) -> Self:
        """Return a copy of one moment, even while another thread learns."""
        return type(self)(*twins(self.model, self.moments))

    # -- contract of isokern.parts

    def state(self) -> State:
        """Return the parts of one moment."""
        return Part.state(self.snapshot())

    def check(self) -> None:
        """Raise ValueError unless the model has scores for each output."""
        need(isinstance(self.model, CellModel), "model must be a CellWeights or SupportVectors")
        need(isinstance(self.moments, Moments), "moments must be Moments")
        self.check_outputs(self.moments, self.model)

    @classmethod
    def merge(cls, parts: Sequence[Self], shares: NDArray[np.float64]) -> Self:
        """Return the weighted mean of states on one map."""
        moments = Moments.merge([part.moments for part in parts], shares)
        return cls(CellWeights.merge([part.model for part in parts], shares), moments)

    def check_mergeable(self, other: Residuals, name: str) -> None:
        """Raise ValueError if another state, which errors call ``name``, has other outputs."""
        self.moments.check_mergeable(other.moments, name)
