"""Keep track of the classes of a classifier: their counts and their columns of one-vs-rest scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isokern.frames import is_missing
from isokern.learners.targets import LARGEST, LARGEST_WHOLE, Weights, is_text
from isokern.parts import Part, need, need_array

ClassWeight = dict[Any, float] | str | None


def read_classes(classes: ArrayLike) -> NDArray[Any]:
    """Return all classes of a stream, sorted, as the user gives them."""
    given = classes if hasattr(classes, "dtype") else np.array(classes, dtype=object)  # else NaN would become text
    for label in np.ravel(np.asarray(given)).tolist():
        if is_missing(label):
            raise ValueError(f"classes must not have missing values; got {label}.")
    return np.unique(np.asarray(classes))


def _are_rounded(labels: NDArray[Any], others: NDArray[Any]) -> bool:
    """Return whether labels are so large that they could become equal in the type that both arrays have in common."""
    arrays = [array for array in (labels, others) if array.dtype.kind in "iu" and len(array)]
    if labels.dtype == others.dtype or np.result_type(labels, others).kind != "f":
        return False
    return any(max(abs(int(array.min())), abs(int(array.max()))) >= LARGEST_WHOLE for array in arrays)


class Rearrangement(NamedTuple):
    """How the columns of scores change when new classes arrive."""

    columns: Sequence[int]  # for each new column, the old column to copy
    signs: Sequence[float]  # for each new column, the factor of the copy
    numbers: NDArray[np.intp]  # for each old class, its new number


@dataclass(frozen=True, eq=False)
class ClassBook(Part):
    """Classes seen so far. Immutable: its methods return changed copies.

    Two classes share one column of scores, positive for the second; three or more have one column each. An open book
    has one more column at the end, learned with every row as a negative example: the score of a class not seen yet. A
    new class starts as a copy of it, so the model is the same as if the class had been known from the start.

    One exception: a model that learns in place advances the counts of its book in the same step.
    """

    in_place: ClassVar = ("counts",)

    labels: NDArray[Any]  # classes, sorted
    counts: NDArray[np.int64]  # number of learned rows of each class
    is_open: bool  # whether new classes may arrive

    @classmethod
    def of(cls, labels: NDArray[Any], classes: ArrayLike | None = None, *, takes_new: bool) -> Self:
        """Return the book of the first rows of a stream; ``classes``, if given, are all there will be."""
        if classes is not None:
            known, is_open = read_classes(classes), False
        else:
            known, is_open = np.unique(labels), takes_new
        if not is_open and len(known) < 2:
            cure = "" if classes is not None else " Give classes, if the first y has fewer."
            raise ValueError(f"classes must be at least 2; got {known}.{cure}")
        book = cls(known, np.zeros(len(known), dtype=np.int64), is_open)
        book._check_known(labels)
        return book

    @classmethod
    def of_all(cls, labels: NDArray[Any], *, takes_new: bool, class_weight: ClassWeight = None) -> Self:
        """Return the book of all rows of ``fit``; raise unless they have two classes, one of them with a weight."""
        book = cls.of(labels, takes_new=True)
        if len(book.labels) < 2:
            raise ValueError(f"y must have at least 2 classes in fit; got only one class, {labels[:1].tolist()[0]!r}.")
        if isinstance(class_weight, dict) and class_weight and class_weight.keys().isdisjoint(book.labels.tolist()):
            raise ValueError(f"class_weight must have classes of y, {book.labels}; got only {list(class_weight)}.")
        return replace(book, is_open=takes_new)

    # -- classes

    def meet(self, labels: NDArray[Any], classes: ArrayLike | None = None) -> Self:
        """Return the book with the classes of further rows; ``classes``, if given, must be the known ones."""
        if classes is not None and not np.array_equal(known := read_classes(classes), self.labels):
            raise ValueError(f"classes must be the same in every call, {self.labels}; got {known}.")
        self._check_known(labels)
        return self.with_classes(labels) if self.is_open else self

    def _check_known(self, labels: NDArray[Any]) -> None:
        """Raise ValueError if labels mix text, dates and numbers, or are new to a closed book."""
        are_dates = [array.dtype.kind in "mM" and array.dtype.kind for array in (labels, self.labels)]
        is_mixed = is_text(labels) != is_text(self.labels) or are_dates[0] != are_dates[1]
        if is_mixed or _are_rounded(labels, self.labels):
            raise ValueError(f"y must be of the type of the classes {self.labels}; got {labels[:1]}.")
        if self.is_open:
            return
        new = np.setdiff1d(labels, self.labels)
        if len(new):
            raise ValueError(
                f"y must be of the classes {self.labels} that were given or found at the start; got {new[0]!r}."
            )

    def with_classes(self, labels: NDArray[Any]) -> Self:
        """Return the book with more classes, or itself if none is new."""
        union = np.union1d(self.labels, labels)
        if len(union) == len(self.labels):
            return self
        counts = np.zeros(len(union), dtype=np.int64)
        counts[np.searchsorted(union, self.labels)] = self.counts
        return replace(self, labels=union, counts=counts)

    def rearrangement(self, larger: ClassBook) -> Rearrangement:
        """Return how the columns of scores change from this book to a larger one."""
        scored = larger.labels if len(larger.labels) > 2 else larger.labels[1:]
        columns, signs = zip(*(self._column_of(label) for label in [*scored, None]), strict=True)
        return Rearrangement(columns, signs, np.searchsorted(larger.labels, self.labels))

    def _column_of(self, label: Any) -> tuple[int, float]:
        """Return the column and the sign of a class's score; a class not seen yet has the last column."""
        known = np.flatnonzero(self.labels == label) if label is not None else np.empty(0)
        if len(known) == 0:
            return self.n_columns - 1, 1.0
        if len(self.labels) > 2:
            return int(known[0]), 1.0
        # The column of two classes speaks for the second, its negative for the first. With a single class it is the
        # column of classes not seen yet, which learns -1 from every row; the negative learns +1.
        return 0, 1.0 if known[0] == 1 else -1.0

    # -- scores

    @property
    def n_columns(self) -> int:
        """Number of columns of scores."""
        n_classes = len(self.labels)
        return (n_classes if n_classes > 2 else n_classes - 1) + self.is_open

    def of_classes(self, scores: Any) -> Any:
        """Return the scores that users see: (n,) for two classes, else (n, n_classes)."""
        return scores[:, : len(self.labels)] if len(self.labels) > 2 else scores[:, 0]

    def numbers(self, labels: NDArray[Any]) -> NDArray[np.intp]:
        """Return the index of each row's class."""
        return np.searchsorted(self.labels, labels)

    def targets(self, numbers: NDArray[np.intp]) -> NDArray[np.int32]:
        """Return the column of each row's class; -1 for the first of two classes, which has none."""
        return (numbers if len(self.labels) > 2 else numbers - 1).astype(np.int32)

    def seen_from(self, numbers: NDArray[np.intp]) -> list[int]:
        """Return, for each class, the first row at which it has been seen."""
        never = len(numbers)
        firsts = (
            0 if count else next(iter(np.flatnonzero(numbers == c)), never) for c, count in enumerate(self.counts)
        )
        return [int(first) for first in firsts]

    def counted_from(self, numbers: NDArray[np.intp]) -> list[int]:
        """Return, for each column, the first row whose update counts as a support vector.

        A class counts from its first row on. Updates of the column for classes not seen yet never count.
        """
        never = len(numbers)
        if len(self.labels) < 3:
            return [0] + [never] * (self.n_columns - 1)
        return self.seen_from(numbers) + [never] * self.is_open

    def majority_scores(self, n: int, frequencies: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return scores of n rows that predict the majority class."""
        scores = np.full((n, len(self.labels)), -1.0)
        scores[:, frequencies.argmax()] = 1.0
        return scores if len(self.labels) > 2 else scores[:, -1] if len(self.labels) == 2 else -scores[:, 0]

    def frequencies(self, numbers: NDArray[np.intp]) -> NDArray[np.int64]:
        """Return the number of rows of each class."""
        return np.bincount(numbers, minlength=len(self.labels))

    # -- counts and weights

    def counting(self, numbers: NDArray[np.intp]) -> Self:
        """Return the book with further rows counted."""
        return replace(self, counts=self.counts + self.frequencies(numbers))

    def row_factors(self, numbers: NDArray[np.intp], weights: Weights, class_weight: ClassWeight) -> Weights:
        """Return the factors of the rows' steps: row weights times class weights."""
        if class_weight is None:
            return weights
        is_running = isinstance(class_weight, str)  # "balanced" uses the counts at each row
        factors = self._balanced_factors(numbers) if is_running else self.class_factors(class_weight)[numbers]
        return factors if weights is None else np.minimum(factors * weights, LARGEST)

    def _balanced_factors(self, numbers: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return n / (k * n_c) for each row: rows, classes and rows of its class so far, itself included."""
        n = self.counts.sum() + np.arange(1, len(numbers) + 1)
        n_class = np.empty(len(numbers))
        is_first = np.zeros(len(numbers), dtype=np.int64)
        for c, count in enumerate(self.counts):
            rows = np.flatnonzero(numbers == c)
            n_class[rows] = count + np.arange(1, len(rows) + 1)
            if count == 0 and len(rows):
                is_first[rows[0]] = 1
        return n / ((np.count_nonzero(self.counts) + np.cumsum(is_first)) * n_class)

    def class_factors(self, class_weight: ClassWeight) -> NDArray[np.float64]:
        """Return the weight of each class; "balanced" uses all rows counted so far."""
        if class_weight is None:
            return np.ones(len(self.labels))
        if isinstance(class_weight, str):
            return self.counts.sum() / (len(self.labels) * np.maximum(self.counts, 1))
        return np.array([float(class_weight.get(label, 1.0)) for label in self.labels.tolist()])

    # -- contract of isokern.parts

    def check(self) -> None:
        """Raise ValueError unless classes are sorted and have counts."""
        is_array = isinstance(self.labels, np.ndarray) and self.labels.ndim == 1 and len(self.labels)
        need(is_array, "labels must be an array of at least one class")
        need(np.array_equal(np.unique(self.labels), self.labels), "labels must be sorted and unique")
        need_array(self.counts, np.int64, 1, "counts")
        need(len(self.counts) == len(self.labels), "counts must have one per class")
        need(type(self.is_open) is bool, "is_open must be a bool")

    def check_mergeable(self, other: ClassBook, name: str) -> None:
        """Raise ValueError if another book, which errors call ``name``, cannot be merged with this one."""
        if is_text(other.labels) != is_text(self.labels):
            raise ValueError(f"classes must be of one type; got {self.labels} and {other.labels} in {name}.")
        if other.is_open != self.is_open:
            raise ValueError(f"classes must be given to all models at the start, or to none; {name} differs.")
        if not other.is_open and not np.array_equal(other.labels, self.labels):
            raise ValueError(
                f"classes must be the same in all models if given at the start; got {self.labels} and {other.labels} "
                f"in {name}."
            )

    @classmethod
    def merge(cls, books: Sequence[Self], shares: NDArray[np.float64]) -> Self:
        """Return the book of all classes with mean counts; a class seen in any book keeps a count of at least 1."""
        everything = reduce(np.union1d, (book.labels for book in books))
        counts = np.array([book.with_classes(everything).counts for book in books])
        means = np.rint(shares @ counts.astype(np.float64)).astype(np.int64)
        return cls(everything, np.maximum(means, counts.any(axis=0)), books[0].is_open)
