"""Race candidate learners on one map: all learn every row, and the one with the fewest errors before learning leads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isokern import _core
from isokern.fitted_map import FittedMap
from isokern.learners.calibration import ScoreWindow
from isokern.learners.classes import ClassBook, ClassWeight, Rearrangement
from isokern.learners.clock import Clock
from isokern.learners.commits import Copies, blocks, can_change, twin
from isokern.learners.features import Features, Scales, scale_cells
from isokern.learners.kernel_source import unwrapped
from isokern.learners.linear_term import LinearTerm
from isokern.learners.one_vs_rest import ClassScores
from isokern.learners.scale_weights import ScaleWeights
from isokern.learners.steps import Steps
from isokern.learners.targets import Weights, some
from isokern.parts import Part, State, need, need_array

_FEW_ROWS = 64  # up to here, threads do not pay off


class Candidate(NamedTuple):
    """Features and steps of a learner."""

    scales: str  # "all", "every", "finest", "coarse" or "" for none
    linear: bool
    schedule: str
    rate: float

    @property
    def name(self) -> str:
        """Name for users."""
        features = " + ".join(filter(None, [self.scales and f"{self.scales} cells", "linear" * self.linear]))
        return f"{features}, {self.schedule} {self.rate:g}"

    def numbers(self, n_scales: int) -> Scales:
        """Return the numbers of its scales among those of a map."""
        return {
            # Every second one: a sixteenth of the points instead of a quarter serves as well, in half the time.
            "all": tuple(range((n_scales - 1) % 2, n_scales, 2)),
            "every": tuple(range(n_scales)),
            "finest": (n_scales - 1,),
            "coarse": (n_scales // 4,),
            "": (),
        }[self.scales]


# All candidates; the first wins ties.
CANDIDATES = (
    Candidate("all", linear=False, schedule="adagrad", rate=2.0),
    Candidate("coarse", linear=False, schedule="adagrad", rate=2.0),
    Candidate("all", linear=False, schedule="adagrad", rate=0.5),
    Candidate("all", linear=True, schedule="adagrad", rate=0.5),
    Candidate("", linear=True, schedule="adagrad", rate=0.5),
)

def candidates_of(learner: Any) -> list[Candidate]:
    """Return the candidates that a learner's parameters leave; none for a learner on one scale without a race."""
    kernel, has_scales = unwrapped(learner.kernel), learner.n_scales not in (1, "auto")
    if kernel is not None:
        has_scales = kernel.n_scales_ > 1 if hasattr(kernel, "map_") else kernel.n_scales != 1
    if not is_open(learner):
        if not has_scales and learner.linear is not True:
            return []
        steps = Steps.of(learner)
        return [Candidate("every" if has_scales else "finest", learner.linear is True, steps.schedule, steps.rate)]
    chosen = CANDIDATES
    if has_scales:
        chosen = tuple(c._replace(scales="every") for c in chosen if c.scales in ("all", ""))
    elif learner.n_scales == 1 or learner.n_cells != "auto":
        chosen = tuple(c._replace(scales=c.scales and "finest") for c in chosen if c.scales != "coarse")
    if learner.linear is True:
        chosen = tuple(c._replace(linear=True) for c in chosen)
    elif learner.linear is False:
        chosen = tuple(c for c in chosen if not c.linear)
    return list(dict.fromkeys(chosen))


def fit_stages(n: int) -> list[tuple[int, int]]:
    """Return the stages of a race over n rows: (row at which it ends, number of candidates that go on)."""
    ends: list[tuple[int, int]] = []
    for share, n_kept in FIT_STAGES:
        end = int(share * n)
        if end - (ends[-1][0] if ends else 0) >= FEWEST_ROWS and (n_kept > 1 or end >= DECISION_ROWS):
            ends.append((end, n_kept))
    return ends if ends and ends[-1][1] == 1 else [*ends, (n, 1)]


def is_open(learner: Any) -> bool:
    """Return whether a learner's parameters leave the choice to a race."""
    is_plain = learner.evaluation == "primal" and not learner.average and learner.shrinkage == 0
    is_auto = learner.schedule == learner.learning_rate == "auto"
    return is_plain and is_auto and learner.kernel is None and isinstance(learner.partitioning, str)


