"""Classes: how online learners meet them, count them and score them, one against the rest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import assert_all_finite, check_consistent_length

from isokern.arrays import in_library_of
from isokern.checks import is_number, n_threads
from isokern.learners.kernel_source import labels_of
from isokern.learners.warm_up import OnlineLearner


class OnlineClassifier(ClassifierMixin, OnlineLearner):
    """Base of the online classifiers. Two classes share one score; more have one each.

    A learner that takes new classes (``_TAKES_NEW_CLASSES``) has one more column of scores, for a class not seen yet,
    unless it was told all classes at the start.
    """

    _LEARNED: tuple[str, ...] = ("classes_", "_is_open", "_counts")
    _TAKES_NEW_CLASSES = False

    def partial_fit(
        self, X: ArrayLike, y: ArrayLike, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Learn from the next rows of a stream, in order. Any way to cut a stream into calls gives the same model.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n, d)
        y : array-like of shape (n,)
        classes : array-like, default=None
            All classes there will be, in the first call. If not given, they are those of its y; a learner on the
            Isolation Kernel takes in later ones as they come, and is then the same as if it had been told.
        sample_weight : array-like of shape (n,), default=None
            Factors of the rows' steps, not negative.

        Returns
        -------
        self
        """
        return self._partial_fit(X, y, sample_weight, classes=classes)

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the scores of rows.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n, d)

        Returns
        -------
        scores : ndarray of shape (n,) for two classes, else (n, n_classes)
            For two classes, positive scores speak for the second.
        """
        return in_library_of(X, self._score(self._map(X)) if self._has_begun else self._early_scores(X))

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the class of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n, d)

        Returns
        -------
        labels : ndarray of shape (n,)
        """
        scores = self.decision_function(X)  # first, since it checks that there are classes
        return labels_of(scores, self.classes_)

    def _map(self, X: Any) -> Any:
        return self._mapped(self._checked_rows(X))

    def _check_targets(self, table: Any, y: Any) -> NDArray[Any]:
        return check_labels(self, table, y)

    def _begin_fit(self, labels: NDArray[Any]) -> None:
        check_two_classes(labels)
        self._meet(labels, None)

    def _meet(self, labels: NDArray[Any], classes: ArrayLike | None) -> None:
        """Take in the classes of labels; unless ``classes`` were given at the start, there may be new ones."""
        given = None if classes is None else np.unique(np.asarray(classes))
        if not hasattr(self, "classes_"):
            self._is_open = given is None and self._TAKES_NEW_CLASSES
            self.classes_ = np.unique(labels) if given is None else given
            self._counts = np.zeros(len(self.classes_), dtype=np.int64)
            if not self._is_open and len(self.classes_) < 2:
                cure = "" if given is not None else " Give classes, if the first y has fewer."
                raise ValueError(f"classes must be at least 2; got {self.classes_}.{cure}")
        elif given is not None and not np.array_equal(given, self.classes_):
            raise ValueError(f"classes must be the same in every call, {self.classes_}; got {given}.")
        if is_text(labels) != is_text(self.classes_):
            raise ValueError(f"y must be of one kind with the classes {self.classes_}; got {labels[:1]}.")
        new = np.setdiff1d(labels, self.classes_)
        if len(new) and not self._is_open:
            raise ValueError(
                f"y must be of the classes {self.classes_} that were given or found at the start; got {new[0]!r}."
            )
        if len(new):
            self._grow(np.union1d(self.classes_, new))

    def _grow(self, classes: NDArray[Any]) -> None:
        """Make room for new classes, each of which begins as what was learned for classes not seen yet."""
        place = np.searchsorted(classes, self.classes_)
        if hasattr(self, "_model"):
            scored = classes if len(classes) > 2 else classes[1:]
            columns, signs = zip(*(self._column_of(label) for label in [*scored, None]), strict=True)
            self._rearrange(columns, signs, place)
        counts = np.zeros(len(classes), dtype=np.int64)
        counts[place] = self._counts
        self.classes_, self._counts = classes, counts

    def _rearrange(self, columns: Sequence[int], signs: Sequence[float], place: NDArray[np.intp]) -> None:
        self._model.rearrange(columns, signs)

    def _column_of(self, label: Any) -> tuple[int, float]:
        """Return the column of a class's score and its sign; a class not seen yet has the last column."""
        known = np.flatnonzero(self.classes_ == label) if label is not None else np.empty(0)
        if len(known) == 0:
            return self._n_columns() - 1, 1.0
        if len(self.classes_) > 2:
            return int(known[0]), 1.0
        # Two classes share one column; what is always true of one class is never true of those not seen.
        return 0, 1.0 if known[0] == 1 else -1.0

    def _n_columns(self) -> int:
        n_classes = len(self.classes_)
        return (n_classes if n_classes > 2 else n_classes - 1) + self._is_open

    # -- learning and scoring

    def _learn(
        self, rows: Any, labels: NDArray[Any], weights: NDArray[np.float64] | None, *, is_new: bool = True
    ) -> None:
        classes = np.searchsorted(self.classes_, labels)
        rule = self._rule(self._counted_from(classes))
        self._model.learn(rows, self._targets(classes), self._row_factors(classes, weights), rule, None)

    def _counted_from(self, classes: NDArray[np.intp]) -> list[int]:
        """Return, for each column, the row from which on those that change it are support vectors.

        A class counts from its first row on; what is learned of classes not seen yet makes no support vector.
        """
        never = len(classes)
        if len(self.classes_) < 3:
            return [0] + [never] * (self._n_columns() - 1)
        firsts = [
            0 if self._counts[c] else next(iter(np.flatnonzero(classes == c)), never) for c in range(len(self.classes_))
        ]
        return [int(first) for first in firsts] + [never] * self._is_open

    def _targets(self, classes: NDArray[np.intp]) -> NDArray[np.int32]:
        """Return the column of each row's class, -1 for none: two classes share the second's."""
        return (classes if len(self.classes_) > 2 else classes - 1).astype(np.int32)

    def _row_factors(
        self, classes: NDArray[np.intp], weights: NDArray[np.float64] | None
    ) -> NDArray[np.float64] | None:
        """Return the factors of the rows' steps, and count the rows."""
        before = self._counts
        self._counts = before + np.bincount(classes, minlength=len(before))
        if self.class_weight is None:
            return weights
        if isinstance(self.class_weight, str):
            factors = balanced_factors(classes, before)
        else:
            factors = np.array([float(self.class_weight.get(label, 1.0)) for label in self.classes_.tolist()])[classes]
        return factors if weights is None else factors * weights

    def _score(self, cells: NDArray[Any]) -> NDArray[np.float64]:
        scores = self._model.score(cells, n_threads(self.n_jobs))
        return scores[:, : len(self.classes_)] if len(self.classes_) > 2 else scores[:, 0]

    def _early_scores(self, X: Any) -> NDArray[np.float64]:
        """Return scores that speak for the commonest class, while rows are held back."""
        table = self._checked_rows(X)
        scores = np.full((table.shape[0], len(self.classes_)), -1.0)
        scores[:, self._early_counts().argmax()] = 1.0
        return scores if len(self.classes_) > 2 else scores[:, -1] if len(self.classes_) == 2 else -scores[:, 0]

    def _early_counts(self) -> NDArray[np.int64]:
        labels = self._held.joined()[1]
        return np.bincount(np.searchsorted(self.classes_, labels), minlength=len(self.classes_))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_class_weight(self.class_weight)


