"""Answer the rows of a stream before each of them is learned; rows without a label are only answered."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError
from sklearn.utils import column_or_1d

from isokern.checks import one_of
from isokern.frames import is_missing
from isokern.learners.classes import ClassBook, read_classes
from isokern.learners.commits import BLOCK

METHODS = ("predict", "decision_function", "predict_proba")


def check_method(estimator: Any, method: object) -> None:
    """Raise unless an estimator can answer by this method."""
    known = [name for name in METHODS if hasattr(estimator, name)]
    if method not in known:
        raise ValueError(f"method must be {one_of(known)} for {type(estimator).__name__}; got {method!r}.")


def given_classes(estimator: Any, classes: Any) -> NDArray[Any]:
    """Return the classes that were given for a stream without a label so far; raise if there are none."""
    if classes is None:
        raise NotFittedError(
            f"This {type(estimator).__name__} is not fitted yet: y must have a label, or classes must be given."
        )
    return read_classes(classes)


def present_labels(y: Any) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return the labels that are not missing, and a mask of them."""
    # Lists become arrays of objects, because NumPy would turn a NaN among strings into the label "nan".
    labels = np.asarray(y) if hasattr(y, "__array__") else np.array(y, dtype=object)
    if labels.ndim != 1 or labels.dtype.kind not in "biuf":  # the check takes longer than mapping a few rows
        labels = column_or_1d(labels)
    if labels.dtype.kind == "f":
        has_label = ~np.isnan(labels)
    elif labels.dtype.kind == "O":
        has_label = np.array([not is_missing(label) for label in labels], dtype=bool)
    else:
        has_label = np.ones(len(labels), dtype=bool)
    return _without_objects(labels[has_label]), has_label


def _without_objects(labels: NDArray[Any]) -> NDArray[Any]:
    """Return objects as an array of strings or of numbers; a mixture is left for the learner to refuse."""
    if labels.dtype.kind != "O" or len({isinstance(label, str) for label in labels}) != 1:
        return labels
    return np.array(labels.tolist())


def spread(values: NDArray[Any], mask: NDArray[np.bool_]) -> NDArray[Any]:
    """Return an array with these values where the mask is true, and zeros elsewhere."""
    if mask.all():
        return values
    everywhere = np.zeros(len(mask), dtype=values.dtype)
    everywhere[mask] = values
    return everywhere


@dataclass(frozen=True, eq=False)
class Answers:
    """Scores of rows before they are learned, to be filled in along the way."""

    has_label: NDArray[np.bool_]
    scores: NDArray[np.float64]  # of shape (n, n_columns)

    @classmethod
    def none(cls, has_label: NDArray[np.bool_], n_columns: int) -> Self:
        """Return scores of 0."""
        return cls(has_label, np.zeros((len(has_label), n_columns)))

    def after(self, n: int) -> Self:
        """Return the answers of the rows after the first n; they share memory with these."""
        return type(self)(self.has_label[n:], self.scores[n:])

    def runs(self) -> Iterator[slice]:
        """Yield slices of at most ``BLOCK`` rows, which all have a label or all have none."""
        n = len(self.has_label)
        changes = np.flatnonzero(np.diff(self.has_label)) + 1
        edges = [*np.union1d(changes, np.arange(0, n, BLOCK)).tolist(), n]
        return (slice(begin, end) for begin, end in pairwise(edges))

    def n_until(self, n_learned: int) -> int:
        """Return the number of rows that come before ``n_learned`` rows are learned."""
        n_before: NDArray[np.int64] = np.cumsum(self.has_label) - self.has_label
        return int(np.searchsorted(n_before, n_learned))

    def take_majority(self, book: ClassBook, numbers: NDArray[np.intp], counts: NDArray[np.int64]) -> None:
        """Answer the first rows, of classes ``numbers``, by the majority class so far.

        ``counts`` has the rows of each class before. The answer is 0 before any row has come.
        """
        counted, leaders = counts.tolist(), []
        for number, has_label in zip(numbers.tolist(), self.has_label[: len(numbers)].tolist(), strict=True):
            leaders.append(counted.index(max(counted)) if any(counted) else -1)
            counted[number] += has_label
        for leader in set(leaders) - {-1}:
            only = np.eye(len(counted), dtype=np.int64)[leader]
            self.scores[np.flatnonzero(np.equal(leaders, leader))] = book.majority_scores(1, only)
