"""Check that all instruction sets that this CPU supports give the same cells, explanations and similar rows."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache

import pytest

SCRIPT = """
import zlib
import numpy as np
from scipy import sparse
from isokern import IKOGDClassifier, IsolationKernel, _core
from isokern.inspection import explain, similar_rows
from isokern.partitionings import voronoi_map

rng = np.random.default_rng(0)
tables = {
    "normal": rng.normal(size=(700, 20)),
    "tied": rng.integers(0, 3, size=(700, 20)).astype(float),
    "offset": 1e6 + rng.normal(size=(700, 20)) * 1e-3,
    "huge": rng.normal(size=(700, 20)) * 1e300,
    "single": rng.normal(size=(700, 20)).astype(np.float32),
    "pixels": rng.integers(0, 256, size=(700, 20)) / 255,
    "many": rng.normal(size=(1500, 20)).round(2),
}
print(_core.instruction_set())
for name, X in tables.items():
    for rows in (X, sparse.csr_array(X)):
        for partitioning in ("tree", "voronoi"):
            if name == "huge" and partitioning == "voronoi":
                continue
            for n_cells in (7, 300):
                kernel = IsolationKernel(partitioning, 30, n_cells, random_state=0).fit(rows)
                cells = [kernel.apply(rows), kernel.apply(rows[:1]), kernel.apply(rows[3:40])]
                print(name, partitioning, n_cells, [zlib.crc32(part) for part in cells])
    samples = np.stack([rng.permutation(700)[:500] for _ in range(19)]).astype(np.int32)
    cells = [np.empty((len(X), 19), np.uint16) for _ in range(3)]
    voronoi_map(X, samples, [4, 150, 500]).apply(X, cells, 0)
    print(name, "nested", [zlib.crc32(part) for part in cells])
    model = IKOGDClassifier(n_partitionings=9, random_state=0).fit(X, X[:, 0] > X[:, 1])
    print(name, "explained", zlib.crc32(explain(model, X[:20]).values))
    found = similar_rows(model, X[:20], 9, among=X)
    print(name, "similar", [zlib.crc32(part) for part in found])
"""


@cache
def cells_by(instruction_set):
    """Return the instruction set that the core used when asked for one, and a report of cells."""
    environment = os.environ | {"ISOKERN_ISA": instruction_set}
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    used, _, cells = done.stdout.partition("\n")
    return used, cells


@pytest.mark.parametrize("narrower", ["baseline", "avx2", "avx512"])
def test_all_instruction_sets_give_the_same_cells_and_explanations(narrower):
    widest, cells = cells_by("")
    used, same_cells = cells_by(narrower)
    if used == widest:
        pytest.skip(f"{widest} is the widest instruction set of this CPU")
    assert used == narrower
    assert same_cells == cells
