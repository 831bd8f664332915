"""Draw the feature map of an Isolation Kernel from rows, and apply it to rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from isokern import _core
from isokern.adaptive_trees import AdaptiveTrees
from isokern.checks import warn_user
from isokern.forest import Trees
from isokern.partitionings import (
    PARTITIONINGS,
    IsolationTrees,
    OwnPartitionings,
    VoronoiCells,
    most_scales,
)
from isokern.parts import Part, need
from isokern.rows import FLOATS, CoreRows, as_scipy, core_rows, n_rows, row_blocks
from isokern.scaling import Scaling

LARGEST_AUTO = 16384
SCALE_RATIO = 1.25  # a scale's weight over that of the next coarser one


@dataclass(eq=False)
class FittedMap(Part):
    """Map rows to cells, (n, t * n_scales): scale the columns, then find the row's cells in each partitioning.

    Column i * n_scales + l holds the cells of partitioning i at scale l, from coarse to fine; ``starts`` has the offset
    of these cells among all. A match at scale l adds ``scale_weights[l] ** 2 / t`` to the similarity of two rows.
    """

    partitionings: Any  # Partitionings or AdaptiveTrees
    scaling: Scaling | None
    n_scales: int = 1

    def __post_init__(self) -> None:
        self._set_sizes(self.partitionings.sizes(self.n_scales))

    def _set_sizes(self, sizes: NDArray[np.int64]) -> None:
        """Derive offsets, dtype and weights from the number of cells of each partitioning at each scale."""
        self.n_partitionings = len(sizes)
        self.n_cells = int(sizes[:, -1].max())
        self.starts: NDArray[np.int64] = np.concatenate([[0], np.cumsum(sizes)])
        self.cell_dtype = np.min_scalar_type(int(sizes.max()) - 1)
        weights = SCALE_RATIO ** np.arange(self.n_scales)
        self.scale_weights: NDArray[np.float64] = weights / np.sqrt(np.sum(weights**2))

    @property
    def width(self) -> int:
        """The total number of cells of all partitionings and scales: the width of the one-hot form."""
        return int(self.starts[-1])

    @property
    def summary(self) -> str:
        """Size of the map in words."""
        n_trees = getattr(self.partitionings, "n_trees", None)
        members = f"{self.n_partitionings:,} partitionings" if n_trees is None else f"{n_trees:,} trees"
        return f"{members} of up to {self.n_cells:,} cells" + (f", {self.n_scales} scales" if self.n_scales > 1 else "")

    @property
    def feature_values(self) -> NDArray[np.float64]:
        """The values of a row's features, one for each of its cells."""
        return np.tile(self.scale_weights / math.sqrt(self.n_partitionings), self.n_partitionings)

    @property
    def n_codes(self) -> int:
        """The number of columns of ``codes``."""
        return self.n_partitionings * (1 if isinstance(self.partitionings, IsolationTrees) else self.n_scales)

    @cached_property
    def code_map(self) -> FittedMap:
        """Map to the codes of rows, the least that determines their cells: the leaves of trees, else the cells."""
        has_codes = self.n_scales > 1 and isinstance(self.partitionings, IsolationTrees)
        return FittedMap(self.partitionings, self.scaling) if has_codes else self

    def apply(self, table: Any, threads: int) -> NDArray[Any]:
        """Map a table with the compiled core."""
        return self.expand(self.codes(table, threads), threads)

    def codes(self, table: Any, threads: int) -> NDArray[Any]:
        """Return the codes of rows, see ``code_map``."""
        codes: NDArray[Any] = np.empty((table.shape[0], self.n_codes), dtype=self.cell_dtype)
        are_fast = isinstance(self.partitionings, IsolationTrees) and self.scaling is None
        for begin, rows in row_blocks(table, large_views=are_fast):
            self.partitionings.apply(self.scaled(rows), codes[begin : begin + n_rows(rows)], threads)
        return codes

    def expand(self, codes: NDArray[Any], threads: int) -> NDArray[Any]:
        """Return the cells at all scales, (n, t * n_scales), of rows given by their codes."""
        if self.n_scales == 1 or not isinstance(self.partitionings, IsolationTrees):
            return codes
        cells: NDArray[Any] = np.empty((len(codes), len(self.starts) - 1), dtype=self.cell_dtype)
        _core.expand_leaves(codes, self.partitionings.paths(self.n_scales), cells, threads)
        return cells

    def scaled(self, rows: CoreRows) -> CoreRows:
        """Return scaled rows."""
        return rows if self.scaling is None else self.scaling.apply(rows)

    def grown(
        self,
        table: Any,
        n_cells: int,
        seed: int,
        threads: int,
        *,
        max_depth: int | str | None,
        column_weights: Any = None,
    ) -> tuple[FittedMap, NDArray[np.int32]]:
        """Return the map of trees that have grown further, by samples of ``n_cells`` of a table's rows.

        Also returns the former leaf of each new one; see ``IsolationTrees.grown``.
        """
        trees = self.partitionings
        assert isinstance(trees, IsolationTrees | AdaptiveTrees)
        n_trees = trees.lasting.n_trees if isinstance(trees, AdaptiveTrees) else trees.n_trees
        samples = draw_samples(table.shape[0], n_trees, n_cells, seed)
        rows, depth = self.scaled(core_rows(table, 0, table.shape[0])), _resolve_max_depth(max_depth, n_cells)
        further, parents = trees.grown(rows, samples, seed, threads, max_depth=depth, column_weights=column_weights)
        return replace(self, partitionings=further), parents

    def check_trees(self) -> None:
        """Raise ValueError unless the map consists of trees, so that its models are forests."""
        if not isinstance(self.partitionings, IsolationTrees | AdaptiveTrees):
            kind = "Voronoi cells" if isinstance(self.partitionings, VoronoiCells) else "your own partitionings"
            raise ValueError(f'partitioning must be "tree", because only trees make a forest; got {kind}.')

    def cells_of_leaves(self) -> tuple[Trees, NDArray[np.int64]]:
        """Return the trees, and the cells of each leaf at all scales, (n_leaves, n_scales)."""
        self.check_trees()
        if isinstance(self.partitionings, AdaptiveTrees):
            raise ValueError("kernel must be one that stays as it is; got the map of a learner that renews it.")
        trees = self.partitionings.flattened(self.scaling)
        return trees, self.partitionings.paths(self.n_scales)[trees.tree_of_leaf, trees.cells].astype(np.int64)

    @property
    def is_growing(self) -> bool:
        """Whether the map has trees that grow: these have two scales, or are part of a map that renews itself."""
        has_two = self.n_scales == 2 and getattr(self.partitionings, "n_first", None) is not None
        return has_two or isinstance(self.partitionings, AdaptiveTrees)

    def growing(self) -> FittedMap:
        """Return the map of the same trees with two scales, to be grown further; see ``IsolationTrees``."""
        assert isinstance(self.partitionings, IsolationTrees)
        return FittedMap(self.partitionings.growing(), self.scaling, 2)

    def check_cells(self, cells: Any) -> NDArray[Any]:
        """Validate cells and return them in the dtype that ``apply`` returns."""
        array, width = np.asarray(cells), len(self.starts) - 1
        if array.ndim != 2 or array.shape[1] != width or array.dtype.kind not in "ui":
            raise ValueError(
                f"cells must be integers of shape (n, {width}), as apply returns them; got shape {array.shape} and "
                f"dtype {array.dtype}."
            )
        largest = int(np.diff(self.starts).max()) - 1
        if array.dtype != self.cell_dtype and array.size and (array.min() < 0 or array.max() > largest):
            raise ValueError(f"cells must be from 0 to {largest}; got {array.min()} to {array.max()}.")
        array = np.ascontiguousarray(array, dtype=self.cell_dtype)
        if not _core.are_cells(array, self.starts):
            raise ValueError("cells must be below the number of cells of their partitioning; got larger ones.")
        return array

    def difference(self, other: FittedMap) -> str | None:
        """Name what differs in another map; return None if both give the same cells."""
        if other is self:
            return None
        if self.n_scales != other.n_scales:
            return "the number of scales"
        if not np.array_equal(self.starts, other.starts):
            return "the number of cells"
        for what in ("scaling", "partitionings"):
            if not _are_equal(getattr(self, what), getattr(other, what)):
                return f"the {what}"
        return None

    def check(self) -> None:
        """Raise unless the scaling has the columns of the partitionings."""
        is_known = isinstance(self.partitionings, IsolationTrees | VoronoiCells | AdaptiveTrees)
        need(is_known, f"partitionings must be trees or Voronoi cells; got a {type(self.partitionings).__name__}")
        if self.scaling is not None:
            need(isinstance(self.scaling, Scaling), "scaling must be a Scaling")
            need(
                self.scaling.offset.shape == (self.partitionings.n_columns,),
                "scaling must have one entry for each column",
            )


