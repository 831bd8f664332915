"""Adapt learners to evaluations: learners of blocks, of single rows, and of the cells of their own map."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from numbers import Integral
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import logit
from sklearn.base import is_regressor
from sklearn.utils import _safe_indexing

from isokern.arrays import is_foreign
from isokern.checks import one_of
from isokern.engines import CORE
from isokern.evaluation.one_by_one import OneByOne
from isokern.frames import is_missing
from isokern.learners import IKOGDClassifier, IKOGDRegressor
from isokern.learners.base_search import BaseSearch
from isokern.parts import need

_LIBRARIES = ("pandas", "polars", "pyarrow")


class Block(NamedTuple):
    """Rows, or the cells that a learner's map gives for them."""

    rows: Any
    are_cells: bool = False
    features: Any = None  # of the rows, for a learner that takes them but not cells

    @property
    def is_mapped(self) -> bool:
        """Whether the learner need not map the rows."""
        return self.are_cells or self.features is not None

    def call(self, learner: Any, method: str, *arguments: Any, **options: Any) -> Any:
        """Call a method of a learner, such as predict, with these rows or cells."""
        if not self.is_mapped:
            return getattr(learner, method)(self.rows, *arguments, **options)
        function = getattr(_chosen(learner), f"{method}_cells" if self.are_cells else method)
        return function(self.rows if self.are_cells else self.features, *arguments, **options)

    def take(self, mask: NDArray[np.bool_]) -> Self:
        """Return a copy of some rows, without their features: the map may have grown when they are learned."""
        taken = np.flatnonzero(mask)
        # Before 1.7, scikit-learn cannot index tables of pyarrow.
        rows = self.rows.take(taken) if hasattr(self.rows, "column_names") else _safe_indexing(self.rows, taken)
        return self._replace(rows=rows, features=None)

    def state(self) -> dict[str, Any]:
        """Return plain values and arrays; a data frame becomes its columns."""
        if not hasattr(self.rows, "columns"):
            return {"rows": self.rows, "are_cells": self.are_cells}
        names = column_names(self.rows)
        columns = [_without_na(np.asarray(self.rows[name])) for name in names]
        return {"library": type(self.rows).__module__.split(".")[0], "names": names, "columns": columns}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Return the block that has a state."""
        need(isinstance(state, dict), "a block must be a dict")
        if state.keys() == {"rows", "are_cells"}:
            rows, are_cells = state["rows"], state["are_cells"]
            need(sparse.issparse(rows) or isinstance(rows, np.ndarray), "rows must be an array or CSR")
            need(rows.ndim == 2 and type(are_cells) is bool, "rows must have two dimensions")
            return cls(rows, are_cells)
        need(state.keys() == {"library", "names", "columns"}, "a block must have rows, or the columns of a data frame")
        library, names, columns = state["library"], state["names"], state["columns"]
        need(
            isinstance(library, str) and library in _LIBRARIES, f"library must be {one_of(_LIBRARIES)}; got {library!r}"
        )
        need(isinstance(names, list) and isinstance(columns, list), "names and columns must be lists")
        need(len(names) == len(set(map(repr, names))) == len(columns), "each column must have a name of its own")
        need(all(isinstance(column, np.ndarray) and column.ndim == 1 for column in columns), "columns must be arrays")
        return cls(_frame(library, dict(zip(names, columns, strict=True))))


def column_names(frame: Any) -> list[Any]:
    """Return the names of the columns of a data frame, or of a table of pyarrow, whose ``columns`` are the columns."""
    return list(getattr(frame, "column_names", frame.columns))


def _without_na(column: NDArray[Any]) -> NDArray[Any]:
    """Return a column in which missing objects are None, which can be saved; pandas' NA cannot."""
    if column.dtype.kind != "O":
        return column
    return np.array([None if is_missing(value) else value for value in column], dtype=object)


def _frame(library: str, columns: dict[str, NDArray[Any]]) -> Any:
    module = importlib.import_module(library)
    if library != "pyarrow":
        return module.DataFrame(columns)
    # The type is given, because pyarrow cannot infer it from missing values only.
    types = {name: module.string() if column.dtype.kind == "O" else None for name, column in columns.items()}
    return module.table({name: module.array(column, types[name]) for name, column in columns.items()})


class Outputs(NamedTuple):
    """The outputs of a learner for some rows; scores and probabilities only if a metric needs them."""

    classes: NDArray[Any] | None
    predictions: NDArray[Any]
    scores: NDArray[np.float64] | None
    probabilities: NDArray[np.float64] | None

    def of(self, rows: Any) -> Self:
        """Return the outputs of some rows."""
        scores, probabilities = (None if part is None else part[rows] for part in (self.scores, self.probabilities))
        return self._replace(predictions=self.predictions[rows], scores=scores, probabilities=probabilities)


