"""Look up metrics by name, and update them block by block."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from numpy.typing import NDArray

from isokern.checks import one_of
from isokern.evaluation.counters import AllScores, Calibration, ClassCounts, Errors, LogLoss, ScoreHistograms
from isokern.evaluation.learner import Outputs, learns_numbers
from isokern.parts import need

# Metrics, and the counters that have a method of the same name to compute them.
Table = dict[str, Any]
REGRESSION: Table = dict.fromkeys(("mae", "rmse", "r2"), Errors)
CLASSIFICATION: Table = {
    **dict.fromkeys(("balanced_accuracy", "f1", "kappa"), ClassCounts),
    "log_loss": LogLoss,
    "calibration_error": Calibration,
    **dict.fromkeys(("auc", "average_precision"), ScoreHistograms),
}
EXACT: Table = CLASSIFICATION | dict.fromkeys(("auc", "average_precision"), AllScores)  # for rows that fit into memory
_METHODS = {  # a learner must have one of them
    "predictions": ("predict",),
    "probabilities": ("predict_proba",),
    "scores": ("decision_function", "predict_proba"),
}


class Metrics:
    """The metrics of all rows added so far."""

    def __init__(self, learner: Any, names: str | Iterable[str], *, classification: Table) -> None:
        names = [names] if isinstance(names, str) else list(names)
        is_regressor = learns_numbers(learner)
        table = REGRESSION if is_regressor else classification
        self.names = list(REGRESSION) if is_regressor and not names else names
        for name in self.names:
            _check_metric(learner, name, table)
        self._kinds = {name: table[name] for name in self.names}
        self._counters = {kind: kind() for kind in self._kinds.values()}

    @property
    def needs(self) -> set[str]:
        """The outputs of a learner that the metrics need."""
        return {kind.needs for kind in self._counters}

    def add(self, truth: NDArray[Any], given: Outputs) -> None:
        """Add rows with labels."""
        for counter in self._counters.values():
            counter.add(truth, given)

    def values(self) -> dict[str, float]:
        """Return the metrics so far; NaN if one is not defined yet."""
        return {name: float(getattr(self._counters[kind], name)()) for name, kind in self._kinds.items()}

    def state(self) -> dict[str, Any]:
        """Return plain values and arrays."""
        return {kind.__name__: counter.state() for kind, counter in self._counters.items()}

    def restore(self, state: dict[str, Any], n_labelled: int) -> None:
        """Continue from a state of ``n_labelled`` rows."""
        is_complete = isinstance(state, dict) and state.keys() == {kind.__name__ for kind in self._counters}
        need(is_complete, f"counters must be those of {', '.join(self.names)}")
        self._counters = {kind: kind.from_state(state[kind.__name__], n_labelled) for kind in self._counters}


def _check_metric(learner: Any, name: str, table: Table) -> None:
    who = type(getattr(learner, "model", learner)).__name__
    if name not in table:
        kind = "regressor" if table is REGRESSION else "classifier"
        raise ValueError(f"metrics must be {one_of(table)} for {who}, a {kind}; got {name!r}.")
    methods = _METHODS[table[name].needs]
    if not any(hasattr(learner, method) for method in methods):
        raise ValueError(f'metrics must not name "{name}" for {who}, which has no {" or ".join(methods)}.')
