"""The results of an evaluation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray


class Numbers:
    """Base of the records, which have metrics and predictions beside their numbers."""

    metrics: dict[str, float]

    def as_dict(self) -> dict[str, Any]:
        """Return the numbers by name, those of the metrics among them, without the predictions."""
        numbers = {name: value for name, value in vars(self).items() if name not in ("metrics", "predictions")}
        return numbers | self.metrics


@dataclass(frozen=True)
class Record(Numbers):
    """How a learner has done up to and with one block. Two are equal if they differ in nothing but times.

    Attributes
    ----------
    n_seen : int
        Rows predicted so far.
    n_labelled : int
        How many of them have a label: the denominator of ``accuracy`` and of all metrics.
    n_correct : int or None
        Rows predicted right so far. This and both accuracies are None for a regressor.
    accuracy, block_accuracy : float or None
        Share of the rows with labels predicted right, so far and in this block; NaN if there are none.
    map_seconds, predict_seconds, learn_seconds : float
        Time that this block took. A learner that does not learn from cells maps while it predicts and learns. If
        labels are late, the time to learn is that of the block whose labels came with this one.
    n_support : int or None
        The learner's support vectors after this block, where it has them.
    metrics : dict of str to float
        Metrics so far.
    predictions : ndarray or None
        What was predicted for each row of the block; None if the learner knew nothing yet.
    """

    n_seen: int
    n_labelled: int
    n_correct: int | None
    accuracy: float | None
    block_accuracy: float | None
    map_seconds: float = field(compare=False)
    predict_seconds: float = field(compare=False)
    learn_seconds: float = field(compare=False)
    n_support: int | None
    metrics: dict[str, float]
    predictions: NDArray[Any] | None = field(compare=False, repr=False)


@dataclass(frozen=True)
class HoldoutRecord(Numbers):
    """How a learner has done on rows that it did not learn. Two are equal if they differ in nothing but times.

    Attributes
    ----------
    n_train, n_test : int
        Rows learned and rows predicted.
    accuracy : float or None
        Share of the test rows with labels predicted right, NaN if there are none; None for a regressor.
    fit_seconds, predict_seconds : float
        Time to learn and to predict.
    n_support : int or None
        The learner's support vectors, where it has them.
    metrics : dict of str to float
        Metrics of the test rows.
    predictions : ndarray
        What was predicted for each test row.
    """

    n_train: int
    n_test: int
    accuracy: float | None
    fit_seconds: float = field(compare=False)
    predict_seconds: float = field(compare=False)
    n_support: int | None
    metrics: dict[str, float]
    predictions: NDArray[Any] = field(compare=False, repr=False)
