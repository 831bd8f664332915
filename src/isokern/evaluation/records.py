"""Define the records that evaluations return."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray


class Numbers:
    """The base of records, which have numbers, metrics and predictions."""

    metrics: dict[str, float]

    def as_dict(self) -> dict[str, Any]:
        """Return the numbers and the metrics by name, without the predictions."""
        numbers = {name: value for name, value in vars(self).items() if name not in ("metrics", "predictions")}
        return numbers | self.metrics


@dataclass(frozen=True)
class Record(Numbers):
    """The results of an evaluation up to and including one block. Times do not count when records are compared.

    Attributes
    ----------
    n_seen : int
        Rows predicted so far.
    n_labelled : int
        Rows among them that have a label: the denominator of ``accuracy`` and of all metrics.
    n_correct : int or None
        Correct predictions so far. This and both accuracies are None for a regressor.
    accuracy, block_accuracy : float or None
        Accuracy on the rows with labels, so far and in this block; NaN if there are none.
    map_seconds, predict_seconds, learn_seconds : float
        Time spent on this block. Learners that do not learn from cells map within predicting and learning. Row by row,
        all of it is ``learn_seconds``. With a delay, ``learn_seconds`` is that of the block whose labels have arrived.
    n_support : int or None
        The learner's support vectors after this block, if it counts them.
    leader : str or None
        The candidate or expert that leads after this block, by its name in ``selection_``, if the learner compares any.
    n_drifts : int or None
        Changes of the stream found so far, if the learner looks for them, see :class:`~isokern.AdaptiveIKClassifier`.
    protocol : {"rows", "blocks"}
        Whether each row was predicted right before it was learned, or each block, see :func:`prequential`.
    metrics : dict of str to float
        Metrics so far.
    predictions : ndarray or None
        The prediction for each row of the block; None if the learner was not fitted yet.
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
    leader: str | None
    n_drifts: int | None
    protocol: str
    metrics: dict[str, float]
    predictions: NDArray[Any] | None = field(compare=False, repr=False)


@dataclass(frozen=True)
class HoldoutRecord(Numbers):
    """The results of an evaluation on held-out rows. Times do not count when records are compared.

    Attributes
    ----------
    n_train, n_test : int
        Rows learned and rows predicted.
    accuracy : float or None
        Accuracy on the test rows with labels, NaN if there are none; None for a regressor.
    fit_seconds, predict_seconds : float
        Time to learn and to predict.
    n_support : int or None
        The learner's support vectors, if it counts them.
    metrics : dict of str to float
    predictions : ndarray
        Of the test rows.
    """

    n_train: int
    n_test: int
    accuracy: float | None
    fit_seconds: float = field(compare=False)
    predict_seconds: float = field(compare=False)
    n_support: int | None
    metrics: dict[str, float]
    predictions: NDArray[Any] = field(compare=False, repr=False)
