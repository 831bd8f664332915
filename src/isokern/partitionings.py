"""Partitionings of space into cells: isolation trees, Voronoi cells, and those of the user's own."""

from __future__ import annotations

import copy
import functools
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from sklearn.base import clone

from isokern import _core
from isokern.checks import is_integer, one_thread_if_small
from isokern.rows import CoreRows, as_scipy, n_columns, n_rows

# When to look for principal axes, and how many to take.
_FEWEST_COLUMNS, _MOST_COLUMNS = 24, 2048
_SAMPLE = 2048
_EXPLAINED = 0.93
_FIRST_AXES = 16
_MANY_CELLS = 256


class Partitioning(Protocol):
    """One random partitioning of the user's own; a kernel is made of n_partitionings copies of it."""

    n_cells_: int

    def fit(self, X: Any, rng: np.random.Generator) -> Partitioning:
        """Learn the cells from the rows of X, with all randomness from rng."""

    def apply(self, X: Any) -> NDArray[Any]:
        """Return the number of the cell, from 0 to n_cells_ - 1, that each row falls into."""


class IsolationTrees:
    """Trees that split on random columns at random points until every sampled point is alone.

    The learned state is four arrays: the nodes of all trees, one tree after the other, and where each tree starts. An
    inner node sends a row to ``left`` if its value in ``column`` is below ``split``, else to ``left + 1``; a leaf has
    ``left = -1 - cell``.
    """

    def __init__(self, n_columns: int, n_cells: int, arrays: dict[str, NDArray[Any]]) -> None:
        self.n_columns = n_columns
        self.n_cells = n_cells
        self.arrays = arrays
        self.on_devices: dict[Any, Any] = {}  # what isokern.devices keeps; no part of the learned state
        self._map = _core.TreeMap(**arrays, n_columns=n_columns, n_cells=n_cells)

    @property
    def n_partitionings(self) -> int:
        """The number of trees."""
        return len(self.arrays["starts"]) - 1

    @classmethod
    def learn(
        cls, rows: CoreRows, samples: NDArray[np.int64], seed: int, threads: int, *, max_depth: int | None
    ) -> IsolationTrees:
        """Grow one tree on each sample of rows."""
        depth = -1 if max_depth is None else max_depth
        split, column, left, starts = _core.grow_trees(rows, samples, depth, seed, threads)
        arrays: dict[str, NDArray[Any]] = {"split": split, "column": column, "left": left, "starts": starts}
        return cls(n_columns(rows), samples.shape[1], arrays)

    def apply(self, rows: CoreRows, cells: NDArray[Any], threads: int) -> None:
        """Write each row's cells into ``cells``, (n, t)."""
        self._map.apply(rows, cells, threads)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the arrays; the core's own form is made from them."""
        return type(self), (self.n_columns, self.n_cells, self.arrays)


class VoronoiCells:
    """Cells around sampled points: a row falls into that of the nearest.

    The learned state is the pool of all sampled points and, for each partitioning, which of them are its sample.
    """

    def __init__(self, points: CoreRows, samples: NDArray[np.int32]) -> None:
        self.points = points
        self.samples = samples
        self.on_devices: dict[Any, Any] = {}  # what isokern.devices keeps; no part of the learned state
        # Pixels, counts, zeros and ones have a map of their own; the other is made for rows that are of another kind.
        self._grid_map = _core.find_grid_map(points, samples)
        if self._grid_map is None:
            _ = self._map

    @functools.cached_property
    def _map(self) -> _core.VoronoiMap:
        return _core.VoronoiMap(self.points, self.samples, principal_axes(self.points, self.samples.shape[1]))

    @property
    def n_partitionings(self) -> int:
        """The number of samples."""
        return len(self.samples)

    @classmethod
    def learn(
        cls, rows: CoreRows, samples: NDArray[np.int64], seed: int, threads: int, *, max_depth: int | None
    ) -> VoronoiCells:
        """Make the samples of rows the centres of cells."""
        if max_depth is not None:
            raise ValueError(f'max_depth must be None for partitioning="voronoi", which has no trees; got {max_depth}.')
        return cls(rows, samples.astype(np.int32))

    def apply(self, rows: CoreRows, cells: NDArray[Any], threads: int) -> None:
        """Write each row's cells into ``cells``, (n, t)."""
        if self._grid_map is None or not self._grid_map.apply(rows, cells, threads):
            self._map.apply(rows, cells, threads)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the points and samples; the core's own form is made from them."""
        return type(self), (self.points, self.samples)


