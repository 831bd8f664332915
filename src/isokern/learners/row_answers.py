"""Collect what learners on cells answer to the rows of a stream before each of them is learned."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing, check_consistent_length
from sklearn.utils.validation import _num_samples

from isokern.learners.answers import present_labels
from isokern.learners.calibration import probabilities
from isokern.learners.classes import ClassBook
from isokern.learners.moments import Table
from isokern.learners.targets import Weights, read_weights, some


class ClassAnswers:
    """Answers of a classifier, whose classes may increase along the way.

    A class that no row had before has a probability of 0 and a score of -inf, and is not predicted.
    """

    def __init__(self, method: str, loss: str) -> None:
        self.method = method
        self._is_logistic = loss == "logistic"
        self._parts: list[tuple[NDArray[Any], NDArray[Any]]] = []  # classes, answers
        self._n_early = 0

    def begin(self, learned: Any, numbers: NDArray[np.intp]) -> tuple[ClassBook, NDArray[np.bool_], list[Any]]:
        """Return what the answers for a block depend on, before it is learned: book, classes known, temperatures."""
        book, n = learned.book, np.arange(len(numbers))[:, None]
        is_known = np.ones((len(numbers), len(book.labels)), dtype=bool)
        if book.is_open:
            is_known = (book.counts > 0) | (n > np.array(book.seen_from(numbers)))
        wanted = self.method == "predict_proba" and not self._is_logistic
        return book, is_known, learned.temperatures() if wanted else [None] * learned.n_models

    def add(self, begun: tuple[Any, Any, Any], scores: Table, leaders: NDArray[np.intp]) -> None:
        """Add the scores of a block before it was learned, and which model led at each row."""
        book, is_known, factors = begun
        given = book.of_classes(scores)
        if self.method == "predict_proba":
            shares = np.empty(is_known.shape)
            for k in np.unique(leaders):
                rows = leaders == k
                shares[rows] = probabilities(given[rows], len(book.labels), factors[k])
            self._add_shares(book.labels, np.where(is_known, shares, 0.0))
            return
        columns = given if given.ndim == 2 else np.column_stack([np.zeros(len(given)), given])[:, : is_known.shape[1]]
        masked = np.where(is_known, columns, -np.inf)
        if self.method == "predict":
            self._parts.append((book.labels, book.labels[masked.argmax(axis=1)]))
        else:
            self._parts.append((book.labels, masked if given.ndim == 2 else given))

    def add_majority(self, book: ClassBook, labels: NDArray[Any], held: NDArray[Any], n: int) -> None:
        """Add the answers for the first n of some rows: the majority class of the held rows and those before each."""
        rows = np.concatenate([held, labels[:n]])
        classes = np.unique(rows) if book.is_open else book.labels
        counts = np.cumsum(np.eye(len(classes))[np.searchsorted(classes, rows)], axis=0)
        self._add_counts(classes, np.vstack([np.zeros((1, len(classes))), counts])[len(held) : len(held) + n])

    def _add_counts(self, classes: NDArray[Any], before: Table) -> None:
        """Add the answers for rows that tell nothing, given the number of rows of each class before."""
        if self.method == "predict":
            self._parts.append((classes, classes[before.argmax(axis=1)]))
        elif self.method == "predict_proba":
            self._add_shares(classes, before)
        else:
            is_majority = np.eye(len(classes), dtype=bool)[before.argmax(axis=1)]
            has_any = before.any(axis=1, keepdims=True)
            self._parts.append((classes, np.where(has_any, np.where(is_majority, 1.0, -1.0), 0.0)))

    def add_answers(self, classes: NDArray[Any], answers: NDArray[Any]) -> None:
        """Add answers of the method itself."""
        self._parts.append((classes, answers))

    def add_early(self, n: int) -> None:
        """Add n rows that come before any label. They are answered like the first row that has one."""
        self._n_early = n

    def _add_shares(self, classes: NDArray[Any], shares: Table) -> None:
        total = shares.sum(axis=1, keepdims=True)
        self._parts.append((classes, np.where(total > 0, shares / np.where(total > 0, total, 1.0), 1 / len(classes))))

    def joined(self, classes: NDArray[Any]) -> NDArray[Any]:
        """Return all answers, for these classes."""
        if not self._parts:  # no label at all
            self._add_counts(classes, np.zeros((self._n_early, len(classes))))
        elif self._n_early:
            known, answers = self._parts[0]
            self._parts.insert(0, (known, np.repeat(answers[:1], self._n_early, axis=0)))
        if self.method == "predict":
            return np.concatenate([answers for _, answers in self._parts]).astype(classes.dtype, copy=False)
        parts = [self._aligned(classes, *part) for part in self._parts]
        return np.concatenate(parts)

    def _aligned(self, classes: NDArray[Any], known: NDArray[Any], answers: NDArray[Any]) -> NDArray[Any]:
        is_score = self.method == "decision_function"
        if is_score and len(classes) <= 2:
            # One column, positive for the second class. That of a single class is negative: the other may come first.
            column = answers if answers.ndim == 1 else answers[:, 1] if answers.shape[1] == 2 else 0.0 - answers[:, 0]
            return 0.0 - column if len(known) < len(classes) and known[0] == classes[1] else column
        if answers.ndim == 1:
            answers = np.column_stack([-answers, answers])[:, : len(known)]
        every = np.full((len(answers), len(classes)), -np.inf if is_score else 0.0)
        every[:, np.searchsorted(classes, known)] = answers
        return every


def labelled_runs(
    X: Any, y: Any, weights: Any, read: Callable[[Any, NDArray[Any]], NDArray[Any]]
) -> Iterator[tuple[Any, Any, Weights]]:
    """Yield runs of rows that all have a label or all have none: rows, labels or None, weights.

    If there are several runs, ``read`` first validates all rows and returns their validated labels, so that invalid
    ones raise before anything is learned.
    """
    labels, has_label = present_labels([None] * _num_samples(X) if y is None else y)
    check_consistent_length(X, has_label)
    if has_label.all():
        yield X, y, weights
        return
    labels, weights = read(X, labels), read_weights(weights, has_label)
    edges = [0, *(np.flatnonzero(np.diff(has_label)) + 1).tolist(), len(has_label)]
    n_labelled = np.concatenate([[0], np.cumsum(has_label)])
    for begin, end in pairwise(edges):
        known = labels[n_labelled[begin] : n_labelled[end]] if has_label[begin] else None
        yield _safe_indexing(X, np.arange(begin, end)), known, some(weights, slice(begin, end))
