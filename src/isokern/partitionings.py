"""Partition space into cells: isolation trees, Voronoi cells, and user-defined partitionings."""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from sklearn.base import clone

from isokern import _core
from isokern.checks import is_integer, one_thread_if_small
from isokern.forest import Trees
from isokern.parts import Part, State, is_count, need, need_array
from isokern.rows import FLOATS, CoreRows, CsrRows, as_scipy, n_columns, n_rows
from isokern.scaling import Scaling

# Sparse rows of up to this many columns are densified: dense matrix products beat an inverted index there.
FEW_COLUMNS = 2048
# Densified points from a file may take this many bytes, or this many times the size of the sparse points.
_LARGEST_DENSIFIED, _LARGEST_FACTOR = 2**30, 128
_LARGEST_NESTED = 2**16 - 1  # points of a sample that the core searches for several sizes at once
_LARGEST_WIDTH = 2**24  # cells of all trees from a file; more need nodes in proportion

# PCA for Voronoi cells: from how many columns on it pays, and how many axes to keep.
_FEWEST_COLUMNS, _MOST_COLUMNS = 24, FEW_COLUMNS
_SAMPLE = 2048  # points from which the axes are estimated
_EXPLAINED = 0.93  # share of the variance that the axes must explain to serve as lower bounds
_FIRST_AXES = 16
_MANY_CELLS = 256


_FOREST = ("split", "column", "left", "missing_right", "n_points", "starts")  # arrays of IsolationTrees


class Partitioning(Protocol):
    """Interface of a user-defined partitioning; a kernel clones it ``n_partitionings`` times.

    One with several scales has ``n_scales_`` after ``fit``, ``n_cells_`` is then a sequence with the number of cells of
    each scale from coarse to fine, and ``apply`` returns (n, n_scales_) cells.
    """

    n_cells_: int | Sequence[int]

    def fit(self, X: Any, rng: np.random.Generator) -> Partitioning:
        """Fit the cells to the rows of X, drawing all randomness from rng."""

    def apply(self, X: Any) -> NDArray[Any]:
        """Return the cell of each row, from 0 to n_cells_ - 1."""


def most_scales(n_cells: int) -> int:
    """Return the largest number of scales of partitionings of n_cells cells: ceil(log4(n_cells)), at least 1."""
    return max(1, math.ceil((n_cells - 1).bit_length() / 2))


def _check_n_scales(n_scales: int, n_cells: int) -> None:
    most = most_scales(n_cells)
    need(is_count(n_scales, at_least=1) and n_scales <= most, f"n_scales must be from 1 to {most}; got {n_scales}")


