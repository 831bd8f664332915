"""Define the losses and step sizes of online gradient descent and check the parameters that choose them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import RegressorMixin

from isokern import _core
from isokern.checks import is_number
from isokern.learners.parameters import check_choice, check_integer

SCHEDULES = {"constant": 0.5, "decaying": 1.0, "adagrad": 2.0}  # with the learning rate of "auto"
_LARGEST_RATE = 1e6
EVALUATIONS = ("primal", "naive", "dual")
MARGIN_LOSSES = ("hinge", "squared_hinge", "logistic")  # of a score times the class, -1 or 1
CLASSIFIER_LOSSES = ("auto", *MARGIN_LOSSES)
REGRESSOR_LOSSES = ("squared", "huber", "epsilon_insensitive", "quantile")


class Steps(NamedTuple):
    """A loss and the steps that minimise it."""

    loss: str
    schedule: str
    rate: Any
    shrinkage: float
    epsilon: float = 0.0
    quantiles: tuple[float, ...] = ()  # of the loss "quantile", by column of scores
    standardised: bool = False  # whether losses are those of errors in standard deviations of the targets

    @classmethod
    def of(cls, learner: Any) -> Steps:
        """Return the loss and steps of a learner's parameters."""
        schedule = schedule_of(learner)
        rate = SCHEDULES[schedule] if learner.learning_rate == "auto" else learner.learning_rate
        if not isinstance(learner, RegressorMixin):
            loss = "hinge" if learner.loss == "auto" else learner.loss  # candidates of a race have their own
            return cls(loss, schedule, rate, learner.shrinkage)
        is_standardised = is_open(learner) or schedule == "adagrad"
        losses = (learner.epsilon, quantiles_of(learner), is_standardised)
        return cls(learner.loss, schedule, rate, learner.shrinkage, *losses)

    def rule(self, counted_from: list[int], *, is_new: bool = True) -> _core.Rule:
        """Return the core's form; rows that change column k are support vectors from row ``counted_from[k]`` on."""
        steps = (self.schedule, self.rate, self.shrinkage)
        return _core.Rule(self.loss, self.epsilon, *steps, counted_from, is_new, list(self.quantiles))


def schedule_of(learner: Any) -> str:
    """Return the schedule of a learner without a race; "auto" is AdaGrad for classifiers where that is possible."""
    if learner.schedule != "auto":
        return str(learner.schedule)
    return "constant" if learner.evaluation == "dual" or isinstance(learner, RegressorMixin) else "adagrad"


def averages(learner: Any) -> bool:
    """Return whether a learner without a race predicts with averaged weights; "auto" is True."""
    return learner.average == "auto" or bool(learner.average)


def is_open(learner: Any) -> bool:
    """Return whether a learner's parameters leave the choice to a race."""
    has_average = learner.average != ("auto" if isinstance(learner, RegressorMixin) else False)
    is_plain = learner.evaluation == "primal" and not has_average and learner.shrinkage == 0
    is_auto = learner.schedule == learner.learning_rate == "auto"
    return is_plain and is_auto and learner.kernel is None and isinstance(learner.partitioning, str)


def quantiles_of(learner: Any) -> tuple[float, ...]:
    """Return the quantiles that a regressor learns, sorted; none unless its loss is "quantile"."""
    if learner.loss != "quantile":
        return ()
    return tuple(sorted(float(quantile) for quantile in np.ravel(learner.quantiles)))


def check_cell_steps(learner: Any, losses: tuple[str, ...]) -> None:
    """Raise ValueError unless loss, steps and evaluation of a learner on cells are valid together."""
    if learner.schedule != "auto" or not hasattr(learner, "linear"):
        check_choice(learner, "schedule", SCHEDULES)
    check_choice(learner, "evaluation", EVALUATIONS)
    if learner.evaluation == "dual" and learner.schedule == "adagrad":
        raise ValueError('schedule must be "constant" or "decaying" for evaluation="dual"; got "adagrad".')
    rate = Steps.of(learner).rate
    check_steps(learner, losses, rate)
    check_shrinkage(learner.shrinkage, rate)


def check_steps(learner: Any, losses: tuple[str, ...], rate: Any) -> None:
    """Raise ValueError unless loss, number of passes and learning rate are valid."""
    check_choice(learner, "loss", losses)
    if learner.n_passes != "auto" or not isinstance(learner, RegressorMixin):
        check_integer(learner, "n_passes", at_least=1)
    if not (is_number(rate) and rate > 0):
        raise ValueError(f"learning_rate must be a positive number; got {learner.learning_rate!r}.")
    if rate > _LARGEST_RATE:
        raise ValueError(f"learning_rate must be at most {_LARGEST_RATE:,.0f}; got {learner.learning_rate!r}.")


def check_shrinkage(shrinkage: Any, rate: float) -> None:
    """Raise ValueError unless a step shrinks the weights by a factor in (0, 1]."""
    if not (is_number(shrinkage) and 0 <= shrinkage * rate < 1):
        raise ValueError(f"shrinkage must be at least 0 and below 1 / learning_rate; got {shrinkage!r}.")
