"""Online gradient descent on the Isolation Kernel's map, for numbers."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from isokern.checks import is_number, unchanged_on_error
from isokern.engines import engine_of
from isokern.feature_map import IsolationKernel
from isokern.learners.kernel_source import KernelSource, check_same_map, read_cells, share_starts
from isokern.learners.residuals import Residuals
from isokern.learners.steps import Steps, check_cell_steps
from isokern.learners.targets import pass_orders, read_numbers, read_weights, some
from isokern.learners.warm_up import Batch, WarmUp, check_n_initial
from isokern.parts import need
from isokern.rows import accept_sparse, read_rows

LOSSES = ("squared", "huber", "epsilon_insensitive")


class IKOGDRegressor(RegressorMixin, BaseEstimator):
    """Regressor that learns online: nonlinear functions, constant memory, constant time a row.

    The prediction is the mean of the targets so far plus the mean of the weights of the row's cells.

    Parameters
    ----------
    partitioning, n_partitionings, n_cells, max_depth, scale, kernel, device
        The kernel, see :class:`IKOGDClassifier`.
    loss : {"squared", "huber", "epsilon_insensitive"}, default="squared"
        What an error costs. Huber's loss is linear beyond ``epsilon``, the last is zero up to it.
    epsilon : float, default=0.1
        See ``loss``; in units of the target.
    schedule : {"constant", "decaying", "adagrad"}, default="constant"
        Steps. AdaGrad's, and those of the last two losses, are in units of the target: scale it to about 1.
    learning_rate, shrinkage, n_passes, shuffle, n_initial, evaluation, n_jobs, random_state
        See :class:`IKOGDClassifier`.
    average : bool, default=True
        Whether to predict with the mean of the weights over all rows instead of the last ones.

    Attributes
    ----------
    kernel_ : IsolationKernel
        The map.
    mean_ : float
        The mean of the targets so far.
    learned_ : Residuals
        What was learned: the weights, and the sums of the mean.
    warm_up_ : WarmUp
        In the place of ``learned_`` and ``kernel_`` while the first rows of a stream are held back.
    n_support_ : int
        How many rows have changed the model.
    n_features_in_ : int
        Number of columns.

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> from isokern import IKOGDRegressor
    >>> X, y = make_friedman1(2000, random_state=0)
    >>> model = IKOGDRegressor(n_passes=5, random_state=0).fit(X[:1500], y[:1500])
    >>> model.score(X[1500:], y[1500:]) > 0.5
    True
    """

    kernel_: IsolationKernel
    learned_: Residuals
    warm_up_: WarmUp

    def __init__(
        self,
        partitioning: Any = "tree",
        n_partitionings: int = 100,
        n_cells: int | str = "auto",
        *,
        max_depth: int | str | None = None,
        scale: str | None = None,
        kernel: IsolationKernel | None = None,
        loss: str = "squared",
        epsilon: float = 0.1,
        schedule: str = "constant",
        learning_rate: float | str = "auto",
        shrinkage: float = 0.0,
        average: bool = True,
        n_passes: int = 1,
        shuffle: bool = True,
        n_initial: int | None = None,
        evaluation: str = "primal",
        device: str | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.partitioning = partitioning
        self.n_partitionings = n_partitionings
        self.n_cells = n_cells
        self.max_depth = max_depth
        self.scale = scale
        self.kernel = kernel
        self.loss = loss
        self.epsilon = epsilon
        self.schedule = schedule
        self.learning_rate = learning_rate
        self.shrinkage = shrinkage
        self.average = average
        self.n_passes = n_passes
        self.shuffle = shuffle
        self.n_initial = n_initial
        self.evaluation = evaluation
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state

    # -- learning

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
        self.check_parameters()
        with unchanged_on_error(self):
            table = read_rows(self, X, reset=True)
            targets, weights = read_numbers(self, y, table), read_weights(sample_weight, table)
            rng = check_random_state(self.random_state)
            self._begin(KernelSource(self).fit(table, rng))
            cells = self._cells(table)
            for order in pass_orders(len(targets), self.n_passes, rng, shuffle=self.shuffle):
                self.learned_.learn(cells[order], targets[order], some(weights, order), Steps.of(self))
        return self

    def partial_fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from the next rows of a stream, in order. Any way to cut a stream into calls gives the same model.

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
        self.check_parameters()
        with unchanged_on_error(self):
            table = read_rows(self, X, reset=not hasattr(self, "n_features_in_"), min_rows=1)
            targets, weights = read_numbers(self, y, table), read_weights(sample_weight, table)
            if not hasattr(self, "learned_"):
                batch = self._warm_up(Batch(table, targets, weights))
                if batch is None:
                    return self
                table, targets, weights = batch
            cells = self._cells(table)
        self.learned_.learn(cells, targets, weights, Steps.of(self))
        return self

    def partial_fit_cells(self, cells: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from rows that ``kernel.apply`` has mapped already; otherwise as ``partial_fit``.

        Parameters
        ----------
        cells : array-like of shape (n, n_partitionings)
        y : array-like of shape (n,)
        sample_weight : array-like of shape (n,), default=None

        Returns
        -------
        self
        """
        self.check_parameters()
        with unchanged_on_error(self):
            kernel = KernelSource(self).for_cells()
            known = read_cells(kernel, cells)
            targets, weights = read_numbers(self, y, known), read_weights(sample_weight, known)
            if not hasattr(self, "learned_"):
                self.n_features_in_ = kernel.n_features_in_
                self._begin(kernel)
            check_same_map(kernel.map_, self.learned_.model.starts)
        self.learned_.learn(known, targets, weights, Steps.of(self))
        return self

    def _warm_up(self, batch: Batch) -> Batch | None:
        """Hold the first rows of a stream back; return all of them once there are enough to draw the map from."""
        source, held = KernelSource(self), getattr(self, "warm_up_", WarmUp())
        if held.n + len(batch.targets) < source.n_initial:
            self.warm_up_ = held.holding(batch)
            return None
        batch = held.followed_by(batch)
        first = batch.table[: source.n_initial or None]
        self._begin(source.fit(first, check_random_state(self.random_state)))
        return batch

    def _begin(self, kernel: IsolationKernel) -> None:
        """Forget everything, and begin with weights of 0 for the cells of a fitted kernel."""
        self.__dict__.pop("warm_up_", None)
        self.kernel_, self.learned_ = kernel, Residuals.begun(self, kernel.map_.starts)

    # -- predicting

    def predict(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the predicted target of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n, d)

        Returns
        -------
        predictions : ndarray of shape (n,)
        """
        if hasattr(self, "learned_"):
            cells = self._cells(engine_of(X).read(self, X))
            return self.learned_.predictions(cells, self.n_jobs)
        check_is_fitted(self)
        table = read_rows(self, X, reset=False)
        return engine_of(X).to_library(np.full(table.shape[0], self.mean_), X)

    def predict_cells(self, cells: ArrayLike) -> NDArray[np.float64]:
        """Return the predicted target of rows that ``kernel_.apply`` has mapped already.

        Parameters
        ----------
        cells : array-like of shape (n, n_partitionings)

        Returns
        -------
        predictions : ndarray of shape (n,)
        """
        check_is_fitted(self, "kernel_")
        check_same_map(self.kernel_.map_, self.learned_.model.starts)
        return self.learned_.predictions(engine_of(cells).check_cells(self.kernel_.map_, cells), self.n_jobs)

    @property
    def mean_(self) -> float:
        """The mean of the targets so far; while rows are held back, of those."""
        check_is_fitted(self)
        if hasattr(self, "learned_"):
            return self.learned_.mean
        held = self.warm_up_.joined()
        return float(np.average(held.targets, weights=held.weights))

    @property
    def n_support_(self) -> int:
        """The number of support vectors: rows that changed the model."""
        check_is_fitted(self)
        return self.learned_.model.clock.n_support if hasattr(self, "learned_") else 0

    def _cells(self, rows: Any) -> Any:
        check_same_map(self.kernel_.map_, self.learned_.model.starts)
        return self.kernel_.apply_rows(rows)

    def map_rows(self, X: ArrayLike) -> NDArray[Any]:
        """Return the cells of rows, for the methods that take cells.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n, d)

        Returns
        -------
        cells : ndarray of shape (n, n_partitionings)
        """
        check_is_fitted(self, "kernel_")
        return self._cells(engine_of(X).read(self, X))

    # -- parameters, and the contract of isokern.parts

    def check_parameters(self) -> None:
        """Raise unless all parameters are what they may be."""
        KernelSource(self).check()
        check_cell_steps(self, LOSSES)
        check_n_initial(self.n_initial)
        if not (is_number(self.epsilon) and self.epsilon >= 0):
            raise ValueError(f"epsilon must be a number of at least 0; got {self.epsilon!r}.")

    def check(self) -> None:
        """Raise unless what was learned is of the kernel's cells; see :mod:`isokern.parts`."""
        if "warm_up_" in vars(self):
            need(isinstance(self.warm_up_, WarmUp), "rows held back must be rows")
        if "learned_" in vars(self):
            need(isinstance(self.learned_, Residuals), "what was learned must be residuals")
            share_starts(self.kernel_, self.learned_.model)

    def __sklearn_tags__(self) -> Any:
        return accept_sparse(super().__sklearn_tags__())