class LateMap(FittedMap):
    """A map of known size that is drawn on first use: in a search, the cells of almost all rows are known already."""

    def __init__(self, n_partitionings: int, n_cells: int, draw: Callable[[], FittedMap]) -> None:
        self._set_sizes(np.full((n_partitionings, 1), n_cells))
        self._draw = draw

    @cached_property
    def _drawn(self) -> FittedMap:
        return self._draw()

    @property
    def partitionings(self) -> Any:
        """The partitionings, drawn on first use."""
        return self._drawn.partitionings

    @property
    def scaling(self) -> Scaling | None:  # type: ignore[override]
        """The scaling, fitted on first use."""
        return self._drawn.scaling

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the drawn map."""
        return FittedMap, (self.partitionings, self.scaling)


def draw_seed(random_state: Any) -> int:
    """Draw the seed of samples and partitionings from a kernel's ``random_state``."""
    return int(check_random_state(random_state).randint(np.iinfo(np.int64).max, dtype=np.int64))


def draw_samples(n_rows: int, n_partitionings: int, n_cells: int | str, seed: int) -> NDArray[np.int64]:
    """Return the indices of the sampled rows, (n_partitionings, n_cells)."""
    n_cells = resolve_n_cells(n_cells, n_rows)
    return _core.draw_samples(n_rows, n_partitionings, n_cells, seed).reshape(n_partitionings, n_cells)


