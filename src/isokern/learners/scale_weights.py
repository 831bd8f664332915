"""Provide the model of the race's candidates: weights of the cells of several scales, and of a linear term."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from isokern import _core
from isokern.adaptive_trees import AdaptiveTrees
from isokern.arrays import like
from isokern.devices.scores import foreign_scores
from isokern.fitted_map import FittedMap
from isokern.forest import LeafSum, LinearSum
from isokern.learners.classes import Rearrangement
from isokern.learners.clock import Clock
from isokern.learners.commits import Copies
from isokern.learners.features import Features, Scales, leaf_sum, scale_cells
from isokern.learners.growth import Heirs
from isokern.learners.linear_term import LinearTerm
from isokern.learners.steps import MARGIN_LOSSES, SCHEDULES, Steps
from isokern.partitionings import IsolationTrees
from isokern.parts import Part, State, need, need_array

Floats = NDArray[np.float32]
Table = NDArray[np.float64]

_ROWS_PER_LOCK = 8192  # scored before a writer may go on
_LARGEST_FOLD = 2**28  # bytes of a folded table


@dataclass(eq=False)
class ScaleWeights(Part):
    """Weights of cells of several scales, and of a linear term; a score is their sum.

    The score's share of the kernel is the mean over the partitionings of the sum over the scales; weights are stored
    times the scale's share, so they are only added. Learning changes the tables and the clock in place, see
    ``cpp/online/scale_weights.hpp``.

    The weights of a cell and their sums of squared gradients are side by side in one table, so that a step on the cell
    touches one cache line instead of two, which takes most of its time. Files have them as two tables.
    """

    in_place: ClassVar = ("cells", "linear_values", "linear_squares")

    scales: Scales  # numbers of the map's scales; none for a linear model
    schedule: str
    rate: float
    cells: Floats | None  # (number of cells, 2, n_columns): weights and, for AdaGrad only, sums of squared gradients
    linear_values: Floats | None  # weights of the linear term, (number of its weights, n_columns)
    linear_squares: Floats | None
    clock: Clock = field(default_factory=Clock)
    loss: str = ""  # "" for that of the learner's parameters
    _fold: Fold | None = field(default=None, init=False)  # cache of _folded

    @classmethod
    def zeros(
        cls,
        scales: Scales,
        schedule: str,
        rate: float,
        *,
        n_cells: int,
        n_linear: int,
        n_columns: int,
        loss: str = "",
        first_square: float = 0.0,
    ) -> Self:
        """Return untrained weights; ``n_linear`` is 0 without a linear term.

        ``first_square`` is what the sums of squared gradients of cells start with. From 1, the square of an error of 1,
        steps on a new cell are in proportion to the error; from 0, all have the same length.
        """
        is_adagrad = schedule == "adagrad"
        cells = np.zeros((n_cells, 1 + is_adagrad, n_columns), dtype=np.float32) if n_cells else None
        if cells is not None and first_square > 0.0:
            cells[:, 1:] = first_square
        linear, squares = (
            np.zeros((n_linear, n_columns), dtype=np.float32) if n_linear and is_kept else None
            for is_kept in (True, is_adagrad)
        )
        return cls(scales, schedule, rate, cells, linear, squares, loss=loss)

    @property
    def values(self) -> Floats | None:
        """Weights of the cells, (number of cells, n_columns)."""
        return None if self.cells is None else self.cells[:, 0]

    @property
    def squares(self) -> Floats | None:
        """Sums of squared gradients of the cells, for AdaGrad."""
        return None if self.cells is None or self.cells.shape[1] < 2 else self.cells[:, 1]

    @property
    def n_columns(self) -> int:
        """Number of scores."""
        return next(table.shape[-1] for table in (self.cells, self.linear_values) if table is not None)

    @property
    def n_bytes(self) -> int:
        """Size of all tables."""
        return sum(table.nbytes for table in self.tables() if table is not None)

    def tables(self) -> list[Any]:
        """Return all tables, None for those that it does not have."""
        return [getattr(self, name) for name in self.in_place]

    def steps(self, loss: str) -> Steps:
        """Return the steps of this model; ``loss`` is that of the learner's parameters."""
        return Steps(self.loss or loss, self.schedule, self.rate, 0.0)

    def entrant(
        self, features: Features, rule: _core.Rule, scores: Table, renewals: list[_core.Renewal]
    ) -> _core.Entrant:
        """Return what the core needs to learn rows; ``scores`` receives each row's scores before its update."""
        cells, starts, shares, renewed = None, None, np.ones(1, dtype=np.float32), []
        if self.cells is not None:
            known = scale_cells(features.fitted, self.scales)
            cells, starts, shares = features.cells(self.scales), known.starts, known.shares
            renewed = renewals if known.renews else []
        tables = (self.cells, self.linear_values, self.linear_squares)
        return _core.Entrant(cells, starts, shares, *tables, rule, self.clock, scores, renewed)

    def score(self, features: Features, guard: Clock, copies: Copies | None = None) -> Table:
        """Return the scores of rows, (n, n_columns), under the lock of a clock, and make ``copies`` with the last."""
        fold = self._folded(features, guard)
        scores = self._score_all(features, fold, guard, copies or [])
        if fold and fold.rounds != self.clock.rounds:  # the copies may be of a later moment than the fold
            scores = self._score_all(features, None, guard, copies or [])
        return scores

    def _score_all(self, features: Features, fold: Fold | None, guard: Clock, copies: Copies) -> Table:
        n = len(features)
        scores = np.empty((n, self.n_columns))
        for begin in range(0, max(1, n), _ROWS_PER_LOCK):  # copies are made for no rows, too
            part = slice(begin, begin + _ROWS_PER_LOCK)
            made = copies if begin + _ROWS_PER_LOCK >= n else []
            self._score_block(features if n <= _ROWS_PER_LOCK else features[part], fold, guard, scores[part], made)
        return scores

    def foreign_score(self, features: Features, guard: Clock) -> Any:
        """Return the scores of rows in the library and on the device that they come from.

        Cells of trees are scored there, all else by the compiled core.
        """
        if self.cells is None or not isinstance(features.fitted.partitionings, IsolationTrees):
            return like(self.score(features.on_host(), guard), features.source)
        if self._fold is None or self._fold.values is None or self._fold.rounds != self.clock.rounds:
            self._fold = self._fold_now(scale_cells(features.fitted, self.scales), guard, features.threads)
        fold: Any = self._fold
        scores = foreign_scores(features.codes, fold)
        if fold.linear_values is None:
            return scores
        linear = np.empty((len(features), self.n_columns))
        rows = (*features.linear_part, fold.linear_values, guard, linear, features.threads)
        _core.score_scales(None, None, 1, None, *rows)
        return scores + like(linear, scores)

    def _score_block(self, features: Features, fold: Fold | None, guard: Clock, scores: Table, copies: Copies) -> None:
        cells, starts, n_scales = None, None, 1
        linear, constant = (None, 0.0) if self.linear_values is None else features.linear_part
        values, linear_values = (fold.values, fold.linear_values) if fold else (self.values, self.linear_values)
        if fold:
            cells, starts = features.codes, fold.starts
        elif values is not None:
            cells, starts = features.cells(self.scales), scale_cells(features.fitted, self.scales).starts
            n_scales = len(self.scales)
        _core.score_scales(
            cells, starts, n_scales, values, linear, constant, linear_values, guard, scores, features.threads, copies
        )

    def _folded(self, features: Features, guard: Clock) -> Fold | None:
        """Return weights of which each leaf has the sum over its scales, if enough rows have been scored to pay."""
        if self.cells is None or len(self.scales) < 2:
            return None
        known = scale_cells(features.fitted, self.scales)
        if known.paths is None or known.paths[:, :, 0].size * self.n_columns * 8 > _LARGEST_FOLD:
            return None
        fold = self._fold
        if fold is None or fold.rounds != self.clock.rounds or fold.source is not self.cells:
            fold = Fold(self.cells, self.clock.rounds)
        fold.n_scored += len(features)
        if fold.values is None and fold.n_scored >= known.paths.shape[1]:
            fold = self._fold_now(known, guard, features.threads)
        self._fold = fold
        return fold if fold.values is not None else None

    def _fold_now(self, known: Any, guard: Clock, threads: int) -> Fold:
        assert self.cells is not None
        t, n_cells, _ = known.paths.shape
        fold = Fold(self.cells, 0)
        fold.values = np.empty((t * n_cells, self.n_columns))
        fold.starts = np.arange(t + 1, dtype=np.int64) * n_cells
        copies: Copies = []
        if self.linear_values is not None:
            fold.linear_values = np.empty_like(self.linear_values, subok=False)
            copies.append((fold.linear_values, self.linear_values))
        before = self.clock.rounds
        _core.fold_scales(known.paths, known.starts, self.cells[:, 0], guard, fold.values, threads, copies)
        # Rows that were learned meanwhile make the fold out of date, and the next call folds anew.
        fold.rounds = before if self.clock.rounds == before else -1
        return fold

    def as_sums(self, fitted: FittedMap, term: LinearTerm | None) -> tuple[LeafSum | None, LinearSum | None]:
        """Return the parts of scores: of the trees of a map, and of a linear term; None for what there is not."""
        leaves, linear = None, None
        if self.values is not None:
            n_partitionings = (len(scale_cells(fitted, self.scales).starts) - 1) // len(self.scales)
            leaves = leaf_sum(fitted, self.scales, self.values, 1.0, float(n_partitionings))
        if self.linear_values is not None and term is not None:
            linear = term.linear_sum(self.linear_values)
        return leaves, linear

    def current(self) -> Table:
        """Return all weights in one table: those of the cells, then those of the linear term."""
        return np.vstack([table for table in (self.values, self.linear_values) if table is not None]).astype(np.float64)

    def replace_current(self, weights: Table) -> None:
        """Replace the weights by a table like ``current``; the number of rows learned stays."""
        n_cells = 0 if self.cells is None else len(self.cells)
        if self.cells is not None:
            self.cells = self.cells.copy()
            self.cells[:, 0] = weights[:n_cells]
        if self.linear_values is not None:
            self.linear_values = weights[n_cells:].astype(np.float32)
        self._fold = None

    def rearrange(self, change: Rearrangement) -> Self:
        """Return the weights with rearranged columns."""
        cells, linear, squares = (
            None if table is None else np.ascontiguousarray(table[..., change.columns]) for table in self.tables()
        )
        for values in (None if cells is None else cells[:, 0], linear):
            if values is not None:
                np.multiply(values, np.asarray(change.signs, dtype=np.float32), out=values)
        return replace(self, cells=cells, linear_values=linear, linear_squares=squares, clock=Clock.of(self.clock))

    def grown(self, heirs: Heirs) -> Self:
        """Return the weights on a map that has grown: no score changes, and parts of cells take long steps again."""
        return self if self.cells is None else replace(self, cells=heirs.take(self.scales, self.cells))

    def check(self) -> None:
        """Raise ValueError unless there are tables of one width, with squares for AdaGrad only."""
        need(self.schedule in SCHEDULES, "schedule must be the name of a schedule")
        need(self.loss in ("", *MARGIN_LOSSES), "loss must be the name of a loss")
        need(np.isfinite(self.rate) and 0.0 < self.rate <= 1e6, "rate must be a positive number")
        need(list(self.scales) == sorted(set(self.scales)), "scales must ascend")
        need(bool(self.scales) == (self.cells is not None), "values must be given for scales")
        need(self.cells is not None or self.linear_values is not None, "a model must have weights")
        is_adagrad, rule = self.schedule == "adagrad", "squares must be given for AdaGrad only"
        if self.cells is not None:
            need_array(self.cells, np.float32, 3, "values and squares")
            need(self.cells.shape[1] == 1 + is_adagrad, rule)
        if self.linear_values is not None:
            need_array(self.linear_values, np.float32, 2, "linear_values")
        need((self.linear_squares is not None) == (self.linear_values is not None and is_adagrad), f"linear_{rule}")
        for name, table in zip(self.in_place, self.tables(), strict=True):
            need(table is None or table.shape[-1] == self.n_columns > 0, f"{name} must have a column per score")
        if self.linear_values is not None and self.linear_squares is not None:
            is_like = self.linear_squares.shape == self.linear_values.shape
            need(is_like, "linear_squares must have the shape of linear_values")

    def check_map(self, fitted: FittedMap, n_linear: int) -> None:
        """Raise ValueError unless the tables have a row per cell of a map and per weight of a linear term."""
        n_scales = 3 if isinstance(fitted.partitionings, AdaptiveTrees) else fitted.n_scales
        need(all(scale < n_scales for scale in self.scales), "scales must be those of kernel_")
        if self.cells is not None:
            need(len(self.cells) == scale_cells(fitted, self.scales).starts[-1], "the model must have kernel_'s cells")
        if self.linear_values is not None:
            need(len(self.linear_values) == n_linear, "the model must have the weights of the linear term")

    def is_like(self, other: ScaleWeights) -> bool:
        """Return whether another model has the same features and steps."""
        alike = ("scales", "schedule", "rate", "loss")
        has_linear = [model.linear_values is not None for model in (self, other)]
        return all(getattr(self, name) == getattr(other, name) for name in alike) and has_linear[0] == has_linear[1]

    @classmethod
    def merge(cls, parts: Sequence[Self], shares: NDArray[np.float64]) -> Self:
        """Return the weighted mean of models with the same features and steps."""
        first = parts[0]
        tables: list[Any] = []
        for columns in zip(*(part.tables() for part in parts), strict=True):
            total: Any = None if columns[0] is None else np.zeros(columns[0].shape)
            for share, table in zip(shares, columns, strict=True):
                total = None if table is None else np.add(total, share * table, out=total)
            tables.append(None if total is None else total.astype(np.float32))
        clock = Clock.merge([part.clock for part in parts], shares)
        return replace(first, **dict(zip(first.in_place, tables, strict=True)), clock=clock)

    def state(self) -> State:
        """Return the fields, with weights and squares of cells as tables of their own."""
        state = super().state()
        del state["cells"]
        return state | {"values": self.values, "squares": self.squares}

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Return the model of this state."""
        others = {name: value for name, value in state.items() if name not in ("values", "squares")}
        tables = [table for table in (state["values"], state["squares"]) if table is not None]
        need(bool(tables) == (state["values"] is not None), "squares must not be given without values")
        return cls(cells=np.stack(tables, axis=1) if tables else None, **others)

    # Pickles have the fields themselves, so that those that are memory-mapped stay so.

    def __getstate__(self) -> State:
        return super().state()

    def __setstate__(self, state: State) -> None:
        vars(self).update(vars(type(self)(**state)))


class Fold:
    """Weights with all scales folded into the finest one, and how many rows have been scored since they changed."""

    def __init__(self, source: Floats, rounds: int) -> None:
        self.source, self.rounds, self.n_scored = source, rounds, 0
        self.values: Table | None = None
        self.starts: NDArray[np.int64] = np.zeros(1, dtype=np.int64)
        self.linear_values: Floats | None = None

    # For isokern.devices.scores: a score is ``factor`` times the sum of a row's entries of ``table``.

    @property
    def clock(self) -> Clock:
        """Rounds for which the weights are valid."""
        return Clock(max(0, self.rounds))

    @property
    def factor(self) -> float:
        """Factor from the sum of a row's weights to its score."""
        return 1.0 / (len(self.starts) - 1)

    def table(self) -> Any:
        """Return the weights."""
        return self.values
