"""Provide IKOGDRegressorCV: an IKOGDRegressor tuned by cross-validation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin

from isokern.learners.base_search import PAPERS_CELLS, BaseSearch
from isokern.learners.regressor import IKOGDRegressor
from isokern.learners.steps import quantiles_of


class IKOGDRegressorCV(RegressorMixin, BaseSearch):
    """:class:`IKOGDRegressor` that chooses the number of cells and the learning rate by cross-validation.

    It works like :class:`IKOGDClassifierCV`: ``fit`` scores all candidates in all folds and fits the best one to all
    rows, and ``partial_fit`` then continues the stream with it.

    :class:`IKOGDRegressor` by itself needs no search: it compares candidates while it learns. Search if the folds
    matter, for example for grouped or ordered rows, for another score than its loss, or to report scores of
    cross-validation. By default, it trains 110 models: 11 numbers, 2 rates, 5 folds.

    Parameters
    ----------
    partitioning, n_partitionings, max_depth, scale, categorical_features, device
        Parameters of the kernel, see :class:`IsolationKernel`. ``partitioning`` must be a name.
    n_cells : int or sequence of int, default=(4, 8, ..., 4096)
        Candidates. Those larger than the smallest training part are left out.
    learning_rate : float, "auto" or a sequence of them, default=(0.25, 1.0)
        Candidates; each is combined with each number of cells. They cost little, because they share the map.
    cv : int, splitter or iterable, default=5
        Number of folds, or anything that scikit-learn's ``check_cv`` accepts.
    scoring : str, callable or None, default=None
        Score to maximise: name of a scorer, or ``scoring(model, X, y)``. None means R², which cannot judge several
        quantiles.
    loss, epsilon, quantiles, schedule, shrinkage, average, n_passes, shuffle, n_initial, evaluation, n_jobs
        See :class:`IKOGDRegressor`. There is no race: "adagrad" steps, no average and 4 passes unless given.
    random_state, verbose
        See :class:`IKOGDClassifierCV`.

    Attributes
    ----------
    best_estimator_ : IKOGDRegressor
        Best candidate, fitted to all rows.
    best_params_, best_score_, best_index_, cv_results_, n_splits_
        See :class:`IKOGDClassifierCV`.
    mean_, kernel_, n_support_, n_features_in_
        Those of ``best_estimator_``.

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> from isokern import IKOGDRegressorCV
    >>> X, y = make_friedman1(2000, random_state=0)
    >>> model = IKOGDRegressorCV(n_cells=(4, 64), cv=3, random_state=0).fit(X[:1500], y[:1500])
    >>> model.best_params_
    {'n_cells': 64, 'learning_rate': 1.0}
    >>> model.score(X[1500:], y[1500:]) > 0.8
    True
    """

    _learner = IKOGDRegressor

    def __init__(
        self,
        partitioning: str = "tree",
        n_partitionings: int = 100,
        n_cells: int | Sequence[int] = PAPERS_CELLS,
        *,
        max_depth: int | str | None = None,
        scale: str | None = None,
        categorical_features: Any = "from_dtype",
        loss: str = "squared",
        epsilon: float = 0.1,
        quantiles: Any = 0.5,
        schedule: str = "adagrad",
        learning_rate: float | str | Sequence[float | str] = (0.25, 1.0),
        shrinkage: float = 0.0,
        average: bool = False,
        n_passes: int = 4,
        shuffle: bool = True,
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
        self.epsilon = epsilon
        self.quantiles = quantiles
        self.schedule = schedule
        self.learning_rate = learning_rate
        self.shrinkage = shrinkage
        self.average = average
        self.n_passes = n_passes
        self.shuffle = shuffle
        self.n_initial = n_initial
        self.evaluation = evaluation
        self.cv = cv
        self.scoring = scoring
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _read_targets(self, y: Any, table: Any) -> NDArray[np.float64]:
        if self.scoring is None and len(quantiles_of(self)) > 1:
            raise ValueError("scoring must be given for several quantiles, which R² cannot judge; got None.")
        targets = self._base().read_targets(y, table)
        return targets[:, 0] if targets.shape[1] == 1 else targets  # as scorers expect them

    # -- what the best candidate does

    def partial_fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Continue the stream after ``fit``; see :meth:`IKOGDRegressor.partial_fit`."""
        self._best().partial_fit(X, y, sample_weight)
        return self

    def partial_fit_predict(
        self,
        X: ArrayLike,
        y: ArrayLike | None,
        sample_weight: ArrayLike | None = None,
        *,
        method: str = "predict",
    ) -> NDArray[np.float64]:
        """Continue the stream and answer each row before it; see :meth:`IKOGDRegressor.partial_fit_predict`."""
        return self._best().partial_fit_predict(X, y, sample_weight, method=method)

    def partial_fit_cells(self, cells: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Continue the stream with cells; see :meth:`IKOGDRegressor.partial_fit_cells`."""
        self._best().partial_fit_cells(cells, y, sample_weight)
        return self

    def predict_cells(self, cells: ArrayLike) -> NDArray[np.float64]:
        """Return the predictions for rows given as cells; see :meth:`IKOGDRegressor.predict_cells`."""
        return self._best().predict_cells(cells)

    @property
    def mean_(self) -> Any:
        """Weighted mean of the targets so far; an array for several outputs."""
        return self._best().mean_
