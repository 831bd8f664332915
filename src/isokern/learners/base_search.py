"""Provide what the searches share: check candidates, cross-validate them, and answer with the best one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, is_classifier
from sklearn.metrics import check_scoring
from sklearn.utils import check_random_state, indexable
from sklearn.utils.validation import check_is_fitted

from isokern.checks import all_or_nothing, is_integer
from isokern.feature_map import IsolationKernel
from isokern.forest import Forest
from isokern.learners.folds import Folds, Rows, split_rows, table_of_results
from isokern.learners.kernel_source import draw_seed
from isokern.learners.targets import read_all_weights
from isokern.notebooks import repr_html, repr_mimebundle
from isokern.partitionings import is_tree
from isokern.parts import need
from isokern.progress import Bar, tell
from isokern.rows import input_tags, read_rows

PAPERS_CELLS = tuple(2**m for m in range(2, 13))


class BaseSearch(BaseEstimator):
    """Base of the estimators that choose the number of cells and the learning rate of a learner by cross-validation."""

    _repr_html_inner, _repr_mimebundle_ = repr_html, repr_mimebundle

    _learner: Any  # class of the learner
    _read_targets: Callable[[Any, Any], NDArray[Any]]  # validates y for a table

    # Parameters that are searched, or that the search itself uses.
    partitioning: str
    n_cells: Any
    learning_rate: Any
    cv: Any
    scoring: Any
    random_state: Any
    verbose: int

    @all_or_nothing
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Score all candidates in all folds and fit the best to all rows.

        X, y and sample_weight are those of ``best_estimator_.fit``; scores are not weighted.
        """
        base, sizes, rates = self._base(), _listed(self.n_cells), _listed(self.learning_rate)
        self._check_candidates(base, sizes, rates)
        table = read_rows(self, X, reset=True)
        rows = Rows(indexable(X)[0], table, self._read_targets(y, table), read_all_weights(sample_weight, table))
        base.set_params(random_state=draw_seed(check_random_state(self.random_state)), verbose=0)
        base.n_features_in_, base.is_categorical_ = self.n_features_in_, self.is_categorical_
        if hasattr(self, "feature_names_in_"):
            base.feature_names_in_ = self.feature_names_in_
        folds = self._search(base, sorted({int(n_cells) for n_cells in sizes}), rates, rows)
        tell(self, f"{self.best_params_} is best, with a mean score of {self.best_score_:.4f}")
        self.best_estimator_ = folds.refit(self.best_params_ | {"verbose": self.verbose})
        return self

    def _base(self) -> Any:
        """Return a learner with the parameters that are not searched."""
        flat = {name: value for name, value in self.get_params(deep=False).items() if name not in ("cv", "scoring")}
        return self._learner(**flat)

    def _check_candidates(self, base: Any, sizes: list[Any], rates: list[Any]) -> None:
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

    def _search(self, base: Any, sizes: list[int], rates: list[Any], rows: Rows) -> Folds:
        """Score all candidates in all folds, set the results and the best candidate, and return the folds."""
        splits = split_rows(self.cv, rows.X, rows.targets, classifier=is_classifier(base))
        n_smallest = min(len(train) for train, _ in splits)
        fitting = [n_cells for n_cells in sizes if n_cells <= n_smallest]
        if not fitting:
            raise ValueError(
                f"n_cells must have a candidate of at most {n_smallest}, the rows of the smallest training part; "
                f"got {self.n_cells!r}."
            )
        scorer = check_scoring(base, scoring=self.scoring)
        folds, scores = Folds(base, rows, splits, fitting), []
        with Bar(self, "models of the search", len(splits) * len(fitting) * len(rates)) as bar:
            for k, of_fold in enumerate(folds.scores(scorer, rates, bar), start=1):
                scores.append(of_fold.ravel())
                tell(self, f"fold {k} of {len(splits)}: scores from {of_fold.min():.4f} to {of_fold.max():.4f}")
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

    # -- what the best candidate does

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the predictions of ``best_estimator_``."""
        return self._best().predict(X)

    def forest(self) -> Forest:
        """Return the best candidate as a forest; see :mod:`isokern.forest`."""
        return self._best().forest()

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

    def _best(self) -> Any:
        message = "%(name)s is not fitted yet: call fit first; partial_fit then continues the stream."
        check_is_fitted(self, "best_estimator_", msg=message)
        return self.best_estimator_

    def check(self) -> None:
        """Raise ValueError if the best candidate is another learner; see :mod:`isokern.parts`."""
        if "best_estimator_" in vars(self):
            is_one = type(self.best_estimator_) is self._learner
            need(is_one, f"best_estimator_ must be an {self._learner.__name__}")

    def __sklearn_tags__(self) -> Any:
        return input_tags(super().__sklearn_tags__(), trees=is_tree(self.partitioning))


def _listed(candidates: Any) -> list[Any]:
    """Return one candidate or several as a list."""
    return list(np.asarray(candidates, dtype=object).ravel())
