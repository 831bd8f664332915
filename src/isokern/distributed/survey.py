"""Scan all partitions before learning: lengths, classes, statistics for scaling, and bad values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from dask import delayed
from numpy.typing import NDArray
from scipy import sparse

from isokern.distributed.cluster import Cluster
from isokern.distributed.collections import as_column, as_rows, blocks_of, resolved
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
    is_categorical: NDArray[np.bool_] | None = None


class Survey:
    """The partitions of rows, labels and weights that are not empty, and the results of the scan."""

    def __init__(
        self,
        cluster: Cluster,
        X: Any,
        y: Any = None,
        weights: Any = None,
        *,
        kernel: IsolationKernel,
        is_new: bool = True,
    ) -> None:
        """Scan X for a kernel that will be fitted to it or, unless ``is_new``, has been fitted before."""
        self.cluster, self.scale = cluster, kernel.scale if is_new else None
        self.rows, self.names = as_rows(X, None if is_new else kernel)
        features = resolved(kernel.categorical_features, X) if is_new else _as_features(kernel.is_categorical_)
        columns = [
            [None] * self.rows.numblocks[0] if values is None else blocks_of(as_column(values, self.rows, name))
            for name, values in (("y", y), ("sample_weight", weights))
        ]
        blocks = list(zip(blocks_of(self.rows), *columns, strict=True))
        seen = cluster.compute(
            [delayed(_look)(*block, k, scale=self.scale, features=features) for k, block in enumerate(blocks)]
        )
        kept = [k for k, part in enumerate(seen) if part.n]
        if not kept:
            raise ValueError("X must have at least 1 row; all of its partitions are empty.")
        self.blocks, self.seen = [blocks[k] for k in kept], [seen[k] for k in kept]
        if weights is not None and not any(part.total_weight for part in self.seen):
            raise ValueError("sample_weight must not be zero for all rows.")

    @property
    def n(self) -> int:
        """The number of rows."""
        return sum(part.n for part in self.seen)

    @property
    def is_categorical(self) -> NDArray[np.bool_] | None:
        """Which columns are categorical in a partition; None if there is none."""
        masks = [part.is_categorical for part in self.seen if part.is_categorical is not None]
        return np.any(masks, axis=0) if masks else None

    @property
    def labels(self) -> NDArray[Any]:
        """The distinct labels of each partition, concatenated."""
        return np.concatenate([part.classes for part in self.seen])

    def fit_kernel(self, kernel: IsolationKernel) -> Any:
        """Fit a kernel to all rows; only the sampled rows are fetched. Return them."""
        scaling = None
        if self.scale is not None:
            scaler = joined_scaler(self.scale, [part.scaler for part in self.seen])
            scaling = Scaling.of(self.scale, scaler, self.is_categorical)
        fetched = []

        def fetch(numbers: NDArray[np.int64]) -> Any:
            fetched.append(self.fetch(numbers))
            return fetched[0]

        kernel.fit_sampled(self.n, fetch, scaling, self.is_categorical)
        if self.names is not None:
            kernel.feature_names_in_ = self.names
        return fetched[0]

    def fetch(self, numbers: NDArray[np.int64]) -> Any:
        """Return rows by their numbers, which ascend and count through all partitions."""
        firsts = np.cumsum([0, *(part.n for part in self.seen)])
        bounds, features = np.searchsorted(numbers, firsts), _as_features(self.is_categorical)
        tasks = [
            delayed(_take)(block[0], numbers[bounds[k] : bounds[k + 1]] - firsts[k], features)
            for k, block in enumerate(self.blocks)
            if bounds[k] < bounds[k + 1]
        ]
        return stacked(self.cluster.compute(tasks))


def stacked(tables: Sequence[Any]) -> Any:
    """Return the rows of several tables, dense or CSR, in one."""
    return sparse.vstack(tables, format="csr") if sparse.issparse(tables[0]) else np.concatenate(tables)


@contextmanager
def in_partition(number: int) -> Iterator[None]:
    """Put the number of the partition in front of error messages."""
    try:
        yield
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"partition {number}: {error}") from error


def _as_features(is_categorical: NDArray[np.bool_] | None) -> list[bool] | None:
    return None if is_categorical is None else is_categorical.tolist()


def _take(rows: Any, numbers: NDArray[np.int64], features: Any) -> Any:
    return read_rows(IsolationKernel(categorical_features=features), rows, reset=True, min_rows=1)[numbers]


def _look(rows: Any, labels: Any, weights: Any, number: int, *, scale: str | None, features: Any) -> Seen:
    with in_partition(number):
        for name, values in (("y", labels), ("sample_weight", weights)):
            if values is not None and len(values) != rows.shape[0]:
                raise ValueError(f"{name} must be as long as X, {rows.shape[0]}; got {len(values)}.")
        if rows.shape[0] == 0:
            return Seen(0)
        kernel = IsolationKernel(categorical_features=features)
        table = read_rows(kernel, rows, reset=True, min_rows=1)
        scaler = None if scale is None else fitted_scaler(scale, table)
        classes = None if labels is None else np.unique(read_labels(kernel, np.asarray(labels), table))
        return Seen(table.shape[0], scaler, classes, _checked_total(weights), kernel.is_categorical_)


def _checked_total(weights: Any) -> float:
    if weights is None:
        return 0.0
    array = np.asarray(weights, dtype=np.float64)
    if not (np.isfinite(array).all() and (array >= 0).all()):
        raise ValueError("sample_weight must be finite and at least 0.")
    return float(array.sum())
