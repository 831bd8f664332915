"""Provide IKOGDRegressor: online gradient descent for regression with the Isolation Kernel."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from isokern.checks import all_or_nothing
from isokern.engines import engine_of
from isokern.feature_map import IsolationKernel
from isokern.learners.commits import BLOCK, blocks, commit, one_at_a_time, one_view
from isokern.learners.kernel_source import KernelSource, check_same_map, read_cells, share_starts, take_columns
from isokern.learners.parameters import check_n_initial, check_non_negative
from isokern.learners.residuals import Residuals
from isokern.learners.steps import Steps, check_cell_steps
from isokern.learners.targets import Weights, pass_orders, read_numbers, read_weights, some
from isokern.learners.warm_up import Batch, WarmUp
from isokern.parts import need
from isokern.rows import input_tags, read_rows

LOSSES = ("squared", "huber", "epsilon_insensitive")


class IKOGDRegressor(RegressorMixin, BaseEstimator):
    """Online regressor with the Isolation Kernel: nonlinear functions in constant memory and constant time per row.

    A prediction is the running mean of the targets plus the mean of the weights of the row's cells, one cell in each of
    t random partitionings. See :class:`IKOGDClassifier` for the method.

    Choose it for large data sets and streams that a linear model underfits. The fitted function is constant within
    cells, so it does not extrapolate beyond the range of the rows it has learned.

    Parameters
    ----------
    partitioning, n_partitionings, n_cells, max_depth, scale, categorical_features, kernel, device
        The kernel, see :class:`IKOGDClassifier`.
    loss : {"squared", "huber", "epsilon_insensitive"}, default="squared"
        Loss function of an error. "huber" is linear beyond ``epsilon``; "epsilon_insensitive" is zero up to it.
    epsilon : float, default=0.1
        Threshold of the last two losses, in units of the target.
    schedule : {"constant", "decaying", "adagrad"}, default="constant"
        Step sizes, see :class:`IKOGDClassifier`. With "adagrad", and with the last two losses, the learning rate is in
        units of the target: scale the target to a standard deviation of about 1.
    average : bool, default=True
        Whether to predict with the mean of the weights over all steps instead of the latest weights.
    n_passes : int, default=1
        Number of passes of ``fit`` over the rows.
    learning_rate, shrinkage, shuffle, n_initial, evaluation, n_jobs, random_state
        See :class:`IKOGDClassifier`. During the warm-up the mean target is predicted.

    Attributes
    ----------
    mean_ : float
        Weighted mean of the targets so far.
    learned_ : Residuals
        Learned state: the weights and the sums behind the mean. Missing until the warm-up is over.
    kernel_, warm_up_, n_support_, n_rows_seen_, n_features_in_
        See :class:`IKOGDClassifier`.

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
        categorical_features: Any = "from_dtype",
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
        self.categorical_features = categorical_features
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

    @one_at_a_time
    @all_or_nothing
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Draw the map from the rows and learn their targets y; see :meth:`IKOGDClassifier.fit`."""
        self.check_parameters()
        table = read_rows(self, X, reset=True, kernel=KernelSource(self).kernel)
        targets, weights = read_numbers(self, y, table), read_weights(sample_weight, table)
        rng = check_random_state(self.random_state)
        self._begin(KernelSource(self).fit(table, rng))
        cells = self._cells(table)
        for k, order in enumerate(pass_orders(len(targets), self.n_passes, rng, shuffle=self.shuffle)):
            self._learn(cells[order], targets[order], some(weights, order), is_new=k == 0)
        return self

    @one_at_a_time
    def partial_fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the next rows of a stream, in order; see :meth:`IKOGDClassifier.partial_fit`."""
        self.check_parameters()
        self._learn(*self._read(X, y, sample_weight))
        return self

    @all_or_nothing
    def _read(self, X: Any, y: Any, sample_weight: Any) -> Batch:
        """Return the cells still to be learned."""
        is_first = not hasattr(self, "n_features_in_")
        source, held = KernelSource(self), getattr(self, "warm_up_", WarmUp())
        n_counted = 0 if hasattr(self, "learned_") else max(0, source.n_initial - held.n)
        kernel = source.kernel if is_first else None
        table = read_rows(self, X, reset=is_first, min_rows=1, kernel=kernel, n_counted=n_counted)
        batch = Batch(table, read_numbers(self, y, table), read_weights(sample_weight, table))
        is_begun = hasattr(self, "learned_")
        return batch._replace(table=self._cells(table)) if is_begun else self._warm_up(batch)

    @one_at_a_time
    def partial_fit_cells(self, cells: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn rows given as cells; see :meth:`IKOGDClassifier.partial_fit_cells`."""
        self.check_parameters()
        self._learn(*self._read_cells(cells, y, sample_weight))
        return self

    @all_or_nothing
    def _read_cells(self, cells: Any, y: Any, sample_weight: Any) -> Batch:
        """Return the cells still to be learned."""
        kernel = KernelSource(self).for_cells()
        known = read_cells(kernel, cells)
        batch = Batch(known, read_numbers(self, y, known), read_weights(sample_weight, known))
        if hasattr(self, "learned_"):
            check_same_map(kernel.map_, self.learned_.model.starts)
            return batch
        take_columns(self, kernel)
        return self._begin_with(batch, kernel, BLOCK)

    def _warm_up(self, batch: Batch) -> Batch:
        """Buffer the first rows of a stream; with enough, draw the map. Return the cells still to be learned."""
        source, held = KernelSource(self), getattr(self, "warm_up_", WarmUp())
        if held.n + len(batch.targets) < source.n_initial:
            self.warm_up_ = held.holding(batch)
            return batch.some(slice(0))
        batch = held.followed_by(batch)
        kernel = source.fit(batch.table[: source.n_initial or None], check_random_state(self.random_state))
        mapped = batch._replace(table=kernel.apply_rows(batch.table))
        return self._begin_with(mapped, kernel, max(source.n_initial, BLOCK))

    def _begin_with(self, batch: Batch, kernel: IsolationKernel, n: int) -> Batch:
        """Begin and learn the first n rows, so that no model is committed without them; return the others."""
        self._begin(kernel)
        self._learn(*batch.some(slice(n)))
        return batch.some(slice(n, None))

    def _begin(self, kernel: IsolationKernel) -> None:
        """Forget everything and start with zero weights for the cells of a fitted kernel."""
        commit(self, "warm_up_", kernel_=kernel, learned_=Residuals.begun(self, kernel.map_.starts))

    def _learn(self, cells: Any, targets: NDArray[np.float64], weights: Weights, *, is_new: bool = True) -> None:
        """Learn rows block by block: in place in one step, or in a copy of the state that is then committed."""
        steps = Steps.of(self)
        for part in blocks(len(targets)):
            learned = self.learned_.writable()
            learned.learn(cells[part], targets[part], some(weights, part), steps, is_new=is_new)
            if learned is not self.learned_:
                commit(self, learned_=learned)

    # -- prediction

    @one_view
    def predict(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the predicted targets of rows.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame, list of dicts} of shape (n, d)

        Returns
        -------
        predictions : ndarray of shape (n,)
        """
        if hasattr(self, "learned_"):
            return self.learned_.predictions(self._cells(engine_of(X).read(self, X)), self.n_jobs)
        check_is_fitted(self)
        table = read_rows(self, X, reset=False)
        return engine_of(X).to_library(np.full(table.shape[0], self.mean_), X)

    @one_view
    def predict_cells(self, cells: ArrayLike) -> NDArray[np.float64]:
        """Return the predicted targets of rows given as cells."""
        check_is_fitted(self, "kernel_")
        check_same_map(self.kernel_.map_, self.learned_.model.starts)
        return self.learned_.predictions(engine_of(cells).check_cells(self.kernel_.map_, cells), self.n_jobs)

    @property
    @one_view
    def mean_(self) -> float:
        """Weighted mean of the targets so far, buffered ones included."""
        check_is_fitted(self)
        if hasattr(self, "learned_"):
            return self.learned_.mean
        held = self.warm_up_.joined()
        return float(np.average(held.targets, weights=held.weights))

    @property
    def n_support_(self) -> int:
        """Number of support vectors: rows that changed the weights."""
        check_is_fitted(self)
        return self.learned_.model.clock.n_support if hasattr(self, "learned_") else 0

    @property
    def n_rows_seen_(self) -> int:
        """Number of rows learned so far, buffered ones included; further passes over the same rows do not count."""
        check_is_fitted(self)
        return self.learned_.model.clock.n_rows if hasattr(self, "learned_") else self.warm_up_.n

    def _cells(self, rows: Any) -> Any:
        check_same_map(self.kernel_.map_, self.learned_.model.starts)
        return self.kernel_.apply_rows(rows)

    @one_view
    def map_rows(self, X: ArrayLike) -> NDArray[Any]:
        """Return the cells of rows, of shape (n, n_partitionings), for the methods that take cells."""
        check_is_fitted(self, "kernel_")
        return self._cells(engine_of(X).read(self, X))

    # -- checks

    def check_parameters(self) -> None:
        """Raise ValueError if a parameter is invalid."""
        KernelSource(self).check()
        check_cell_steps(self, LOSSES)
        check_n_initial(self.n_initial)
        check_non_negative(self, "epsilon")

    def check(self) -> None:
        """Raise ValueError if the learned state does not match the kernel; see :mod:`isokern.parts`."""
        if "warm_up_" in vars(self):
            need(isinstance(self.warm_up_, WarmUp), "warm_up_ must be a WarmUp")
        if "learned_" in vars(self):
            need(isinstance(self.learned_, Residuals), "learned_ must be a Residuals")
            share_starts(self.kernel_, self.learned_.model)

    def __sklearn_tags__(self) -> Any:
        return input_tags(super().__sklearn_tags__(), trees=KernelSource(self).has_trees)