# (share of the first pass of fit, number of candidates that go on); errors count anew after each stage.
FIT_STAGES = ((1 / 64, 4), (1 / 32, 3), (1 / 8, 2), (1 / 2, 1))
FEWEST_ROWS = 1000  # of a stage
DECISION_ROWS = 30_000  # the last two race to the end of shorter passes
# (rows, number of candidates that go on) in a stream
STREAM_STAGES = ((4_000, 4), (16_000, 3), (64_000, 2))
FADE = 0.998  # of errors in a stream, per row


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
    errors: NDArray[np.float64]  # of each candidate: weights of the rows that it missed before learning them, faded
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
        return cls(book, models, windows, np.zeros(len(models)), selection, fade, Clock())

    # -- the leader

    @property
    def leader(self) -> int:
        """Number of the leader among those that run."""
        return int(self.errors.argmin())

    @property
    def model(self) -> ScaleWeights:  # type: ignore[override]
        """Model of the leader."""
        return self.models[self.leader]

    @property
    def window(self) -> ScoreWindow:  # type: ignore[override]
        """Window of the leader."""
        return self.windows[self.leader]

    def scores(self, features: Features, n_jobs: int | None, copies: Copies | None = None) -> Any:
        """Return the leader's scores of rows, (n,) for two classes, else (n, n_classes), and make ``copies``."""
        return self.book.of_classes(self.model.score(features, self.clock, copies))

    def probabilities(self, features: Features, loss: str, n_jobs: int | None) -> Any:
        """Return the leader's probability of each class, (n, n_classes)."""
        k = self.leader  # of this moment
        alone = replace(self, models=[self.models[k]], windows=[self.windows[k]], errors=np.zeros(1))
        return ClassScores.probabilities(alone, features, loss, n_jobs)

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
        features: Features,
        labels: NDArray[Any],
        weights: Weights,
        loss: str,
        *,
        class_weight: ClassWeight = None,
        is_new: bool = True,
    ) -> None:
        """Learn rows of known classes in order, in place and block by block.

        ``is_new`` tells whether the rows are learned for the first time; only then do errors and windows count them.
        """
        for part in blocks(len(labels)):
            n = part.stop - part.start
            self._learn_block(
                features if n == len(labels) else features[part],
                self.book.numbers(labels[part]),
                some(weights, part),
                loss,
                class_weight,
                is_new,
            )

    def _learn_block(
        self,
        features: Features,
        numbers: NDArray[np.intp],
        weights: Weights,
        loss: str,
        class_weight: ClassWeight,
        is_new: bool,
    ) -> None:
        book, n = self.book, len(numbers)
        factors, counted_from = book.row_factors(numbers, weights, class_weight), book.counted_from(numbers)
        copies: Copies = [(book.counts, book.counting(numbers).counts)]
        entrants = []
        for model, window in zip(self.models, self.windows, strict=True):
            scores = np.empty((n, book.n_columns))
            rule = model.steps(loss).rule(counted_from, is_new=is_new)
            entrants.append(model.entrant(features, rule, scores))
            if is_new:
                copies += window.adding(scores, numbers)
        linear, constant = None, 0.0
        if features.term is not None and any(model.linear_values is not None for model in self.models):
            linear, constant = features.linear, features.term.constant
        n_scored = len(book.labels) if len(book.labels) > 2 else len(book.labels) - 1
        errors = self.errors if is_new else np.zeros(len(self.models))
        threads = features.threads if n > _FEW_ROWS else 1
        targets = book.targets(numbers)
        _core.learn_scales(
            entrants, linear, constant, targets, factors, self.clock, n_scored, self.fade, errors, threads, copies
        )

    def compared(self, n_rows: int, n_kept: int | None) -> Self:
        """Return the state after a stage of ``n_rows`` rows: the best ``n_kept`` candidates, with errors set to 0."""
        found = self.selection.errors.copy()
        found[self.selection.running] = self.errors / max(1, n_rows)
        order = np.argsort(self.errors, kind="stable")  # the earlier candidate wins a tie
        least = self.errors[order[0]]
        is_near = self.errors[order] <= 1.25 * least + 4.0 * np.sqrt(least)
        kept = np.sort(order[is_near][:n_kept])
        running = [self.selection.running[k] for k in kept]
        return replace(
            self,
            models=[self.models[k] for k in kept],
            windows=[self.windows[k] for k in kept],
            errors=np.zeros(len(kept)),
            selection=replace(self.selection, errors=found, running=running),
        )

    def report(self) -> dict[str, Any]:
        """Return the names of the candidates, their shares of errors, those that run and the leader."""
        known, errors = self.selection, self.selection.errors.copy()
        n_rows = self.models[0].clock.n_rows
        if self.fade < 1.0 and n_rows:
            errors[known.running] = self.errors * (1.0 - self.fade) / (1.0 - self.fade**n_rows)
        names = known.candidates
        running = [names[k] for k in known.running]
        return {"candidates": names, "errors": errors, "running": running, "leader": running[self.leader]}

    @property
    def due(self) -> int | None:
        """Number of candidates that go on, if a stage of the stream has ended with more."""
        n_rows = self.models[0].clock.n_rows
        n_kept = min((n for at, n in STREAM_STAGES if n_rows >= at), default=len(self.models))
        return n_kept if n_kept < len(self.models) else None

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
        need(len(self.errors) == len(self.models), "errors must have one per model")
        need((self.errors >= 0).all(), "errors must be at least 0")
        need(0.0 < self.fade <= 1.0, "fade must be from 0 to 1")
        for model, window in zip(self.models, self.windows, strict=True):
            self.check_scores(self.book, model, window)

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
        return cls(book, [model], [window], np.zeros(1), selection, parts[0].fade, Clock())

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
