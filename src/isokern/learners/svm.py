"""Solve the support vector machines of IKSVC: problems on shared features, and solutions that others start from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from isokern import _core
from isokern.learners.clock import Clock
from isokern.learners.features import Features, Scales, scale_cells
from isokern.learners.scale_weights import ScaleWeights
from isokern.learners.targets import Weights, some
from isokern.learners.weights import CellWeights

Table = NDArray[np.float64]
Rows = NDArray[np.int32]  # numbers of rows


class Stop(NamedTuple):
    """When a solve ends: at the first of these."""

    tolerance: float  # range of the projected gradients
    gain: float  # of the dual objective in a pass, relative to the objective
    max_iter: int  # passes


class Kind(NamedTuple):
    """Features of a machine."""

    cells: str  # "every": of all scales of the map, "two": of a middle scale and the finest, "": none
    linear: bool

    @property
    def name(self) -> str:
        """Name for users."""
        return " + ".join(filter(None, ["cells" if self.cells else "", "linear" * self.linear]))

    def scales(self, n_scales: int) -> Scales:
        """Return the numbers of its scales among those of a map."""
        scales = {"every": range(n_scales), "two": sorted({n_scales // 2, n_scales - 1}), "": ()}
        return tuple(scales[self.cells])


@dataclass(eq=False)
class Solution:
    """Weights and dual variables of a machine, one row per score; zeros are the start of a solve."""

    scales: Scales
    has_linear: bool
    weights: NDArray[Any]  # (n_columns, number of cells and linear columns)
    intercepts: Table  # (1, n_columns)
    alpha: Table | None  # (n_columns, n_rows), or None to forget them

    def copy(self) -> Self:
        """Return a solution that others do not change."""
        alpha = None if self.alpha is None else self.alpha.copy()
        return replace(self, weights=self.weights.copy(), intercepts=self.intercepts.copy(), alpha=alpha)

    def in_precision(self, dtype: Any) -> Self:
        """Return the solution with weights of a dtype, float32 or float64."""
        return replace(self, weights=self.weights.astype(dtype, copy=False))

    def spread(self, rows: NDArray[np.intp], n_rows: int) -> Self:
        """Return the solution with dual variables for more rows, of which these were ``rows``."""
        assert self.alpha is not None
        alpha = np.zeros((len(self.alpha), n_rows))
        alpha[:, rows] = self.alpha
        return replace(self, alpha=alpha)

    def model(self, features: Features) -> CellWeights | ScaleWeights:
        """Return the weights as a model that scores; the intercepts are not part of it."""
        fitted = features.fitted
        if fitted.n_scales == 1 and not self.has_linear:
            return CellWeights(fitted.starts, np.ascontiguousarray(self.weights.T, dtype=np.float64))
        n_cells = _n_cells(features, self.scales)
        cells = np.ascontiguousarray(self.weights[:, :n_cells].T[:, None], dtype=np.float32) if n_cells else None
        linear = None
        if self.has_linear:  # the last weight is that of a constant, for which machines have their intercept
            linear = np.zeros((self.weights.shape[1] - n_cells + 1, len(self.weights)), dtype=np.float32)
            linear[:-1] = self.weights[:, n_cells:].T
        return ScaleWeights(self.scales, "constant", 1.0, cells, linear, None)

    def scores(self, features: Features) -> Table:
        """Return the scores of rows, (n, n_columns)."""
        return machine_scores(self.model(features), features) + self.intercepts


@dataclass(frozen=True, eq=False)
class Problem:
    """Rows and their costs, and what the machines for them have in common; see ``cpp/online/svm.hpp``."""

    features: Features
    targets: NDArray[np.int32]  # column of each row's class
    costs: Weights  # factor of C by row
    n_columns: int
    is_squared: bool
    intercept: float  # square of the constant feature
    seed: int

    def some(self, rows: NDArray[np.intp]) -> Problem:
        """Return the problem of some rows."""
        return replace(self, features=self.features[rows], targets=self.targets[rows], costs=some(self.costs, rows))

    def start(self, kind: Kind, *, keeps_alpha: bool) -> Solution:
        """Return zeros to start from; without dual variables, no other solve can start from their solution.

        Weights are float32, of which more fit into the cache. They are precise enough but for a small tolerance.
        """
        scales = kind.scales(self.features.fitted.n_scales)
        width = _n_cells(self.features, scales)
        if kind.linear:
            assert self.features.term is not None
            width += self.features.term.n_weights - 1
        alpha = np.zeros((self.n_columns, len(self.targets))) if keeps_alpha else None
        weights = np.full((self.n_columns, width), 0, dtype=np.float32)  # unlike zeros, in huge pages where it is large
        return Solution(scales, kind.linear, weights, np.zeros((1, self.n_columns)), alpha)

    def solve(self, solution: Solution, rows: Rows, C: float, stop: Stop) -> int:
        """Change a solution to one for some rows and C; return the number of passes."""
        cells, starts, shares = None, None, np.ones(1, dtype=np.float32)
        if solution.scales:
            known = scale_cells(self.features.fitted, solution.scales)
            cells, starts, shares = self.features.cells(solution.scales), known.starts, known.shares
        linear = self.features.linear_part[0] if solution.has_linear else None
        rule = _core.SvmRule(self.is_squared, C, self.intercept, *stop, self.seed)
        n_iter = _core.solve_svm(
            *(cells, starts, shares, linear, rows, self.targets, self.costs, rule),
            *(solution.weights, solution.intercepts, solution.alpha, self.features.threads),
        )
        return int(n_iter.max())


def _n_cells(features: Features, scales: Scales) -> int:
    return int(scale_cells(features.fitted, scales).starts[-1]) if scales else 0


def machine_scores(model: CellWeights | ScaleWeights, features: Features) -> Any:
    """Return the scores of rows without intercepts, (n, n_columns)."""
    if isinstance(model, CellWeights):
        return model.score(features.codes, features.threads)
    return model.score(features, Clock())
