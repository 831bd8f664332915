"""IK-OGD: online gradient descent on the Isolation Kernel's map, for classes."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from isokern._checks import n_threads
from isokern._rows import check_finite, check_rows
from isokern.feature_map import IsolationKernel
from isokern.learners._calibration import ScoreWindow
from isokern.learners._mapped import labels_of
from isokern.learners._online import OnlineLearner


class IKOGDClassifier(ClassifierMixin, OnlineLearner):
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
    _LEARNED = ("classes_", "_is_open", "_counts", "_window")

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

    def partial_fit(
        self, X: ArrayLike, y: ArrayLike, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Learn from the next rows of a stream, in order.

        Any way to cut a stream into calls gives the same model.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n, d)
        y : array-like of shape (n,)
        classes : array-like, default=None
            All classes there will be, in the first call. If not given, classes are taken in as they come, and the model
            is the same as if they had been given.
        sample_weight : array-like of shape (n,), default=None
            Factors of the rows' steps, not negative.

        Returns
        -------
        self
        """
        return self._partial_fit(X, y, sample_weight, classes=classes)

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
        if hasattr(self, "kernel_"):
            return self._score(self._map(X))
        return self._early_scores(X)

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
        scores = self.decision_function(X)  # first, since it checks that there are classes
        return labels_of(scores, self.classes_)

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
        if not hasattr(self, "kernel_"):
            counts = self._early_counts()
            return np.tile(counts / counts.sum(), (len(scores), 1))
        if len(self.classes_) == 1:
            return np.ones((len(scores), 1))
        if self.loss == "logistic":
            likelihoods = expit(scores if scores.ndim == 2 else np.column_stack([-scores, scores]))
            return likelihoods / likelihoods.sum(axis=1, keepdims=True)
        columns = scores if scores.ndim == 2 else np.column_stack([np.zeros(len(scores)), scores])
        return softmax(self._window.sharpness(len(self.classes_)) * columns, axis=1)

    # -- the classes

    def _check_targets(self, table: Any, y: Any) -> NDArray[Any]:
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        labels = column_or_1d(y, warn=True)
        check_consistent_length(table, labels)
        check_classification_targets(labels)
        return labels

    def _begin_fit(self, labels: NDArray[Any]) -> None:
        self._meet(labels, None)
        if len(self.classes_) < 2:
            raise ValueError(f"y must have at least 2 classes in fit; got only one class, {self.classes_[0]!r}.")

    def _meet(self, labels: NDArray[Any], classes: ArrayLike | None) -> None:
        """Take in the classes of labels; unless ``classes`` were given at the start, there may be new ones."""
        given = None if classes is None else np.unique(np.asarray(classes))
        if not hasattr(self, "classes_"):
            self._is_open = given is None
            self.classes_ = np.unique(labels) if given is None else given
            self._counts = np.zeros(len(self.classes_), dtype=np.int64)
            if given is not None and len(given) < 2:
                raise ValueError(f"classes must be at least 2; got {given}.")
        elif given is not None and not np.array_equal(given, self.classes_):
            raise ValueError(f"classes must be the same in every call, {self.classes_}; got {given}.")
        new = np.setdiff1d(labels, self.classes_)
        if len(new) and not self._is_open:
            raise ValueError(f"y must be of the classes {self.classes_} that were given; got {new[0]!r}.")
        if len(new):
            self._grow(np.union1d(self.classes_, new))

    def _grow(self, classes: NDArray[Any]) -> None:
        """Make room for new classes, each of which begins as what was learned for classes not seen yet."""
        place = np.searchsorted(classes, self.classes_)
        if hasattr(self, "_model"):
            scored = classes if len(classes) > 2 else classes[1:]
            columns, signs = zip(*(self._column_of(label) for label in [*scored, None]), strict=True)
            self._model.rearrange(columns, signs)
            self._window.rearrange(columns, signs, place)
        counts = np.zeros(len(classes), dtype=np.int64)
        counts[place] = self._counts
        self.classes_, self._counts = classes, counts

    def _column_of(self, label: Any) -> tuple[int, float]:
        """Return the column of a class's score and its sign; a class not seen yet has the last column."""
        known = np.flatnonzero(self.classes_ == label) if label is not None else np.empty(0)
        if len(known) == 0:
            return self._n_columns() - 1, 1.0
        if len(self.classes_) > 2:
            return int(known[0]), 1.0
        # Two classes share one column; what is always true of one class is never true of those not seen.
        return 0, 1.0 if known[0] == 1 else -1.0

    def _n_columns(self) -> int:
        n_classes = len(self.classes_)
        return (n_classes if n_classes > 2 else n_classes - 1) + self._is_open

    # -- learning and scoring

    def _learn(
        self, cells: NDArray[Any], labels: NDArray[Any], weights: NDArray[np.float64] | None, *, is_new: bool = True
    ) -> None:
        if not hasattr(self, "_window"):
            self._window = ScoreWindow(self._n_columns())
        classes = np.searchsorted(self.classes_, labels)
        factors = self._row_factors(classes, weights)
        n_classes = len(self.classes_)
        targets = (
            classes if n_classes > 2 else np.where(classes == n_classes - 1, 0, -1) if n_classes == 2 else classes - 1
        )
        targets = targets.astype(np.int32)
        recent = max(0, len(cells) - self._window.size) if is_new else len(cells)
        for part, scores in (
            (slice(0, recent), None),
            (slice(recent, None), np.empty((len(cells) - recent, self._n_columns()))),
        ):
            rows_factors = None if factors is None else factors[part]
            self._model.learn(cells[part], targets[part], rows_factors, self._rule(), scores)
            if scores is not None:
                self._window.add(scores, classes[part])

    def _row_factors(
        self, classes: NDArray[np.intp], weights: NDArray[np.float64] | None
    ) -> NDArray[np.float64] | None:
        """Return the factors of the rows' steps, and count the rows."""
        before = self._counts.copy()
        self._counts += np.bincount(classes, minlength=len(before))
        if self.class_weight is None:
            return weights
        if isinstance(self.class_weight, str):
            factors = balanced_factors(classes, before)
        else:
            factors = np.array([float(self.class_weight.get(label, 1.0)) for label in self.classes_.tolist()])[classes]
        return factors if weights is None else factors * weights

    def _score(self, cells: NDArray[Any]) -> NDArray[np.float64]:
        scores = self._model.score(cells, n_threads(self.n_jobs))
        return scores[:, : len(self.classes_)] if len(self.classes_) > 2 else scores[:, 0]

    def _early_scores(self, X: Any) -> NDArray[np.float64]:
        """Return scores that speak for the commonest class, while rows are held back."""
        check_is_fitted(self)
        table = check_rows(self, X, reset=False)
        check_finite(table, getattr(self, "feature_names_in_", None))
        scores = np.full((table.shape[0], len(self.classes_)), -1.0)
        scores[:, self._early_counts().argmax()] = 1.0
        return scores if len(self.classes_) > 2 else scores[:, -1] if len(self.classes_) == 2 else -scores[:, 0]

    def _early_counts(self) -> NDArray[np.int64]:
        labels = self._held.joined()[1]
        return np.bincount(np.searchsorted(self.classes_, labels), minlength=len(self.classes_))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        is_known = self.class_weight is None or isinstance(self.class_weight, dict) or self.class_weight == "balanced"
        if not is_known:
            raise ValueError(f'class_weight must be None, "balanced" or a dict; got {self.class_weight!r}.')


def balanced_factors(classes: NDArray[np.intp], before: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return, for each row, n / (k * n_c): rows, classes and rows of its class so far, itself included."""
    n = before.sum() + np.arange(1, len(classes) + 1)
    n_class = np.empty(len(classes))
    is_first = np.zeros(len(classes), dtype=np.int64)
    for c, count in enumerate(before):
        rows = np.flatnonzero(classes == c)
        n_class[rows] = count + np.arange(1, len(rows) + 1)
        if count == 0 and len(rows):
            is_first[rows[0]] = 1
    return n / ((np.count_nonzero(before) + np.cumsum(is_first)) * n_class)
