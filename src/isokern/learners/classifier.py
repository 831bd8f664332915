"""IK-OGD: online gradient descent on the Isolation Kernel's map, for classes."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from isokern.checks import unchanged_on_error
from isokern.engines import engine_of
from isokern.feature_map import IsolationKernel
from isokern.learners.classes import ClassBook, check_class_weight
from isokern.learners.kernel_source import KernelSource, check_same_map, read_cells, share_starts
from isokern.learners.one_vs_rest import OneVsRest
from isokern.learners.steps import CLASSIFIER_LOSSES, Steps, check_cell_steps
from isokern.learners.targets import Weights, pass_orders, read_labels, read_weights, some
from isokern.learners.warm_up import Batch, WarmUp, check_n_initial
from isokern.parts import need
from isokern.rows import accept_sparse, read_rows


class IKOGDClassifier(ClassifierMixin, BaseEstimator):
    """Classifier that learns online: nonlinear boundaries, constant memory, constant time a row.

    A row falls into one cell of each of t random partitionings; the score of a class is the mean of the weights of
    those cells; a row whose score violates the margin moves the weights of its own cells. More than two classes are
    learned one against the rest.

    The learner of the paper is ``IKOGDClassifier(schedule="constant", average=False, n_passes=1, shuffle=False)``.

    Parameters
    ----------
    partitioning, n_partitionings, n_cells, max_depth, scale, device
        The kernel's parameters, see :class:`IsolationKernel`.
    kernel : IsolationKernel or None, default=None
        A kernel to use in place of these parameters. A fitted one is used as it is, so that one map can serve many
        learners; wrap it in ``sklearn.frozen.FrozenEstimator`` if the learner is to be cloned.
    loss : {"hinge", "squared_hinge", "logistic"}, default="hinge"
        What a score costs.
    schedule : {"adagrad", "constant", "decaying"}, default="adagrad"
        Steps: "adagrad" divides the learning rate, for each cell, by the root of its summed squared gradients;
        "decaying" divides it by the root of the number of rows seen.
    learning_rate : float or "auto", default="auto"
        Size of a step, the paper's eta. "auto" means 0.5 for constant, 1 for decaying and 2 for AdaGrad's steps.
    shrinkage : float, default=0.0
        L2 regularisation: each row multiplies all weights by 1 - learning_rate * shrinkage.
    average : bool, default=False
        Whether to predict with the mean of the weights over all rows instead of the last ones.
    n_passes : int, default=2
        Passes over the rows in ``fit``; ``partial_fit`` always makes one.
    shuffle : bool, default=True
        Whether ``fit`` takes the rows in random order, each pass anew; ``partial_fit`` takes them as they come.
    class_weight : dict, "balanced" or None, default=None
        Factors of the steps by class. "balanced" weighs inversely to the counts so far.
    n_initial : int or None, default=None
        Rows that ``partial_fit`` waits for before it draws the map from them and begins to learn; until then the
        commonest class is predicted. None means the larger of 1000 and n_cells; a given fitted kernel begins at once.
    evaluation : {"primal", "naive", "dual"}, default="primal"
        How scores are computed: by t weights, by all t * n_cells products, or from all support vectors. All give the
        same scores; the latter two are slow and there for comparison.
    n_jobs : int, default=None
        Threads for mapping and predicting; None means as many as OpenMP allows.
    random_state : int, RandomState instance or None, default=None
        Seed of the map and of the order of rows.

    Attributes
    ----------
    classes_ : ndarray
        The classes known so far, sorted.
    kernel_ : IsolationKernel
        The map.
    learned_ : OneVsRest
        What was learned: class counts, weights and the calibration of probabilities.
    warm_up_ : WarmUp
        In the place of ``learned_`` and ``kernel_`` while the first rows of a stream are held back.
    n_support_ : int
        How many rows have changed the model: the number of support vectors it has absorbed.
    n_features_in_ : int
        Number of columns.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from isokern import IKOGDClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> model = IKOGDClassifier(random_state=0).fit(X[:1200], y[:1200])
    >>> model.score(X[1200:], y[1200:]) > 0.9
    True
    """

    kernel_: IsolationKernel
    learned_: OneVsRest
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
        loss: str = "hinge",
        schedule: str = "adagrad",
        learning_rate: float | str = "auto",
        shrinkage: float = 0.0,
        average: bool = False,
        n_passes: int = 2,
        shuffle: bool = True,
        class_weight: dict[Any, float] | str | None = None,
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
        self.schedule = schedule
        self.learning_rate = learning_rate
        self.shrinkage = shrinkage
        self.average = average
        self.n_passes = n_passes
        self.shuffle = shuffle
        self.class_weight = class_weight
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
            labels, weights = read_labels(self, y, table), read_weights(sample_weight, table)
            rng = check_random_state(self.random_state)
            kernel = KernelSource(self).fit(table, rng)
            self.begin(ClassBook.of_all(labels, takes_new=True), kernel)
            cells = self._cells(table)
            self.learn_passes(cells, labels, weights, rng)
        return self

    def partial_fit(
        self, X: ArrayLike, y: ArrayLike, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Learn from the next rows of a stream, in order. Any way to cut a stream into calls gives the same model.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n, d)
        y : array-like of shape (n,)
        classes : array-like, default=None
            All classes there will be, in the first call. If not given, they are those of its y, and later ones are
            taken in as they come; the model is then the same as if it had been told.
        sample_weight : array-like of shape (n,), default=None
            Factors of the rows' steps, not negative.

        Returns
        -------
        self
        """
        self.check_parameters()
        with unchanged_on_error(self):
            table = read_rows(self, X, reset=not hasattr(self, "n_features_in_"), min_rows=1)
            labels, weights = read_labels(self, y, table), read_weights(sample_weight, table)
            if not hasattr(self, "learned_"):
                batch = self._warm_up(Batch(table, labels, weights), classes)
                if batch is None:
                    return self
                table, labels, weights = batch
            cells = self._cells(table)
            self.learned_ = self.learned_.meet(labels, classes)
        self._learn(cells, labels, weights)
        return self

    def partial_fit_cells(
        self, cells: ArrayLike, y: ArrayLike, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Learn from rows that ``kernel.apply`` has mapped already; otherwise as ``partial_fit``.

        Parameters
        ----------
        cells : array-like of shape (n, n_partitionings)
        y : array-like of shape (n,)
        classes : array-like, default=None
        sample_weight : array-like of shape (n,), default=None

        Returns
        -------
        self
        """
        self.check_parameters()
        with unchanged_on_error(self):
            kernel = KernelSource(self).for_cells()
            known = read_cells(kernel, cells)
            labels, weights = read_labels(self, y, known), read_weights(sample_weight, known)
            if not hasattr(self, "learned_"):
                self.n_features_in_ = kernel.n_features_in_
                self.begin(ClassBook.of(labels, classes, takes_new=True), kernel)
            check_same_map(kernel.map_, self.learned_.model.starts)
            self.learned_ = self.learned_.meet(labels, classes)
        self._learn(known, labels, weights)
        return self

    def _warm_up(self, batch: Batch, classes: ArrayLike | None) -> Batch | None:
        """Hold the first rows of a stream back; return all of them once there are enough to draw the map from."""
        source, held = KernelSource(self), getattr(self, "warm_up_", WarmUp())
        if held.book is None:
            book = ClassBook.of(batch.targets, classes, takes_new=True)
        else:
            book = held.book.meet(batch.targets, classes)
        if held.n + len(batch.targets) < source.n_initial:
            self.warm_up_ = held.holding(batch, book)
            return None
        batch = held.followed_by(batch)
        first = batch.table[: source.n_initial or None]
        self.begin(book, source.fit(first, check_random_state(self.random_state)))
        return batch

    def begin(self, book: ClassBook, kernel: IsolationKernel) -> None:
        """Forget everything, and begin with weights of 0 for the cells of a fitted kernel."""
        self.__dict__.pop("warm_up_", None)
        self.kernel_, self.learned_ = kernel, OneVsRest.begun(self, book, kernel.map_.starts)

    def learn_passes(
        self, cells: NDArray[Any], labels: NDArray[Any], weights: Weights, rng: np.random.RandomState
    ) -> None:
        """Learn from rows that have been read and mapped, ``n_passes`` times in orders drawn from ``rng``."""
        orders = pass_orders(len(labels), self.n_passes, rng, shuffle=self.shuffle)
        for k, order in enumerate(orders):
            self._learn(cells[order], labels[order], some(weights, order), is_new=k == 0)

    def _learn(self, cells: Any, labels: NDArray[Any], weights: Weights, *, is_new: bool = True) -> None:
        steps, factors = Steps.of(self), self.class_weight
        self.learned_.learn(cells, labels, weights, steps, class_weight=factors, is_new=is_new)

    # -- predicting

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
        if hasattr(self, "learned_"):
            cells = self._cells(engine_of(X).read(self, X))
            return self.learned_.scores(cells, self.n_jobs)
        check_is_fitted(self)
        table = read_rows(self, X, reset=False)
        return engine_of(X).to_library(self._book.majority_scores(table.shape[0], self._frequencies()), X)

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
        check_same_map(self.kernel_.map_, self.learned_.model.starts)
        return self.learned_.scores(engine_of(cells).check_cells(self.kernel_.map_, cells), self.n_jobs)

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

    def predict_cells(self, cells: ArrayLike) -> NDArray[Any]:
        """Return the class of rows that ``kernel_.apply`` has mapped already.

        Parameters
        ----------
        cells : array-like of shape (n, n_partitionings)

        Returns
        -------
        labels : ndarray of shape (n,)
        """
        scores = self.decision_function_cells(cells)
        return engine_of(cells).labels(scores, self.classes_)

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the probability of each class.

        For hinge losses, scores are scaled by a factor learned from the scores of recent rows before they were learned,
        so that the most probable class is always the predicted one.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n, d)

        Returns
        -------
        probabilities : ndarray of shape (n, n_classes)
        """
        scores = self.decision_function(X)
        if hasattr(self, "learned_"):
            return self.learned_.probabilities(scores, self.loss)
        counts = self._frequencies()
        return engine_of(X).to_library(np.tile(counts / counts.sum(), (scores.shape[0], 1)), X)

    def predict_proba_cells(self, cells: ArrayLike) -> NDArray[np.float64]:
        """Return the probability of each class for rows that ``kernel_.apply`` has mapped already.

        Parameters
        ----------
        cells : array-like of shape (n, n_partitionings)

        Returns
        -------
        probabilities : ndarray of shape (n, n_classes)
        """
        scores = self.decision_function_cells(cells)
        return self.learned_.probabilities(scores, self.loss)

    @property
    def classes_(self) -> NDArray[Any]:
        """The classes known so far, sorted."""
        return self._book.labels

    @property
    def n_support_(self) -> int:
        """The number of support vectors: rows that changed the model."""
        check_is_fitted(self)
        return self.learned_.model.clock.n_support if hasattr(self, "learned_") else 0

    @property
    def _book(self) -> ClassBook:
        """The classes met so far, whether or not the map has been drawn."""
        return self.learned_.book if hasattr(self, "learned_") else self.warm_up_.book  # type: ignore[return-value]

    def _frequencies(self) -> NDArray[np.int64]:
        """Return how many rows of each class are held back."""
        return self._book.frequencies(self._book.numbers(self.warm_up_.joined().targets))

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
        check_cell_steps(self, CLASSIFIER_LOSSES)
        check_n_initial(self.n_initial)
        check_class_weight(self.class_weight)

    def check(self) -> None:
        """Raise unless what was learned is of the kernel's cells; see :mod:`isokern.parts`."""
        if "warm_up_" in vars(self):
            need(isinstance(self.warm_up_, WarmUp) and self.warm_up_.book is not None, "rows held back must be rows")
        if "learned_" in vars(self):
            need(isinstance(self.learned_, OneVsRest), "what was learned must be scores of classes")
            share_starts(self.kernel_, self.learned_.model)

    def __sklearn_tags__(self) -> Any:
        return accept_sparse(super().__sklearn_tags__())
