"""Race candidate learners on one map: all learn every row, and the one with the fewest errors before learning leads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isokern import _core
from isokern.fitted_map import FittedMap
from isokern.learners.calibration import ScoreWindow
from isokern.learners.candidates import STREAM_STAGES, Candidate
from isokern.learners.classes import ClassBook, ClassWeight, Rearrangement
from isokern.learners.clock import Clock
from isokern.learners.commits import BLOCK, Copies, blocks, can_change, twin
from isokern.learners.features import Features, scale_cells
from isokern.learners.linear_term import LinearTerm
from isokern.learners.one_vs_rest import ClassScores
from isokern.learners.scale_weights import ScaleWeights
from isokern.learners.steps import Steps
from isokern.learners.targets import Weights, some
from isokern.parts import Part, State, need, need_array

_FEW_ROWS = 64  # up to here, threads do not pay off


@dataclass(eq=False)
class Selection(Part):
    """What the race has found: each candidate's share of errors when it was last compared, and who still runs."""

    candidates: list[str]
    errors: NDArray[np.float64]
    running: list[int]

    def check(self) -> None:
        """Raise ValueError unless there is an error for each candidate."""
        need_array(self.errors, np.float64, 1, "errors")
        need(len(self.errors) == len(self.candidates) > 0, "errors must have one per candidate")
        is_known = all(k < len(self.candidates) for k in self.running) and len(set(self.running)) == len(self.running)
        need(self.running and is_known, "running must be numbers of candidates")


