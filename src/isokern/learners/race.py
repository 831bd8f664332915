"""Provide the race of a classifier: candidates that learn one-vs-rest scores, compared by the rows that they miss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isokern import _core
from isokern.fitted_map import FittedMap
from isokern.learners.base_race import BaseRace, Before, untrained
from isokern.learners.calibration import ScoreWindow
from isokern.learners.candidates import Candidate
from isokern.learners.classes import ClassBook, ClassWeight, Rearrangement
from isokern.learners.clock import Clock
from isokern.learners.commits import Copies, blocks
from isokern.learners.features import Features
from isokern.learners.linear_term import LinearTerm
from isokern.learners.one_vs_rest import ClassScores
from isokern.learners.steps import Steps
from isokern.learners.targets import LARGEST, Weights, some
from isokern.parts import need


@dataclass(eq=False, kw_only=True)
class Race(BaseRace, ClassScores):
    """Classes seen so far, the candidates that still run, and their errors; the leader scores."""

    book: ClassBook
    windows: list[ScoreWindow]

    @classmethod
    def begun(
        cls, candidates: Sequence[Candidate], book: ClassBook, fitted: FittedMap, term: LinearTerm | None, fade: float
    ) -> Self:
        """Return untrained candidates for these classes on the cells of a map."""
        windows = [ScoreWindow.empty(book.n_columns) for _ in candidates]
        return cls(book=book, windows=windows, fade=fade, **untrained(candidates, book.n_columns, fitted, term))

    def companions(self) -> list[Any]:
        """Return the other parts that are learned in place."""
        return [self.book, *self.windows]

    def with_companions(self, parts: list[Any]) -> dict[str, Any]:
        """Return the fields for copies of the other parts."""
        return {"book": parts[0], "windows": parts[1:]}

    def chance(self, least: float, usual_weight: float) -> float:
        """Return how large a difference of errors may come from chance: that of a count."""
        return float(4.0 * np.sqrt(usual_weight * least))

    # -- the leader

    @property
    def window(self) -> ScoreWindow:
        """Window of the leader."""
        return self.windows[self.leader]

    @window.setter
    def window(self, window: ScoreWindow) -> None:
        self.windows[self.leader] = window

    def scores(self, cells: Features, n_jobs: int | None, copies: Copies | None = None) -> Any:
        """Return the leader's scores of rows, (n,) for two classes, else (n, n_classes), and make ``copies``."""
        return self.book.of_classes(self.leader_scores(cells, copies or []))

    def calibrated(self, cells: Features, n_jobs: int | None, copies: Copies | None = None) -> tuple[Any, float]:
        """Return the leader's scores and its inverse temperature of the same moment, and make ``copies`` with them."""

        def read(leader: int, of_errors: Copies) -> Any:
            alone = replace(self, models=[self.models[leader]], windows=[self.windows[leader]], errors=np.zeros(2))
            return ClassScores.calibrated(alone, cells, n_jobs, [*of_errors, *(copies or [])])

        found: tuple[Any, float] = self.of_leader(read)
        return found

    # -- learning

    def meet(self, labels: NDArray[Any], classes: ArrayLike | None = None) -> Self:
        """Return the state with the classes of further rows; a new class starts as ``ClassBook`` describes."""
        book = self.book.meet(labels, classes)
        return self if book is self.book else self._rearranged(book, self.book.rearrangement(book))

    def _rearranged(self, book: ClassBook, change: Rearrangement) -> Self:
        models = [model.rearrange(change) for model in self.models]
        windows = [window.rearrange(change) for window in self.windows]
        monitor = None if self.monitor is None else self.monitor.copy()
        own: Any = {"errors": self.errors.copy(), "monitor": monitor, "clock": Clock()}
        return replace(self, book=book, models=models, windows=windows, **own)

    def learn(
        self,
        rows: Features,
        labels: NDArray[Any],
        weights: Weights,
        steps: Steps,
        *,
        class_weight: ClassWeight = None,
        is_new: bool = True,
        answers: Any = None,
    ) -> None:
        """Learn rows of known classes in order, in place and block by block; of ``steps``, only the loss counts.

        ``is_new`` tells whether the rows are learned for the first time; only then do errors and windows count them.
        ``answers``, a ``ClassAnswers``, receives the leader's scores before each row is learned.
        """
        for part in blocks(len(labels)):
            numbers = self.book.numbers(labels[part])
            factors = self.book.row_factors(numbers, some(weights, part), class_weight)
            some_rows = rows[part]
            begun = None if answers is None else answers.begin(self, numbers)
            renewals = [self._renewal(renewal, numbers, class_weight) for renewal in some_rows.renewals]
            before = self._learn_block(some_rows, numbers, factors, steps.loss, renewals=renewals, is_new=is_new)
            if answers is not None:
                answers.add(begun, *before)

    def _learn_block(
        self,
        rows: Features,
        numbers: NDArray[np.intp],
        factors: Weights,
        loss: str,
        *,
        renewals: list[_core.Renewal],
        is_new: bool,
    ) -> Before:
        book = self.book
        scores = [np.empty((len(numbers), book.n_columns)) for _ in self.models]
        copies: Copies = [(book.counts, book.counting(numbers).counts)]
        for window, of_model in zip(self.windows, scores, strict=True):
            copies += window.adding(of_model, numbers) if is_new else []
        counted_from, seen_from = book.counted_from(numbers), book.seen_from(numbers)
        rules = [model.steps(loss).rule(counted_from, is_new=is_new) for model in self.models]
        how: Any = {"copies": copies, "is_new": is_new, "seen_from": seen_from, "renewals": renewals}
        return self.learn_entrants(rows, book.targets(numbers), factors, rules, scores, **how)

    def _renewal(self, renewal: Any, numbers: NDArray[np.intp], class_weight: ClassWeight) -> _core.Renewal:
        """Return the renewal of a tree along rows of classes ``numbers``; class weights are those at its row."""
        past = self.book.numbers(renewal.targets)
        factors = renewal.weights
        if class_weight is not None:
            by_class = self.book.counting(numbers[: renewal.row]).class_factors(class_weight)
            factors = by_class[past] if factors is None else np.minimum(by_class[past] * factors, LARGEST)
        return renewal.of(self.book.targets(past), factors)

    def temperatures(self) -> list[float]:
        """Return the inverse temperature of each candidate."""
        n_classes = len(self.book.labels)
        return [window.inverse_temperature(n_classes) if n_classes > 1 else 1.0 for window in self.windows]

    def keeping(self, which: NDArray[np.intp], errors: NDArray[np.float64]) -> Self:
        """Return the state with some of the candidates, these errors, and the present ones on record."""
        return replace(BaseRace.keeping(self, which, errors), windows=[self.windows[k] for k in np.sort(which)])

    # -- contract of isokern.parts

    def check(self) -> None:
        """Raise ValueError unless classes, models and windows have the same scores."""
        need(len(self.models) == len(self.windows), "each model must have a window")
        self.check_own_arrays()
        for model, window in zip(self.models, self.windows, strict=True):
            self.check_scores(self.book, model, window)

    @classmethod
    def merge(cls, parts: Sequence[Self], shares: NDArray[np.float64]) -> Self:
        """Return the weighted mean of the leaders, which are of one kind; the race is over."""
        book = ClassBook.merge([part.book for part in parts], shares)
        grown = [part.meet(book.labels) for part in parts]
        window = ScoreWindow.merge([part.window for part in grown], shares)
        return cls(book=book, windows=[window], **cls.merged_leaders(grown, shares))

    def check_mergeable(self, other: Any, name: str) -> None:
        """Raise ValueError if another state, which errors call ``name``, cannot be merged with this one."""
        self.book.check_mergeable(other.book, name)
        BaseRace.check_mergeable(self, other, name)