def draw_own(
    table: Any, partitioning: Any, n_partitionings: int, scaling: Scaling | None, *, n_scales: int | str, seed: int
) -> FittedMap:
    """Fit user-defined partitionings, each to all rows."""
    rows = core_rows(table, 0, table.shape[0])
    X = as_scipy(rows if scaling is None else scaling.apply(rows))
    own = OwnPartitionings.learn(X, partitioning, n_partitionings, seed)
    if n_scales not in ("auto", own.n_scales):
        offered = f"{own.n_scales}, which {type(partitioning).__name__} offers"
        raise ValueError(f'n_scales must be "auto" or {offered}; got {n_scales!r}.')
    return FittedMap(own, scaling, own.n_scales)


def draw_map(
    table: Any,
    samples: NDArray[np.int64],
    scaling: Scaling | None,
    *,
    partitioning: str,
    max_depth: int | str | None,
    n_scales: int | str,
    is_categorical: NDArray[np.bool_] | None,
    column_weights: NDArray[np.float64] | None,
    seed: int,
    threads: int,
) -> FittedMap:
    """Build one partitioning from each sample of a table's rows."""
    if not (partitioning == "tree" and scaling is None and _is_in_core_form(table)):
        sampled, samples = _number_sampled(samples, table.shape[0])
        table = table[sampled]
    rows = core_rows(table, 0, table.shape[0])
    rows = rows if scaling is None else scaling.apply(rows)
    options: dict[str, Any] = {}
    if partitioning == "tree":
        options["max_depth"] = _resolve_max_depth(max_depth, samples.shape[1])
        options["categorical"] = () if is_categorical is None else np.flatnonzero(is_categorical)
        options["column_weights"] = column_weights
    partitionings = PARTITIONINGS[partitioning].learn(rows, samples, seed, threads, **options)
    return FittedMap(partitionings, scaling, resolve_n_scales(n_scales, samples.shape[1]))


def auto_n_cells(n_rows: int) -> int:
    """Return the default number of cells: n_rows / 32, rounded to a power of two."""
    return min(2 ** max(1, round(math.log2(max(n_rows, 64) / 32))), LARGEST_AUTO)


def resolve_n_cells(n_cells: int | str, n_rows: int) -> int:
    """Return the number of cells for n_rows rows; ``n_cells`` may be "auto"."""
    if isinstance(n_cells, str):
        return min(auto_n_cells(n_rows), n_rows)
    if n_cells > n_rows:
        warn_user(f"n_cells={n_cells} is more than the {n_rows} rows; all rows are used.")
    return int(min(n_cells, n_rows))


def resolve_n_scales(n_scales: int | str, n_cells: int) -> int:
    """Return the number of scales for n_cells cells, at most ceil(log4(n_cells)); "auto" is that many."""
    most = most_scales(n_cells)
    return most if isinstance(n_scales, str) else int(min(n_scales, most))


def _are_equal(one: Any, other: Any) -> bool:
    """Return whether two values have the same content: parts, their containers and arrays, or anything with a hash."""
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray) and one.dtype != object:
        return one.dtype == other.dtype and np.array_equal(one, other)
    if one is other or type(one) is not type(other):
        return one is other
    if isinstance(one, Part):
        return _are_equal(one.state(), other.state())
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_are_equal(one[key], other[key]) for key in one)
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(_are_equal, one, other))
    return bool(joblib.hash(one, coerce_mmap=True) == joblib.hash(other, coerce_mmap=True))


def _resolve_max_depth(max_depth: int | str | None, n_cells: int) -> int | None:
    if max_depth is None:
        return None
    return math.ceil(math.log2(n_cells)) if isinstance(max_depth, str) else min(max_depth, n_cells)


def _is_in_core_form(table: Any) -> bool:
    """Return whether the core can read a table in place, so that the sampled rows need no copy."""
    return isinstance(table, np.ndarray) and table.dtype in FLOATS and table.flags.c_contiguous


def _number_sampled(samples: NDArray[np.int64], n_rows: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the distinct sampled rows in ascending order, and the samples as positions in that list."""
    is_sampled = np.zeros(n_rows, dtype=bool)
    is_sampled[samples] = True
    sampled = np.flatnonzero(is_sampled)
    places = np.empty(n_rows, dtype=np.int64)  # only entries of sampled rows are written and read
    places[sampled] = np.arange(len(sampled))
    return sampled, places[samples]
