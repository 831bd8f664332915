"""Provide IKSVC: a support vector classifier with the Isolation Kernel."""

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
from isokern.checks import all_or_nothing, is_number, n_threads
from isokern.engines import engine_of
from isokern.feature_map import IsolationKernel
from isokern.learners.classes import ClassBook
from isokern.learners.commits import one_view
from isokern.learners.kernel_source import KernelSource, draw_seed, read_cells, share_starts, take_columns
from isokern.learners.parameters import check_choice, check_class_weight, check_integer, check_positive
from isokern.learners.targets import Weights, read_labels, read_weights
from isokern.learners.weights import CellWeights
from isokern.parts import need, need_array
from isokern.rows import input_tags, read_rows

LOSSES = ("squared_hinge", "hinge")
_LARGEST_SCALING = 1e100  # so that its square is finite


class IKSVC(ClassifierMixin, BaseEstimator):
    """Support vector classifier with the Isolation Kernel, trained by dual coordinate descent on cell numbers.

    It solves the problem of ``LinearSVC(dual=True)`` on ``IsolationKernel.transform(X)`` without building that matrix.
    Except for its regularised intercept, this is also the problem of ``SVC(kernel="precomputed")`` on
    ``IsolationKernel.similarity(X)``, but training time grows linearly with the number of rows instead of
    quadratically. More than two classes are learned one-vs-rest.

    Choose it for batch learning, if all rows fit into memory and you want the optimum of the SVM objective. Choose
    :class:`IKOGDClassifier` for streams, for probabilities, or if training time matters more.

    Parameters
    ----------
    partitioning, n_partitionings, n_cells, max_depth, scale, categorical_features, kernel, device
        The kernel, see :class:`IKOGDClassifier`.
    C : float, default=1.0
        Weight of the loss relative to the L2 penalty of the weights.
    loss : {"squared_hinge", "hinge"}, default="squared_hinge"
        Loss function of a score.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, which multiply C for their rows in all one-vs-rest problems. (``LinearSVC`` applies the
        weight of a class in the problem of that class only.)
    fit_intercept : bool, default=True
        Whether scores have an intercept.
    intercept_scaling : float, default=1.0
        The larger, the weaker the penalty of the intercept and the longer the training; 10 makes it nearly free.
    tol : float, default=1e-4
        Training stops when the projected gradients of the dual problem span less than this.
    max_iter : int, default=1000
        Maximum number of passes over the rows.
    n_jobs : int, default=None
        Number of threads for mapping and prediction, and for training with more than two classes; see
        :class:`IsolationKernel`. Results do not depend on it.
    random_state : int, RandomState instance or None, default=None
        Seed of the map and of the order in which training visits the rows.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Classes, sorted.
    kernel_ : IsolationKernel
        Fitted kernel.
    class_book_ : ClassBook
        Classes and the columns of scores they use.
    model_ : CellWeights
        Weights of the cells.
    cell_weights_ : ndarray of shape (1, n_columns) for two classes, else (n_classes, n_columns)
        Weights of the cells, which are the columns of ``kernel_.transform``. They are not called ``coef_``,
        because scikit-learn expects that to have one value per input column.
    intercept_ : ndarray of shape (1,) for two classes, else (n_classes,)
        Intercepts.
    n_iter_ : int
        Number of passes over the rows, the maximum over the one-vs-rest problems.
    n_features_in_ : int
        Number of columns.

    References
    ----------
    Hsieh, Chang, Lin, Keerthi and Sundararajan, "A dual coordinate descent method for large-scale linear SVM", ICML,
    2008.

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
        categorical_features: Any = "from_dtype",
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
        self.categorical_features = categorical_features
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

    @all_or_nothing
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Draw the map from the rows and train on their cells.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame, list of dicts} of shape (n, d)
            Rows.
        y : array-like of shape (n,)
            Labels, numbers or strings.
        sample_weight : array-like of shape (n,), default=None
            Weights of at least 0, which multiply C.

        Returns
        -------
        self
        """
        self.check_parameters()
        table = read_rows(self, X, reset=True, kernel=KernelSource(self).kernel)
        labels, weights = read_labels(self, y, table), read_weights(sample_weight, table)
        rng = check_random_state(self.random_state)
        book = ClassBook.of_all(labels, takes_new=False)
        self.kernel_ = KernelSource(self).fit(table, rng)
        self._solve(book, self.kernel_.apply_rows(table), labels, weights, draw_seed(rng))
        return self

    @all_or_nothing
    def fit_cells(self, cells: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Train on rows given as ``cells``, an array of shape (n, n_partitionings) from the ``apply`` of ``kernel``.

        ``kernel`` must be a fitted kernel. Otherwise like ``fit``.
        """
        self.check_parameters()
        for name in ("kernel_", "feature_names_in_"):
            self.__dict__.pop(name, None)
        self.kernel_ = KernelSource(self).for_cells()
        take_columns(self, self.kernel_)
        known = read_cells(self.kernel_, cells)
        labels, weights = read_labels(self, y, known), read_weights(sample_weight, known)
        book = ClassBook.of_all(labels, takes_new=False)
        self._solve(book, known, labels, weights, draw_seed(check_random_state(self.random_state)))
        return self

    @property
    def cell_weights_(self) -> NDArray[np.float64]:
        """Weights of the cells, the columns of ``kernel_.transform``, one row per score."""
        check_is_fitted(self, "kernel_")
        # The map's values are 1/sqrt(t), a score is a mean over t: (1/t) sum of sqrt(t) * weight.
        return np.ascontiguousarray(self.model_.values.T) / math.sqrt(self.kernel_.map_.n_partitionings)

    @one_view
    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the scores of rows; see :meth:`IKOGDClassifier.decision_function`."""
        check_is_fitted(self, "kernel_")
        return self._scores(self.kernel_.apply_rows(engine_of(X).read(self, X)))

    @one_view
    def decision_function_cells(self, cells: ArrayLike) -> NDArray[np.float64]:
        """Return the scores of rows given as cells of shape (n, n_partitionings) from ``kernel_.apply``."""
        check_is_fitted(self, "kernel_")
        return self._scores(engine_of(cells).check_cells(self.kernel_.map_, cells))

    @one_view
    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the class of each row, an array of shape (n,)."""
        scores = self.decision_function(X)
        return engine_of(X).labels(scores, self.classes_)

    @property
    def classes_(self) -> NDArray[Any]:
        """Classes, sorted."""
        return self.class_book_.labels

    def _solve(self, book: ClassBook, cells: NDArray[Any], labels: NDArray[Any], weights: Weights, seed: int) -> None:
        """Solve one SVM problem per score."""
        numbers = book.numbers(labels)
        self.class_book_ = book.counting(numbers)
        square = float(self.intercept_scaling) ** 2 if self.fit_intercept else 0.0
        is_squared = self.loss == "squared_hinge"
        rule = _core.SvmRule(is_squared, float(self.C), square, float(self.tol), int(self.max_iter), seed)
        costs = self._row_costs(labels, numbers, weights)
        starts, n_scores, threads = self.kernel_.map_.starts, book.n_columns, n_threads(self.n_jobs)
        values, self.intercept_, n_iter = _core.solve_svm(
            cells, starts, book.targets(numbers), costs, n_scores, rule, threads
        )
        self.model_ = CellWeights(starts, np.ascontiguousarray(values.reshape(n_scores, -1).T))
        self.n_iter_ = int(n_iter.max())
        if self.n_iter_ >= self.max_iter:
            warnings.warn(
                f"IKSVC has not converged after max_iter={self.max_iter} passes. Raise max_iter or tol, or lower C or "
                "intercept_scaling.",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _row_costs(self, labels: NDArray[Any], numbers: NDArray[np.intp], weights: Weights) -> Weights:
        """Return the factor of C of each row, or None if all are 1."""
        if self.class_weight is None:
            return weights
        factors: NDArray[np.float64] = compute_class_weight(self.class_weight, classes=self.classes_, y=labels)[numbers]
        return factors if weights is None else factors * weights

    def _scores(self, cells: Any) -> Any:
        engine = engine_of(cells)
        scores = engine.scores(cells, self.model_, self.n_jobs) + engine.to_library(self.intercept_, cells)
        return self.class_book_.of_classes(scores)

    # -- checks

    def check_parameters(self) -> None:
        """Raise ValueError if a parameter is invalid."""
        KernelSource(self).check()
        check_class_weight(self.class_weight)
        check_choice(self, "loss", LOSSES)
        check_positive(self, "C")
        check_positive(self, "tol")
        if not (is_number(self.intercept_scaling) and 0 < self.intercept_scaling <= _LARGEST_SCALING):
            raise ValueError(
                f"intercept_scaling must be a positive number of at most {_LARGEST_SCALING:g}; "
                f"got {self.intercept_scaling!r}. For no intercept, set fit_intercept=False."
            )
        check_integer(self, "max_iter", at_least=1)

    def check(self) -> None:
        """Raise ValueError if classes, weights, intercepts and kernel do not match; see :mod:`isokern.parts`."""
        if "kernel_" not in vars(self):
            return
        need(isinstance(self.class_book_, ClassBook), "class_book_ must be a ClassBook")
        need(isinstance(self.model_, CellWeights), "model_ must be a CellWeights")
        share_starts(self.kernel_, self.model_)
        need_array(self.intercept_, np.float64, 1, "intercept_")
        n_scores = self.class_book_.n_columns
        is_matched = self.model_.n_columns == len(self.intercept_) == n_scores > 0
        need(is_matched, "model_ and intercept_ must have one column per score")

    def __sklearn_tags__(self) -> Any:
        return input_tags(super().__sklearn_tags__(), trees=KernelSource(self).has_trees)