def balanced_factors(classes: NDArray[np.intp], before: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return, for each row, n / (k * n_c): rows, classes and rows of its class so far, itself included."""
    n = before.sum() + np.arange(1, len(classes) + 1)
    n_class = np.empty(len(classes))
    is_first = np.zeros(len(classes), dtype=np.int64)
    for c, count in enumerate(before):
        rows = np.flatnonzero(classes == c)
        n_class[rows] = count + np.arange(1, len(rows) + 1)
        if count == 0 and len(rows):
            is_first[rows[0]] = 1
    return n / ((np.count_nonzero(before) + np.cumsum(is_first)) * n_class)


def check_labels(estimator: object, table: Any, y: Any) -> NDArray[Any]:
    """Return the labels of rows as an array; raise if they are none."""
    if y is None:
        raise ValueError(f"{type(estimator).__name__} requires y to be passed, but the target y is None.")
    labels = column_or_1d(y, warn=True)
    check_consistent_length(table, labels)
    if labels.dtype.kind == "f":
        assert_all_finite(labels, input_name="y")
    check_classification_targets(labels)
    return labels


def check_class_weight(class_weight: Any) -> None:
    """Raise unless factors of classes are known."""
    if isinstance(class_weight, dict):
        is_known = all(is_number(weight) and weight >= 0 for weight in class_weight.values())
    else:
        is_known = class_weight in (None, "balanced")
    if not is_known:
        raise ValueError(
            f'class_weight must be None, "balanced" or a dict of numbers of at least 0; got {class_weight!r}.'
        )


def check_two_classes(labels: NDArray[Any]) -> None:
    """Raise if all labels are the same."""
    if len(np.unique(labels)) < 2:
        raise ValueError(f"y must have at least 2 classes in fit; got only one class, {labels[0]!r}.")


def is_text(labels: NDArray[Any]) -> bool:
    """Return whether labels are strings rather than numbers."""
    return labels.dtype.kind in "UST" or (labels.dtype.kind == "O" and any(isinstance(label, str) for label in labels))
