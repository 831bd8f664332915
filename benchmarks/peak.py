"""How near to the machine's limit a map comes: its operations a second beside what the machine does at best.

Voronoi cells: products of two numbers. Counted are all of them, rows x distinct sampled points x columns (of sparse
rows: of values stored in the same column), though bounds spare the map many. The limit is a float32 matrix product by
NumPy's BLAS.

Trees: nodes visited, the depths of the leaves that rows fall into summed over rows and trees (of sparse rows, too,
though they skip most of the path). Beside it stand random gathers of 8-byte numbers by NumPy from a table with as many
entries as one tree has nodes: a yardstick rather than a limit, because a visit is two gathers and a comparison, and
because other code may gather faster than NumPy.
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
    """A kernel's map of given rows: work to be timed, whose operations can be counted."""

    def __init__(self, kernel, rows):
        self.kernel, self.rows = kernel, rows

    def __call__(self):
        return self.kernel.apply(self.rows)

    def share_of_peak(self, seconds, threads):
        """Return the map's operations a second, the machine's, and their kind."""
        cells = self.kernel.map_.partitionings
        if isinstance(cells, IsolationTrees):
            nodes = len(cells.arrays["left"]) // (len(cells.arrays["starts"]) - 1)
            rate, peak, unit = n_visits(cells, self()) / seconds, gathers_per_second(nodes, threads), "visits"
        else:
            rate, peak, unit = n_products(cells, self.rows) / seconds, products_per_second(threads), "products"
        return {"rate": rate, "peak": peak, "share": rate / peak, "unit": unit}


def share_columns(share):
    """Return the last two columns of a table: the rate in billions a second, and its share of the machine's."""
    if not share:
        return "", ""
    return f"{share['rate'] / 1e9:.3g} G {share['unit']}", f"{share['share']:.1%} of {share['peak'] / 1e9:.3g}"


# -- operations


def leaf_depths(arrays, n_cells):
    """Return the depth of each cell's leaf, (t, n_cells); cells without a leaf have 0."""
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
    """Return how many inner nodes the rows of cells met, all trees together."""
    depths = leaf_depths(trees.arrays, trees.n_cells)
    return sum(int(of_tree[column].sum()) for of_tree, column in zip(depths, cells.T, strict=True))


def n_products(voronoi, rows):
    """Return how many products the distances of all rows to all distinct sampled points take."""
    sampled = np.unique(voronoi.samples)
    if not sparse.issparse(rows):
        return len(sampled) * rows.size
    points = as_scipy(voronoi.points)[sampled]
    stored = [np.bincount(part.indices, minlength=rows.shape[1]) for part in (rows, points)]
    return int(stored[0] @ stored[1])


# -- what the machine does at best


@cache
def products_per_second(threads, size=2048):
    """Return the multiplications, each with its addition, a second of a float32 matrix product."""
    table = np.random.default_rng(0).random((size, size), dtype=np.float32)
    with threadpool_limits(threads):
        return size**3 / best_seconds(lambda: table @ table, repeats=5, at_least=0.5)


@cache
def gathers_per_second(size, threads, n=2**16, rounds=32):
    """Return the numbers a second that NumPy takes at random places of a table, in each of the threads at once."""
    rng = np.random.default_rng(0)
    # Another type of index would be cast at each call, and another mode be checked: both are slower.
    table, places = rng.random(size), rng.integers(size, size=n, dtype=np.intp)

    def gather(taken):
        for _ in range(rounds):
            np.take(table, places, out=taken, mode="clip")

    buffers = [np.empty(n) for _ in range(threads)]
    with ThreadPoolExecutor(threads) as pool:
        return threads * rounds * n / best_seconds(lambda: list(pool.map(gather, buffers)), repeats=5, at_least=0.5)
