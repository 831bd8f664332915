"""Let online learners follow a stream that changes: trees are redrawn from recent rows, and experts compete."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from isokern import _core
from isokern.adaptive_trees import AdaptiveTrees
from isokern.checks import all_or_nothing, n_threads, private
from isokern.feature_map import IsolationKernel
from isokern.fitted_map import FittedMap, draw_samples
from isokern.learners.calibration import ScoreWindow
from isokern.learners.candidates import Candidate
from isokern.learners.commits import BLOCK, ahead, blocks, commit
from isokern.learners.features import Features
from isokern.learners.growth import FirstRows, first_cells
from isokern.learners.kernel_source import KernelSource, draw_seed
from isokern.learners.ladder import MOST_ROWS, N_CELLS, Ladder, Redrawing
from isokern.learners.linear_term import LinearTerm
from isokern.learners.on_cells import OnCells, rows_of
from isokern.learners.parameters import check_integer
from isokern.learners.recent import RecentRows
from isokern.learners.warm_up import Batch
from isokern.partitionings import IsolationTrees, most_scales
from isokern.parts import need
from isokern.progress import tell
from isokern.rows import core_rows

_LADDER_SHARE = 0.4  # of all trees
_MOST_CELLS = 4096  # that growth may add to a lasting tree at a time, twice as many in all
_NODE_BYTES = 80  # of a tree, in its arrays and in the form that maps rows
# AdaGrad's steps become short where a cell has seen many rows, which suits streams that do not change; constant steps
# suit those that do.
_EXPERTS = (
    Candidate("all", linear=False, schedule="adagrad", rate=2.0, loss="squared_hinge"),
    Candidate("recent", linear=False, schedule="constant", rate=2.0, loss="squared_hinge"),
    Candidate("lasting", linear=False, schedule="adagrad", rate=2.0, loss="squared_hinge"),
    Candidate("", linear=True, schedule="adagrad", rate=0.5, loss="hinge"),
)
_NUMBER_EXPERTS = (
    Candidate("all", linear=False, schedule="adagrad", rate=1.0),
    Candidate("recent", linear=False, schedule="constant", rate=0.5),
    Candidate("lasting", linear=False, schedule="adagrad", rate=1.0),
    Candidate("", linear=True, schedule="adagrad", rate=0.5),
)


class Block(NamedTuple):
    """A block of rows that is ready to be learned, and the state of the map after it."""

    rows: Batch  # its table are Features
    fitted: FittedMap
    ladder: Ladder
    recent: RecentRows


class Renewing(OnCells):
    """Base of the learners for streams that change, beside that of the learner whose map only grows.

    Learning a block of rows that renews trees changes map and weights; it happens in a copy, which is then committed.
    """

    # What the learner with a growing map leaves to its users.
    partitioning: Any = "tree"
    n_cells: Any = "auto"
    n_scales: Any = "auto"
    schedule: str = "auto"
    learning_rate: Any = "auto"
    kernel: Any = None
    scale: Any = None
    column_weights: Any = "auto"
    n_initial: int | None = None
    device: Any = None
    shrinkage, evaluation, growth = 0.0, "primal", True
    _most_cells = _MOST_CELLS

    n_partitionings: int
    ladder_: Ladder
    recent_: RecentRows

    def _forget(self) -> None:
        """Forget everything that was learned."""
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)

    @property
    def _n_ladder(self) -> int:
        """Number of trees that are renewed."""
        return max(1, min(round(_LADDER_SHARE * self.n_partitionings), self.n_partitionings - 1))

    def _drawn(
        self,
        table: Any,
        targets: NDArray[Any],
        n_columns: int,
        rng: np.random.RandomState,
        *,
        is_growing: bool = False,
    ) -> tuple[IsolationKernel, list[Any], LinearTerm | None]:
        """Return a map drawn from the first rows, the experts on it, and their linear term."""
        n_lasting = self.n_partitionings - self._n_ladder
        kernel = KernelSource(self).fit(table, rng, n_cells=first_cells(table), n_partitionings=n_lasting)
        lasting: Any = kernel.map_.partitionings
        seed, rows = draw_seed(rng), core_rows(table, 0, table.shape[0])
        samples = draw_samples(table.shape[0], self._n_ladder, first_cells(table), seed)
        how: Any = {"max_depth": None, "categorical": lasting.categorical, "n_cells": N_CELLS}
        ladder = IsolationTrees.learn(rows, samples, seed, n_threads(self.n_jobs), **how)
        kernel.map_ = FittedMap(AdaptiveTrees(ladder, lasting), None)
        experts = self._experts
        has_linear = any(expert.linear for expert in experts)
        tell(self, f"map for {table.shape[0]:,} rows: {kernel.map_.summary}; {len(experts)} experts learn")
        return kernel, experts, LinearTerm.learn(table, self.is_categorical_) if has_linear else None

    @property
    def _experts(self) -> list[Candidate]:
        """Experts that the parameters ``linear`` and ``loss`` leave."""
        experts = list(_NUMBER_EXPERTS if isinstance(self, RegressorMixin) else _EXPERTS)
        if self.loss != "auto":
            experts = [expert._replace(loss="") for expert in experts]
        if self.linear == "auto":
            return experts
        return [expert._replace(linear=bool(self.linear)) for expert in experts if expert.scales]

    def _learn_first(self, batch: Batch, rng: np.random.RandomState, answers: Any = None, **how: Any) -> Batch:
        """Learn the first rows of a stream; return the others."""
        n = self._n_initial
        first = batch.some(slice(n))
        self.growth_ = FirstRows.begun(first, draw_seed(rng))
        self._begin_ladder(first.table, rng)
        self._learn_rows(first, **how)
        return batch.some(slice(n, None))

    def _begin_again(self, batch: Batch, rng: np.random.RandomState) -> None:
        """Forget all rows, and draw a map from a batch of them."""
        super()._begin_again(batch, rng)
        self._begin_ladder(batch.table, rng)

    def _begin_ladder(self, table: Any, rng: np.random.RandomState) -> None:
        """Begin to renew the trees of a map that was drawn from a table, before any row is learned."""
        self.ladder_ = Ladder.begun(self._n_ladder, table.shape[1], draw_seed(rng))
        self.recent_ = RecentRows.begun(table, MOST_ROWS)
        self.learned_ = replace(self.learned_, narrows=False, monitor=_core.new_monitor())

    @property
    def drifts_(self) -> NDArray[np.int64]:
        """After how many rows the error of the leading expert was found to have risen; at most the latest 64."""
        check_is_fitted(self)
        return self.learned_.monitored()[2] if hasattr(self, "learned_") else np.zeros(0, dtype=np.int64)

    @property
    def n_drifts_(self) -> int:
        """Number of rises of the leading expert's error found so far."""
        check_is_fitted(self)
        return self.learned_.monitored()[1] if hasattr(self, "learned_") else 0

    @property
    def error_(self) -> float:
        """Error of the leading expert before learning, mean over all rows so far."""
        check_is_fitted(self)
        return self.learned_.monitored()[0] if hasattr(self, "learned_") else 0.0

    def _learn_rows(self, batch: Batch, **how: Any) -> None:
        """Learn rows block by block; the map of a block is prepared while the one before it is learned."""
        batch, parts = batch._replace(table=rows_of(batch.table)), list(blocks(len(batch.targets)))
        prepared = self._prepared(batch.some(part) for part in parts)
        for block in ahead(prepared, len(parts), n_threads(self.n_jobs)):
            self._learn_block(block, **how)

    def _prepared(self, batches: Iterator[Batch]) -> Iterator[Block]:
        """Map blocks of rows and redraw the trees that are due along them, which depends on rows alone."""
        fitted, term, threads = self.kernel_.map_, self.linear_term_, n_threads(self.n_jobs)
        n_before = self.n_rows_seen_
        ladder, recent = self.ladder_, self.recent_.up_to(n_before)
        for batch in batches:
            rows = Features(fitted, term, fitted.codes(batch.table, threads), batch.table, threads)
            due, ladder = ladder.planned(n_before, len(batch.targets), recent)
            if due:
                trees: Any = fitted.partitionings
                redrawn = Redrawing.of(ladder, recent, batch, trees.ladder.categorical, threads).redraw(due, rows.codes)
                ladder = replace(ladder, columns=redrawn.columns)
                rows, fitted = rows.renewing(redrawn.renewals), FittedMap(redrawn.renewed(trees), None)
            recent = recent.followed_by(batch)
            n_before += len(batch.targets)
            yield Block(batch._replace(table=rows), fitted, ladder, recent)

    def _learn_block(self, block: Block, **how: Any) -> None:
        if block.rows.table.renewals:
            self._learn_renewing(block, **how)
        else:
            commit(self, recent_=block.recent, ladder_=block.ladder)  # before, so that no learned row is missing
            self._learn(*block.rows, **how)

    @all_or_nothing
    def _learn_renewing(self, block: Block, **how: Any) -> None:
        """Learn a block of rows along which trees are renewed."""
        self.learned_ = self.learned_.successor(n_threads(self.n_jobs))  # others may read the present one
        self._learn(*block.rows, **how)
        self.kernel_ = private(self.kernel_)
        self.kernel_.map_, self.ladder_, self.recent_ = block.fitted, block.ladder, block.recent

    @property
    def takes_cells(self) -> bool:
        """Whether rows may be given as cells: no, because trees are drawn from rows."""
        return False

    def _of_cells(self, cells: Any) -> Any:
        raise ValueError("cells must not be given to a learner whose map renews itself; give the rows themselves.")

    def memory_bound(
        self, n_features: int, n_classes: int = 2, row_bytes: int | None = None, *, n_categorical: int = 0
    ) -> int:
        """Return an upper limit of the model's memory in bytes, however long the stream is.

        Parameters
        ----------
        n_features : int
            Number of columns.
        n_classes : int, default=2
            Number of classes; for regressors, of outputs or quantiles.
        row_bytes : int, default=None
            Size of a row, 8 bytes per column by default.
        n_categorical : int, default=0
            Number of categorical columns.

        Returns
        -------
        n_bytes : int
            Including the copy in which a block of rows is learned.
        """
        n_columns = n_classes + 1
        n_lasting = self.n_partitionings - self._n_ladder
        cells = {
            "recent": self._n_ladder * most_scales(N_CELLS) * N_CELLS,
            "lasting": n_lasting * 2 * _MOST_CELLS,
            "": 0,
        }
        cells["all"] = sum(cells.values())
        weights = sum((2 if one.schedule == "adagrad" else 1) * cells[one.scales] for one in self._experts)
        if self.linear is not False:
            weights += 2 * len(self._experts) * LinearTerm.n_weights_of(n_features, n_categorical)
        windows = len(self._experts) * ScoreWindow.size * (n_columns + 1)
        nodes = 2 * (self._n_ladder * N_CELLS + n_lasting * 2 * _MOST_CELLS)
        rows = 2 * MOST_ROWS + BLOCK + 2 * _MOST_CELLS
        row_bytes = 8 * n_features if row_bytes is None else row_bytes
        of_columns = 8 * 8 * n_features  # their weights, and the sums that these come from, in two ladders
        return 8 * n_columns * weights + 16 * windows + _NODE_BYTES * nodes + rows * (row_bytes + 16) + of_columns

    def without_rows(self) -> Any:
        """Return a copy that holds no rows of a stream: it renews its trees from later rows."""
        copied = super().without_rows()
        copied.recent_ = replace(self.recent_, batches=())
        return copied

    def _check_shared_parameters(self, losses: tuple[str, ...]) -> None:
        """Raise ValueError if a parameter that both learners have is invalid."""
        check_integer(self, "n_partitionings", at_least=2)
        super()._check_shared_parameters(losses)

    def _check_learned(self, *kinds: type) -> None:
        """Raise ValueError if the learned state does not match the kernel, the ladder and the recent rows."""
        super()._check_learned(*kinds)
        trees: Any = self.kernel_.map_.partitionings
        need(isinstance(trees, AdaptiveTrees), "kernel_ must have trees that are renewed")
        is_ladder = isinstance(self.ladder_, Ladder) and self.ladder_.n_trees == trees.ladder.n_trees
        need(is_ladder, "ladder_ must have the trees of kernel_")
        columns_of = self.ladder_.columns
        is_sound = columns_of is None or len(columns_of.gains) == self.n_features_in_
        need(is_sound, "ladder_ must have a weight for each column of the model")
        need(isinstance(self.recent_, RecentRows), "recent_ must be RecentRows")
        columns = {batch.table.shape[1] for batch in self.recent_.batches}
        need(columns <= {self.n_features_in_}, "recent_ must have the columns of the model")