@dataclass(eq=False)
class Race(ClassScores):
    """Classes seen so far, the candidates that still run, and their errors; the leader scores.

    All candidates learn a block in place, in one call of the core under the lock of ``clock``.
    """

    in_place: ClassVar = ("errors",)

    book: ClassBook
    models: list[ScaleWeights]
    windows: list[ScoreWindow]
    # By candidate, the weights of the rows that it missed before learning them; at the end, those of all rows. Faded.
    errors: NDArray[np.float64]
    selection: Selection
    fade: float
    clock: Clock

    @classmethod
    def begun(
        cls, candidates: Sequence[Candidate], book: ClassBook, fitted: FittedMap, term: LinearTerm | None, fade: float
    ) -> Self:
        """Return untrained candidates for these classes on the cells of a map."""
        models = [_untrained(candidate, book.n_columns, fitted, term) for candidate in candidates]
        windows = [ScoreWindow.empty(book.n_columns) for _ in candidates]
        names, running = [candidate.name for candidate in candidates], list(range(len(candidates)))
        selection = Selection(names, np.full(len(names), np.nan), running)
        return cls(book, models, windows, np.zeros(len(models) + 1), selection, fade, Clock())

    def within(self, limit: int | None) -> Self:
        """Return the state with the best candidates, as many as have weights of at most ``limit`` bytes together."""
        kept: list[int] = []
        size = 0
        for k in self._ranking():
            if limit is None or not kept or size + self.models[k].n_bytes <= limit:
                kept.append(int(k))
                size += self.models[k].n_bytes
        state = self if len(kept) == len(self.models) else self._keeping(np.array(kept), self.errors)
        return ClassScores.within(state, limit)

    # -- the leader

    @property
    def leader(self) -> int:
        """Number of the leader among those that run."""
        return int(self.errors[:-1].argmin())

    @property
    def model(self) -> ScaleWeights:
        """Model of the leader."""
        return self.models[self.leader]

    @property
    def window(self) -> ScoreWindow:  # type: ignore[override]
        """Window of the leader."""
        return self.windows[self.leader]

    def scores(self, cells: Features, n_jobs: int | None, copies: Copies | None = None) -> Any:
        """Return the leader's scores of rows, (n,) for two classes, else (n, n_classes), and make ``copies``."""

        def read(leader: int, of_errors: Copies) -> Any:
            together = [*of_errors, *(copies or [])]
            if cells.source is None:
                return self.models[leader].score(cells, self.clock, together)
            scores = self.models[leader].foreign_score(cells, self.clock)
            _core.copy_model(self.clock, together)
            return scores

        return self.book.of_classes(self._of_leader(read))

    def calibrated(self, cells: Features, n_jobs: int | None, copies: Copies | None = None) -> tuple[Any, float]:
        """Return the leader's scores and its inverse temperature of the same moment, and make ``copies`` with them."""

        def read(leader: int, of_errors: Copies) -> Any:
            alone = replace(self, models=[self.models[leader]], windows=[self.windows[leader]], errors=np.zeros(2))
            return ClassScores.calibrated(alone, cells, n_jobs, [*of_errors, *(copies or [])])

        found: tuple[Any, float] = self._of_leader(read)
        return found

    def _of_leader(self, read: Callable[[int, Copies], Any]) -> Any:
        """Return what ``read`` finds with the leader; the copies that it makes meanwhile tell who led then."""
        errors = np.empty_like(self.errors)
        while True:
            leader = self.leader
            found = read(leader, [(errors, self.errors)])
            if errors[:-1].argmin() == leader:  # or else another thread has learned rows meanwhile
                return found

    # -- learning

    def meet(self, labels: NDArray[Any], classes: ArrayLike | None = None) -> Self:
        """Return the state with the classes of further rows; a new class starts as ``ClassBook`` describes."""
        book = self.book.meet(labels, classes)
        return self if book is self.book else self._rearranged(book, self.book.rearrangement(book))

    def _rearranged(self, book: ClassBook, change: Rearrangement) -> Self:
        models = [model.rearrange(change) for model in self.models]
        windows = [window.rearrange(change) for window in self.windows]
        return replace(self, book=book, models=models, windows=windows, errors=self.errors.copy(), clock=Clock())

    def learn(
        self,
        rows: Features,
        labels: NDArray[Any],
        weights: Weights,
        steps: Steps,
        *,
        class_weight: ClassWeight = None,
        is_new: bool = True,
    ) -> None:
        """Learn rows of known classes in order, in place and block by block; of ``steps``, only the loss counts.

        ``is_new`` tells whether the rows are learned for the first time; only then do errors and windows count them.
        """
        for part in blocks(len(labels)):
            numbers = self.book.numbers(labels[part])
            factors = self.book.row_factors(numbers, some(weights, part), class_weight)
            self._learn_block(rows if len(numbers) == len(labels) else rows[part], numbers, factors, steps.loss, is_new)

    def _learn_block(
        self, rows: Features, numbers: NDArray[np.intp], factors: Weights, loss: str, is_new: bool
    ) -> None:
        book, n = self.book, len(numbers)
        counted_from = book.counted_from(numbers)
        copies: Copies = [(book.counts, book.counting(numbers).counts)]
        entrants = []
        for model, window in zip(self.models, self.windows, strict=True):
            scores = np.empty((n, book.n_columns))
            rule = model.steps(loss).rule(counted_from, is_new=is_new)
            entrants.append(model.entrant(rows, rule, scores))
            if is_new:
                copies += window.adding(scores, numbers)
        has_linear = any(model.linear_values is not None for model in self.models)
        linear, constant = rows.linear_part if has_linear else (None, 0.0)
        _core.learn_scales(
            entrants,
            linear,
            constant,
            targets=book.targets(numbers),
            row_weights=factors,
            guard=self.clock,
            seen_from=book.seen_from(numbers),
            fade=self.fade,
            errors=self.errors if is_new else np.zeros(len(self.errors)),
            threads=rows.threads if n > _FEW_ROWS else 1,
            copies=copies,
        )

    def compared(self, n_kept: int, usual_weight: float = 1.0) -> Self:
        """Return the state after a stage: the best ``n_kept`` candidates, with errors set to 0.

        Those that are far behind are dropped, too: by a quarter of the leader's errors, and by more than chance.
        ``usual_weight`` is the mean weight of rows, each counted by its weight.
        """
        order = self._ranking()
        least = self.errors[order[0]]
        is_near = self.errors[order] <= 1.25 * least + 4.0 * np.sqrt(usual_weight * least)
        return self._keeping(order[is_near][:n_kept], np.zeros(len(self.errors)))

    def narrowed(self) -> Self:
        """Return the state with the best candidates, if a stage of a stream has ended; errors fade on."""
        n_rows = self.models[0].clock.n_rows
        n_kept = min((n for at, n in self._stages if n_rows >= at), default=len(self.models))
        return self._keeping(self._ranking()[:n_kept], self.errors) if n_kept < len(self.models) else self

    @property
    def until_narrowed(self) -> int:
        """Number of rows until the next stage of a stream ends."""
        n_rows = self.models[0].clock.n_rows
        return min((at - n_rows for at, _ in self._stages if at > n_rows), default=BLOCK)

    @property
    def _stages(self) -> tuple[tuple[int, int], ...]:
        """Stages that go by the number of rows; ``fit``, where errors do not fade, calls ``compared`` instead."""
        return STREAM_STAGES if self.fade < 1.0 else ()

    def _ranking(self) -> NDArray[np.intp]:
        """Return the candidates from the best to the worst; the earlier one wins a tie."""
        return np.argsort(self.errors[:-1], kind="stable")

    def _keeping(self, which: NDArray[np.intp], errors: NDArray[np.float64]) -> Self:
        """Return the state with some of the candidates, these errors, and the present ones on record."""
        kept = np.sort(which)
        running = [self.selection.running[k] for k in kept]
        return replace(
            self,
            models=[self.models[k] for k in kept],
            windows=[self.windows[k] for k in kept],
            errors=errors[[*kept, -1]],
            selection=replace(self.selection, errors=self._shares(), running=running),
        )

    def _shares(self) -> NDArray[np.float64]:
        """Return each candidate's share of errors when it was last compared, now for those that run and have rows."""
        shares = self.selection.errors.copy()
        if self.errors[-1] > 0:
            shares[self.selection.running] = self.errors[:-1] / self.errors[-1]
        return shares

    def report(self) -> dict[str, Any]:
        """Return the names of the candidates, their shares of errors, those that run and the leader."""
        names = self.selection.candidates
        running = [names[k] for k in self.selection.running]
        # The winner of fit is not compared any more; candidates of a stream always are.
        errors = self._shares() if self.fade < 1.0 else self.selection.errors.copy()
        return {"candidates": names, "errors": errors, "running": running, "leader": running[self.leader]}

    def writable(self) -> Self:
        """Return this state if a block can be learned in place, in one step; else a copy to learn it in."""
        return self if can_change(self, self.book, *self.models, *self.windows) else self.snapshot()

    def snapshot(self) -> Self:
        """Return a copy of one moment, even while another thread learns."""
        parts = (self.book, *self.models, *self.windows)
        copied, copies = zip(*map(twin, parts), strict=True)
        errors = np.empty_like(self.errors)
        pairs = [pair for of_part in copies for pair in of_part] + [(errors, self.errors)]
        clocks = _core.copy_models(self.clock, [model.clock for model in self.models], pairs)
        n = len(self.models)
        book, models, windows = copied[0], list(copied[1 : 1 + n]), list(copied[1 + n :])
        for model, clock in zip(models, clocks, strict=True):
            model.clock = Clock.of(clock)
        return replace(self, book=book, models=models, windows=windows, errors=errors, clock=Clock())

    # -- contract of isokern.parts

    def state(self) -> State:
        """Return the parts of one moment."""
        return Part.state(self.snapshot())

    def check(self) -> None:
        """Raise ValueError unless classes, models and windows have the same scores."""
        need(len(self.models) == len(self.windows) == len(self.selection.running), "each model must have a window")
        need_array(self.errors, np.float64, 1, "errors")
        need(len(self.errors) == len(self.models) + 1, "errors must have one per model, and one for all rows")
        need((self.errors >= 0).all(), "errors must be at least 0")
        need(0.0 < self.fade <= 1.0, "fade must be from 0 to 1")
        for model, window in zip(self.models, self.windows, strict=True):
            self.check_scores(self.book, model, window)
        tables = [id(table) for model in self.models for table in model.tables() if table is not None]
        own = [
            *tables,
            *(id(array) for window in self.windows for array in (window.scores, window.classes, window.seen)),
        ]
        need(len(set(own)) == len(own), "each model and window must have arrays of its own")

    def check_map(self, fitted: FittedMap, term: LinearTerm | None) -> None:
        """Raise ValueError unless all models have the cells of a map and the weights of a linear term."""
        for model in self.models:
            model.check_map(fitted, 0 if term is None else term.n_weights)

    @classmethod
    def merge(cls, parts: Sequence[Self], shares: NDArray[np.float64]) -> Self:
        """Return the weighted mean of the leaders, which are of one kind; the race is over."""
        book = ClassBook.merge([part.book for part in parts], shares)
        grown = [part.meet(book.labels) for part in parts]
        model = ScaleWeights.merge([part.model for part in grown], shares)
        window = ScoreWindow.merge([part.window for part in grown], shares)
        first = parts[0].selection
        selection = replace(first, running=[first.running[parts[0].leader]])
        return cls(book, [model], [window], np.zeros(2), selection, parts[0].fade, Clock())

    def check_mergeable(self, other: Race, name: str) -> None:
        """Raise ValueError if another state, which errors call ``name``, cannot be merged with this one."""
        self.book.check_mergeable(other.book, name)
        if not self.model.is_like(other.model):
            leaders = [race.selection.candidates[race.selection.running[race.leader]] for race in (self, other)]
            raise ValueError(
                f"models must have one winner of the race; got {leaders[0]!r}, and {leaders[1]!r} in {name}. Choose "
                "for all of them, for example with schedule, learning_rate, n_scales and linear."
            )


def _untrained(candidate: Candidate, n_columns: int, fitted: FittedMap, term: LinearTerm | None) -> ScaleWeights:
    scales = candidate.numbers(fitted.n_scales)
    n_cells = int(scale_cells(fitted, scales).starts[-1]) if scales else 0
    n_linear = term.n_weights if candidate.linear and term is not None else 0
    steps = (candidate.schedule, candidate.rate)
    return ScaleWeights.zeros(scales, *steps, n_cells=n_cells, n_linear=n_linear, n_columns=n_columns)
