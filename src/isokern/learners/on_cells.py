"""Provide what the classifier and the regressor share: the way from rows to what their models learn, and checks."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from isokern.arrays import ForeignRows
from isokern.checks import all_or_nothing, is_integer, n_threads, private, warn_user
from isokern.engines import engine_of, host_table
from isokern.feature_map import IsolationKernel, core_weights
from isokern.forest import Forest
from isokern.learners.as_forest import as_forest
from isokern.learners.base_race import BaseRace
from isokern.learners.candidates import candidates_of, fit_stages, grows, kernel_choice
from isokern.learners.column_weights import chosen_weights
from isokern.learners.commits import BLOCK, ahead, blocks, commit, one_view
from isokern.learners.features import Features
from isokern.learners.growth import FIRST_ROWS, MOST_CELLS, FirstRows, Growth, Heirs, first_cells
from isokern.learners.kernel_source import REFITTED, KernelSource, check_same_map, draw_seed, share_starts
from isokern.learners.linear_term import NO_LINEAR_TERM, LinearTerm
from isokern.learners.parameters import check_flag, check_n_initial
from isokern.learners.steps import check_cell_steps, is_open
from isokern.learners.targets import pass_orders
from isokern.learners.warm_up import Batch, WarmUp
from isokern.notebooks import repr_html, repr_mimebundle
from isokern.parts import need
from isokern.progress import Bar, check_verbose, tell
from isokern.rows import input_tags, read_rows

_GROWING = (
    "growth must be False for cells, because a map that grows needs the rows; got cells for such a map. Give the rows "
    "themselves, or growth=False."
)


class OnCells:
    """Base of the online learners on the cells of a kernel."""

    _repr_html_inner, _repr_mimebundle_ = repr_html, repr_mimebundle

    growth_: FirstRows | Growth | None
    kernel_: IsolationKernel
    learned_: Any  # a race, or the state of a single model on one scale
    linear_term_: LinearTerm | None
    warm_up_: WarmUp
    _learn: Callable[..., None]  # learns mapped rows, targets and weights
    _begin_again: Callable[..., None]  # forgets all rows, and draws a map that grows from a batch of them

    _most_cells = MOST_CELLS  # that growth may add to a tree at a time

    # Parameters that both learners have, and what they learn about columns.
    loss: str
    shrinkage: float
    average: bool | str
    evaluation: str
    linear: bool | str
    max_model_size: int | None
    growth: bool
    shuffle: bool
    n_initial: int | None
    n_jobs: int | None
    verbose: int
    n_features_in_: int
    is_categorical_: Any

    def _drawn(
        self,
        table: Any,
        targets: NDArray[Any],
        n_columns: int,
        rng: np.random.RandomState,
        *,
        is_growing: bool = False,
    ) -> tuple[IsolationKernel, list[Any], LinearTerm | None]:
        """Return a map drawn from a table for so many scores, the candidates on it, and their linear term."""
        if is_growing:
            kernel = KernelSource(self).fit(table, rng, n_cells=first_cells(table), n_scales=1)
            kernel.map_ = kernel.map_.growing()
        else:
            chosen = kernel_choice(self, table.shape[0], n_columns)
            if is_open(self):
                chosen |= chosen_weights(self, table, targets, rng)
            kernel = KernelSource(self).fit(table, rng, **chosen)
        candidates = candidates_of(self, kernel)
        has_linear = any(candidate.linear for candidate in candidates)
        term = LinearTerm.learn(table, self.is_categorical_) if has_linear else None
        tell(self, f"map for {table.shape[0]:,} rows: {kernel.map_.summary}; {len(candidates) or 1} candidates learn")
        return kernel, candidates, term

    def _raced(self, order: NDArray[np.intp], mean_weight: float, usual_weight: float) -> Iterator[NDArray[np.intp]]:
        """Yield the rows of the first pass of ``fit``, stage by stage; drop candidates after each stage."""
        begin = 0
        if isinstance(self.learned_, BaseRace):
            for end, n_kept in fit_stages(len(order), usual_weight / mean_weight):
                yield order[begin:end]
                is_racing = self.learned_.n_models > 1
                commit(self, learned_=self.learned_.compared(n_kept, usual_weight))
                if is_racing:
                    tell(self, f"race after {end:,} rows: {self.learned_.standing}")
                begin = end
        yield order[begin:]

    def _learn_in_order(self, batch: Batch, order: NDArray[np.intp], **how: Any) -> None:
        """Learn mapped rows in an order, block by block; the next block is fetched while one is learned."""
        parts = list(blocks(len(order)))

        def fetched() -> Iterator[Batch]:
            for part in parts:
                block = batch.some(order[part])
                if isinstance(self.learned_, BaseRace):
                    self.learned_.prepare(block.table)
                yield block

        for block in ahead(fetched(), len(parts), n_threads(self.n_jobs)):
            self._learn(*block, **how)

    def _learn_again(self, batch: Batch, n_passes: int, rng: np.random.RandomState) -> None:
        """Make further passes over all rows."""
        n = len(batch.targets)
        for k, order in enumerate(pass_orders(n, n_passes, rng, shuffle=self.shuffle), start=2):
            with self._pass(f"pass {k} of {n_passes + 1}", n) as bar:
                self._learn_in_order(batch, np.arange(n)[order], is_new=False, bar=bar)

    @contextmanager
    def _pass(self, name: str, n: int) -> Iterator[Bar]:
        """Show a pass of ``fit`` over n rows, and tell how many of them changed the weights."""
        n_before = self.n_support_
        with Bar(self, name, n) as bar:
            yield bar
        tell(self, f"{name}: {(self.n_support_ - n_before) / n:.1%} of {n:,} rows changed the weights", logging.DEBUG)

    # -- streams

    @property
    def _is_begun(self) -> bool:
        """Whether a row has been learned or buffered."""
        return hasattr(self, "n_features_in_")

    def _n_valid(self, X: Any) -> int:
        """Return the number of rows of a stream; raise if one is invalid. Nothing is learned from them."""
        if isinstance(X, Features):
            return len(X)
        kernel = None if self._is_begun else KernelSource(self).kernel
        return int(read_rows(private(self), X, reset=not self._is_begun, min_rows=1, kernel=kernel).shape[0])

    @property
    def _n_initial(self) -> int:
        """Number of rows of a stream to buffer before the map is drawn."""
        return FIRST_ROWS if grows(self) else KernelSource(self).n_initial

    def _learn_rows(self, batch: Batch, **how: Any) -> None:
        """Map rows and learn them."""
        self._learn(*batch._replace(table=self._mapped(batch.table)), **how)

    def _learn_first(self, batch: Batch, rng: np.random.RandomState, answers: Any = None, **how: Any) -> Batch:
        """Learn the first rows of a stream, so that no model is committed without them; return the others.

        Rows that were buffered have been answered already.
        """
        n = self._n_initial
        if grows(self):
            self.growth_ = FirstRows.begun(batch.some(slice(n)), draw_seed(rng))
        if n > 0:
            self._learn_rows(batch.some(slice(n)), **how)
        elif len(batch.targets):
            n = BLOCK
            self._learn_rows(batch.some(slice(n)), answers=answers, **how)
        return batch.some(slice(n, None))

    def _learn_stream(self, batch: Batch, **how: Any) -> None:
        """Learn rows in order, and let the map grow at its time."""
        with Bar(self, "partial_fit", len(batch.targets)) as bar:
            while len(batch.targets):
                growth, n_rows = getattr(self, "growth_", None), self.n_rows_seen_
                if growth is None:
                    return self._learn_rows(batch, bar=bar, **how)
                if n_rows == growth.n_next:
                    self._grow(growth)
                    continue
                first = batch.some(slice(min(BLOCK, growth.n_next - n_rows)))
                growth = growth.keeping(first._replace(table=rows_of(first.table)), n_rows)
                commit(self, growth_=growth)  # before, so that no learned row is missing
                self._learn_rows(first, bar=bar, **how)
                batch = batch.some(slice(len(first.targets), None))
                if isinstance(growth, FirstRows) and self.n_rows_seen_ == growth.n_next:
                    self._grow(growth)  # at once, because it changes what the next row is predicted by
        return None

    def _grow(self, growth: FirstRows | Growth) -> None:
        """Draw the map anew or let it grow; end its growth if the model would be too large."""
        former = self.kernel_.map_
        larger = 1.0 + growth.n_cells / former.n_cells  # at most by this factor
        limit = None if self.max_model_size is None else int(self.max_model_size / larger)
        if limit is not None and self.learned_.model.n_bytes > limit:
            warn_user(
                f"The map stops growing at {former.n_cells} cells per partitioning, because the weights would exceed "
                f"max_model_size={self.max_model_size:,} bytes.",
            )
            return commit(self, growth_=None)
        return self._draw_anew(growth) if isinstance(growth, FirstRows) else self._split_leaves(growth, limit)

    @all_or_nothing
    def _draw_anew(self, first: FirstRows) -> None:
        """Draw the map from all rows so far, and learn them again."""
        self._begin_again(first.batch, np.random.RandomState(first.seed + first.n_next))
        self._learn_rows(first.batch)
        self.growth_ = first.further(self._most_cells)

    def _split_leaves(self, growth: Growth, limit: int | None) -> None:
        """Let the trees grow inside their leaves, for models of at most ``limit`` bytes."""
        former, kernel, batch = self.kernel_.map_, copy(self.kernel_), growth.batch
        rng = np.random.RandomState(growth.seed + growth.n_next)
        kernel.set_params(**chosen_weights(self, batch.table, batch.targets, rng))
        weights = core_weights(kernel.column_weights, batch.table.shape[1])
        how = {"max_depth": kernel.max_depth, "column_weights": weights}
        kernel.map_, parents = growth.grown(former, n_threads(self.n_jobs), **how)
        learned = self.learned_.within(limit).grown(Heirs(former, kernel.map_, parents))
        term = None if self.linear_term_ is None else self.linear_term_.grown(batch.table)
        later = None if growth.is_last else growth.further()
        commit(self, kernel_=kernel, learned_=learned, linear_term_=term, growth_=later)
        tell(self, f"map grown after {self.n_rows_seen_:,} rows: {kernel.map_.summary}")

    @property
    def _is_linear(self) -> bool:
        """Whether the model has no cells, so that passes cost little."""
        return isinstance(self.learned_, BaseRace) and not self.learned_.model.scales

    def _narrow(self) -> None:
        """Drop candidates, if a stage of a stream has ended."""
        narrowed = self.learned_.narrowed()
        if narrowed is not self.learned_:
            commit(self, learned_=narrowed)
            tell(self, f"race after {self.n_rows_seen_:,} rows: {narrowed.standing}")

    def _commit(self, learned: Any) -> None:
        """Replace the learned state, if it is another one."""
        if learned is not self.learned_:
            commit(self, learned_=learned)

    # -- from rows or cells to what the model learns

    @one_view
    def features(self, X: ArrayLike) -> Features:
        """Return rows that predictions and ``partial_fit`` of a race take in place of ``X``, to map them only once."""
        check_is_fitted(self, "kernel_")
        features: Features = self._mapped(self._read_rows(X))
        return features

    def _read_rows(self, X: Any, *, reset: bool = False, **how: Any) -> Any:
        """Return validated rows, or features as they are."""
        return X if isinstance(X, Features) else read_rows(self, X, reset=reset, **how)

    def _form_of(self, X: Any) -> Any:
        """Return rows to be predicted in the form that the model learns."""
        return self._mapped(X if isinstance(X, Features) else engine_of(X).read(self, X))

    def _mapped(self, rows: Any) -> Any:
        """Return validated rows in the form that the model learns: cells, or features of several kinds."""
        self._check_same_map()
        fitted = self.kernel_.map_
        if isinstance(rows, Features) and rows.fitted is fitted and rows.term is self.linear_term_:
            return rows
        rows = rows_of(rows)
        if not isinstance(self.learned_, BaseRace):
            return self.kernel_.apply_rows(rows)
        codes = self.kernel_.code_rows(rows) if any(model.scales for model in self.learned_.models) else None
        source = rows.X if isinstance(rows, ForeignRows) else None
        table = rows if source is None or self.takes_cells else host_table(rows)
        return Features(fitted, self.linear_term_, codes, table, n_threads(self.n_jobs), source=source)

    def _check_same_map(self) -> None:
        """Raise ValueError if the kernel, which the user may hold too, has been refitted to other cells."""
        if not isinstance(self.learned_, BaseRace):
            return check_same_map(self.kernel_.map_, self.learned_.model.starts)
        try:
            self.learned_.check_map(self.kernel_.map_, self.linear_term_)
        except ValueError:
            raise ValueError(REFITTED) from None

    def _of_cells(self, cells: Any) -> Any:
        """Return validated cells in the form that the model learns."""
        fitted = self.kernel_.map_
        if not isinstance(self.learned_, BaseRace):
            self._check_same_map()
            return cells
        if getattr(self, "growth_", None) is not None:
            raise ValueError(_GROWING)
        if not self.takes_cells:
            raise ValueError(NO_LINEAR_TERM)
        self._check_same_map()
        return Features.of_cells(fitted, cells, n_threads(self.n_jobs))

    def _known(self, cells: Any) -> Any:
        """Return cells that can be scored; raise unless they can be those of the kernel."""
        check_is_fitted(self, "kernel_")
        return self._of_cells(engine_of(cells).check_cells(self.kernel_.map_, cells))

    @property
    def takes_cells(self) -> bool:
        """Whether rows may be given as cells: not if a linear term or a map that grows needs their columns."""
        if getattr(self, "growth_", None) is not None:
            return False
        models = self.learned_.models if isinstance(self.learned_, BaseRace) else []
        return all(model.linear_values is None for model in models)

    @one_view
    def map_rows(self, X: ArrayLike) -> NDArray[Any]:
        """Return the cells of rows, as ``kernel_.apply`` does, for the methods that take cells."""
        check_is_fitted(self, "kernel_")
        return self.kernel_.apply_rows(engine_of(X).read(self, X))

    # -- what has been learned

    @property
    def n_support_(self) -> int:
        """Number of support vectors: rows that changed the weights."""
        check_is_fitted(self)
        return self.learned_.model.clock.n_support if hasattr(self, "learned_") else 0

    @property
    def n_rows_seen_(self) -> int:
        """Number of rows learned so far, buffered ones included; further passes over the same rows do not count."""
        check_is_fitted(self)
        return self.learned_.model.clock.n_rows if hasattr(self, "learned_") else self.warm_up_.n

    @property
    def selection_(self) -> dict[str, Any] | None:
        """Candidates of the race, their errors and the leader; None if the parameters left nothing to choose."""
        check_is_fitted(self)
        learned = getattr(self, "learned_", None)
        return learned.report() if isinstance(learned, BaseRace) else None

    @one_view
    def forest(self) -> Forest:
        """Return the model as it is now as a forest; see :mod:`isokern.forest`."""
        check_is_fitted(self)
        if not hasattr(self, "learned_"):
            rule = "have learned rows, not only buffered them"
            raise ValueError(f"model must {rule}; got one that waits for {self._n_initial} rows (n_initial).")
        self._check_same_map()
        learned = self.learned_.snapshot()
        return as_forest(self, learned.model, learned.intercept, learned.answer(self.loss))

    def without_rows(self) -> Any:
        """Return a copy that holds no rows of a stream: its map has stopped growing."""
        copied = private(self)
        copied.growth_ = None
        return copied

    # -- checks

    def _check_shared_parameters(self, losses: tuple[str, ...]) -> None:
        """Raise ValueError if a parameter that both learners have is invalid."""
        KernelSource(self).check()
        check_verbose(self.verbose)
        check_cell_steps(self, losses)
        check_n_initial(self.n_initial)
        check_flag(self, "linear", may_be_auto=True)
        check_flag(self, "average", may_be_auto=isinstance(self, RegressorMixin))
        for name in ("shuffle", "growth"):
            check_flag(self, name)
        if not (self.max_model_size is None or is_integer(self.max_model_size, at_least=1)):
            raise ValueError(f"max_model_size must be None or a positive integer; got {self.max_model_size!r}.")
        is_averaged = self.average != "auto" and self.average
        if candidates_of(self) and (is_averaged or self.shrinkage > 0 or self.evaluation != "primal"):
            raise ValueError(
                'average=False, shrinkage=0 and evaluation="primal" must be kept with several scales or a linear term; '
                f"got average={self.average!r}, shrinkage={self.shrinkage!r}, evaluation={self.evaluation!r}."
            )

    def _check_learned(self, *kinds: type) -> None:
        """Raise ValueError if the learned state, which must be of one of these kinds, does not match the kernel."""
        names = " or a ".join(kind.__name__ for kind in kinds)
        need(isinstance(self.learned_, kinds), f"learned_ must be a {names}")
        need(isinstance(self.linear_term_, LinearTerm | None), "linear_term_ must be a LinearTerm or None")
        growth = vars(self).get("growth_")
        if growth is not None:
            need(isinstance(growth, FirstRows | Growth), "growth_ must be FirstRows, a Growth or None")
            is_one = growth.batch.table.shape[1] == self.n_features_in_ and isinstance(self.learned_, BaseRace)
            need(is_one and self.kernel_.map_.is_growing, "growth_ must have rows for a map that grows")
        if isinstance(self.learned_, BaseRace):
            need(isinstance(self.kernel_, IsolationKernel), "kernel_ must be an IsolationKernel")
            self.learned_.check_map(self.kernel_.map_, self.linear_term_)
            d = self.n_features_in_ if self.linear_term_ is None else self.linear_term_.n_columns
            need(d == self.n_features_in_, "linear_term_ must have one entry for each column")
        else:
            share_starts(self.kernel_, self.learned_.model)

    def __sklearn_tags__(self) -> Any:
        return input_tags(super().__sklearn_tags__(), trees=KernelSource(self).has_trees)  # type: ignore[misc]


def rows_of(rows: Any) -> Any:
    """Return rows as they were before they were mapped."""
    return rows.rows if isinstance(rows, Features) else rows
