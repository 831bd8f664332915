"""What workers do to predict: a block of rows in, its answers out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isokern.distributed.survey import in_partition
from isokern.learners import IKOGDClassifier


def predict_block(rows: Any, model: IKOGDClassifier, block_id: Sequence[int] = (0,)) -> NDArray[Any]:
    """Return the classes of a block of rows, of which there may be none."""
    with in_partition(block_id[0]):
        return model.predict(rows) if rows.shape[0] else model.classes_[:0]


def predict_proba_block(rows: Any, model: IKOGDClassifier, block_id: Sequence[int] = (0,)) -> NDArray[np.float64]:
    """Return the probabilities of a block of rows, of which there may be none."""
    with in_partition(block_id[0]):
        return model.predict_proba(rows) if rows.shape[0] else np.empty((0, len(model.classes_)))


def decision_function_block(rows: Any, model: IKOGDClassifier, block_id: Sequence[int] = (0,)) -> NDArray[np.float64]:
    """Return the scores of a block of rows, of which there may be none."""
    with in_partition(block_id[0]):
        if rows.shape[0]:
            return model.decision_function(rows)
        return np.empty((0, len(model.classes_)) if len(model.classes_) > 2 else 0)


def count_right(labels: NDArray[Any], truth: Any, weights: Any = None) -> tuple[float, float]:
    """Return the weight of the rows whose labels are right, and that of all."""
    masses = np.ones(len(labels)) if weights is None else np.asarray(weights)
    return float(masses[labels == np.asarray(truth)].sum()), float(masses.sum())
