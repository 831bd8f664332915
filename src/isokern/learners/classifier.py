"""IK-OGD: online gradient descent on the Isolation Kernel's map, for classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_expit, softmax
from sklearn.utils.validation import check_is_fitted

from isokern.arrays import in_library_of, is_foreign, like, to_host
from isokern.feature_map import IsolationKernel
from isokern.learners._cells import CellLearner
from isokern.learners.calibration import ScoreWindow, favour
from isokern.learners.classes import OnlineClassifier
from isokern.learners.kernel_source import labels_of


class IKOGDClassifier(OnlineClassifier, CellLearner):
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

    _LOSSES = ("hinge", "squared_hinge", "logistic")
    _LEARNED = (*OnlineClassifier._LEARNED, "_window")
    _TAKES_NEW_CLASSES = True

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
        return self._partial_fit_cells(cells, y, sample_weight, classes=classes)

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
        return self._score(self._known_cells(cells))

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
        if self._has_begun:
            return self._probabilities(scores)
        counts = self._early_counts()
        return in_library_of(X, np.tile(counts / counts.sum(), (scores.shape[0], 1)))

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
        return labels_of(scores, self.classes_)

    def predict_proba_cells(self, cells: ArrayLike) -> NDArray[np.float64]:
        """Return the probability of each class for rows that ``kernel_.apply`` has mapped already.

        Parameters
        ----------
        cells : array-like of shape (n, n_partitionings)

        Returns
        -------
        probabilities : ndarray of shape (n, n_classes)
        """
        return self._probabilities(self.decision_function_cells(cells))

    def _probabilities(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        if is_foreign(scores):
            return like(self._probabilities(to_host(scores)), scores)
        if len(self.classes_) == 1:
            return np.ones((len(scores), 1))
        columns = scores if scores.ndim == 2 else np.column_stack([np.zeros(len(scores)), scores])
        if self.loss == "logistic":
            logarithms = log_expit(columns) if scores.ndim == 2 else columns
        else:
            logarithms = self._window.sharpness(len(self.classes_)) * columns
        return favour(softmax(logarithms, axis=1), columns.argmax(axis=1))

    def _map(self, X: Any) -> NDArray[Any]:
        return CellLearner._map(self, X)

    def _learn(
        self, rows: NDArray[Any], labels: NDArray[Any], weights: NDArray[np.float64] | None, *, is_new: bool = True
    ) -> None:
        """Learn, and keep the last rows' scores before they are learned for the first time."""
        if not hasattr(self, "_window"):
            self._window = ScoreWindow(self._n_columns())
        classes = np.searchsorted(self.classes_, labels)
        counted_from = self._counted_from(classes)
        factors, targets = self._row_factors(classes, weights), self._targets(classes)
        recent = max(0, len(rows) - self._window.size) if is_new else len(rows)
        scores = np.empty((len(rows) - recent, self._n_columns()))
        for begin, end, out in ((0, recent, None), (recent, len(rows), scores)):
            rule = self._rule([first - begin for first in counted_from])
            part_factors = None if factors is None else factors[begin:end]
            self._model.learn(rows[begin:end], targets[begin:end], part_factors, rule, out)
        self._window.add(scores, classes[recent:])

    def _rearrange(self, columns: Sequence[int], signs: Sequence[float], place: NDArray[np.intp]) -> None:
        super()._rearrange(columns, signs, place)
        self._window.rearrange(columns, signs, place)
