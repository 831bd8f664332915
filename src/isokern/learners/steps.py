"""How online gradient descent steps: its losses and schedules, and the parameters that choose among them."""

from __future__ import annotations

from typing import Any, NamedTuple

from isokern import _core
from isokern.checks import is_integer, is_number, one_of

SCHEDULES = {"constant": 0.5, "decaying": 1.0, "adagrad": 2.0}  # with the learning rate that "auto" means
EVALUATIONS = ("primal", "naive", "dual")
CLASSIFIER_LOSSES = ("hinge", "squared_hinge", "logistic")


class Steps(NamedTuple):
    """A loss, and the steps by which it is made small."""

    loss: str
    schedule: str
    rate: Any
    shrinkage: float
    epsilon: float = 0.0

    @classmethod
    def of(cls, learner: Any) -> Steps:
        """Return what a learner's parameters mean."""
        rate = SCHEDULES[learner.schedule] if learner.learning_rate == "auto" else learner.learning_rate
        return cls(learner.loss, learner.schedule, rate, learner.shrinkage, getattr(learner, "epsilon", 0.0))

    def rule(self, counted_from: list[int]) -> _core.Rule:
        """Return the core's form; rows that change column k are support vectors from row ``counted_from[k]`` on."""
        return _core.Rule(self.loss, self.epsilon, self.schedule, self.rate, self.shrinkage, counted_from)


def check_cell_steps(learner: Any, losses: tuple[str, ...]) -> None:
    """Raise unless the parameters of a learner on cells choose a loss, steps and an evaluation that go together."""
    if learner.schedule not in SCHEDULES:
        raise ValueError(f"schedule must be {one_of(SCHEDULES)}; got {learner.schedule!r}.")
    if learner.evaluation not in EVALUATIONS:
        raise ValueError(f"evaluation must be {one_of(EVALUATIONS)}; got {learner.evaluation!r}.")
    if learner.evaluation == "dual" and learner.schedule == "adagrad":
        raise ValueError('schedule must be "constant" or "decaying" for evaluation="dual"; got "adagrad".')
    rate = Steps.of(learner).rate
    check_steps(learner, losses, rate)
    check_shrinkage(learner.shrinkage, rate)


def check_steps(learner: Any, losses: tuple[str, ...], rate: Any) -> None:
    """Raise unless the parameters of a learner choose a loss, a number of passes and a learning rate."""
    if learner.loss not in losses:
        raise ValueError(f"loss must be {one_of(losses)}; got {learner.loss!r}.")
    if not is_integer(learner.n_passes, at_least=1):
        raise ValueError(f"n_passes must be an integer of at least 1; got {learner.n_passes!r}.")
    if not (is_number(rate) and rate > 0):
        raise ValueError(f"learning_rate must be a positive number; got {learner.learning_rate!r}.")


def check_shrinkage(shrinkage: Any, rate: float) -> None:
    """Raise unless weights shrink in each round, but not to nothing."""
    if not (is_number(shrinkage) and 0 <= shrinkage * rate < 1):
        raise ValueError(f"shrinkage must be at least 0 and below 1 / learning_rate; got {shrinkage!r}.")
