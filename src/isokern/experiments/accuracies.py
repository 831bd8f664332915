"""Compare accuracies as far as finite test sets allow."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from isokern.experiments.experiment import Record
from isokern.experiments.settings import N_STANDARD_ERRORS, TOLERANCE
from isokern.experiments.tables import accuracy_text, having, mean


class Accuracy(NamedTuple):
    """A mean accuracy over seeds."""

    value: float
    n_tested: int
    n_learned: int | None = None  # the size of the sample, if not all training rows were learned

    @property
    def standard_error(self) -> float:
        """The standard deviation by chance of an accuracy on so many test rows; all seeds have the same."""
        return math.sqrt(self.value * (1 - self.value) / self.n_tested)

    @property
    def text(self) -> str:
        """The accuracy, and the size of the sample."""
        return accuracy_text(self.value) + (f" from {self.n_learned:,} rows" if self.n_learned else "")


def accuracy_of(records: Sequence[Record]) -> Accuracy | None:
    """Return the accuracy of records that differ in their seeds, or None if none has one."""
    runs = having(records, "accuracy")
    value = mean(runs, "accuracy")
    if value is None:
        return None
    n_tested = min(run["n_test"] if "n_test" in run else run["n_stream"] for run in runs)
    samples = (run["n_learned"] for run in having(runs, "n_learned") if run["n_learned"] < run["n_train"])
    return Accuracy(value, n_tested, min(samples, default=None))


def is_lower(one: Accuracy, other: Accuracy, tolerance: float = TOLERANCE) -> bool:
    """Return whether an accuracy is lower by more than a tolerance and than two standard errors of the difference.

    Examples
    --------
    >>> [is_lower(Accuracy(0.965, n), Accuracy(0.975, n)) for n in (600, 10_000)]
    [False, True]
    """
    chance = N_STANDARD_ERRORS * math.hypot(one.standard_error, other.standard_error)
    # Rounded, so that a difference of exactly the tolerance does not depend on the last bit.
    return round(other.value - one.value, 9) > max(tolerance, chance)


def more_than(tolerance: float) -> str:
    """Return how rules name a difference that counts."""
    return f"more than {tolerance:g} and {N_STANDARD_ERRORS} standard errors of the difference"
