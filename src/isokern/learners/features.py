"""Provide rows in the form that models on several scales take: cells of chosen scales, and rows of a linear term."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from isokern import _core
from isokern.adaptive_trees import AdaptiveTrees
from isokern.arrays import is_foreign, to_host
from isokern.fitted_map import FittedMap
from isokern.forest import LeafSum, Trees
from isokern.learners.linear_term import LinearTerm
from isokern.partitionings import IsolationTrees
from isokern.rows import CoreRows

Scales = tuple[int, ...]  # numbers of scales, 0 is the coarsest


class ScaleCells:
    """The cells of some scales of a map, and the way from a row's codes to them."""

    renews = False  # whether trees among them are renewed along a stream

    def __init__(self, fitted: FittedMap, scales: Scales) -> None:
        t, n_scales, chosen = fitted.n_partitionings, fitted.n_scales, list(scales)
        sizes = np.diff(fitted.starts).reshape(t, n_scales)[:, chosen]
        self.starts: NDArray[np.int64] = np.concatenate([[0], np.cumsum(sizes.ravel())])
        shares = fitted.scale_weights[chosen]
        self.shares = (shares / np.sqrt((shares**2).sum())).astype(np.float32)
        self.is_finest = self.grows = scales == (n_scales - 1,)  # of trees that grow, the coarse scale stays
        self._shape, self._chosen = (t, n_scales), chosen
        self._trees = fitted.partitionings

    @cached_property  # on first use: most models on the leaves alone, which may be millions, never need it
    def paths(self) -> Any:
        """For trees, the cells of each leaf, (t, n_cells, number of scales); else None."""
        if not isinstance(self._trees, IsolationTrees):
            return None
        return np.ascontiguousarray(self._trees.paths(self._shape[1])[:, :, self._chosen])

    def of(self, codes: NDArray[Any], threads: int) -> NDArray[Any]:
        """Return the cells of rows, partitioning by partitioning and coarse to fine."""
        if not isinstance(self._trees, IsolationTrees):
            n = len(codes)
            return np.ascontiguousarray(
                codes.reshape(n, *self._shape)[:, :, self._chosen].reshape(n, len(self.starts) - 1)
            )
        if self.is_finest:
            return codes
        cells: NDArray[Any] = np.empty((len(codes), len(self.starts) - 1), dtype=codes.dtype)
        _core.expand_leaves(codes, self.paths, cells, threads)
        return cells

    def trees_and_paths(self) -> list[tuple[IsolationTrees, Any]]:
        """Return the trees whose cells these are, and the cells of their leaves, in the order of ``starts``."""
        return [(self._trees, self.paths)]

    def leaf_places(self) -> list[tuple[IsolationTrees, NDArray[np.int64]]]:
        """Return the trees, and where the cells of their leaves are among all: (t, n_cells, number of scales)."""
        found, begin = [], 0
        for trees, paths in self.trees_and_paths():
            t, _, n_scales = paths.shape
            found.append((trees, paths + self.starts[begin : begin + t * n_scales].reshape(t, 1, n_scales)))
            begin += t * n_scales
        return found

    def folding(self) -> Any:
        """Return the matrix that adds, for each leaf of the trees, the weights of its cells: leaves by cells."""
        ((_, places),) = self.leaf_places()
        t, n_leaves, n_scales = places.shape
        ends = np.arange(0, places.size + 1, n_scales)
        return sparse.csr_array((np.ones(places.size), places.ravel(), ends), shape=(t * n_leaves, self.starts[-1]))


class AdaptiveCells(ScaleCells):
    """The cells of a map that renews itself: of all trees, "scale" 0, of the lasting ones, 1, or of the others, 2."""

    def __init__(self, fitted: FittedMap, scales: Scales) -> None:
        n, n_ladder = len(fitted.starts) - 1, fitted.partitionings.n_ladder_columns
        begin, end = ((0, n), (n_ladder, n), (0, n_ladder))[scales[0]]
        self._columns = slice(begin, end)
        self.starts = fitted.starts[begin : end + 1] - fitted.starts[begin]
        self.shares = np.ones(1, dtype=np.float32)
        self.grows, self.renews = end == n, begin == 0
        self._trees = fitted.partitionings

    def trees_and_paths(self) -> list[tuple[IsolationTrees, Any]]:
        """Return the trees whose cells these are, and the cells of their leaves, in the order of ``starts``."""
        ladder, lasting, n_scales = self._trees.ladder, self._trees.lasting, self._trees.n_scales
        found = [(ladder, ladder.paths(n_scales))] if self.renews else []
        return [*found, (lasting, lasting.paths(1))] if self.grows else found

    def of(self, codes: NDArray[Any], threads: int) -> NDArray[Any]:
        """Return the cells of rows."""
        return np.ascontiguousarray(codes[:, self._columns])


