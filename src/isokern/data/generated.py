"""Generate rows of the same shape as data sets that are hard to get, so that costs can be measured at their size.

The classes can be learned, but accuracies on such rows say nothing about the data set of that name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import norm

from isokern.data.datasets import DatasetInfo

Labels = NDArray[np.int64]
_BLOCK = 1_000  # rows at a time, so that temporary arrays stay small
_SHIFT = 1.28  # of both classes' means, in standard deviations along the line between them: 90 % can be separated
_N_WORDS = 52  # of a sparse row; some of them are equal
_TOPIC_SHARE = 0.2  # of the words, which tell the class


def generate(info: DatasetInfo) -> list[tuple[Any, Labels]]:
    """Return the rows and labels, 0 and 1, of the training and of the test part; always the same."""
    rng = np.random.RandomState(0)  # NumPy promises never to change its numbers
    make = _GENERATORS[info.name]
    return [_rows(make, n, info, rng) for n in (info.n_train, info.n_test)]


def _rows(make: Callable[..., Any], n: int, info: DatasetInfo, rng: np.random.RandomState) -> tuple[Any, Labels]:
    y = rng.randint(2, size=n)
    blocks = (make(y[begin : begin + _BLOCK], info.n_features, rng) for begin in range(0, n, _BLOCK))
    if info.is_sparse:
        return sparse.vstack(list(blocks), format="csr"), y
    X = np.empty((n, info.n_features), info.dtype)
    for k, block in enumerate(blocks):
        X[k * _BLOCK : k * _BLOCK + len(block)] = block
    return X, y


def _unit_rows(y: Labels, d: int, rng: np.random.RandomState) -> NDArray[np.float64]:
    """Return normal rows around two means, divided by their norms."""
    X = rng.standard_normal((len(y), d)) + (2 * y - 1)[:, None] * _SHIFT / np.sqrt(d)
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def _stereo_images(y: Labels, d: int, rng: np.random.RandomState) -> NDArray[np.float32]:
    """Return two square views of an ellipse, wide or high by class, side by side; the second is moved to the left."""
    side, n = np.linspace(-1, 1, round(np.sqrt(d / 2))), len(y)
    centre, size, light, disparity = (rng.uniform(*ends, size=(n, 1)) for ends in _ELLIPSES)
    stretch = np.where(y == 1, 1.4, 1 / 1.4)[:, None]
    down = light * np.exp(-(((side - centre) * stretch / size) ** 2))
    across = (np.exp(-(((side + moved) / stretch / size) ** 2)) for moved in (0.0, disparity))
    views = [(down[:, :, None] * one[:, None, :]).astype(np.float32).reshape(n, -1) for one in across]
    pixels = (200 * np.hstack(views)).astype(np.uint8) + rng.randint(1, 50, size=(n, d), dtype=np.uint8)
    return np.divide(pixels, 255, dtype=np.float32)


_ELLIPSES = ((-0.3, 0.3), (0.2, 0.5), (0.3, 1.0), (0.02, 0.2))  # ranges of centre, size, light and disparity


def _documents(y: Labels, d: int, rng: np.random.RandomState) -> sparse.csr_matrix:
    """Return unit rows of word counts: few words are frequent, and some of each row are even or odd by its class."""
    words = (d * rng.uniform(size=(len(y), _N_WORDS)) ** 3).astype(np.int64)
    tells = rng.uniform(size=words.shape) < _TOPIC_SHARE
    words = np.where(tells, np.minimum(words // 2 * 2 + y[:, None], d - 1), words)
    starts = np.arange(0, words.size + 1, _N_WORDS)
    X = sparse.csr_matrix((np.ones(words.size), words.ravel(), starts), shape=(len(y), d))
    X.sum_duplicates()
    return X.multiply(1 / norm(X, axis=1)[:, None]).tocsr()


_GENERATORS = {
    "epsilon-generated": _unit_rows,
    "smallNORB-generated": _stereo_images,
    "real-sim-generated": _documents,
}
