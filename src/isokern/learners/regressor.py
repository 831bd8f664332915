"""Online gradient descent on the Isolation Kernel's map, for numbers."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin
from sklearn.utils import column_or_1d
from sklearn.utils.validation import assert_all_finite, check_consistent_length, check_is_fitted

from isokern.arrays import in_library_of
from isokern.checks import is_number, n_threads
from isokern.feature_map import IsolationKernel
from isokern.learners._cells import CellLearner


class IKOGDRegressor(RegressorMixin, CellLearner):
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

    _LOSSES = ("squared", "huber", "epsilon_insensitive")
    _LEARNED = ("_total", "_mass")

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

    def partial_fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from the next rows of a stream, in order.

        Any way to cut a stream into calls gives the same model.

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
        return self._partial_fit(X, y, sample_weight)

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
        return self._partial_fit_cells(cells, y, sample_weight)

    def predict(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the predicted target of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n, d)

        Returns
        -------
        predictions : ndarray of shape (n,)
        """
        if self._has_begun:
            return self._score(self._map(X))
        return in_library_of(X, np.full(self._checked_rows(X).shape[0], self.mean_))

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
        return self._score(self._known_cells(cells))

    @property
    def mean_(self) -> float:
        """The mean of the targets so far; while rows are held back, of those."""
        check_is_fitted(self)
        if self._has_begun:
            return self._total / self._mass if self._mass > 0 else 0.0
        _, targets, weights = self._held.joined()
        return float(np.average(targets, weights=weights))

    def _check_targets(self, table: Any, y: Any) -> NDArray[np.float64]:
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        targets = column_or_1d(y, warn=True, dtype=np.float64)
        check_consistent_length(table, targets)
        assert_all_finite(targets, input_name="y")
        return np.ascontiguousarray(targets)

    def _begin_fit(self, targets: NDArray[np.float64]) -> None:
        self._meet(targets)

    def _meet(self, targets: NDArray[np.float64]) -> None:
        if not hasattr(self, "_total"):
            self._total, self._mass = 0.0, 0.0

    def _n_columns(self) -> int:
        return 1

    def _learn(
        self,
        rows: NDArray[Any],
        targets: NDArray[np.float64],
        weights: NDArray[np.float64] | None,
        *,
        is_new: bool = True,
    ) -> None:
        """Learn what each target differs from the mean of those before it."""
        masses = np.ones(len(targets)) if weights is None else weights
        # Running sums from the first row on, so that calls may be cut anywhere.
        totals = np.cumsum(np.concatenate([[self._total], masses * targets]))
        mass = np.cumsum(np.concatenate([[self._mass], masses]))
        # The first row has no mean before it and takes its own target for it.
        means = np.divide(totals[:-1], mass[:-1], out=targets.copy(), where=mass[:-1] > 0)
        self._total, self._mass = float(totals[-1]), float(mass[-1])
        self._model.learn(rows, targets - means, weights, self._rule([0]), None)

    def _score(self, cells: NDArray[Any]) -> NDArray[np.float64]:
        return self._model.score(cells, n_threads(self.n_jobs))[:, 0] + self.mean_

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not (is_number(self.epsilon) and self.epsilon >= 0):
            raise ValueError(f"epsilon must be a number of at least 0; got {self.epsilon!r}.")
