"""Check the golden results of cpp/tests/core_test.cpp, which other platforms must equal, against the slow twins."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from reference import MASK, STEP, draw_samples, mix, tree_cells, voronoi_cells

GOLDEN = Path(__file__).parents[1] / "cpp" / "tests" / "golden.txt"
N_ROWS, N_COLUMNS, N_PARTITIONINGS, N_CELLS, SEED = 1200, 8, 24, 128, 7


def hash_of(values):
    """Return the hash of integers that core_test computes."""
    result = 0
    for value in np.ravel(values).tolist():
        result = mix(((result ^ value) + STEP) & MASK)
    return result


def fractions(dtype):
    """Return the table of the same name in core_test."""

    def value(r, j):
        k = (r - (r % 10 == 9)) * N_COLUMNS + j
        return mix(k) >> 62 if j == 3 else (mix(k) >> 44) * 2.0**-20 + (2.0**20 if j == 2 else 0.0)

    table = [[value(r, j) for j in range(N_COLUMNS)] for r in range(N_ROWS)]
    return np.array(table, dtype={"double": np.float64, "float": np.float32}[dtype])


@pytest.fixture(scope="module")
def golden():
    pairs = (line.split() for line in GOLDEN.read_text().splitlines())
    return {name: int(value, 16) for name, value in pairs}


def test_golden_samples_are_those_of_the_twin(golden):
    assert golden["samples"] == hash_of(draw_samples(N_ROWS, N_PARTITIONINGS, N_CELLS, SEED))


@pytest.mark.parametrize("dtype", ["double", "float"])
def test_golden_cells_of_trees_are_those_of_the_twin(golden, dtype):
    X = fractions(dtype)
    expected = hash_of(tree_cells(X, X, N_PARTITIONINGS, N_CELLS, SEED))
    assert golden[f"trees-{dtype}-cells"] == golden[f"trees-{dtype}-cells-of-few-rows"] == expected


@pytest.mark.parametrize("dtype", ["double", "float"])
def test_golden_voronoi_cells_are_those_of_the_twin(golden, dtype):
    X = fractions(dtype)
    assert golden[f"voronoi-{dtype}-128-of-1"] == hash_of(voronoi_cells(X, X, N_PARTITIONINGS, N_CELLS, SEED))
    assert golden[f"voronoi-{dtype}-128-of-2"] == golden[f"voronoi-{dtype}-128-of-1"]
    assert golden[f"voronoi-{dtype}-16-of-2"] == hash_of(voronoi_cells(X, X, N_PARTITIONINGS, 16, SEED))
