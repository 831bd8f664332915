"""Online gradient descent on cells: rows in, weights changed, whatever the targets."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from isokern import _core
from isokern._checks import is_integer, is_number, one_of, unchanged_on_error
from isokern._rows import check_finite, check_rows
from isokern.feature_map import IsolationKernel
from isokern.learners._mapped import MappedEstimator
from isokern.learners._weights import CellWeights, SupportVectors

SCHEDULES = {"constant": 0.5, "decaying": 1.0, "adagrad": 2.0}  # with the learning rate that "auto" means
EVALUATIONS = ("primal", "naive", "dual")
_FIRST_ROWS = 1000


class OnlineLearner(MappedEstimator):
    """Base of the online learners. A subclass says what its targets are and what it does with scores."""

    _LOSSES: tuple[str, ...]
    _LEARNED: tuple[str, ...]
    _model: CellWeights | SupportVectors
    _held: HeldRows

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Draw the map from all rows and learn from them, ``n_passes`` times.

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
        self._check_parameters()
        with unchanged_on_error(self):
            table = check_rows(self, X, reset=True)
            targets, weights = self._check_targets(table, y), check_weights(table, sample_weight)
            rng = check_random_state(self.random_state)
            self._forget()
            self._begin_fit(targets)
            self._start(self._fit_kernel(X, rng))
            cells = self.kernel_._apply(table)
        for k in range(self.n_passes):
            order: Any = rng.permutation(len(cells)) if self.shuffle else slice(None)
            self._learn(cells[order], targets[order], None if weights is None else weights[order], is_new=k == 0)
        return self

    def _partial_fit(self, X: Any, y: Any, sample_weight: Any, **how: Any) -> Self:
        """Take in rows of a stream; ``how`` is what the targets need to know."""
        is_first = not hasattr(self, "n_features_in_")
        with unchanged_on_error(self):
            if is_first:
                self._check_parameters()
                self._forget()
            table = check_rows(self, X, reset=is_first, min_rows=1)
            check_finite(table, getattr(self, "feature_names_in_", None))
            targets, weights = self._check_targets(table, y), check_weights(table, sample_weight)
            self._meet(targets, **how)
            if not hasattr(self, "kernel_"):
                table, targets, weights = self._hold(table, targets, weights)
        if table.shape[0]:
            self._learn(self.kernel_._apply(table), targets, weights)
        return self

    def _partial_fit_cells(self, cells: Any, y: Any, sample_weight: Any, **how: Any) -> Self:
        """Take in rows of a stream that are mapped already."""
        with unchanged_on_error(self):
            is_first = not hasattr(self, "kernel_")
            if is_first:
                self._check_parameters()
                self._forget()
            kernel = self._given_kernel() if is_first else self.kernel_
            if kernel is None:
                raise NotFittedError(
                    f"{type(self).__name__} must know the map that made the cells: call fit or partial_fit first, or "
                    "give a fitted kernel."
                )
            cells = kernel._check_cells(cells)
            targets, weights = self._check_targets(cells, y), check_weights(cells, sample_weight)
            self._meet(targets, **how)
            if is_first:
                self.n_features_in_ = kernel.n_features_in_
                self._start(kernel)
        self._learn(cells, targets, weights)
        return self

    def _hold(self, table: Any, targets: NDArray[Any], weights: NDArray[np.float64] | None) -> Any:
        """Hold rows back until there are enough to draw the map from; return those that come after."""
        n_initial = self._n_initial()
        rng = check_random_state(self.random_state)
        if n_initial == 0:
            self._start(self._fit_kernel(None, rng))
            return table, targets, weights
        room = n_initial - self._held.n
        with self._held.adding(table[:room], targets[:room], None if weights is None else weights[:room]):
            if self._held.n == n_initial:
                first = self._held.joined()
                self._start(self._fit_kernel(first[0], rng))
                self._learn(self.kernel_._apply(first[0]), *first[1:])
                self._held = HeldRows()
        return table[room:], targets[room:], None if weights is None else weights[room:]

    def _forget(self) -> None:
        for name in ("kernel_", "_model", *self._LEARNED):
            self.__dict__.pop(name, None)
        self._held = HeldRows()

    def _start(self, kernel: IsolationKernel) -> None:
        """Begin with weights of 0 for the cells of a kernel."""
        self.kernel_ = kernel
        starts, n_columns = kernel._cell_starts, self._n_columns()
        if self.evaluation == "dual":
            self._model = SupportVectors(starts, n_columns, kernel._cell_dtype, average=self.average)
        else:
            is_adagrad, is_naive = self.schedule == "adagrad", self.evaluation == "naive"
            self._model = CellWeights(starts, n_columns, average=self.average, adagrad=is_adagrad, naive=is_naive)

    def _rule(self) -> _core.Rule:
        rate = SCHEDULES[self.schedule] if self.learning_rate == "auto" else self.learning_rate
        return _core.Rule(self.loss, getattr(self, "epsilon", 0.0), self.schedule, rate, self.shrinkage)

    def _n_initial(self) -> int:
        if self._given_kernel() is not None:
            return 0
        if self.n_initial is not None:
            return int(self.n_initial)
        n_cells = self.n_cells if self.kernel is None else self.kernel.n_cells
        return _FIRST_ROWS if isinstance(n_cells, str) else max(_FIRST_ROWS, n_cells)

    @property
    def n_support_(self) -> int:
        """The number of support vectors: rows that changed the model."""
        check_is_fitted(self)
        return self._model.clock.n_support if hasattr(self, "_model") else 0

    def _check_parameters(self) -> None:
        self._check_kernel_parameters()
        if self.loss not in self._LOSSES:
            raise ValueError(f"loss must be {one_of(self._LOSSES)}; got {self.loss!r}.")
        if self.schedule not in SCHEDULES:
            raise ValueError(f"schedule must be {one_of(SCHEDULES)}; got {self.schedule!r}.")
        if self.evaluation not in EVALUATIONS:
            raise ValueError(f"evaluation must be {one_of(EVALUATIONS)}; got {self.evaluation!r}.")
        if self.evaluation == "dual" and self.schedule == "adagrad":
            raise ValueError('schedule must be "constant" or "decaying" for evaluation="dual"; got "adagrad".')
        if self.learning_rate != "auto" and not (is_number(self.learning_rate) and self.learning_rate > 0):
            raise ValueError(f'learning_rate must be "auto" or a positive number; got {self.learning_rate!r}.')
        rate = SCHEDULES[self.schedule] if self.learning_rate == "auto" else self.learning_rate
        if not (is_number(self.shrinkage) and 0 <= self.shrinkage * rate < 1):
            raise ValueError(f"shrinkage must be at least 0 and below 1 / learning_rate; got {self.shrinkage!r}.")
        if not is_integer(self.n_passes, at_least=1):
            raise ValueError(f"n_passes must be an integer of at least 1; got {self.n_passes!r}.")
        if self.n_initial is not None and not is_integer(self.n_initial, at_least=2):
            raise ValueError(f"n_initial must be None or an integer of at least 2; got {self.n_initial!r}.")


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
