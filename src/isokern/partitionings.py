"""Partitionings of space into cells: isolation trees, Voronoi cells, and those of the user's own."""

from __future__ import annotations

import copy
import functools
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from sklearn.base import clone

from isokern import _core
from isokern.checks import is_integer, one_thread_if_small
from isokern.parts import Part, State, is_count, need
from isokern.rows import CoreRows, CsrRows, as_scipy, n_columns, n_rows

# Sparse points and rows of up to this many columns are written out in full: products beat an inverted index there.
FEW_COLUMNS = 2048
_LARGEST_WRITTEN_OUT = 2**30  # bytes that sparse points may take when written out, unless the file is large itself
_LARGEST_FACTOR = 128

# When to look for principal axes, and how many to take.
_FEWEST_COLUMNS, _MOST_COLUMNS = 24, FEW_COLUMNS
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


@dataclass(eq=False)
class IsolationTrees(Part):
    """Trees that split on random columns at random points until every sampled point is alone.

    ``arrays`` are the nodes of all trees, one tree after the other, and where each tree starts. An inner node sends a
    row to ``left`` if its value in ``column`` is below ``split``, else to ``left + 1``; a leaf has -1 - cell there.
    """

    n_columns: int
    n_cells: int
    arrays: dict[str, NDArray[Any]]
    on_devices: dict[Any, Any] = field(default_factory=dict, init=False)  # what isokern.devices keeps

    def __post_init__(self) -> None:
        self._map = _core.TreeMap(**self.arrays, n_columns=self.n_columns, n_cells=self.n_cells)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """The number of cells of each tree."""
        return np.full(len(self.arrays["starts"]) - 1, self.n_cells)

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

    def check(self) -> None:
        """Raise unless trees have cells; the core has checked all else."""
        need(is_count(self.n_cells, at_least=1), "n_cells must be at least 1")


@dataclass(eq=False)
class VoronoiCells(Part):
    """Cells around sampled points: a row falls into that of the nearest.

    ``points`` is the pool of all sampled points; ``samples``, (t, n_cells), tells which of them each partitioning has.
    """

    points: CoreRows
    samples: NDArray[np.int32]
    on_devices: dict[Any, Any] = field(default_factory=dict, init=False)  # what isokern.devices keeps

    def __post_init__(self) -> None:
        # Pixels, counts, zeros and ones have a map of their own; the other is made for rows that are of another kind.
        self._grid_map = _core.find_grid_map(self.points, self.samples)
        if self._grid_map is None:
            _ = self._map

    @functools.cached_property
    def _map(self) -> _core.VoronoiMap:
        return _core.VoronoiMap(self.points, self.samples, principal_axes(self.points, self.samples.shape[1]))

    @property
    def sizes(self) -> NDArray[np.int64]:
        """The number of cells of each partitioning."""
        t, n_cells = self.samples.shape
        return np.full(t, n_cells)

    @property
    def n_columns(self) -> int:
        """The number of columns of the points."""
        return n_columns(self.points)

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

    @classmethod
    def from_state(cls, state: State) -> VoronoiCells:
        """Return the cells that have this state, unless they would take absurd memory."""
        check_points(state["points"], state["samples"].nbytes)
        return cls(**state)


def check_points(points: CoreRows, n_bytes_more: int = 0) -> None:
    """Raise unless points are rows, and those that are sparse take no absurd memory when the core writes them out."""
    need(isinstance(points, np.ndarray | CsrRows), "points must be rows")
    if not isinstance(points, CsrRows) or points.n_columns > FEW_COLUMNS:
        return
    n_bytes = sum(array.nbytes for array in points[:3]) + n_bytes_more
    written_out = 8 * n_rows(points) * points.n_columns
    need(
        written_out <= max(_LARGEST_WRITTEN_OUT, _LARGEST_FACTOR * n_bytes),
        f"sparse points must not take {_LARGEST_FACTOR} times their own size when written out; they take {written_out} "
        "bytes. Keep such a model with joblib",
    )


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


@dataclass(eq=False)
class OwnPartitionings(Part):
    """Fitted copies of an object of the user's own."""

    members: list[Partitioning]
    n_columns: int

    @property
    def sizes(self) -> NDArray[np.int64]:
        """The number of cells of each partitioning."""
        return np.array([member.n_cells_ for member in self.members])

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
        return cls(members, X.shape[1])

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


Partitionings = IsolationTrees | VoronoiCells | OwnPartitionings
PARTITIONINGS: dict[str, type[IsolationTrees] | type[VoronoiCells]] = {"tree": IsolationTrees, "voronoi": VoronoiCells}