def as_learner(learner: Any) -> Any:
    """Return a learner of blocks; wrap a model that learns one row at a time."""
    is_one_by_one = hasattr(learner, "learn_one") and not hasattr(learner, "partial_fit")
    return OneByOne(learner) if is_one_by_one else learner


def learns_numbers(learner: Any) -> bool:
    """Return whether a learner declares itself a regressor."""
    if hasattr(learner, "__sklearn_tags__"):
        return is_regressor(learner)
    return getattr(learner, "_estimator_type", None) == "regressor"


def mapped(learner: Any, rows: Any) -> Block:
    """Return rows as cells or with features if the learner has a map, so that predicting and learning map them once."""
    map_rows, chosen = map_of(learner), _chosen(learner)
    if map_rows is not None:
        return Block(map_rows(rows), are_cells=True)
    return Block(rows, features=chosen.features(rows) if _has_map(chosen) and not is_foreign(rows) else None)


def map_of(learner: Any) -> Callable[[Any], Any] | None:
    """Return the function from rows to the cells that a learner can learn and predict; None if it needs rows."""
    chosen = _chosen(learner)
    return chosen.map_rows if _has_map(chosen) and chosen.takes_cells else None


def _has_map(learner: Any) -> bool:
    return isinstance(learner, IKOGDClassifier | IKOGDRegressor) and hasattr(learner, "learned_")


def _chosen(learner: Any) -> Any:
    """Return the best estimator of a fitted search, else the learner itself."""
    return getattr(learner, "best_estimator_", learner) if isinstance(learner, BaseSearch) else learner


def outputs(learner: Any, block: Block, predictions: NDArray[Any], needs: set[str]) -> Outputs:
    """Return the outputs that metrics need for rows that have been predicted."""
    scores = _scores(learner, block) if "scores" in needs else None
    probabilities = block.call(learner, "predict_proba") if "probabilities" in needs else None
    classes = getattr(learner, "classes_", None)
    if classes is None and needs & {"scores", "probabilities"}:
        raise ValueError(f"learner must have classes_, in the order of its scores; got {type(learner).__name__}.")
    return Outputs(classes, predictions, scores, probabilities)


def answering_method(learner: Any, labels: NDArray[Any], classes: Any, needs: set[str]) -> str:
    """Return the method whose answers tell the predictions of rows and all that metrics need."""
    if not needs & {"scores", "probabilities"}:
        return "predict"
    known = getattr(learner, "classes_", () if classes is None else classes)
    n_classes = len({*np.asarray(known).tolist(), *labels.tolist()})
    can_score = hasattr(learner, "decision_function") and (n_classes <= 2 or not hasattr(learner, "predict_proba"))
    return "decision_function" if "probabilities" not in needs and can_score else "predict_proba"


def answered(learner: Any, answers: NDArray[Any], classes: Any, method: str) -> Outputs:
    """Return the outputs that the answers of a method tell; before any label, they are for the given ``classes``."""
    known: Any = getattr(learner, "classes_", None if classes is None else np.unique(classes))
    if method == "predict":
        return Outputs(known, answers, None, None)
    predictions = CORE.labels(answers, known)
    if method == "decision_function":
        return Outputs(known, predictions, answers, None)
    return Outputs(known, predictions, _as_scores(answers), answers)


def _scores(learner: Any, block: Block) -> NDArray[np.float64]:
    # As scikit-learn's scorers "roc_auc" and "roc_auc_ovr": scores of two classes, probabilities of more.
    has_more = len(getattr(learner, "classes_", ())) > 2 and hasattr(learner, "predict_proba")
    if hasattr(learner, "decision_function") and not has_more:
        return np.asarray(block.call(learner, "decision_function"), dtype=np.float64)
    return _as_scores(np.asarray(block.call(learner, "predict_proba"), dtype=np.float64))


def _as_scores(probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
    # Scores are ranked with relative precision. The logit keeps probabilities near 1 as distinct as those near 0;
    # it is between -745 and 37, except at 0 and 1, where it is infinite.
    return logit(probabilities.clip(0, 1)).clip(-1e3, 1e3)


def n_support_of(learner: Any) -> int | None:
    """Return the number of support vectors; None if the learner has no such number."""
    n_support = getattr(learner, "n_support_", None)
    return int(n_support) if isinstance(n_support, Integral) else None


def leader_of(learner: Any) -> str | None:
    """Return the name of the leading candidate; None if the learner compares none."""
    selection = getattr(learner, "selection_", None)
    return selection.get("leader") if isinstance(selection, dict) else None


def n_drifts_of(learner: Any) -> int | None:
    """Return the number of changes of the stream that the learner has found; None if it looks for none."""
    n_drifts = getattr(learner, "n_drifts_", None)
    return int(n_drifts) if isinstance(n_drifts, Integral) else None


def timed(function: Callable[..., Any], *arguments: Any) -> tuple[Any, float]:
    """Return the result of a function, and the seconds that it took."""
    started = time.perf_counter()
    return function(*arguments), time.perf_counter() - started
