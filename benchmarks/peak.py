"""Compare a map's operations per second with the machine's peak.

Voronoi cells: the operation is a multiplication. All brute-force products are counted, rows x distinct sampled points x
columns (sparse rows: values stored in the same column), although pruning skips many. The peak is a float32 matrix
product by NumPy's BLAS.

Trees: the operation is a visit of a node. The count is the sum of the depths of the rows' leaves over all trees (also
for sparse rows, which skip most of the path). It is compared with NumPy's random gathers of 8-byte numbers from a table
with as many entries as a tree has nodes. That is a yardstick rather than a peak: a visit is two gathers and a
comparison, and other code may gather faster than NumPy.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np
from measuring import best_seconds
from scipy import sparse
from threadpoolctl import threadpool_limits

from isokern.partitionings import IsolationTrees
from isokern.rows import as_scipy


class Mapping:
    """Mapping given rows: work to be timed, whose operations can be counted."""

    def __init__(self, kernel, rows):
        self.kernel, self.rows = kernel, rows

    def __call__(self):
        return self.kernel.apply(self.rows)

    def share_of_peak(self, seconds, threads):
        """Return the operations per second of the map and of the machine, and their kind."""
        cells = self.kernel.map_.partitionings
        if isinstance(cells, IsolationTrees):
            nodes = len(cells.arrays["left"]) // (len(cells.arrays["starts"]) - 1)
            rate, peak, unit = n_visits(cells, self()) / seconds, gathers_per_second(nodes, threads), "visits"
        else:
            rate, peak, unit = n_products(cells, self.rows) / seconds, products_per_second(threads), "products"
        return {"rate": rate, "peak": peak, "share": rate / peak, "unit": unit}


def share_columns(share):
    """Return the last two columns of a table: billions of operations per second, and the share of the peak."""
    if not share:
        return "", ""
    return f"{share['rate'] / 1e9:.3g} G {share['unit']}", f"{share['share']:.1%} of {share['peak'] / 1e9:.3g}"


# -- operations


def leaf_depths(arrays, n_cells):
    """Return the depth of each cell's leaf, (t, n_cells); 0 for cells without a leaf."""
    left, starts = arrays["left"], arrays["starts"]
    depths = np.zeros((len(starts) - 1, n_cells), dtype=np.int64)
    trees, nodes, depth = np.arange(len(starts) - 1), np.zeros(len(starts) - 1, dtype=np.int64), 0
    while len(nodes):
        below = left[starts[trees] + nodes]
        is_leaf = below < 0
        depths[trees[is_leaf], -1 - below[is_leaf]] = depth
        trees, below, depth = np.repeat(trees[~is_leaf], 2), below[~is_leaf], depth + 1
        nodes = np.stack([below, below + 1], axis=1).ravel()
    return depths


def n_visits(trees, cells):
    """Return how many inner nodes the rows with these cells visit in all trees."""
    depths = leaf_depths(trees.arrays, trees.n_cells)
    return sum(int(of_tree[column].sum()) for of_tree, column in zip(depths, cells.T, strict=True))


def n_products(voronoi, rows):
    """Return the number of products of a brute-force search of all distinct sampled points."""
    sampled = np.unique(voronoi.samples)
    if not sparse.issparse(rows):
        return len(sampled) * rows.size
    points = as_scipy(voronoi.points)[sampled]
    stored = [np.bincount(part.indices, minlength=rows.shape[1]) for part in (rows, points)]
    return int(stored[0] @ stored[1])


# -- peak of the machine


@cache
def products_per_second(threads, size=2048):
    """Return the multiply-adds per second of a float32 matrix product."""
    table = np.random.default_rng(0).random((size, size), dtype=np.float32)
    with threadpool_limits(threads):
        return size**3 / best_seconds(lambda: table @ table, repeats=5, at_least=0.5)


@cache
def gathers_per_second(size, threads, n=2**16, rounds=32):
    """Return NumPy's random gathers per second from a table, in all threads together."""
    rng = np.random.default_rng(0)
    # intp indices need no cast, and mode="clip" no bounds check.
    table, positions = rng.random(size), rng.integers(size, size=n, dtype=np.intp)

    def gather(taken):
        for _ in range(rounds):
            np.take(table, positions, out=taken, mode="clip")

    buffers = [np.empty(n) for _ in range(threads)]
    with ThreadPoolExecutor(threads) as pool:
        return threads * rounds * n / best_seconds(lambda: list(pool.map(gather, buffers)), repeats=5, at_least=0.5)
