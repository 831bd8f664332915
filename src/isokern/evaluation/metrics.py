"""Metrics by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from numpy.typing import NDArray

from isokern.checks import one_of
from isokern.evaluation.counters import Confusion, Errors, Surprise
from isokern.evaluation.learner import Outputs, learns_numbers
from isokern.evaluation.scores import AllScores, ScoreHistograms

Table = dict[str, tuple[Any, Callable[[Any], float]]]
REGRESSION: Table = {"mae": (Errors, Errors.mae), "rmse": (Errors, Errors.rmse), "r2": (Errors, Errors.r2)}
CLASSIFICATION: Table = {
    "balanced_accuracy": (Confusion, Confusion.balanced_accuracy),
    "f1": (Confusion, Confusion.f1),
    "kappa": (Confusion, Confusion.kappa),
    "log_loss": (Surprise, Surprise.log_loss),
    "auc": (ScoreHistograms, ScoreHistograms.auc),
    "average_precision": (ScoreHistograms, ScoreHistograms.average_precision),
}
# For as many rows as fit into memory.
EXACT: Table = CLASSIFICATION | {
    "auc": (AllScores, AllScores.auc),
    "average_precision": (AllScores, AllScores.average_precision),
}


class Metrics:
    """Metrics by name, of all rows added so far."""

    def __init__(self, learner: Any, names: str | Iterable[str], *, classification: Table) -> None:
        names = [names] if isinstance(names, str) else list(names)
        is_regressor = learns_numbers(learner)
        table = REGRESSION if is_regressor else classification
        self.names = list(REGRESSION) if is_regressor and not names else names
        for name in self.names:
            _check_metric(learner, name, table)
        self._values = {name: table[name] for name in self.names}
        self._counters = {kind: kind() for kind, _ in self._values.values()}

    @property
    def needs(self) -> set[str]:
        """What of a learner's outputs they are made from."""
        return {kind.needs for kind in self._counters}

    def add(self, truth: NDArray[Any], given: Outputs) -> None:
        """Count rows with labels."""
        for counter in self._counters.values():
            counter.add(truth, given)

    def values(self) -> dict[str, float]:
        """Return the metrics so far; NaN for one that is not defined yet."""
        return {name: float(value(self._counters[kind])) for name, (kind, value) in self._values.items()}

    def state(self) -> dict[str, Any]:
        """Return plain values and arrays."""
        return {kind.__name__: counter.state() for kind, counter in self._counters.items()}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        for kind, counter in self._counters.items():
            counter.restore(state[kind.__name__])


def _check_metric(learner: Any, name: str, table: Table) -> None:
    who = type(getattr(learner, "model", learner)).__name__
    if name not in table:
        kind = "regressor" if table is REGRESSION else "classifier"
        raise ValueError(f"metrics must be {one_of(table)} for {who}, a {kind}; got {name!r}.")
    needs = table[name][0].needs
    if needs == "probabilities" and not hasattr(learner, "predict_proba"):
        raise ValueError(f'metrics must not name "{name}" for {who}, which has no predict_proba.')
    if needs == "scores" and not (hasattr(learner, "decision_function") or hasattr(learner, "predict_proba")):
        raise ValueError(
            f'metrics must not name "{name}" for {who}, which has neither decision_function nor predict_proba.'
        )