def leaf_sum(fitted: FittedMap, scales: Scales, weights: NDArray[Any], multiplier: float, divisor: float) -> LeafSum:
    """Return trees whose leaves have the sums of the weights of their cells, added from coarse to fine like scores."""
    fitted.check_trees()
    parts, sums = [], []
    for trees, places in scale_cells(fitted, scales).leaf_places():
        flat = trees.flattened(fitted.scaling)
        total = np.zeros((flat.n_leaves, weights.shape[1]))
        for of_scale in places[flat.tree_of_leaf, flat.cells].T:
            total += weights[of_scale]
        parts.append(flat)
        sums.append(total)
    return LeafSum(Trees.joined(parts), np.concatenate(sums), multiplier, divisor)


_kept: WeakKeyDictionary[FittedMap, dict[Scales, ScaleCells]] = WeakKeyDictionary()


def scale_cells(fitted: FittedMap, scales: Scales) -> ScaleCells:
    """Return the cells of some scales; they are kept as long as the map."""
    of_map = _kept.setdefault(fitted, {})
    kind = AdaptiveCells if isinstance(fitted.partitionings, AdaptiveTrees) else ScaleCells
    return of_map.get(scales) or of_map.setdefault(scales, kind(fitted, scales))


@dataclass(frozen=True, eq=False)
class Features:
    """Rows for models on one map. What a model asks for is computed once and kept."""

    fitted: FittedMap
    term: LinearTerm | None
    codes: Any  # of the map, or None where no model has cells
    table: Any  # the rows themselves, or None where no model has a linear term
    threads: int
    which: Any = None  # rows of the table that these are; they are copied only if a model asks for them
    source: Any = None  # array of another library, if the rows come from one: results belong there
    renewals: tuple[Any, ...] = ()  # trees that are renewed along these rows, see ``ladder``
    _cells: dict[Scales, Any] = field(default_factory=dict, init=False)
    _linear: list[CoreRows] = field(default_factory=list, init=False)

    @classmethod
    def of_cells(cls, fitted: FittedMap, cells: Any, threads: int) -> Features:
        """Return validated cells as features; the leaves of trees tell all cells."""
        codes = cells[:, fitted.n_scales - 1 :: fitted.n_scales] if fitted.n_codes < cells.shape[1] else cells
        if is_foreign(cells):
            return cls(fitted, None, codes, None, threads, source=cells)
        return cls(fitted, None, np.ascontiguousarray(codes), None, threads)

    def __len__(self) -> int:
        if self.codes is not None:
            return int(self.codes.shape[0])
        return self.table.shape[0] if self.which is None else len(self.which)

    def __getitem__(self, rows: Any) -> Features:
        if isinstance(rows, slice) and rows.indices(len(self)) == (0, len(self), 1):
            return self  # with all that has been computed
        known = np.arange(len(self)) if self.which is None and isinstance(rows, slice) else self.which
        which = rows if known is None else known[rows]
        renewals = ()
        if self.renewals:  # a slice: rows in order
            begin, end, _ = rows.indices(len(self))
            renewals = tuple(one._replace(row=one.row - begin) for one in self.renewals if begin < one.row <= end)
        return replace(self, codes=None if self.codes is None else self.codes[rows], which=which, renewals=renewals)

    @property
    def rows(self) -> Any:
        """The rows as a table."""
        return self.table if self.which is None else self.table[self.which]

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the table of these rows."""
        return len(self), self.table.shape[1]

    def renewing(self, renewals: Sequence[Any]) -> Features:
        """Return the features of rows along which trees are renewed."""
        return replace(self, renewals=tuple(renewals))

    def on_host(self) -> Features:
        """Return the features with codes as NumPy arrays."""
        codes = None if self.codes is None else self.fitted.code_map.check_cells(to_host(self.codes))
        return replace(self, codes=codes, source=None)

    def cells(self, scales: Scales) -> NDArray[Any]:
        """Return the cells of some scales."""
        if scales not in self._cells:
            self._cells[scales] = scale_cells(self.fitted, scales).of(self.codes, self.threads)
        return self._cells[scales]

    @property
    def linear_part(self) -> tuple[CoreRows, float]:
        """Rows of the linear term, and its constant."""
        assert self.term is not None
        if not self._linear:
            self._linear.append(self.term.rows(self.rows))
        return self._linear[0], self.term.constant
