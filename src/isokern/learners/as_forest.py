"""Put the parts of a fitted estimator together as a forest."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isokern.forest import Classes, Forest, Numbers, column_names


def as_forest(estimator: Any, model: Any, intercept: NDArray[np.float64], answer: Classes | Numbers) -> Forest:
    """Return the forest of a model on the cells of an estimator's kernel and on its linear term.

    Of the model's scores, the first are kept, as many as there are intercepts.
    """
    leaves, linear = model.as_sums(estimator.kernel_.map_, estimator.linear_term_)
    n = len(intercept)
    if leaves is not None:
        leaves = replace(leaves, values=np.ascontiguousarray(leaves.values[:, :n]))
    if linear is not None:
        linear = replace(linear, weights=np.array(linear.weights[:, :n], order="C"))  # may be learned in place
    return Forest(estimator.n_features_in_, leaves, linear, intercept, answer, column_names(estimator))