def principal_axes(points: CoreRows, n_cells: int) -> NDArray[np.float64]:
    """Return the orthonormal directions in which points vary most, (n_columns, n); none where they would not pay.

    They only make the search for nearest points faster, so a sample of the points will do. Bounds along the axes pay
    if few of them explain most and nearest points are near, as those of many cells are; else the first axes serve to
    order points in space.
    """
    n, d = n_rows(points), n_columns(points)
    none = np.empty((d, 0))
    if d < _FEWEST_COLUMNS or d > _MOST_COLUMNS or n < d:
        return none
    step = max(1, n // _SAMPLE)
    table = as_scipy(points)[::step]
    table = np.asarray(table.toarray() if sparse.issparse(table) else table, dtype=np.float64)
    table = table - table.mean(axis=0)
    largest = np.abs(table).max()
    if not 1e-100 < largest < 1e100:
        return none
    table /= largest
    products = table.T @ table
    n_most = d // 4 if n_cells >= _MANY_CELLS and d // 4 > _FIRST_AXES else _FIRST_AXES
    with one_thread_if_small(d):
        variances, axes = linalg.eigh(products, subset_by_index=(d - n_most, d - 1))
    explained = np.cumsum(variances[::-1]) / np.trace(products)
    is_enough = explained >= _EXPLAINED
    n_axes = int(is_enough.argmax()) + 1 if is_enough.any() and n_cells >= _MANY_CELLS else _FIRST_AXES
    return np.ascontiguousarray(axes[:, ::-1][:, :n_axes])


class OwnPartitionings:
    """Fitted copies of an object of the user's own."""

    def __init__(self, members: list[Partitioning]) -> None:
        self.members = members

    @classmethod
    def learn(cls, X: Any, member: Partitioning, n_partitionings: int, seed: int) -> OwnPartitionings:
        """Fit copies of ``member`` to all rows of X, each with a generator of its own."""
        make = clone if hasattr(member, "get_params") else copy.deepcopy
        generators = np.random.default_rng(seed).spawn(n_partitionings)
        members = [make(member).fit(X, rng) for rng in generators]
        for fitted in members:
            if not is_integer(getattr(fitted, "n_cells_", None), at_least=1):
                raise ValueError(
                    f"fit of {type(member).__name__} must return self with n_cells_, an integer of at least 1; "
                    f"got {getattr(fitted, 'n_cells_', None)!r}."
                )
        return cls(members)

    def apply(self, rows: CoreRows, cells: NDArray[Any], threads: int) -> None:
        """Write each row's cells into ``cells``, (n, t)."""
        X = as_scipy(rows)
        for i, member in enumerate(self.members):
            found = np.asarray(member.apply(X))
            if found.shape != (X.shape[0],) or not np.issubdtype(found.dtype, np.integer):
                raise ValueError(
                    f"apply of {type(member).__name__} must return one integer for each of {X.shape[0]} rows; "
                    f"got shape {found.shape} and dtype {found.dtype}."
                )
            if found.size and not (found.min() >= 0 and found.max() < member.n_cells_):
                raise ValueError(
                    f"apply of {type(member).__name__} must return cells from 0 to {member.n_cells_ - 1}; "
                    f"got {found.min()} to {found.max()}."
                )
            cells[:, i] = found


PARTITIONINGS: dict[str, type[IsolationTrees] | type[VoronoiCells]] = {"tree": IsolationTrees, "voronoi": VoronoiCells}
