"""Provide IKOGDClassifierCV: an IKOGDClassifier tuned by cross-validation."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import check_scoring
from sklearn.utils import check_random_state, indexable
from sklearn.utils.validation import check_is_fitted

from isokern.checks import all_or_nothing, is_integer
from isokern.feature_map import IsolationKernel
from isokern.learners.classes import ClassBook
from isokern.learners.classifier import IKOGDClassifier
from isokern.learners.folds import Folds, Rows, split_rows, table_of_results
from isokern.learners.kernel_source import draw_seed
from isokern.learners.targets import read_labels, read_weights
from isokern.partitionings import is_tree
from isokern.parts import need
from isokern.rows import input_tags, read_rows

PAPERS_CELLS = tuple(2**m for m in range(2, 13))
_log = logging.getLogger("isokern")


class IKOGDClassifierCV(ClassifierMixin, BaseEstimator):
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

    @all_or_nothing
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Score all candidates in all folds and fit the best to all rows.

        X, y and sample_weight are those of :meth:`IKOGDClassifier.fit`; scores are not weighted.
        """
        base, sizes, rates = self._base(), _listed(self.n_cells), _listed(self.learning_rate)
        self._check_candidates(base, sizes, rates)
        table = read_rows(self, X, reset=True)
        labels, weights = read_labels(self, y, table), read_weights(sample_weight, table)
        ClassBook.of_all(labels, takes_new=True)  # raises on a single class
        rows = Rows(indexable(X)[0], table, labels, weights)
        base.set_params(random_state=draw_seed(check_random_state(self.random_state)))
        base.n_features_in_, base.is_categorical_ = self.n_features_in_, self.is_categorical_
        if hasattr(self, "feature_names_in_"):
            base.feature_names_in_ = self.feature_names_in_
        folds = self._search(base, sorted({int(n_cells) for n_cells in sizes}), rates, rows)
        self.best_estimator_ = folds.refit(self.best_params_)
        return self

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

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the class of each row; see :meth:`IKOGDClassifier.predict`."""
        return self._best().predict(X)

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the probability of each class; see :meth:`IKOGDClassifier.predict_proba`."""
        return self._best().predict_proba(X)

    @property
    def classes_(self) -> NDArray[Any]:
        """Classes seen so far, sorted."""
        return self._best().classes_

    @property
    def kernel_(self) -> IsolationKernel:
        """Fitted kernel."""
        return self._best().kernel_

    @property
    def n_support_(self) -> int:
        """Number of support vectors: rows that changed the weights."""
        return self._best().n_support_

    @property
    def n_rows_seen_(self) -> int:
        """Number of rows learned so far by the best candidate."""
        return self._best().n_rows_seen_

    def _best(self) -> IKOGDClassifier:
        message = "%(name)s is not fitted yet: call fit first; partial_fit then continues the stream."
        check_is_fitted(self, "best_estimator_", msg=message)
        return self.best_estimator_

    # -- search

    def _base(self) -> IKOGDClassifier:
        """Return a learner with the parameters that are not searched."""
        flat = {name: value for name, value in self.get_params(deep=False).items() if name not in ("cv", "scoring")}
        return IKOGDClassifier(**flat)

    def _search(self, base: IKOGDClassifier, sizes: list[int], rates: list[Any], rows: Rows) -> Folds:
        """Score all candidates in all folds, set the results and the best candidate, and return the folds."""
        splits = split_rows(self.cv, rows.X, rows.labels)
        n_smallest = min(len(train) for train, _ in splits)
        fitting = [n_cells for n_cells in sizes if n_cells <= n_smallest]
        if not fitting:
            raise ValueError(
                f"n_cells must have a candidate of at most {n_smallest}, the rows of the smallest training part; "
                f"got {self.n_cells!r}."
            )
        scorer = check_scoring(base, scoring=self.scoring)
        folds, scores = Folds(base, rows, splits, fitting), []
        for k, of_fold in enumerate(folds.scores(scorer, rates), start=1):
            scores.append(of_fold.ravel())
            _log.info("fold %d of %d: scores from %.4f to %.4f", k, len(splits), scores[-1].min(), scores[-1].max())
        self.n_splits_ = len(splits)
        candidates = [{"n_cells": n_cells, "learning_rate": rate} for n_cells in fitting for rate in rates]
        if np.ndim(self.learning_rate) == 0:  # not searched
            candidates = [{"n_cells": n_cells} for n_cells in fitting]
        self.cv_results_ = table_of_results(candidates, np.column_stack(scores))
        # argmax returns the first maximum, which has the fewest cells.
        self.best_index_ = int(self.cv_results_["mean_test_score"].argmax())
        self.best_score_ = float(self.cv_results_["mean_test_score"][self.best_index_])
        self.best_params_ = self.cv_results_["params"][self.best_index_]
        return folds

    def _check_candidates(self, base: IKOGDClassifier, sizes: list[Any], rates: list[Any]) -> None:
        if not isinstance(self.partitioning, str):
            raise ValueError(
                f"partitioning must be a name, because custom ones have no n_cells; got {self.partitioning!r}. "
                "Search its parameters with GridSearchCV."
            )
        if not sizes or not all(is_integer(n_cells, at_least=2) for n_cells in sizes):
            raise ValueError(f"n_cells must be integers of at least 2; got {self.n_cells!r}.")
        if not rates:
            raise ValueError(f'learning_rate must be positive numbers or "auto"; got {self.learning_rate!r}.')
        for rate in rates:
            base.set_params(n_cells=sizes[0], learning_rate=rate).check_parameters()

    def check(self) -> None:
        """Raise ValueError if the best candidate is not an IKOGDClassifier; see :mod:`isokern.parts`."""
        if "best_estimator_" in vars(self):
            need(type(self.best_estimator_) is IKOGDClassifier, "best_estimator_ must be an IKOGDClassifier")

    def __sklearn_tags__(self) -> Any:
        return input_tags(super().__sklearn_tags__(), trees=is_tree(self.partitioning))


def _listed(candidates: Any) -> list[Any]:
    """Return one candidate or several as a list."""
    return list(np.asarray(candidates, dtype=object).ravel())
