"""Provide the learned state of a classifier on cells: classes, one-vs-rest scores and their calibration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isokern.engines import engine_of
from isokern.learners.calibration import ScoreWindow, probabilities
from isokern.learners.classes import ClassBook, ClassWeight
from isokern.learners.steps import Steps
from isokern.learners.targets import Weights, some
from isokern.learners.weights import CellModel, CellWeights, new_model
from isokern.parts import Part, need


@dataclass(eq=False)
class OneVsRest(Part):
    """Classes seen so far, a model with a column of scores for each, and the window that calibrates the scores."""

    book: ClassBook
    model: Any  # CellWeights or SupportVectors
    window: ScoreWindow

    @classmethod
    def begun(cls, learner: Any, book: ClassBook, starts: NDArray[np.int64]) -> Self:
        """Return the untrained state of a learner for these classes on the cells of a map."""
        return cls(book, new_model(learner, starts, book.n_columns), ScoreWindow.empty(book.n_columns))

    def meet(self, labels: NDArray[Any], classes: ArrayLike | None = None) -> Self:
        """Return the state with the classes of further rows; a new class starts as ``ClassBook`` describes."""
        book = self.book.meet(labels, classes)
        if book is self.book:
            return self
        change = self.book.rearrangement(book)
        return type(self)(book, self.model.rearrange(change), self.window.rearrange(change))

    def learn(
        self,
        cells: NDArray[Any],
        labels: NDArray[Any],
        weights: Weights,
        steps: Steps,
        *,
        class_weight: ClassWeight = None,
        is_new: bool = True,
    ) -> None:
        """Learn rows of known classes in order.

        ``is_new`` tells whether the rows are learned for the first time; only then does the window take their scores.
        """
        book, n = self.book, len(labels)
        numbers = book.numbers(labels)
        targets, factors = book.targets(numbers), book.row_factors(numbers, weights, class_weight)
        counted_from = book.counted_from(numbers)
        self.book = book.counting(numbers)
        # Scores are stored only for the last rows, those that stay in the window.
        recent = max(0, n - self.window.size) if is_new else n
        scores = np.empty((n - recent, book.n_columns))
        for begin, end, out in ((0, recent, None), (recent, n, scores)):
            rule = steps.rule([first - begin for first in counted_from])
            self.model.learn(cells[begin:end], targets[begin:end], some(factors, slice(begin, end)), rule, out)
        self.window.add(scores, numbers[recent:])

    def scores(self, cells: Any, n_jobs: int | None) -> Any:
        """Return the scores of rows: (n,) for two classes, else (n, n_classes)."""
        return self.book.of_classes(engine_of(cells).scores(cells, self.model, n_jobs))

    def probabilities(self, scores: Any, loss: str) -> Any:
        """Return the probability of each class, (n, n_classes), for rows of these scores."""
        engine = engine_of(scores)
        window = None if loss == "logistic" else self.window
        return engine.to_library(probabilities(engine.to_host(scores), len(self.book.labels), window), scores)

    def check(self) -> None:
        """Raise ValueError unless classes, model and window have the same scores."""
        need(isinstance(self.book, ClassBook), "book must be a ClassBook")
        n_columns, window = self.book.n_columns, self.window
        need(isinstance(self.model, CellModel), "model must be a CellWeights or SupportVectors")
        need(self.model.n_columns == n_columns > 0, "model must have the scores of the classes")
        need(isinstance(window, ScoreWindow), "window must be a ScoreWindow")
        need(window.scores.shape[1] == n_columns, "window must have the scores of the classes")
        is_known = (window.classes >= 0) & (window.classes < len(self.book.labels))
        need(is_known.all(), "window must have known classes only")

    @classmethod
    def merge(cls, parts: Sequence[Self], shares: NDArray[np.float64]) -> Self:
        """Return the weighted mean of states on one map; a class missing in one counts there as not seen yet."""
        book = ClassBook.merge([part.book for part in parts], shares)
        grown = [part.meet(book.labels) for part in parts]
        model = CellWeights.merge([part.model for part in grown], shares)
        return cls(book, model, ScoreWindow.merge([part.window for part in grown], shares))

    def check_mergeable(self, other: OneVsRest, name: str) -> None:
        """Raise ValueError if another state, which errors call ``name``, cannot be merged with this one."""
        self.book.check_mergeable(other.book, name)
