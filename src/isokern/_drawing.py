"""How the Isolation Kernel's partitionings are drawn from rows."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from isokern import _core
from isokern.checks import is_integer, n_threads, one_of
from isokern.devices import is_compiled_core, torch_device
from isokern.partitionings import PARTITIONINGS, IsolationTrees, OwnPartitionings, Partitioning, VoronoiCells
from isokern.rows import CoreRows, RowsEstimator, as_scipy, check_finite, check_rows, core_rows, row_blocks
from isokern.scaling import Scaling, check_scale

_LARGEST_AUTO = 16384
FLOATS = (np.dtype(np.float32), np.dtype(np.float64))


class DrawnPartitionings(RowsEstimator):
    """Base of the kernel: its parameters, and what ``fit`` makes of them and of rows."""

    partitioning: str | Partitioning
    n_partitionings: int
    n_cells: int | str
    max_depth: int | str | None
    scale: str | None
    device: str | None
    n_jobs: int | None
    random_state: Any

    def _learn_scaling(self, table: Any) -> Scaling | None:
        names = getattr(self, "feature_names_in_", None)
        if self.scale is None:
            check_finite(table, names)
            return None
        return Scaling.learn(self.scale, (rows for _, rows in row_blocks(table, names)))

    def _scaled(self, rows: CoreRows) -> CoreRows:
        return rows if self._scaling is None else self._scaling.apply(rows)

    def _fit_sampled(
        self, n_rows: int, fetch: Callable[[NDArray[np.int64]], Any], scaling: Scaling | None, names: Any = None
    ) -> Self:
        """Do what ``fit`` does with rows that are elsewhere; ``fetch`` returns those of some numbers, which ascend."""
        self._check_parameters()
        seed = self._draw_seed()
        samples = self._draw_samples(n_rows, seed)
        sampled, places = np.unique(samples, return_inverse=True)
        table = check_rows(self, fetch(sampled), reset=True)
        if names is not None:
            self.feature_names_in_ = names
        self._scaling = scaling
        self._take(self._learn_partitionings(table, places.reshape(samples.shape), seed))
        return self

    def _draw_seed(self) -> int:
        return int(check_random_state(self.random_state).randint(np.iinfo(np.int64).max, dtype=np.int64))

    def _draw_samples(self, n_rows: int, seed: int) -> NDArray[np.int64]:
        """Return the numbers of the rows that partitionings are made from, (n_partitionings, n_cells)."""
        n_cells = self._resolve_n_cells(n_rows)
        samples = _core.draw_samples(n_rows, self.n_partitionings, n_cells, seed)
        return samples.reshape(self.n_partitionings, n_cells)

    def _take(self, partitionings: IsolationTrees | VoronoiCells | OwnPartitionings) -> None:
        """Make partitionings the kernel's own."""
        self._partitionings = partitionings
        sizes = self._partitioning_sizes()
        self.n_cells_ = int(sizes.max())
        self._cell_starts = np.concatenate([[0], np.cumsum(sizes)])

    def _draw_partitionings(self, table: Any, seed: int) -> IsolationTrees | VoronoiCells | OwnPartitionings:
        if not isinstance(self.partitioning, str):
            rows = as_scipy(self._scaled(core_rows(table, 0, table.shape[0])))
            return OwnPartitionings.learn(rows, self.partitioning, self.n_partitionings, seed)
        samples = self._draw_samples(table.shape[0], seed)
        if not self._trees_read_in_place(table):
            sampled, samples = _number_sampled(samples, table.shape[0])
            table = table[sampled]
        return self._learn_partitionings(table, samples, seed)

    def _learn_partitionings(self, table: Any, samples: NDArray[np.int64], seed: int) -> IsolationTrees | VoronoiCells:
        """Make a partitioning from each sample of a table's rows."""
        rows = self._scaled(core_rows(table, 0, table.shape[0]))
        max_depth = self._resolve_max_depth(samples.shape[1])
        learn = PARTITIONINGS[str(self.partitioning)].learn
        return learn(rows, samples, seed, n_threads(self.n_jobs), max_depth=max_depth)

    def _trees_read_in_place(self, table: Any) -> bool:
        """Return whether trees can be grown on the table itself, without a copy of the sampled rows."""
        is_plain = isinstance(table, np.ndarray) and table.dtype in FLOATS and table.flags.c_contiguous
        return self.partitioning == "tree" and self._scaling is None and is_plain

    def _resolve_max_depth(self, n_cells: int) -> int | None:
        if self.max_depth is None:
            return None
        return math.ceil(math.log2(n_cells)) if isinstance(self.max_depth, str) else min(self.max_depth, n_cells)

    def _partitioning_sizes(self) -> NDArray[np.int64]:
        match self._partitionings:
            case OwnPartitionings(members=members):
                return np.array([member.n_cells_ for member in members])
            case IsolationTrees(n_cells=n_cells):
                return np.full(self.n_partitionings, n_cells)
            case VoronoiCells(samples=samples):
                return np.full(self.n_partitionings, samples.shape[1])

    def _resolve_n_cells(self, n_rows: int) -> int:
        if isinstance(self.n_cells, str):
            return min(auto_n_cells(n_rows), n_rows)
        if self.n_cells > n_rows:
            warnings.warn(
                f"n_cells={self.n_cells} is more than the {n_rows} rows there are; all are used.", stacklevel=5
            )
        return int(min(self.n_cells, n_rows))

    def _check_parameters(self) -> None:
        is_own = not isinstance(self.partitioning, str)
        if is_own and not (hasattr(self.partitioning, "fit") and hasattr(self.partitioning, "apply")):
            raise ValueError(f"partitioning must be a name or have fit and apply; got {self.partitioning!r}.")
        if not is_own and self.partitioning not in PARTITIONINGS:
            raise ValueError(f"partitioning must be {one_of(PARTITIONINGS)} or an object; got {self.partitioning!r}.")
        if not is_integer(self.n_partitionings, at_least=1):
            raise ValueError(f"n_partitionings must be an integer of at least 1; got {self.n_partitionings!r}.")
        if is_own and self.n_cells != "auto":
            raise ValueError(f'n_cells must be "auto" for a partitioning of your own; got {self.n_cells!r}.')
        if self.n_cells != "auto" and not is_integer(self.n_cells, at_least=2):
            raise ValueError(f'n_cells must be "auto" or an integer of at least 2; got {self.n_cells!r}.')
        if self.max_depth not in (None, "log2") and not is_integer(self.max_depth, at_least=1):
            raise ValueError(f'max_depth must be None, "log2" or an integer of at least 1; got {self.max_depth!r}.')
        if self.max_depth is not None and self.partitioning != "tree":
            raise ValueError(f"max_depth must be None unless the partitioning is a tree; got {self.max_depth!r}.")
        check_scale(self.scale)
        n_threads(self.n_jobs)
        if not is_compiled_core(self.device):
            if is_own:
                raise ValueError(f"device must be None for a partitioning of your own; got {self.device!r}.")
            torch_device(self.device)


def auto_n_cells(n_rows: int) -> int:
    """Return the number of cells that suits a number of rows: a 32nd of it, to the nearest power of two."""
    return min(2 ** max(1, round(math.log2(max(n_rows, 64) / 32))), _LARGEST_AUTO)


def _number_sampled(samples: NDArray[np.int64], n_rows: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the sampled rows, ascending and each once, and the samples as places in that list."""
    is_sampled = np.zeros(n_rows, dtype=bool)
    is_sampled[samples] = True
    sampled = np.flatnonzero(is_sampled)
    places = np.empty(n_rows, dtype=np.int64)  # only those of sampled rows are written and read
    places[sampled] = np.arange(len(sampled))
    return sampled, places[samples]