@dataclass(eq=False)
class IsolationTrees(Part):
    """Isolation trees: random splits on random columns until every sampled point is isolated in a leaf.

    ``arrays`` holds the nodes of all trees, one tree after the other; ``starts`` has the index of each root. An inner
    node sends a row to ``left`` if its value in ``column`` is below ``split``, else to ``left + 1``. A leaf stores
    ``-1 - cell`` in ``left``. ``missing_right`` tells whether an inner node sends missing numbers to ``left + 1``, and
    ``n_points`` how many sampled points a node holds. ``categorical`` are the numbers of the columns that hold codes of
    categories. Trees that grow further have two scales, the leaves and a coarse one: ``n_first`` is the number of nodes
    that each tree had when the cells of the coarse scale were its leaves. Later nodes come after these.
    """

    n_columns: int
    n_cells: int
    arrays: dict[str, NDArray[Any]]
    categorical: NDArray[np.int32]
    n_first: NDArray[np.int64] | None = None
    on_devices: dict[Any, Any] = field(default_factory=dict, init=False)  # cache of isokern.devices
    known_paths: dict[int, NDArray[Any]] = field(default_factory=dict, init=False)  # cache

    def __post_init__(self) -> None:
        need(is_count(self.n_columns) and self.n_columns < 2**31, "n_columns must be below 2^31")
        self._map = _core.TreeMap(
            **self.arrays, categorical=self.categorical, n_columns=self.n_columns, n_cells=self.n_cells
        )

    def sizes(self, n_scales: int) -> NDArray[np.int64]:
        """Return the number of cells of each tree at each scale, (t, n_scales)."""
        if self.n_first is None:
            _check_n_scales(n_scales, self.n_cells)
        else:
            need(n_scales in (1, 2), f"n_scales must be 1 or 2; got {n_scales}")
        if n_scales == 1:  # leaves alone need no pass over the nodes
            return np.full((self.n_trees, 1), self.n_cells)
        return _core.count_scale_cells(*self._links(), self.n_cells, n_scales).reshape(-1, n_scales)

    def paths(self, n_scales: int) -> NDArray[Any]:
        """Return the cells of each leaf of each tree at all scales, (t, n_cells, n_scales), computed on first use."""
        if n_scales not in self.known_paths:
            # Zeros take no memory where trees have fewer leaves than cells.
            shape = (self.n_trees, self.n_cells, n_scales)
            paths = np.zeros(shape, dtype=np.min_scalar_type(self.n_cells - 1))
            _core.find_paths(*self._links(), paths)
            self.known_paths[n_scales] = paths
        return self.known_paths[n_scales]

    def _links(self) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]]:
        """Return the links between nodes and what makes a node a cell of a coarser scale: few points."""
        left, n_points, starts = (self.arrays[name] for name in ("left", "n_points", "starts"))
        if self.n_first is not None:  # a node that was a leaf counts as having none
            was_leaf = left >= np.repeat(self.n_first, np.diff(starts))
            n_points = np.where(was_leaf, 0, self.n_cells).astype(np.int32)
        return left, n_points, starts

    @classmethod
    def learn(
        cls,
        rows: CoreRows,
        samples: NDArray[np.int64],
        seed: int,
        threads: int,
        *,
        max_depth: int | None,
        categorical: Iterable[int] = (),
        n_cells: int | None = None,
        numbers: NDArray[np.int64] | None = None,
        column_weights: NDArray[np.float64] | None = None,
    ) -> IsolationTrees:
        """Grow one tree on each sample of rows.

        Trees may have room for more cells than a sample has rows. ``numbers`` tells which of the seed's trees they are;
        by default, the first ones. ``column_weights``, from 0 to 1, tell how often columns are split; by default, all
        alike.
        """
        columns = np.fromiter(categorical, dtype=np.int32)
        depth = _core_depth(max_depth)
        arrays = _core.grow_trees(rows, samples, depth, seed, columns, threads, numbers, column_weights)
        return cls(n_columns(rows), n_cells or samples.shape[1], dict(zip(_FOREST, arrays, strict=True)), columns)

    @property
    def n_trees(self) -> int:
        """The number of trees."""
        return len(self.arrays["starts"]) - 1

    def replaced(self, others: dict[int, tuple[IsolationTrees, int]]) -> IsolationTrees:
        """Return the trees with some of them replaced: by number, (trees, which of them)."""
        chosen = [others.get(i, (self, i)) for i in range(self.n_trees)]
        parts = [(trees.arrays, *trees.arrays["starts"][i : i + 2]) for trees, i in chosen]
        arrays = {name: np.concatenate([part[name][a:b] for part, a, b in parts]) for name in _FOREST[:-1]}
        arrays["starts"] = np.cumsum([0, *(b - a for _, a, b in parts)])
        trees = replace(self, arrays=arrays)
        trees.known_paths = {n: np.stack([of.paths(n)[i] for of, i in chosen]) for n in self.known_paths}
        return trees

    def grown(
        self,
        rows: CoreRows,
        samples: NDArray[np.int64],
        seed: int,
        threads: int,
        *,
        max_depth: int | None,
        column_weights: NDArray[np.float64] | None = None,
    ) -> tuple[IsolationTrees, NDArray[np.int32]]:
        """Isolate further samples of rows inside the leaves of the trees.

        Returns the new trees and, for each of their leaves, the former leaf that it is part of, (t, n_cells). It is -1
        where a tree has no such leaf. The coarse scale stays.
        """
        found = np.empty((n_rows(rows), len(samples)), dtype=np.min_scalar_type(self.n_cells - 1))
        self.apply(rows, found, threads)
        cells = np.take_along_axis(found.T, samples, axis=1).astype(np.int32)
        arrays, n_cells, parents = _core.grow_further(
            self.arrays["split"],
            self.arrays["column"],
            self.arrays["left"],
            self.arrays["missing_right"],
            self.arrays["starts"],
            self.n_cells,
            rows,
            samples,
            cells,
            _core_depth(max_depth),
            seed,
            self.categorical,
            threads,
            column_weights,
        )
        trees = type(self)(
            self.n_columns, n_cells, dict(zip(_FOREST, arrays, strict=True)), self.categorical, self.n_first
        )
        return trees, parents.reshape(-1, n_cells)

    def growing(self) -> IsolationTrees:
        """Return the trees with their leaves as the coarse scale, to be grown further."""
        return replace(self, n_first=np.diff(self.arrays["starts"]))

    def apply(self, rows: CoreRows, cells: NDArray[Any], threads: int) -> None:
        """Write each row's leaves into ``cells``, (n, t)."""
        self._map.apply(rows, cells, threads)

    def flattened(self, scaling: Scaling | None) -> Trees:
        """Return the nodes for rows as they are given, before a scaling that rows of these trees go through."""
        split, column, left, missing_right, n_points, starts = (self.arrays[name] for name in _FOREST)
        is_leaf, threshold = left < 0, split.copy()
        if scaling is not None:
            threshold[~is_leaf] = scaling.thresholds(column[~is_leaf], split[~is_leaf])
        leaves = np.cumsum(is_leaf) - 1  # numbers of the leaves, at these
        children = np.where(is_leaf, -1 - leaves, left + np.repeat(starts[:-1], np.diff(starts)))
        cells = ~left[is_leaf].astype(np.int64)
        nodes = (column, threshold, children, missing_right.astype(bool), n_points, starts)
        return Trees(self.n_columns, *nodes, cells, self.categorical)

    def check(self) -> None:
        """Raise unless trees have a reasonable number of cells; the core has validated the nodes."""
        need(is_count(self.n_cells, at_least=1), "n_cells must be at least 1")
        # Trees have fewer leaves than cells if sampled points are equal or the depth is limited.
        width, n_nodes = self.n_trees * self.n_cells, len(self.arrays["left"])
        need(width <= max(_LARGEST_WIDTH, _LARGEST_FACTOR * n_nodes), "n_cells must be in proportion to the nodes")
        if self.n_first is not None:
            need_array(self.n_first, np.int64, 1, "n_first")
            sizes = np.diff(self.arrays["starts"])
            # Odd, so that both children of a node are among the first nodes, or neither.
            is_part = (
                self.n_first.shape == sizes.shape
                and ((self.n_first <= sizes) & (self.n_first % 2 == 1) & (self.n_first > 0)).all()
            )
            need(is_part, "n_first must be odd numbers of nodes, one for each tree")


