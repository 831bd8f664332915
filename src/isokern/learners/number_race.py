"""Provide the race of a regressor: candidates that learn standardised targets, compared by their losses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from isokern import _core
from isokern.arrays import like
from isokern.fitted_map import FittedMap
from isokern.learners.base_race import BaseRace, untrained
from isokern.learners.candidates import Candidate
from isokern.learners.commits import blocks, twin
from isokern.learners.features import Features
from isokern.learners.linear_term import LinearTerm
from isokern.learners.moments import Moments, Standard, Table
from isokern.learners.residuals import NumberScores
from isokern.learners.steps import Steps
from isokern.learners.targets import Weights, some


def mean_error(differences: Table, steps: Steps) -> NDArray[np.float64]:
    """Return the error by which models are compared, mean over the columns; see ``cpp/online/losses.hpp``."""
    sizes, epsilon = np.abs(differences), steps.epsilon
    if steps.loss == "squared":
        errors = differences**2
    elif steps.loss == "huber":
        errors = np.where(sizes > epsilon, epsilon * (sizes - 0.5 * epsilon), 0.5 * sizes**2)
    elif steps.loss == "epsilon_insensitive":
        errors = np.maximum(sizes - epsilon, 0.0)
    else:
        errors = np.where(differences < 0, steps.quantiles, 1.0 - np.array(steps.quantiles)) * sizes
    return errors.mean(axis=1)


@dataclass(eq=False, kw_only=True)
class NumberRace(BaseRace, NumberScores):
    """Moments of the targets, the candidates that still run, and their errors; the leader predicts.

    Weights are in units of the target. Losses are those of errors in standard deviations of the targets, so that
    squared errors are about 1 - R².
    """

    moments: Moments

    @classmethod
    def begun(
        cls,
        candidates: Sequence[Candidate],
        fitted: FittedMap,
        term: LinearTerm | None,
        fade: float,
        *,
        moments: Moments,
        n_columns: int,
    ) -> Self:
        """Return untrained candidates on the cells of a map; a single output may have a column for each quantile."""
        fields = untrained(candidates, n_columns, fitted, term, first_square=1.0)
        return cls(moments=moments, fade=fade, **fields)

    def companions(self) -> list[Any]:
        """Return the other parts that are learned in place."""
        return [self.moments]

    def with_companions(self, parts: list[Any]) -> dict[str, Any]:
        """Return the fields for copies of the other parts."""
        return {"moments": parts[0]}

    def chance(self, least: float, usual_weight: float) -> float:
        """Return how large a difference of errors may come from chance: that of a sum of squared normal numbers."""
        n = self.errors[-1] / usual_weight
        return float(4.0 * least * np.sqrt(2.0 / n)) if n > 0 else 0.0

    @property
    def means(self) -> NDArray[np.float64]:
        """Mean of the targets so far, by output."""
        copied, copies = twin(self.moments)
        _core.copy_model(self.clock, copies)
        return copied.means

    def predictions(self, cells: Features, n_jobs: int | None) -> Any:
        """Return the leader's predicted targets of rows, (n, n_columns)."""
        copied, copies = twin(self.moments)
        scores = self.leader_scores(cells, copies)
        return scores + (copied.means if cells.source is None else like(copied.means, scores))

    def learn(
        self,
        rows: Features,
        targets: Table,
        weights: Weights,
        steps: Steps,
        *,
        is_new: bool = True,
        answers: list[Table] | None = None,
    ) -> None:
        """Learn rows in order, in place and block by block; of ``steps``, the models have all but the loss.

        ``is_new`` tells whether the rows are learned for the first time; only then do errors and moments count them.
        ``answers`` receives the leader's predictions for each block before its rows are learned.
        """
        for part in blocks(len(targets)):
            predictions = self._learn_block(rows[part], targets[part], some(weights, part), steps, is_new)
            if answers is not None:
                answers.append(predictions)

    def _learn_block(self, rows: Features, targets: Table, factors: Weights, steps: Steps, is_new: bool) -> Table:
        n_columns = self.model.n_columns
        standard = self.moments.next(targets, factors) if is_new else self.moments.again(targets, factors)
        values = standard.values(n_columns, standardised=steps.standardised)
        rules = [
            steps._replace(schedule=model.schedule, rate=model.rate).rule([0] * n_columns, is_new=is_new)
            for model in self.models
        ]
        scores = [np.empty((len(targets), n_columns)) for _ in self.models]
        renewals = [self._renewal(renewal, standard, steps) for renewal in rows.renewals]
        how: Any = {"copies": standard.copies, "is_new": is_new, "seen_from": [], "renewals": renewals}
        return self.learn_entrants(rows, values, standard.weights, rules, scores, **how).scores + standard.means

    def _renewal(self, renewal: Any, standard: Standard, steps: Steps) -> _core.Renewal:
        """Return the renewal of a tree along rows; mean and unit of its targets are those at its row."""
        past = standard.at(renewal.row - 1, renewal.targets, renewal.weights)
        values = past.values(self.model.n_columns, standardised=steps.standardised)
        return renewal.of(values, past.weights, square=1.0)

    def error(self, rows: Features, targets: Table, weights: Weights, steps: Steps) -> float:
        """Return the leader's mean loss on rows that it has not learned, in the units of the race."""
        standard = self.moments.again(targets, weights)
        residuals, units = standard.values(self.model.n_columns, standardised=True)
        differences = (self.leader_scores(rows, []) - residuals) / units
        counted = standard.weights if standard.weights is not None and standard.weights.any() else None
        return float(np.average(mean_error(differences, steps), weights=counted))

    # -- contract of isokern.parts

    def check(self) -> None:
        """Raise ValueError unless the models have scores for each output."""
        self.check_own_arrays()
        for model in self.models:
            self.check_outputs(self.moments, model)

    @classmethod
    def merge(cls, parts: Sequence[Self], shares: NDArray[np.float64]) -> Self:
        """Return the weighted mean of the leaders, which are of one kind; the race is over."""
        moments = Moments.merge([part.moments for part in parts], shares)
        return cls(moments=moments, **cls.merged_leaders(parts, shares))

    def check_mergeable(self, other: Any, name: str) -> None:
        """Raise ValueError if another state, which errors call ``name``, cannot be merged with this one."""
        self.moments.check_mergeable(other.moments, name)
        BaseRace.check_mergeable(self, other, name)
