"""Generate rows for benchmarks that need no data set."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy import sparse

STORED = 5  # values in a sparse row, for any number of columns


@lru_cache(maxsize=1)
def clouds(n, d):
    """Return rows of ten Gaussian clusters with centres in the unit cube."""
    rng = np.random.default_rng(0)
    return rng.random((10, d))[rng.integers(10, size=n)] + 0.2 * rng.standard_normal((n, d))


@lru_cache(maxsize=1)
def sparse_rows(n, d):
    """Return CSR rows with a few values each; each value has its own range of columns."""
    rng = np.random.default_rng(0)
    edges = np.linspace(0, d, min(STORED, d) + 1).astype(int)
    columns = rng.integers(edges[:-1], edges[1:], size=(n, len(edges) - 1))
    starts = np.arange(0, columns.size + 1, columns.shape[1])
    return sparse.csr_matrix((rng.random(columns.size), columns.ravel(), starts), shape=(n, d))


def labels(X):
    """Return two classes of the rows of ``clouds``, by two columns."""
    return np.sin(6 * X[:, 0]) + X[:, 1] > 0.5
