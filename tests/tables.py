"""Small tables of every kind that a map must get right, and the kernels to map them with."""

from __future__ import annotations

import functools

import numpy as np
from scipy import sparse

import reference

N_PARTITIONINGS, N_CELLS, SEED = 6, 16, 3
N_FITTED, N_ROWS = 50, 80
WIDE = 3000  # columns; the core may write sparse rows of up to 2048 columns out in full


def _few(rng, n_columns=30):
    return rng.random((N_ROWS, n_columns)) < 0.1


def _wide(rng, table):
    """Spread the columns of a table over many, the first and the last among them."""
    between = np.sort(rng.choice(np.arange(1, WIDE - 1), table.shape[1] - 2, replace=False))
    spread = np.zeros((len(table), WIDE), dtype=table.dtype)
    spread[:, [0, *between, WIDE - 1]] = table
    return spread


def _mixed_scales(rng):
    return rng.normal(size=(N_ROWS, 30)) * _few(rng) * 10.0 ** np.arange(-15, 15)


def _unit_rows(rng):
    counts = rng.poisson(3, (N_ROWS, 30)) * _few(rng)
    return counts / np.maximum(1e-9, np.linalg.norm(counts, axis=1, keepdims=True))


TABLES = {
    "normal": lambda rng: rng.normal(size=(N_ROWS, 5)),
    "one column": lambda rng: rng.normal(size=(N_ROWS, 1)).round(1),
    "zero or one": lambda rng: rng.integers(0, 2, (N_ROWS, 8)).astype(float),
    "on a grid": lambda rng: rng.integers(0, 5, (N_ROWS, 2)).astype(float),
    "duplicated": lambda rng: rng.normal(size=(7, 4))[rng.integers(7, size=N_ROWS)],
    "offset": lambda rng: 1e6 + 1e-3 * rng.normal(size=(N_ROWS, 6)),
    "mixed scales": lambda rng: rng.normal(size=(N_ROWS, 7)) * 10.0 ** np.arange(-6, 7, 2),
    "huge": lambda rng: 1e200 * rng.normal(size=(N_ROWS, 4)),
    "as large as it gets": lambda rng: 1.7e308 * rng.uniform(-1, 1, (N_ROWS, 4)),
    "tiny": lambda rng: 1e-200 * rng.normal(size=(N_ROWS, 4)),
    "on the edge of underflow": lambda rng: 1e-161 * rng.normal(size=(N_ROWS, 4)),
    "on the edge of overflow": lambda rng: 1.5e154 + 1e152 * rng.normal(size=(N_ROWS, 4)),
    "neighbours": lambda rng: np.where(rng.random((N_ROWS, 5)) < 0.5, 1.0, np.nextafter(1.0, 2.0)),
    "smallest": lambda rng: 5e-324 * rng.integers(-1, 2, (N_ROWS, 5)),
    "constant": lambda rng: np.full((N_ROWS, 3), 2.5),
    "all zero": lambda rng: np.zeros((N_ROWS, 3)),
    "float32": lambda rng: rng.normal(size=(N_ROWS, 5)).astype(np.float32),
    "float32 offset": lambda rng: (1e6 + rng.normal(size=(N_ROWS, 4))).astype(np.float32),
    "sparse": lambda rng: rng.normal(size=(N_ROWS, 30)) * _few(rng),
    "sparse, negative": lambda rng: -rng.exponential(size=(N_ROWS, 30)) * _few(rng),
    "wide": lambda rng: _wide(rng, rng.normal(size=(N_ROWS, 30)) * _few(rng)),
    "wide, negative": lambda rng: _wide(rng, -rng.exponential(size=(N_ROWS, 30)) * _few(rng)),
    "wide, zero or one": lambda rng: _wide(rng, _few(rng).astype(float)),
    "wide, unit rows": lambda rng: _wide(rng, _unit_rows(rng)),
    "wide, duplicated": lambda rng: _wide(rng, rng.integers(-1, 2, (7, 30))[rng.integers(7, size=N_ROWS)] * 0.1),
    "wide, offset": lambda rng: _wide(rng, 1e6 + 1e-3 * rng.normal(size=(N_ROWS, 6))),
    "wide, mixed scales": lambda rng: _wide(rng, _mixed_scales(rng)),
    "wide, huge": lambda rng: _wide(rng, 1e200 * rng.normal(size=(N_ROWS, 30)) * _few(rng)),
    "wide, tiny": lambda rng: _wide(rng, 1e-200 * rng.normal(size=(N_ROWS, 30)) * _few(rng)),
    "wide, on the edge of underflow": lambda rng: _wide(rng, 1e-161 * rng.normal(size=(N_ROWS, 30)) * _few(rng)),
    "wide, on the edge of overflow": lambda rng: _wide(rng, 1.5e154 + 1e152 * rng.normal(size=(N_ROWS, 6))),
    "wide, smallest": lambda rng: _wide(rng, 5e-324 * rng.integers(-1, 2, (N_ROWS, 30)) * _few(rng)),
    "wide, all zero": lambda rng: np.zeros((N_ROWS, WIDE)),
    "wide, float32": lambda rng: _wide(rng, (rng.normal(size=(N_ROWS, 30)) * _few(rng)).astype(np.float32)),
}

METHODS = {
    "tree": {"partitioning": "tree"},
    "tree of log2 depth": {"partitioning": "tree", "max_depth": "log2"},
    "tree of depth 2": {"partitioning": "tree", "max_depth": 2},
    "voronoi": {"partitioning": "voronoi"},
}

FORMS = {"dense": np.asarray, "csr": sparse.csr_array}


@functools.cache
def table(name):
    """Return (rows to fit, rows to map): some fitted, some never seen, an empty one, some far outside."""
    rows = TABLES[name](np.random.default_rng(17))
    with np.errstate(over="ignore"):
        far = np.concatenate([rows[:3] * rows.dtype.type(1000), rows[:3] * rows.dtype.type(1e30)])
    far = np.clip(far, np.finfo(rows.dtype).min, np.finfo(rows.dtype).max)
    return rows[:N_FITTED], np.concatenate([rows[30:], np.zeros_like(rows[:1]), far, -rows[3:4]])


@functools.cache
def expected_cells(name, method):
    """Return the cells that the NumPy twin finds for a table."""
    D, X = table(name)
    seed = reference.seed_of(SEED)
    if method == "voronoi":
        return reference.voronoi_cells(X, D, N_PARTITIONINGS, N_CELLS, seed)
    depth = {"tree": None, "tree of log2 depth": int(np.log2(N_CELLS)), "tree of depth 2": 2}[method]
    return reference.tree_cells(X, D, N_PARTITIONINGS, N_CELLS, seed, depth)
