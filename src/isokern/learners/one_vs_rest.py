"""What a classifier on cells learns: one score for each class, and how far to trust it."""

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
    """The classes met so far, a model with one column of scores for each, and the window that calibrates scores."""

    book: ClassBook
    model: Any
    """CellWeights or SupportVectors."""
    window: ScoreWindow

    @classmethod
    def begun(cls, learner: Any, book: ClassBook, starts: NDArray[np.int64]) -> Self:
        """Return what a learner with these classes has learned at the start: nothing, of the cells of a map."""
        return cls(book, new_model(learner, starts, book.n_columns), ScoreWindow.empty(book.n_columns))

    def meet(self, labels: NDArray[Any], classes: ArrayLike | None = None) -> Self:
        """Return what is learned with the classes of further rows; a new one begins as what no class seen yet had."""
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
        """Learn from rows of known classes in order, by one step for each that violates the margin.

        ``is_new`` tells whether the rows are learned for the first time, so that the window takes their scores before.
        """
        book, n = self.book, len(labels)
        numbers = book.numbers(labels)
        targets, factors = book.targets(numbers), book.row_factors(numbers, weights, class_weight)
        counted_from = book.counted_from(numbers)
        self.book = book.counting(numbers)
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
        """Raise unless classes, model and window are of the same scores."""
        need(isinstance(self.book, ClassBook), "the classes must be those of a class book")
        n_columns, window = self.book.n_columns, self.window
        need(isinstance(self.model, CellModel), "the model must be one of cells")
        need(self.model.n_columns == n_columns > 0, "the model must have the scores that the classes need")
        need(isinstance(window, ScoreWindow), "the window must be one")
        need(window.scores.shape[1] == n_columns, "the window must have the model's scores")
        is_known = (window.classes >= 0) & (window.classes < len(self.book.labels))
        need(is_known.all(), "the window must know the classes")

    @classmethod
    def merge(cls, parts: Sequence[Self], shares: NDArray[np.float64]) -> Self:
        """Return the mean of what was learned on one map; a class counts as not seen yet where it was not met."""
        book = ClassBook.merge([part.book for part in parts], shares)
        grown = [part.meet(book.labels) for part in parts]
        model = CellWeights.merge([part.model for part in grown], shares)
        return cls(book, model, ScoreWindow.merge([part.window for part in grown], shares))

    def check_mergeable(self, other: OneVsRest, name: str) -> None:
        """Raise unless another one, which errors call by a name, can be merged with this one."""
        self.book.check_mergeable(other.book, name)
