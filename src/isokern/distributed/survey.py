"""Scan all partitions before learning: lengths, classes, statistics for scaling, and bad values."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from dask import delayed
from numpy.typing import NDArray
from scipy import sparse

from isokern.distributed.cluster import Cluster
from isokern.distributed.collections import as_column, as_rows, blocks_of
from isokern.feature_map import IsolationKernel
from isokern.learners.targets import read_labels
from isokern.rows import read_rows
from isokern.scaling import Scaling, fitted_scaler, joined_scaler


class Seen(NamedTuple):
    """The scan's result for one partition."""

    n: int
    scaler: Any = None
    classes: Any = None
    total_weight: float = 0.0


class Survey:
    """The partitions of rows, labels and weights that are not empty, and the results of the scan."""

    def __init__(self, cluster: Cluster, X: Any, y: Any = None, weights: Any = None, scale: str | None = None) -> None:
        self.cluster = cluster
        self.rows, self.names = as_rows(X)
        columns = [
            [None] * self.rows.numblocks[0] if values is None else blocks_of(as_column(values, self.rows, name))
            for name, values in (("y", y), ("sample_weight", weights))
        ]
        blocks = list(zip(blocks_of(self.rows), *columns, strict=True))
        seen = cluster.compute([delayed(_look)(*block, k, scale) for k, block in enumerate(blocks)])
        kept = [k for k, part in enumerate(seen) if part.n]
        if not kept:
            raise ValueError("X must have at least 1 row; all of its partitions are empty.")
        self.scale = scale
        self.blocks, self.seen = [blocks[k] for k in kept], [seen[k] for k in kept]
        if weights is not None and not any(part.total_weight for part in self.seen):
            raise ValueError("sample_weight must not be zero for all rows.")

    @property
    def n(self) -> int:
        """The number of rows."""
        return sum(part.n for part in self.seen)

    @property
    def labels(self) -> NDArray[Any]:
        """The distinct labels of each partition, concatenated."""
        return np.concatenate([part.classes for part in self.seen])

    def fit_kernel(self, kernel: IsolationKernel) -> IsolationKernel:
        """Fit a kernel to all rows; only the sampled rows are fetched."""
        scaling = None
        if self.scale is not None:
            scaling = Scaling.of(self.scale, joined_scaler(self.scale, [part.scaler for part in self.seen]))
        kernel.fit_sampled(self.n, self._fetch, scaling)
        if self.names is not None:
            kernel.feature_names_in_ = self.names
        return kernel

    def _fetch(self, numbers: NDArray[np.int64]) -> Any:
        """Return rows by their numbers, which ascend and count through all partitions."""
        firsts = np.cumsum([0, *(part.n for part in self.seen)])
        bounds = np.searchsorted(numbers, firsts)
        tasks = [
            delayed(_take)(block[0], numbers[bounds[k] : bounds[k + 1]] - firsts[k])
            for k, block in enumerate(self.blocks)
            if bounds[k] < bounds[k + 1]
        ]
        tables = self.cluster.compute(tasks)
        return sparse.vstack(tables, format="csr") if sparse.issparse(tables[0]) else np.concatenate(tables)


@contextmanager
def in_partition(number: int) -> Iterator[None]:
    """Put the number of the partition in front of error messages."""
    try:
        yield
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"partition {number}: {error}") from error


def _read(rows: Any) -> Any:
    return read_rows(IsolationKernel(), rows, reset=True, min_rows=1)


def _take(rows: Any, numbers: NDArray[np.int64]) -> Any:
    return _read(rows)[numbers]


def _look(rows: Any, labels: Any, weights: Any, number: int, scale: str | None) -> Seen:
    with in_partition(number):
        for name, values in (("y", labels), ("sample_weight", weights)):
            if values is not None and len(values) != rows.shape[0]:
                raise ValueError(f"{name} must be as long as X, {rows.shape[0]}; got {len(values)}.")
        if rows.shape[0] == 0:
            return Seen(0)
        table = _read(rows)
        scaler = None if scale is None else fitted_scaler(scale, table)
        classes = None if labels is None else np.unique(read_labels(IsolationKernel(), np.asarray(labels), table))
        return Seen(table.shape[0], scaler, classes, _checked_total(weights))


def _checked_total(weights: Any) -> float:
    if weights is None:
        return 0.0
    array = np.asarray(weights, dtype=np.float64)
    if not (np.isfinite(array).all() and (array >= 0).all()):
        raise ValueError("sample_weight must be finite and at least 0.")
    return float(array.sum())
