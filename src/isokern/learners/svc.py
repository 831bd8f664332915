"""IK-SVM: a linear support vector machine on the Isolation Kernel's map."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.svm import LinearSVC
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from isokern import _core
from isokern._checks import n_threads, unchanged_on_error
from isokern._rows import check_rows
from isokern.feature_map import IsolationKernel
from isokern.learners._mapped import MappedEstimator, labels_of


class IKSVC(ClassifierMixin, MappedEstimator):
    """Support vector classifier with the Isolation Kernel, trained by LIBLINEAR on the kernel's own feature map.

    It is the machine that ``SVC(kernel="precomputed")`` trains on ``IsolationKernel.similarity``, but for the
    intercept, which LIBLINEAR regularises, at a cost that grows with the number of rows instead of its square.

    Parameters
    ----------
    partitioning, n_partitionings, n_cells, max_depth, scale, kernel, device
        The kernel, see :class:`IKOGDClassifier`.
    C : float, default=1.0
        Weight of errors against the size of the weights.
    loss : {"squared_hinge", "hinge"}, default="squared_hinge"
        What a score costs.
    class_weight : dict, "balanced" or None, default=None
        Factors of C by class.
    intercept_scaling : float, default=1.0
        The larger, the less the intercept is regularised, and the longer LIBLINEAR takes; 10 is much.
    tol : float, default=1e-4
        Tolerance of LIBLINEAR's stopping rule.
    max_iter : int, default=1000
        Limit on LIBLINEAR's iterations.
    n_jobs : int, default=None
        Threads for mapping and predicting; LIBLINEAR uses one.
    random_state : int, RandomState instance or None, default=None
        Seed of the map and of LIBLINEAR.

    Attributes
    ----------
    classes_ : ndarray
        The classes, sorted.
    kernel_ : IsolationKernel
        The map.
    linear_ : LinearSVC
        The machine on the map.
    n_iter_ : int
        How many iterations LIBLINEAR made.
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
        self._check_kernel_parameters()
        with unchanged_on_error(self):
            table = check_rows(self, X, reset=True)
            rng = check_random_state(self.random_state)
            kernel = self._fit_kernel(X, rng)
            features = kernel._features(kernel._apply(table), np.dtype(np.float64))
            names = ("C", "loss", "class_weight", "intercept_scaling", "tol", "max_iter")
            linear = LinearSVC(**{name: getattr(self, name) for name in names}, random_state=rng)
            self.linear_ = linear.fit(features, y, sample_weight)
            self.kernel_ = kernel
            self.classes_, self.n_iter_ = linear.classes_, linear.n_iter_
            # The map's values are 1/sqrt(t), a score is a mean over t: (1/t) sum of sqrt(t) * coef.
            self._weights = np.ascontiguousarray(linear.coef_.T * math.sqrt(kernel._t))
        return self

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

    def _score(self, cells: NDArray[Any]) -> NDArray[np.float64]:
        scores = np.empty((len(cells), self._weights.shape[1]))
        starts, threads = self.kernel_._cell_starts, n_threads(self.n_jobs)
        _core.score_primal(cells, starts, self._weights, None, _core.Clock(), False, scores, threads)
        scores += self.linear_.intercept_
        return scores if len(self.classes_) > 2 else scores[:, 0]
