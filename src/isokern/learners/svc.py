"""IK-SVM: a linear support vector machine on the Isolation Kernel's map."""

from __future__ import annotations

import math
import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import check_is_fitted

from isokern import _core
from isokern.arrays import is_foreign, like, to_host
from isokern.checks import is_integer, is_number, n_threads, one_of, unchanged_on_error
from isokern.devices import foreign_scores
from isokern.feature_map import IsolationKernel
from isokern.learners.classes import check_class_weight, check_labels, check_two_classes
from isokern.learners.kernel_source import MappedEstimator, draw_seed, labels_of
from isokern.learners.warm_up import check_weights
from isokern.rows import check_rows

LOSSES = ("squared_hinge", "hinge")
_LARGEST_SCALING = 1e100  # its square is a number still


class IKSVC(ClassifierMixin, MappedEstimator):
    """Support vector classifier with the Isolation Kernel, trained by dual coordinate descent on the kernel's cells.

    It is the machine that ``SVC(kernel="precomputed")`` trains on ``IsolationKernel.similarity``, but for the
    intercept, which is regularised, at a cost that grows with the number of rows instead of its square. It is also the
    machine that ``LinearSVC(dual=True)`` trains on ``IsolationKernel.transform``, without the need for that matrix;
    there, the factor of a class is one of C in that class's own problem, here in all.

    Parameters
    ----------
    partitioning, n_partitionings, n_cells, max_depth, scale, kernel, device
        The kernel, see :class:`IKOGDClassifier`.
    C : float, default=1.0
        Weight of errors against the size of the weights.
    loss : {"squared_hinge", "hinge"}, default="squared_hinge"
        What a score costs.
    class_weight : dict, "balanced" or None, default=None
        Factors of C by class, for the rows of that class.
    fit_intercept : bool, default=True
        Whether scores have an intercept.
    intercept_scaling : float, default=1.0
        The larger, the less the intercept is regularised, and the longer training takes; 10 is much.
    tol : float, default=1e-4
        Training ends when the projected gradients of the dual problem are within a range of this size.
    max_iter : int, default=1000
        Limit on passes over the rows.
    n_jobs : int, default=None
        Threads for mapping and predicting, and for training more than two classes.
    random_state : int, RandomState instance or None, default=None
        Seed of the map and of the orders in which training visits the rows.

    Attributes
    ----------
    classes_ : ndarray
        The classes, sorted.
    kernel_ : IsolationKernel
        The map.
    coef_ : ndarray of shape (1, n_columns) for two classes, else (n_classes, n_columns)
        The weights of the columns of ``kernel_.transform``.
    intercept_ : ndarray of shape (1,) for two classes, else (n_classes,)
        The intercepts.
    n_iter_ : int
        How many passes over the rows training made, the most for any class.
    n_features_in_ : int
        Number of columns.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from isokern import IKSVC
    >>> X, y = load_digits(return_X_y=True)
    >>> IKSVC(random_state=0).fit(X[:1200], y[:1200]).score(X[1200:], y[1200:]) > 0.9
    True
    """

    def __init__(
        self,
        partitioning: Any = "tree",
        n_partitionings: int = 100,
        n_cells: int | str = "auto",
        *,
        max_depth: int | str | None = None,
        scale: str | None = None,
        kernel: IsolationKernel | None = None,
        C: float = 1.0,
        loss: str = "squared_hinge",
        class_weight: dict[Any, float] | str | None = None,
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        tol: float = 1e-4,
        max_iter: int = 1000,
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
        self.C = C
        self.loss = loss
        self.class_weight = class_weight
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.tol = tol
        self.max_iter = max_iter
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Draw the map from all rows and train on it.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n, d)
        y : array-like of shape (n,)
        sample_weight : array-like of shape (n,), default=None
            Factors of C by row.

        Returns
        -------
        self
        """
        self._check_parameters()
        with unchanged_on_error(self):
            table = check_rows(self, X, reset=True)
            labels, weights = self._check_targets(table, y, sample_weight)
            rng = check_random_state(self.random_state)
            self.kernel_ = self._fit_kernel(X, rng)
            self._solve(self.kernel_._apply(table), labels, weights, draw_seed(rng))
        return self

    def fit_cells(self, cells: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Train on rows that ``kernel``, which must be given and fitted, has mapped already.

        Parameters
        ----------
        cells : array-like of shape (n, n_partitionings)
        y : array-like of shape (n,)
        sample_weight : array-like of shape (n,), default=None
            Factors of C by row.

        Returns
        -------
        self
        """
        self._check_parameters()
        kernel = self._given_kernel()
        if kernel is None:
            raise NotFittedError("IKSVC must know the map that made the cells: give a fitted kernel.")
        cells = kernel._check_cells(to_host(cells) if is_foreign(cells) else cells)
        if not len(cells):
            raise ValueError("cells must have at least 1 row; got 0.")
        labels, weights = self._check_targets(cells, y, sample_weight)
        with unchanged_on_error(self):
            self._take_kernel(kernel)
            self._solve(cells, labels, weights, draw_seed(check_random_state(self.random_state)))
        return self

    @property
    def coef_(self) -> NDArray[np.float64]:
        """The weights of the columns of ``kernel_.transform``, a row for each score."""
        check_is_fitted(self, "kernel_")
        # The map's values are 1/sqrt(t), a score is a mean over t: (1/t) sum of sqrt(t) * coef.
        return np.ascontiguousarray(self._weights.T) / math.sqrt(self.kernel_._t)

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
        check_is_fitted(self, "kernel_")
        return self._score(self._map(X))

    def decision_function_cells(self, cells: ArrayLike) -> NDArray[np.float64]:
        """Return the scores of rows that ``kernel_.apply`` has mapped already.

        Parameters
        ----------
        cells : array-like of shape (n, n_partitionings)

        Returns
        -------
        scores : ndarray of shape (n,) for two classes, else (n, n_classes)
        """
        check_is_fitted(self, "kernel_")
        return self._score(self.kernel_._check_cells(cells))

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the class of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n, d)

        Returns
        -------
        labels : ndarray of shape (n,)
        """
        return labels_of(self.decision_function(X), self.classes_)

    def _take_kernel(self, kernel: IsolationKernel) -> None:
        """Use the user's kernel, and ask for rows such as it was fitted to."""
        self.kernel_, self.n_features_in_ = kernel, kernel.n_features_in_
        self.__dict__.pop("feature_names_in_", None)
        if hasattr(kernel, "feature_names_in_"):
            self.feature_names_in_ = kernel.feature_names_in_

    def _solve(self, cells: NDArray[Any], labels: NDArray[Any], weights: NDArray[np.float64] | None, seed: int) -> None:
        """Learn weights and intercepts, one machine for each score."""
        self.classes_, classes = np.unique(labels, return_inverse=True)
        n_scores = len(self.classes_) if len(self.classes_) > 2 else 1
        targets = (classes if n_scores > 1 else classes - 1).astype(np.int32)
        square = float(self.intercept_scaling) ** 2 if self.fit_intercept else 0.0
        is_squared = self.loss == "squared_hinge"
        rule = _core.SvmRule(is_squared, float(self.C), square, float(self.tol), int(self.max_iter), seed)
        factors = self._row_factors(labels, classes, weights)
        starts, threads = self.kernel_._cell_starts, n_threads(self.n_jobs)
        values, self.intercept_, n_iter = _core.solve_svm(cells, starts, targets, factors, n_scores, rule, threads)
        self._weights = np.ascontiguousarray(values.reshape(n_scores, -1).T)
        self.n_iter_ = int(n_iter.max())
        if self.n_iter_ >= self.max_iter:
            warnings.warn(
                f"IKSVC has not converged after max_iter={self.max_iter} passes. Raise max_iter or tol, or lower C or "
                "intercept_scaling.",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _row_factors(
        self, labels: NDArray[Any], classes: NDArray[np.intp], weights: NDArray[np.float64] | None
    ) -> NDArray[np.float64] | None:
        """Return the factors of C by row, or None if there are none."""
        if self.class_weight is None:
            return weights
        factors: NDArray[np.float64] = compute_class_weight(self.class_weight, classes=self.classes_, y=labels)[classes]
        return factors if weights is None else factors * weights

    def _check_targets(self, table: Any, y: Any, sample_weight: Any) -> tuple[NDArray[Any], NDArray[np.float64] | None]:
        labels = check_labels(self, table, y)
        check_two_classes(labels)
        return labels, check_weights(table, sample_weight)

    def _check_parameters(self) -> None:
        self._check_kernel_parameters()
        check_class_weight(self.class_weight)
        if self.loss not in LOSSES:
            raise ValueError(f"loss must be {one_of(LOSSES)}; got {self.loss!r}.")
        for name in ("C", "tol"):
            value = getattr(self, name)
            if not (is_number(value) and value > 0):
                raise ValueError(f"{name} must be a number above 0; got {value!r}.")
        if not (is_number(self.intercept_scaling) and 0 < self.intercept_scaling <= _LARGEST_SCALING):
            raise ValueError(
                f"intercept_scaling must be a number above 0, at most {_LARGEST_SCALING:g}; "
                f"got {self.intercept_scaling!r}. For no intercept, set fit_intercept=False."
            )
        if not is_integer(self.max_iter, at_least=1):
            raise ValueError(f"max_iter must be an integer of at least 1; got {self.max_iter!r}.")

    def _score(self, cells: NDArray[Any]) -> NDArray[np.float64]:
        if is_foreign(cells):
            return self._score_foreign(cells)
        scores = np.empty((len(cells), self._weights.shape[1]))
        starts, threads = self.kernel_._cell_starts, n_threads(self.n_jobs)
        _core.score_primal(cells, starts, self._weights, None, _core.Clock(), False, scores, threads)
        scores += self.intercept_
        return scores if len(self.classes_) > 2 else scores[:, 0]

    def _score_foreign(self, cells: Any) -> Any:
        starts, weights = self.kernel_._cell_starts, self._weights
        scores = foreign_scores(cells, starts, self, table=weights, rounds=0, make=lambda: weights) / self.kernel_._t
        scores = scores + like(self.intercept_, cells)
        return scores if len(self.classes_) > 2 else scores[:, 0]
