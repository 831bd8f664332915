"""Online learning: rows in, model changed, whatever the targets and whatever the model."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from isokern.checks import is_integer, is_number, one_of, unchanged_on_error
from isokern.rows import CoreRows, RowsEstimator, check_finite, check_rows, n_rows, row_blocks


class OnlineLearner(RowsEstimator):
    """Base of the online learners.

    A subclass says what its targets are (``_check_targets``, ``_meet``, ``_learn``), and what its model is:
    ``_prepare`` makes ``_model`` from the first rows, ``_mapped`` turns rows into what it learns and scores.
    """

    _LOSSES: tuple[str, ...]
    _LEARNED: tuple[str, ...]
    _model: Any
    _held: HeldRows

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from rows, ``n_passes`` times, forgetting what was learned before.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n, d)
        y : array-like of shape (n,)
        sample_weight : array-like of shape (n,), default=None
            Factors of the rows' steps, not negative.

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_weight)

    def _fit(self, X: Any, y: Any, sample_weight: Any, mapped: Any = None) -> Self:
        """Do what ``fit`` does; ``mapped`` is what the rows become, if that is known already."""
        self._check_parameters()
        with unchanged_on_error(self):
            table = check_rows(self, X, reset=True)
            check_finite(table, getattr(self, "feature_names_in_", None))
            targets, weights = self._check_targets(table, y), check_weights(table, sample_weight)
            rng = check_random_state(self.random_state)
            self._forget()
            self._begin_fit(targets)
            self._prepare(X, table, rng)
            self._learn_passes(self._mapped(table) if mapped is None else mapped, targets, weights, rng)
        return self

    def _learn_passes(
        self, rows: Any, targets: NDArray[Any], weights: NDArray[np.float64] | None, rng: np.random.RandomState
    ) -> None:
        """Learn from all rows, ``n_passes`` times, in orders drawn from ``rng``."""
        for k in range(self.n_passes):
            order: Any = rng.permutation(len(targets)) if self.shuffle else slice(None)
            self._learn(rows[order], targets[order], None if weights is None else weights[order], is_new=k == 0)

    def _partial_fit(self, X: Any, y: Any, sample_weight: Any, **how: Any) -> Self:
        """Take in rows of a stream; ``how`` is what the targets need to know."""
        is_first = not hasattr(self, "n_features_in_")
        with unchanged_on_error(self):
            self._check_parameters()
            if is_first:
                self._forget()
            table = check_rows(self, X, reset=is_first, min_rows=1)
            check_finite(table, getattr(self, "feature_names_in_", None))
            targets, weights = self._check_targets(table, y), check_weights(table, sample_weight)
            if self._has_begun:
                rows = self._mapped(table)  # first, since what may fail must not come after a change of the model
                self._meet(targets, **how)
            else:
                self._meet(targets, **how)
                table, targets, weights = self._hold(table, targets, weights)
                rows = self._mapped(table) if table.shape[0] else None
        if rows is not None:
            self._learn(rows, targets, weights)
        return self

    def _hold(self, table: Any, targets: NDArray[Any], weights: NDArray[np.float64] | None) -> Any:
        """Hold rows back until there are enough to prepare the model from; return those that come after."""
        n_initial = self._n_initial()
        rng = check_random_state(self.random_state)
        if n_initial == 0:
            self._prepare(table, table, rng)
            return table, targets, weights
        room = max(0, n_initial - self._held.n)
        with self._held.adding(table[:room], targets[:room], None if weights is None else weights[:room]):
            if self._held.n >= n_initial:
                first, first_targets, first_weights = self._held.joined()
                self._prepare(first, first, rng)
                self._learn(self._mapped(first), first_targets, first_weights)
                self._held = HeldRows()
        return table[room:], targets[room:], None if weights is None else weights[room:]

    @property
    def _has_begun(self) -> bool:
        """Whether there is a model yet, or rows are held back for it."""
        return hasattr(self, "_model")

    def _forget(self) -> None:
        for name in ("_model", *self._LEARNED):
            self.__dict__.pop(name, None)
        self._held = HeldRows()

    def _checked_rows(self, X: Any) -> Any:
        """Return rows to predict, while there is no model yet to check them."""
        check_is_fitted(self)
        table = check_rows(self, X, reset=False)
        check_finite(table, getattr(self, "feature_names_in_", None))
        return table

    @property
    def n_support_(self) -> int:
        """The number of support vectors: rows that changed the model."""
        check_is_fitted(self)
        return self._model.clock.n_support if self._has_begun else 0

    def _check_parameters(self) -> None:
        if self.loss not in self._LOSSES:
            raise ValueError(f"loss must be {one_of(self._LOSSES)}; got {self.loss!r}.")
        if not is_integer(self.n_passes, at_least=1):
            raise ValueError(f"n_passes must be an integer of at least 1; got {self.n_passes!r}.")
        if self.n_initial is not None and not is_integer(self.n_initial, at_least=2):
            raise ValueError(f"n_initial must be None or an integer of at least 2; got {self.n_initial!r}.")
        rate = self._rate()
        if not (is_number(rate) and rate > 0):
            raise ValueError(f"learning_rate must be a positive number; got {self.learning_rate!r}.")


class HeldRows:
    """Rows of a stream that wait for the map."""

    def __init__(self) -> None:
        self.n = 0
        self._parts: list[tuple[Any, NDArray[Any], NDArray[np.float64] | None]] = []

    @contextmanager
    def adding(self, table: Any, targets: NDArray[Any], weights: NDArray[np.float64] | None) -> Iterator[None]:
        """Hold copies of more rows, unless the block raises."""
        self._parts.append((table.copy(), targets.copy(), None if weights is None else weights.copy()))
        self.n += len(targets)
        try:
            yield
        except BaseException:
            self._parts.pop()
            self.n -= len(targets)
            raise

    def joined(self) -> tuple[Any, NDArray[Any], NDArray[np.float64] | None]:
        """Return all rows in order."""
        tables, targets, weights = zip(*self._parts, strict=True)
        is_sparse = any(sparse.issparse(table) for table in tables)
        table = sparse.vstack(tables, format="csr") if is_sparse else np.concatenate(tables)
        if all(part is None for part in weights):
            return table, np.concatenate(targets), None
        ones = [np.ones(len(t)) if w is None else w for w, t in zip(weights, targets, strict=True)]
        return table, np.concatenate(targets), np.concatenate(ones)


def check_weights(table: Any, sample_weight: Any) -> NDArray[np.float64] | None:
    """Return the rows' weights as float64, or None if there are none."""
    if sample_weight is None:
        return None
    weights = _check_sample_weight(sample_weight, table, dtype=np.float64, ensure_non_negative=True)
    if not weights.any():
        raise ValueError(f"sample_weight must not be zero for all rows; got {len(weights)} zeros.")
    return np.ascontiguousarray(weights)


def learning_blocks(
    table: Any, targets: NDArray[Any], weights: NDArray[np.float64] | None
) -> Iterator[tuple[CoreRows, NDArray[Any], NDArray[np.float64] | None]]:
    """Yield rows in the core's form, their targets and weights, block by block."""
    for begin, rows in row_blocks(table):
        part = slice(begin, begin + n_rows(rows))
        yield rows, targets[part], None if weights is None else weights[part]
