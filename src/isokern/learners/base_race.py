"""Race candidate learners on one map: all learn every row, and the one with the fewest errors before learning leads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from isokern import _core
from isokern.fitted_map import FittedMap
from isokern.learners.candidates import STREAM_STAGES, Candidate
from isokern.learners.clock import Clock
from isokern.learners.commits import BLOCK, Copies, can_change, twin
from isokern.learners.features import Features, scale_cells
from isokern.learners.growth import Heirs
from isokern.learners.linear_term import LinearTerm
from isokern.learners.parameters import warn_of_size
from isokern.learners.scale_weights import ScaleWeights, Table
from isokern.learners.targets import Weights
from isokern.parts import Part, State, need, need_array

_FEW_ROWS = 64  # up to here, threads do not pay off


class Before(NamedTuple):
    """Scores of rows before they were learned, (n, n_columns), and the number of the model that they are of."""

    scores: Table
    leaders: NDArray[np.intp]


@dataclass(eq=False)
class Selection(Part):
    """What the race has found: each candidate's share of errors when it was last compared, and who still runs."""

    candidates: list[str]
    errors: NDArray[np.float64]
    running: list[int]

    @classmethod
    def begun(cls, candidates: Sequence[Candidate]) -> Self:
        """Return a race in which all candidates run."""
        names = [candidate.name for candidate in candidates]
        return cls(names, np.full(len(names), np.nan), list(range(len(names))))

    def check(self) -> None:
        """Raise ValueError unless there is an error for each candidate."""
        need_array(self.errors, np.float64, 1, "errors")
        need(len(self.errors) == len(self.candidates) > 0, "errors must have one per candidate")
        is_known = all(k < len(self.candidates) for k in self.running) and len(set(self.running)) == len(self.running)
        need(self.running and is_known, "running must be numbers of candidates")


