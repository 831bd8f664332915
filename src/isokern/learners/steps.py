"""Define the losses and step sizes of online gradient descent and check the parameters that choose them."""

from __future__ import annotations

from typing import Any, NamedTuple

from isokern import _core
from isokern.checks import is_number
from isokern.learners.parameters import check_choice, check_integer

SCHEDULES = {"constant": 0.5, "decaying": 1.0, "adagrad": 2.0}  # with the learning rate of "auto"
_LARGEST_RATE = 1e6
EVALUATIONS = ("primal", "naive", "dual")
CLASSIFIER_LOSSES = ("hinge", "squared_hinge", "logistic")


class Steps(NamedTuple):
    """A loss and the steps that minimise it."""

    loss: str
    schedule: str
    rate: Any
    shrinkage: float
    epsilon: float = 0.0

    @classmethod
    def of(cls, learner: Any) -> Steps:
        """Return the loss and steps of a learner's parameters."""
        schedule = schedule_of(learner)
        rate = SCHEDULES[schedule] if learner.learning_rate == "auto" else learner.learning_rate
        return cls(learner.loss, schedule, rate, learner.shrinkage, getattr(learner, "epsilon", 0.0))

    def rule(self, counted_from: list[int], *, is_new: bool = True) -> _core.Rule:
        """Return the core's form; rows that change column k are support vectors from row ``counted_from[k]`` on."""
        return _core.Rule(self.loss, self.epsilon, self.schedule, self.rate, self.shrinkage, counted_from, is_new)


def schedule_of(learner: Any) -> str:
    """Return the schedule of a learner; "auto" is AdaGrad where that is possible."""
    if learner.schedule != "auto":
        return str(learner.schedule)
    return "constant" if learner.evaluation == "dual" else "adagrad"


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
    check_integer(learner, "n_passes", at_least=1)
    if not (is_number(rate) and rate > 0):
        raise ValueError(f"learning_rate must be a positive number; got {learner.learning_rate!r}.")
    if rate > _LARGEST_RATE:
        raise ValueError(f"learning_rate must be at most {_LARGEST_RATE:,.0f}; got {learner.learning_rate!r}.")


def check_shrinkage(shrinkage: Any, rate: float) -> None:
    """Raise ValueError unless a step shrinks the weights by a factor in (0, 1]."""
    if not (is_number(shrinkage) and 0 <= shrinkage * rate < 1):
        raise ValueError(f"shrinkage must be at least 0 and below 1 / learning_rate; got {shrinkage!r}.")
