"""Provide IKOGDClassifierCV: an IKOGDClassifier tuned by cross-validation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin

from isokern.learners.base_search import PAPERS_CELLS, BaseSearch
from isokern.learners.classes import ClassBook
from isokern.learners.classifier import IKOGDClassifier
from isokern.learners.targets import read_labels


class IKOGDClassifierCV(ClassifierMixin, BaseSearch):
    """:class:`IKOGDClassifier` that chooses the number of cells, and optionally the learning rate, by cross-validation.

    ``fit`` scores all candidates in all folds and fits the best one to all rows; ``partial_fit`` then continues the
    stream with it. In each fold the map is drawn from the training part only. With the same seed, the sample of a small
    map is the beginning of the sample of a larger one, so candidates differ only in their number of cells.

    :class:`IKOGDClassifier` by itself needs no search: it compares candidates while it learns. Search if the folds
    matter, for example for grouped or ordered rows, for another score than accuracy, to choose one number of cells as
    the paper does, or to report scores of cross-validation. By default, it trains 55 models: 11 numbers, 5 folds.

    Choose it over ``GridSearchCV`` because folds and candidates share work: learning rates share one map, and Voronoi
    cells are computed once for all numbers of cells and all folds. Choose ``GridSearchCV`` to search other parameters.

    Parameters
    ----------
    partitioning, n_partitionings, max_depth, scale, categorical_features, device
        Parameters of the kernel, see :class:`IsolationKernel`. ``partitioning`` must be a name.
    n_cells : int or sequence of int, default=(4, 8, ..., 4096)
        Candidates. Those larger than the smallest training part are left out.
    learning_rate : float, "auto" or a sequence of them, default="auto"
        Candidates; each is combined with each number of cells. They cost little, because they share the map.
    cv : int, splitter or iterable, default=5
        Number of stratified folds, or anything that scikit-learn's ``check_cv`` accepts.
    scoring : str, callable or None, default=None
        Score to maximise: name of a scorer, or ``scoring(model, X, y)``. None means accuracy.
    loss, schedule, shrinkage, average, n_passes, shuffle, class_weight, n_initial, evaluation, n_jobs
        See :class:`IKOGDClassifier`.
    random_state : int, RandomState instance or None, default=None
        Seed. One integer drawn from it seeds all models: ``best_estimator_.random_state``.
    verbose : {0, 1}, default=0
        1 prints the steps of the search on standard error, with a bar on a terminal. Results do not depend on it.

    Attributes
    ----------
    best_estimator_ : IKOGDClassifier
        Best candidate, fitted to all rows.
    best_params_ : dict
        Its ``n_cells`` and, if searched, ``learning_rate``. Ties go to the fewest cells.
    best_score_ : float
        Its mean score over the folds.
    best_index_ : int
        Its index in ``cv_results_``.
    cv_results_ : dict
        All scores, in the format of ``GridSearchCV``.
    n_splits_ : int
        Number of folds.
    classes_, kernel_, n_support_, n_features_in_
        Those of ``best_estimator_``.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from isokern import IKOGDClassifierCV
    >>> X, y = load_digits(return_X_y=True)
    >>> model = IKOGDClassifierCV(n_cells=(4, 64), cv=3, random_state=0).fit(X[:1200], y[:1200])
    >>> model.best_params_
    {'n_cells': 64}
    >>> model.score(X[1200:], y[1200:]) > 0.9
    True
    """

    _learner = IKOGDClassifier

    def __init__(
        self,
        partitioning: str = "tree",
        n_partitionings: int = 100,
        n_cells: int | Sequence[int] = PAPERS_CELLS,
        *,
        max_depth: int | str | None = None,
        scale: str | None = None,
        categorical_features: Any = "from_dtype",
        loss: str = "hinge",
        schedule: str = "adagrad",
        learning_rate: float | str | Sequence[float | str] = "auto",
        shrinkage: float = 0.0,
        average: bool = False,
        n_passes: int = 2,
        shuffle: bool = True,
        class_weight: dict[Any, float] | str | None = None,
        n_initial: int | None = None,
        evaluation: str = "primal",
        cv: Any = 5,
        scoring: str | Callable[[Any, Any, Any], float] | None = None,
        device: str | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.partitioning = partitioning
        self.n_partitionings = n_partitionings
        self.n_cells = n_cells
        self.max_depth = max_depth
        self.scale = scale
        self.categorical_features = categorical_features
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
        self.cv = cv
        self.scoring = scoring
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _read_targets(self, y: Any, table: Any) -> NDArray[Any]:
        labels = read_labels(self, y, table)
        ClassBook.of_all(labels, takes_new=True)  # raises on a single class
        return labels

    # -- what the best candidate does

    def partial_fit(
        self, X: ArrayLike, y: ArrayLike, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Continue the stream after ``fit``; see :meth:`IKOGDClassifier.partial_fit`."""
        self._best().partial_fit(X, y, classes, sample_weight)
        return self

    def partial_fit_predict(
        self,
        X: ArrayLike,
        y: ArrayLike | None,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        method: str = "predict",
    ) -> NDArray[Any]:
        """Continue the stream and answer each row before it; see :meth:`IKOGDClassifier.partial_fit_predict`."""
        return self._best().partial_fit_predict(X, y, classes, sample_weight, method=method)

    def partial_fit_cells(
        self, cells: ArrayLike, y: ArrayLike, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Continue the stream with cells; see :meth:`IKOGDClassifier.partial_fit_cells`."""
        self._best().partial_fit_cells(cells, y, classes, sample_weight)
        return self

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the scores of rows; see :meth:`IKOGDClassifier.decision_function`."""
        return self._best().decision_function(X)

    def decision_function_cells(self, cells: ArrayLike) -> NDArray[np.float64]:
        """Return the scores of rows given as cells; see :meth:`IKOGDClassifier.decision_function_cells`."""
        return self._best().decision_function_cells(cells)

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the probability of each class; see :meth:`IKOGDClassifier.predict_proba`."""
        return self._best().predict_proba(X)

    @property
    def classes_(self) -> NDArray[Any]:
        """Classes seen so far, sorted."""
        return self._best().classes_
