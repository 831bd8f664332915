"""IK-SVM: a linear support vector machine on the Isolation Kernel's map."""

from __future__ import annotations

import math
import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import check_is_fitted

from isokern import _core
from isokern.checks import is_integer, is_number, n_threads, one_of, unchanged_on_error
from isokern.engines import engine_of
from isokern.feature_map import IsolationKernel
from isokern.learners.classes import ClassBook, check_class_weight
from isokern.learners.kernel_source import KernelSource, draw_seed, read_cells, share_starts
from isokern.learners.targets import Weights, read_labels, read_weights
from isokern.learners.weights import CellWeights
from isokern.parts import need, need_array
from isokern.rows import accept_sparse, read_rows

LOSSES = ("squared_hinge", "hinge")
_LARGEST_SCALING = 1e100  # its square is a number still


class IKSVC(ClassifierMixin, BaseEstimator):
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
    class_book_ : ClassBook
        The classes, and which score stands for which.
    model_ : CellWeights
        The weights of the map's cells.
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
        self.check_parameters()
        with unchanged_on_error(self):
            table = read_rows(self, X, reset=True)
            labels, weights = read_labels(self, y, table), read_weights(sample_weight, table)
            rng = check_random_state(self.random_state)
            book = ClassBook.of_all(labels, takes_new=False)
            self.kernel_ = KernelSource(self).fit(table, rng)
            self._solve(book, self.kernel_.apply_rows(table), labels, weights, draw_seed(rng))
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
        self.check_parameters()
        with unchanged_on_error(self):
            self.__dict__.pop("kernel_", None)
            self._take_kernel(KernelSource(self).for_cells())
            known = read_cells(self.kernel_, cells)
            labels, weights = read_labels(self, y, known), read_weights(sample_weight, known)
            book = ClassBook.of_all(labels, takes_new=False)
            self._solve(book, known, labels, weights, draw_seed(check_random_state(self.random_state)))
        return self

    @property
    def coef_(self) -> NDArray[np.float64]:
        """The weights of the columns of ``kernel_.transform``, a row for each score."""
        check_is_fitted(self, "kernel_")
        # The map's values are 1/sqrt(t), a score is a mean over t: (1/t) sum of sqrt(t) * coef.
        return np.ascontiguousarray(self.model_.values.T) / math.sqrt(self.kernel_.map_.n_partitionings)

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
        return self._scores(self.kernel_.apply_rows(engine_of(X).read(self, X)))

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
        return self._scores(engine_of(cells).check_cells(self.kernel_.map_, cells))

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the class of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n, d)

        Returns
        -------
        labels : ndarray of shape (n,)
        """
        scores = self.decision_function(X)
        return engine_of(X).labels(scores, self.classes_)

    @property
    def classes_(self) -> NDArray[Any]:
        """The classes, sorted."""
        return self.class_book_.labels

    def _take_kernel(self, kernel: IsolationKernel) -> None:
        """Use the user's kernel, and ask for rows such as it was fitted to."""
        self.kernel_, self.n_features_in_ = kernel, kernel.n_features_in_
        self.__dict__.pop("feature_names_in_", None)
        if hasattr(kernel, "feature_names_in_"):
            self.feature_names_in_ = kernel.feature_names_in_

    def _solve(self, book: ClassBook, cells: NDArray[Any], labels: NDArray[Any], weights: Weights, seed: int) -> None:
        """Learn weights and intercepts, one machine for each score."""
        numbers = book.numbers(labels)
        self.class_book_ = book.counting(numbers)
        square = float(self.intercept_scaling) ** 2 if self.fit_intercept else 0.0
        is_squared = self.loss == "squared_hinge"
        rule = _core.SvmRule(is_squared, float(self.C), square, float(self.tol), int(self.max_iter), seed)
        factors = self._row_factors(labels, numbers, weights)
        starts, n_scores, threads = self.kernel_.map_.starts, book.n_columns, n_threads(self.n_jobs)
        values, self.intercept_, n_iter = _core.solve_svm(
            cells, starts, book.targets(numbers), factors, n_scores, rule, threads
        )
        self.model_ = CellWeights(starts, np.ascontiguousarray(values.reshape(n_scores, -1).T))
        self.n_iter_ = int(n_iter.max())
        if self.n_iter_ >= self.max_iter:
            warnings.warn(
                f"IKSVC has not converged after max_iter={self.max_iter} passes. Raise max_iter or tol, or lower C or "
                "intercept_scaling.",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _row_factors(self, labels: NDArray[Any], numbers: NDArray[np.intp], weights: Weights) -> Weights:
        """Return the factors of C by row, or None if there are none."""
        if self.class_weight is None:
            return weights
        factors: NDArray[np.float64] = compute_class_weight(self.class_weight, classes=self.classes_, y=labels)[numbers]
        return factors if weights is None else factors * weights

    def _scores(self, cells: Any) -> Any:
        engine = engine_of(cells)
        scores = engine.scores(cells, self.model_, self.n_jobs) + engine.to_library(self.intercept_, cells)
        return self.class_book_.of_classes(scores)

    # -- parameters, and the contract of isokern.parts

    def check_parameters(self) -> None:
        """Raise unless all parameters are what they may be."""
        KernelSource(self).check()
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

    def check(self) -> None:
        """Raise unless classes, weights, intercepts and kernel fit each other."""
        if "kernel_" not in vars(self):
            return
        need(isinstance(self.class_book_, ClassBook), "the classes must be those of a class book")
        need(isinstance(self.model_, CellWeights), "the model must be one of weights")
        share_starts(self.kernel_, self.model_)
        need_array(self.intercept_, np.float64, 1, "intercepts")
        n_scores = self.class_book_.n_columns
        need(self.model_.n_columns == len(self.intercept_) == n_scores > 0, "weights must be those of the classes")

    def __sklearn_tags__(self) -> Any:
        return accept_sparse(super().__sklearn_tags__())
