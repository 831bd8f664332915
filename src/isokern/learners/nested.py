"""Compute the Voronoi cells of all folds and numbers of cells in one pass over the rows.

With one seed, the sample of fewer cells is the beginning of the sample of more cells, so distances can be shared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.utils import gen_batches

from isokern import _core
from isokern.checks import n_threads
from isokern.feature_map import IsolationKernel
from isokern.fitted_map import draw_seed
from isokern.partitionings import voronoi_map
from isokern.rows import CoreRows, core_rows, n_rows
from isokern.scaling import Scaling

_LARGEST = 2**16 - 1  # points of a sample, which the core numbers with 16 bits
# One pass compares each row with almost all others. With many rows of few columns, searches that prune by bounding
# boxes are faster, although there is one for each part and size: on covertype (54 columns, eleven sizes, five folds) in
# 1.9 times the time at 30,000 rows, in 0.73 times at 100,000.
_MANY_ROWS, _FEW_COLUMNS = 75_000, 64


def can_share(kernel: IsolationKernel, table: Any, n_parts: int, sizes: Sequence[int]) -> bool:
    """Return whether one pass is possible, and faster than a search for each part and size."""
    # Not trees: splits depend on all points, so a large tree cut down to the first psi points is not the tree of these,
    # and its scores are not those of a model with n_cells=psi.
    is_possible = kernel.partitioning == "voronoi" and max(sizes) <= _LARGEST
    is_long = table.shape[0] > _MANY_ROWS and table.shape[1] <= _FEW_COLUMNS
    return is_possible and n_parts * len(sizes) > 2 and not is_long


def nested_cells(
    kernel: IsolationKernel, table: Any, parts: Sequence[NDArray[np.intp]], sizes: Sequence[int]
) -> Iterator[list[NDArray[Any]]]:
    """Yield, for each part, the cells of all rows, one array per size.

    They equal the cells of ``kernel`` with that many cells, fitted to the rows of the part. ``parts`` holds row
    numbers; ``sizes`` are ascending.
    """
    if kernel.scale is not None:  # each part learns its own scaling
        for part in parts:
            scaling = Scaling.learn(kernel.scale, table[part])
            assert scaling is not None
            yield from _cells(kernel, scaling.apply(core_rows(table, 0, table.shape[0])), [part], sizes)
        return
    rows = core_rows(table, 0, table.shape[0])
    n_bytes = sum(np.min_scalar_type(size - 1).itemsize for size in sizes) * table.shape[0] * kernel.n_partitionings
    at_once = max(1, int(get_config()["working_memory"] * 2**20 / n_bytes))
    for batch in gen_batches(len(parts), at_once):
        yield from _cells(kernel, rows, parts[batch], sizes)


def _cells(
    kernel: IsolationKernel, rows: CoreRows, parts: Sequence[NDArray[np.intp]], sizes: Sequence[int]
) -> Iterator[list[NDArray[Any]]]:
    t, seed = kernel.n_partitionings, draw_seed(kernel.random_state)
    drawn = [part[_core.draw_samples(len(part), t, sizes[-1], seed)].reshape(t, -1) for part in parts]
    cells = [np.empty((n_rows(rows), t * len(parts)), np.min_scalar_type(size - 1)) for size in sizes]
    samples = np.concatenate(drawn).astype(np.int32)
    voronoi_map(rows, samples, sizes).apply(rows, cells, n_threads(kernel.n_jobs))
    for k in range(len(parts)):
        yield [of_size[:, k * t : (k + 1) * t] for of_size in cells]