@dataclass(eq=False, kw_only=True)
class BaseRace(Part):
    """Base of the races of classifiers and of regressors: the candidates that still run, and their errors.

    All candidates learn a block in place, in one call of the core under the lock of ``clock``, together with the parts
    that ``companions`` returns.
    """

    in_place: ClassVar = ("errors", "monitor")

    models: list[ScaleWeights]
    # By candidate, the summed errors of the rows before it learned them; at the end, the weights of all rows. Faded.
    errors: NDArray[np.float64]
    selection: Selection
    fade: float
    clock: Clock
    narrows: bool = True  # whether a stream drops candidates
    # State of ADWIN on the leader's errors along a stream, see ``cpp/online/adwin.hpp``; None if nobody asks for it.
    monitor: NDArray[np.float64] | None = None
    memory: Any = field(default_factory=_core.Memory, init=False)  # of successors

    def companions(self) -> list[Any]:
        """Return the other parts that are learned in place."""
        raise NotImplementedError

    def with_companions(self, parts: list[Any]) -> dict[str, Any]:
        """Return the fields for copies of the other parts."""
        raise NotImplementedError

    def chance(self, least: float, usual_weight: float) -> float:
        """Return how large a difference of errors may come from chance, for the leader's errors."""
        raise NotImplementedError

    def within(self, limit: int | None) -> Self:
        """Return the state with the best candidates, as many as have weights of at most ``limit`` bytes together."""
        kept: list[int] = []
        size = 0
        for k in self._ranking():
            if limit is None or not kept or size + self.models[k].n_bytes <= limit:
                kept.append(int(k))
                size += self.models[k].n_bytes
        warn_of_size(size, limit)
        return self if len(kept) == len(self.models) else self.keeping(np.array(kept), self.errors)

    # -- the leader

    @property
    def leader(self) -> int:
        """Number of the leader among those that run."""
        return int(self.errors[:-1].argmin())

    @property
    def model(self) -> ScaleWeights:
        """Model of the leader."""
        return self.models[self.leader]

    def leader_scores(self, cells: Features, copies: Copies) -> Any:
        """Return the leader's scores of rows, (n, n_columns), and make ``copies``."""

        def read(leader: int, of_errors: Copies) -> Any:
            if cells.source is None:
                return self.models[leader].score(cells, self.clock, [*of_errors, *copies])
            scores = self.models[leader].foreign_score(cells, self.clock)
            _core.copy_model(self.clock, [*of_errors, *copies])
            return scores

        return self.of_leader(read)

    def of_leader(self, read: Callable[[int, Copies], Any]) -> Any:
        """Return what ``read`` finds with the leader; the copies that it makes meanwhile tell who led then."""
        errors = np.empty_like(self.errors)
        while True:
            leader = self.leader
            found = read(leader, [(errors, self.errors)])
            if errors[:-1].argmin() == leader:  # or else another thread has learned rows meanwhile
                return found

    # -- learning

    def prepare(self, rows: Features) -> None:
        """Compute the features that candidates ask for when they learn rows."""
        for model in self.models:
            if model.values is not None:
                rows.cells(model.scales)
            if model.linear_values is not None:
                rows.linear_part  # noqa: B018

    def learn_entrants(
        self,
        rows: Features,
        targets: Any,
        factors: Weights,
        rules: list[_core.Rule],
        scores: list[Table],
        *,
        copies: Copies,
        is_new: bool,
        seen_from: list[int],
        renewals: list[_core.Renewal],
    ) -> Before:
        """Let all candidates learn a block of rows in one step with ``copies``; ``is_new`` if errors are counted.

        Return the scores of the candidate that led at each row before it was learned.
        """
        history = np.empty((len(self.models), len(rows)))
        each = zip(self.models, rules, scores, strict=True)
        entrants = [model.entrant(rows, rule, out, renewals) for model, rule, out in each]
        has_linear = any(model.linear_values is not None for model in self.models)
        linear, constant = rows.linear_part if has_linear else (None, 0.0)
        _core.learn_scales(
            entrants,
            linear,
            constant,
            targets=targets,
            row_weights=factors,
            guard=self.clock,
            seen_from=seen_from,
            fade=self.fade,
            errors=self.errors if is_new else np.zeros(len(self.errors)),
            history=history,
            threads=rows.threads if len(rows) > _FEW_ROWS else 1,
            copies=copies,
            monitor=self.monitor if is_new else None,
        )
        leaders = history.argmin(axis=0)
        return Before(np.stack(scores)[leaders, np.arange(len(leaders))], leaders)

    @property
    def n_models(self) -> int:
        """Number of candidates that still run."""
        return len(self.models)

    def compared(self, n_kept: int, usual_weight: float = 1.0) -> Self:
        """Return the state after a stage: the best ``n_kept`` candidates, with errors set to 0.

        Those that are far behind are dropped, too: by a quarter of the leader's errors, and by more than chance.
        ``usual_weight`` is the mean weight of rows, each counted by its weight.
        """
        order = self._ranking()
        least = self.errors[order[0]]
        is_near = self.errors[order] <= 1.25 * least + self.chance(least, usual_weight)
        return self.keeping(order[is_near][:n_kept], np.zeros(len(self.errors)))

    def narrowed(self) -> Self:
        """Return the state with the best candidates, if a stage of a stream has ended; errors fade on."""
        n_rows = self.models[0].clock.n_rows
        n_kept = min((n for at, n in self._stages if n_rows >= at), default=len(self.models))
        return self.keeping(self._ranking()[:n_kept], self.errors) if n_kept < len(self.models) else self

    @property
    def until_narrowed(self) -> int:
        """Number of rows until the next stage of a stream ends."""
        n_rows = self.models[0].clock.n_rows
        return min((at - n_rows for at, _ in self._stages if at > n_rows), default=BLOCK)

    @property
    def _stages(self) -> tuple[tuple[int, int], ...]:
        """Stages that go by the number of rows; ``fit``, where errors do not fade, calls ``compared`` instead."""
        return STREAM_STAGES if self.fade < 1.0 and self.narrows else ()

    def _ranking(self) -> NDArray[np.intp]:
        """Return the candidates from the best to the worst; the earlier one wins a tie."""
        return np.argsort(self.errors[:-1], kind="stable")

    def keeping(self, which: NDArray[np.intp], errors: NDArray[np.float64]) -> Self:
        """Return the state with some of the candidates, these errors, and the present ones on record."""
        kept = np.sort(which)
        running = [self.selection.running[k] for k in kept]
        return replace(
            self,
            models=[self.models[k] for k in kept],
            errors=errors[[*kept, -1]],
            selection=replace(self.selection, errors=self._shares(), running=running),
        )

    def _shares(self) -> NDArray[np.float64]:
        """Return each candidate's share of errors when it was last compared, now for those that run and have rows."""
        shares = self.selection.errors.copy()
        if self.errors[-1] > 0:
            shares[self.selection.running] = self.errors[:-1] / self.errors[-1]
        return shares

    @property
    def standing(self) -> str:
        """Who was best when candidates were last compared, and how many still run."""
        names, errors, running = self.selection.candidates, self.selection.errors, self.selection.running
        best = min(running, key=lambda k: errors[k])
        title = "leader" if len(running) > 1 else "winner"
        return f"{len(running)} of {len(names)} left, {title} {names[best]!r}, error {errors[best]:.4f}"

    def report(self) -> dict[str, Any]:
        """Return the names of the candidates, their shares of errors, those that run and the leader."""
        names = self.selection.candidates
        running = [names[k] for k in self.selection.running]
        # The winner of fit is not compared any more; candidates of a stream always are.
        errors = self._shares() if self.fade < 1.0 else self.selection.errors.copy()
        return {"candidates": names, "errors": errors, "running": running, "leader": running[self.leader]}

    def grown(self, heirs: Heirs) -> Self:
        """Return the state on a map that has grown; readers may still use this one."""
        copied = self.snapshot()
        return replace(copied, models=[model.grown(heirs) for model in copied.models])

    def writable(self) -> Self:
        """Return this state if a block can be learned in place, in one step; else a copy to learn it in."""
        return self if can_change(self, *self.models, *self.companions()) else self.snapshot()

    def snapshot(self) -> Self:
        """Return a copy of one moment, even while another thread learns."""
        return self._copied(None, 1)

    def successor(self, threads: int) -> Self:
        """Return a copy that is to replace this state; it gets the memory of those that were replaced before."""
        copied = self._copied(self.memory, threads)
        copied.memory = self.memory
        return copied

    def _copied(self, memory: _core.Memory | None, threads: int) -> Self:
        parts = (self, *self.models, *self.companions())
        copied, copies = zip(*(twin(part, memory) for part in parts), strict=True)
        pairs = [pair for of_part in copies for pair in of_part]
        clocks = _core.copy_models(self.clock, [model.clock for model in self.models], pairs, threads)
        own, n = copied[0], len(self.models)
        models, others = list(copied[1 : n + 1]), self.with_companions(list(copied[n + 1 :]))
        for model, clock in zip(models, clocks, strict=True):
            model.clock = Clock.of(clock)
        return replace(own, models=models, clock=Clock(), **others)

    def monitored(self) -> tuple[float, int, NDArray[np.int64]]:
        """Return the mean error of the leader so far, the number of its rises, and the rows of the latest ones."""
        copied, copies = twin(self)
        _core.copy_model(self.clock, copies)
        return _core.read_monitor(copied.monitor)

    # -- contract of isokern.parts

    def state(self) -> State:
        """Return the parts of one moment."""
        return Part.state(self.snapshot())

    def check_own_arrays(self) -> None:
        """Raise ValueError unless all models have errors, and arrays that no other part has."""
        need(len(self.models) == len(self.selection.running) > 0, "there must be a model for each running candidate")
        need_array(self.errors, np.float64, 1, "errors")
        need(len(self.errors) == len(self.models) + 1, "errors must have one per model, and one for all rows")
        need((self.errors >= 0).all(), "errors must be at least 0")
        need(0.0 < self.fade <= 1.0, "fade must be from 0 to 1")
        if self.monitor is not None:
            need_array(self.monitor, np.float64, 1, "monitor")
            _core.read_monitor(self.monitor)  # raises if it is invalid
        arrays = [getattr(part, name) for part in (*self.models, *self.companions()) for name in part.in_place]
        own = [id(array) for array in arrays if array is not None]
        need(len(set(own)) == len(own), "each model and window must have arrays of its own")

    def check_map(self, fitted: FittedMap, term: LinearTerm | None) -> None:
        """Raise ValueError unless all models have the cells of a map and the weights of a linear term."""
        for model in self.models:
            model.check_map(fitted, 0 if term is None else term.n_weights)

    @staticmethod
    def merged_leaders(races: Sequence[Any], shares: NDArray[np.float64]) -> dict[str, Any]:
        """Return the fields of a race that is over, with the weighted mean of the leaders, which are of one kind."""
        first = races[0]
        selection = replace(first.selection, running=[first.selection.running[first.leader]])
        model = ScaleWeights.merge([race.model for race in races], shares)
        return {"models": [model], "errors": np.zeros(2), "selection": selection, "fade": first.fade, "clock": Clock()}

    def check_mergeable(self, other: Any, name: str) -> None:
        """Raise ValueError if another state, which errors call ``name``, cannot be merged with this one."""
        if not self.model.is_like(other.model):
            leaders = [race.selection.candidates[race.selection.running[race.leader]] for race in (self, other)]
            raise ValueError(
                f"models must have one winner of the race; got {leaders[0]!r}, and {leaders[1]!r} in {name}. Choose "
                "for all of them, for example with loss, schedule, learning_rate, n_scales and linear."
            )


def untrained(
    candidates: Sequence[Candidate],
    n_columns: int,
    fitted: FittedMap,
    term: LinearTerm | None,
    first_square: float = 0.0,
) -> dict[str, Any]:
    """Return the fields of a race of untrained candidates on the cells of a map, without its fade."""
    models = [_model(candidate, n_columns, fitted, term, first_square) for candidate in candidates]
    return {
        "models": models,
        "errors": np.zeros(len(models) + 1),
        "selection": Selection.begun(candidates),
        "clock": Clock(),
    }


def _model(
    candidate: Candidate, n_columns: int, fitted: FittedMap, term: LinearTerm | None, first_square: float
) -> ScaleWeights:
    scales = candidate.numbers(fitted.n_scales)
    n_cells = int(scale_cells(fitted, scales).starts[-1]) if scales else 0
    n_linear = term.n_weights if candidate.linear and term is not None else 0
    return ScaleWeights.zeros(
        scales,
        candidate.schedule,
        candidate.rate,
        n_cells=n_cells,
        n_linear=n_linear,
        n_columns=n_columns,
        loss=candidate.loss,
        first_square=first_square,
    )
