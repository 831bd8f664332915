"""Wrap models that learn one row at a time, like those of river, as learners of blocks."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils import ClassifierTags, RegressorTags, check_array, check_consistent_length
from sklearn.utils.metaestimators import available_if


class OneByOne(BaseEstimator):
    """Turn a model with ``learn_one(x, y)`` and ``predict_one(x)``, like those of river, into a learner of blocks.

    A row becomes a dict whose keys are the column names of a data frame, else column numbers; a sparse row has only
    its stored values. :func:`prequential` and :func:`holdout` wrap such models themselves.

    Parameters
    ----------
    model : object
        The model, which learns in place. ``predict_proba`` needs ``predict_proba_one(x)``, a dict by label.
    kind : {"classifier", "regressor"} or None, default=None
        What the model predicts. None: regressors of river are regressors, all other models classifiers.

    Attributes
    ----------
    classes_ : ndarray
        The labels learned or given probabilities so far, sorted.

    Examples
    --------
    >>> from isokern.evaluation import OneByOne
    >>> class Majority:
    ...     def __init__(self):
    ...         self.counts = {}
    ...     def learn_one(self, x, y):
    ...         self.counts[y] = self.counts.get(y, 0) + 1
    ...     def predict_one(self, x):
    ...         return max(self.counts, key=self.counts.get, default=None)
    >>> model = OneByOne(Majority()).partial_fit([[1.0], [2.0], [3.0]], ["a", "b", "b"])
    >>> model.predict([[4.0]]).tolist()
    ['b']
    """

    classes_: NDArray[Any]

    def __init__(self, model: Any, *, kind: str | None = None) -> None:
        self.model = model
        self.kind = kind

    def partial_fit(self, X: ArrayLike, y: ArrayLike, classes: ArrayLike | None = None) -> Self:
        """Learn rows in order.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n, d)
        y : array-like of shape (n,)
        classes : array-like, default=None
            Labels that may come later.

        Returns
        -------
        self
        """
        check_consistent_length(X, y)
        targets = np.asarray(y).tolist()
        if not self._is_regressor():
            self._add_classes({*targets, *([] if classes is None else np.asarray(classes).tolist())})
        for x, target in zip(_dicts(X), targets, strict=True):
            self.model.learn_one(x, target)
        return self

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the model's prediction for each row.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n, d)

        Returns
        -------
        predictions : ndarray of shape (n,)
        """
        predictions = [self.model.predict_one(x) for x in _dicts(X)]
        if any(prediction is None for prediction in predictions):
            raise NotFittedError(f"{type(self.model).__name__} predicts None: it must learn rows first.")
        return np.array(predictions)

    @available_if(lambda self: hasattr(self.model, "predict_proba_one"))
    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the model's probability of each class.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n, d)

        Returns
        -------
        probabilities : ndarray of shape (n, n_classes)
        """
        shares = [self.model.predict_proba_one(x) for x in _dicts(X)]
        self._add_classes({label for share in shares for label in share})
        return np.array([[share.get(label, 0.0) for label in self.classes_.tolist()] for share in shares])

    def _add_classes(self, labels: set[Any]) -> None:
        known = self.classes_.tolist() if hasattr(self, "classes_") else []
        self.classes_ = np.array(sorted({*known, *labels}))

    def _is_regressor(self) -> bool:
        if self.kind not in (None, "classifier", "regressor"):
            raise ValueError(f'kind must be None, "classifier" or "regressor"; got {self.kind!r}.')
        if self.kind is None and "river.base" in sys.modules:  # else the model cannot be one of river's
            return isinstance(_last_step(self.model), sys.modules["river.base"].Regressor)
        return self.kind == "regressor"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        if self._is_regressor():
            tags.estimator_type, tags.regressor_tags = "regressor", RegressorTags()
        else:
            tags.estimator_type, tags.classifier_tags = "classifier", ClassifierTags()
        return tags


def _dicts(X: Any) -> Iterator[dict[Any, Any]]:
    """Yield each row as a dict."""
    if hasattr(X, "to_pylist"):  # a table of pyarrow
        yield from X.to_pylist()
        return
    if hasattr(X, "columns"):
        names = list(X.columns)
        columns = [np.asarray(X[name]).tolist() for name in names]
        yield from (dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True))
        return
    table = check_array(X, accept_sparse="csr", dtype=None, ensure_all_finite=False)
    if not sparse.issparse(table):
        yield from (dict(enumerate(row)) for row in table.tolist())
        return
    for begin, end in zip(table.indptr[:-1], table.indptr[1:], strict=True):
        yield dict(zip(table.indices[begin:end].tolist(), table.data[begin:end].tolist(), strict=True))


def _last_step(model: Any) -> Any:
    """Return the last step of a river pipeline, else the model itself."""
    while hasattr(model, "steps"):
        model = list(model.steps.values())[-1]
    return model