def _core_depth(max_depth: int | None) -> int:
    """Return a limit of the depth as the core takes it."""
    return -1 if max_depth is None else max_depth


@dataclass(eq=False)
class VoronoiCells(Part):
    """Voronoi cells: a row falls into the cell of the nearest sampled point.

    ``points`` is the pool of all sampled points. ``samples``, (t, n_cells), lists the points of each partitioning; a
    coarser scale has a quarter of the points of the next, the first of the sample.
    """

    points: CoreRows
    samples: NDArray[np.int32]
    on_devices: dict[Any, Any] = field(default_factory=dict, init=False)  # cache of isokern.devices

    def __post_init__(self) -> None:
        self._maps: dict[int, list[_core.VoronoiMap]] = {}  # by the number of scales
        self._maps_of(1)  # validates points and samples

    def sizes(self, n_scales: int) -> NDArray[np.int64]:
        """Return the number of cells of each partitioning at each scale, (t, n_scales)."""
        t, n_cells = self.samples.shape
        _check_n_scales(n_scales, n_cells)
        return np.tile(self._scale_sizes(n_scales), (t, 1))

    def _scale_sizes(self, n_scales: int) -> list[int]:
        n_cells = self.samples.shape[1]
        return [*(max(2, n_cells // 4**k) for k in range(n_scales - 1, 0, -1)), n_cells]

    def _maps_of(self, n_scales: int) -> list[_core.VoronoiMap]:
        """Return a map for all scales or, of samples too large for the nested search, one for each."""
        if n_scales not in self._maps:
            sizes = self._scale_sizes(n_scales)
            groups = [sizes] if sizes[-1] <= _LARGEST_NESTED else [[size] for size in sizes]
            self._maps[n_scales] = [
                voronoi_map(self.points, np.ascontiguousarray(self.samples[:, : group[-1]]), group) for group in groups
            ]
        return self._maps[n_scales]

    @property
    def n_columns(self) -> int:
        """The number of columns of the points."""
        return n_columns(self.points)

    @classmethod
    def learn(cls, rows: CoreRows, samples: NDArray[np.int64], seed: int, threads: int) -> VoronoiCells:
        """Use the sampled rows as the centres of cells."""
        return cls(rows, samples.astype(np.int32))

    def apply(self, rows: CoreRows, cells: NDArray[Any], threads: int) -> None:
        """Write each row's cells into ``cells``, (n, t * n_scales)."""
        n, t = len(cells), len(self.samples)
        n_scales = cells.shape[1] // t
        found = cells[None] if n_scales == 1 else np.empty((n_scales, n, t), dtype=cells.dtype)
        maps = self._maps_of(n_scales)
        for searched, part in zip(maps, np.split(found, len(maps)), strict=True):
            searched.apply(rows, list(part), threads)
        if n_scales > 1:
            cells.reshape(n, t, n_scales)[:] = found.transpose(1, 2, 0)

    @classmethod
    def from_state(cls, state: State) -> VoronoiCells:
        """Rebuild cells from their state; refuse points that would take far more memory than the state."""
        check_points(state["points"], state["samples"].nbytes)
        return cls(**state)


def voronoi_map(points: CoreRows, samples: NDArray[np.int32], sizes: Sequence[int]) -> _core.VoronoiMap:
    """Return the core's map of rows to the nearest of the first ``sizes[k]`` points of each sample, for all k."""
    # Two engines may ask for the axes.
    axes = functools.cache(functools.partial(principal_axes, points, samples.shape[1]))
    return _core.VoronoiMap(points, samples, sizes, axes)


def check_points(points: CoreRows, n_bytes_more: int = 0, *, densified_up_to: int = FEW_COLUMNS) -> None:
    """Raise unless points are rows, and sparse points stay within memory limits when the core densifies them.

    The core densifies points of at most so many columns.
    """
    if not isinstance(points, CsrRows):
        is_table = isinstance(points, np.ndarray) and points.ndim == 2 and points.dtype in FLOATS
        need(is_table, "points must be rows of float32 or float64")
        return
    is_sound = points.values.dtype in FLOATS and all(array.ndim == 1 for array in points[:3])
    need(is_sound, "points must be CSR rows of float32 or float64")
    if points.n_columns > densified_up_to:
        return
    n_bytes = sum(array.nbytes for array in points[:3]) + n_bytes_more
    densified = 8 * n_rows(points) * points.n_columns
    need(
        densified <= max(_LARGEST_DENSIFIED, _LARGEST_FACTOR * n_bytes),
        f"sparse points must take at most {_LARGEST_FACTOR} times their size when densified; they take {densified} "
        "bytes. Save such a model with joblib",
    )


def principal_axes(points: CoreRows, n_cells: int) -> NDArray[np.float64]:
    """Return the first principal axes of points, (n_columns, n_axes); no axes where they would not pay.

    The axes only speed the nearest-point search up, so they are estimated from a sample. Distances along few axes are
    tight lower bounds if these explain most of the variance and nearest points are close, as with many cells. Otherwise
    a fixed number of axes serves to group points spatially.
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
    n_most = d // 4 if n_cells >= _MANY_CELLS and d // 4 > _FIRST_AXES else _FIRST_AXES
    with one_thread_if_small(d):
        products = table.T @ table
        variances, axes = linalg.eigh(products, subset_by_index=(d - n_most, d - 1))
    explained = np.cumsum(variances[::-1]) / np.trace(products)
    is_enough = explained >= _EXPLAINED
    n_axes = int(is_enough.argmax()) + 1 if is_enough.any() and n_cells >= _MANY_CELLS else _FIRST_AXES
    return np.ascontiguousarray(axes[:, ::-1][:, :n_axes])


@dataclass(eq=False)
class OwnPartitionings(Part):
    """Fitted clones of a user-defined partitioning."""

    members: list[Partitioning]
    n_columns: int

    def sizes(self, n_scales: int) -> NDArray[np.int64]:
        """Return the number of cells of each partitioning at each scale, (t, n_scales)."""
        return np.reshape([member.n_cells_ for member in self.members], (-1, n_scales))

    @classmethod
    def learn(cls, X: Any, member: Partitioning, n_partitionings: int, seed: int) -> OwnPartitionings:
        """Fit clones of ``member`` to all rows of X, each with its own generator."""
        make = clone if hasattr(member, "get_params") else copy.deepcopy
        generators = np.random.default_rng(seed).spawn(n_partitionings)
        members = [make(member).fit(X, rng) for rng in generators]
        n_scales = getattr(members[0], "n_scales_", 1)
        for fitted in members:
            _check_member(fitted, n_scales, type(member).__name__)
        return cls(members, X.shape[1])

    @property
    def n_scales(self) -> int:
        """The number of scales that the partitionings offer."""
        return int(getattr(self.members[0], "n_scales_", 1))

    def apply(self, rows: CoreRows, cells: NDArray[Any], threads: int) -> None:
        """Write each row's cells into ``cells``, (n, t * n_scales)."""
        X, n_scales = as_scipy(rows), self.n_scales
        sizes = self.sizes(n_scales)
        for i, member in enumerate(self.members):
            cells[:, i * n_scales : (i + 1) * n_scales] = _cells_of(member, X, sizes[i])


def _cells_of(member: Partitioning, X: Any, sizes: NDArray[np.int64]) -> NDArray[Any]:
    """Return the cells of rows in a user-defined partitioning, (n, n_scales); raise if they are not of this form."""
    n, n_scales, name = X.shape[0], len(sizes), type(member).__name__
    found = np.asarray(member.apply(X))
    if found.shape != ((n,) if n_scales == 1 else (n, n_scales)) or not np.issubdtype(found.dtype, np.integer):
        rule = "one integer" if n_scales == 1 else f"{n_scales} integers"
        raise ValueError(
            f"apply of {name} must return {rule} for each of {n} rows; got shape {found.shape} and dtype {found.dtype}."
        )
    found = found.reshape(n, n_scales)
    for column, size in zip(found.T, sizes, strict=True):
        if n and not (column.min() >= 0 and column.max() < size):
            raise ValueError(
                f"apply of {name} must return cells from 0 to {size - 1}; got {column.min()} to {column.max()}."
            )
    return found


def _check_member(fitted: Any, n_scales: int, name: str) -> None:
    """Raise unless a fitted user-defined partitioning has n_scales scales, and tells how many cells each has."""
    own, n_cells = getattr(fitted, "n_scales_", 1), getattr(fitted, "n_cells_", None)
    if not is_integer(own, at_least=1) or own != n_scales:
        rule = "must set n_scales_, if at all, to an integer of at least 1 that is the same in each clone"
        raise ValueError(f"fit of {name} {rule}; got {n_scales!r} and {own!r}.")
    sizes = n_cells if n_scales > 1 and isinstance(n_cells, Sequence | np.ndarray) else [n_cells]
    if len(sizes) != n_scales or not all(is_integer(size, at_least=1) for size in sizes):
        rule = "an integer" if n_scales == 1 else f"a sequence of {n_scales} integers"
        raise ValueError(f"fit of {name} must return self with n_cells_, {rule} of at least 1; got {n_cells!r}.")


Partitionings = IsolationTrees | VoronoiCells | OwnPartitionings
PARTITIONINGS: dict[str, type[IsolationTrees] | type[VoronoiCells]] = {"tree": IsolationTrees, "voronoi": VoronoiCells}


def is_tree(partitioning: object) -> bool:
    """Return whether a parameter ``partitioning`` means isolation trees."""
    return isinstance(partitioning, str) and partitioning == "tree"
