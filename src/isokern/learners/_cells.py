"""Online learning on the cells of an Isolation Kernel."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError

from isokern import _core
from isokern.arrays import is_foreign, to_host
from isokern.checks import is_number, one_of, unchanged_on_error
from isokern.feature_map import IsolationKernel
from isokern.learners.kernel_source import MappedEstimator
from isokern.learners.warm_up import OnlineLearner, check_weights
from isokern.learners.weights import CellWeights, SupportVectors

SCHEDULES = {"constant": 0.5, "decaying": 1.0, "adagrad": 2.0}  # with the learning rate that "auto" means
EVALUATIONS = ("primal", "naive", "dual")
_FIRST_ROWS = 1000


class CellLearner(MappedEstimator, OnlineLearner):
    """Base of the online learners on the Isolation Kernel: rows become cells, the model is their weights."""

    _model: CellWeights | SupportVectors

    def _prepare(self, X: Any, table: Any, rng: np.random.RandomState) -> None:
        self._start(self._fit_kernel(X, rng))

    def _mapped(self, table: Any) -> NDArray[Any]:
        self._check_map()
        return self.kernel_._apply(table)

    def _map(self, X: Any) -> NDArray[Any]:
        self._check_map()
        return super()._map(X)

    def _known_cells(self, cells: Any) -> NDArray[Any]:
        """Return cells that the user has mapped; raise if they cannot come from the kernel."""
        self._check_map()
        return self.kernel_._check_cells(cells)

    def _check_map(self) -> None:
        """Raise if the kernel, which the user may hold, too, has been fitted again to other cells."""
        starts = self.kernel_._cell_starts
        if self._model.starts is not starts and not np.array_equal(self._model.starts, starts):
            raise ValueError(
                "kernel must stay as it was when learning began; got one that has been fitted again. Fit the learner "
                "again, too, or give it a kernel of its own."
            )

    def _start(self, kernel: IsolationKernel) -> None:
        """Begin with weights of 0 for the cells of a kernel."""
        self.kernel_ = kernel
        starts, n_columns = kernel._cell_starts, self._n_columns()
        if self.evaluation == "dual":
            self._model = SupportVectors(starts, n_columns, kernel._cell_dtype, average=self.average)
        else:
            is_adagrad, is_naive = self.schedule == "adagrad", self.evaluation == "naive"
            self._model = CellWeights(starts, n_columns, average=self.average, adagrad=is_adagrad, naive=is_naive)

    def _fit_cells(
        self,
        kernel: IsolationKernel,
        cells: NDArray[Any],
        targets: NDArray[Any],
        weights: NDArray[np.float64] | None,
        rng: np.random.RandomState,
    ) -> None:
        """Learn what ``fit`` learns from the rows of these cells; ``rng`` has drawn the kernel's seed already."""
        self._forget()
        self._begin_fit(targets)
        self._start(kernel)
        self._learn_passes(cells, targets, weights, rng)

    def _forget(self) -> None:
        super()._forget()
        self.__dict__.pop("kernel_", None)

    def _partial_fit_cells(self, cells: Any, y: Any, sample_weight: Any, **how: Any) -> Self:
        """Take in rows of a stream that are mapped already."""
        with unchanged_on_error(self):
            is_first = not self._has_begun
            self._check_parameters()
            if is_first:
                self._forget()
            kernel = self._given_kernel() if is_first else self.kernel_
            if kernel is None:
                raise NotFittedError(
                    f"{type(self).__name__} must know the map that made the cells: call fit or partial_fit first, or "
                    "give a fitted kernel."
                )
            cells = to_host(cells) if is_foreign(cells) else cells
            cells = kernel._check_cells(cells) if is_first else self._known_cells(cells)
            if not len(cells):
                raise ValueError("cells must have at least 1 row; got 0.")
            targets, weights = self._check_targets(cells, y), check_weights(cells, sample_weight)
            self._meet(targets, **how)
            if is_first:
                self.n_features_in_ = kernel.n_features_in_
                self._start(kernel)
        self._learn(cells, targets, weights)
        return self

    def _rate(self) -> float:
        return SCHEDULES[self.schedule] if self.learning_rate == "auto" else self.learning_rate

    def _rule(self, counted_from: list[int]) -> _core.Rule:
        epsilon = getattr(self, "epsilon", 0.0)
        return _core.Rule(self.loss, epsilon, self.schedule, self._rate(), self.shrinkage, counted_from)

    def _n_initial(self) -> int:
        if self._given_kernel() is not None:
            return 0
        if self.n_initial is not None:
            return int(self.n_initial)
        n_cells = (self._unwrapped_kernel() or self).n_cells
        return _FIRST_ROWS if isinstance(n_cells, str) else max(_FIRST_ROWS, n_cells)

    def _check_parameters(self) -> None:
        self._check_kernel_parameters()
        if self.schedule not in SCHEDULES:
            raise ValueError(f"schedule must be {one_of(SCHEDULES)}; got {self.schedule!r}.")
        if self.evaluation not in EVALUATIONS:
            raise ValueError(f"evaluation must be {one_of(EVALUATIONS)}; got {self.evaluation!r}.")
        if self.evaluation == "dual" and self.schedule == "adagrad":
            raise ValueError('schedule must be "constant" or "decaying" for evaluation="dual"; got "adagrad".')
        super()._check_parameters()
        if not (is_number(self.shrinkage) and 0 <= self.shrinkage * self._rate() < 1):
            raise ValueError(f"shrinkage must be at least 0 and below 1 / learning_rate; got {self.shrinkage!r}.")
