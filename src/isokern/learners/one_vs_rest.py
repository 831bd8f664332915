"""Provide the learned state of a classifier on cells: classes, one-vs-rest scores and their calibration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isokern.engines import engine_of
from isokern.forest import Classes
from isokern.learners.calibration import ScoreWindow, probabilities
from isokern.learners.classes import ClassBook, ClassWeight
from isokern.learners.commits import BLOCK, Copies, blocks, can_change, twin, twins
from isokern.learners.parameters import warn_of_size
from isokern.learners.steps import Steps
from isokern.learners.targets import Weights, some
from isokern.learners.weights import CellModel, CellWeights, new_model
from isokern.parts import Part, State, need


class ClassScores(Part):
    """Base of the learned states of classifiers: probabilities of scores."""

    book: ClassBook
    model: Any
    window: ScoreWindow

    def scores(self, cells: Any, n_jobs: int | None, copies: Copies | None = None) -> Any:
        """Return the scores of rows, (n,) for two classes, else (n, n_classes), and make ``copies`` with them."""
        raise NotImplementedError

    def probabilities(self, cells: Any, loss: str, n_jobs: int | None) -> Any:
        """Return the probability of each class, (n, n_classes)."""
        n_classes, factor = len(self.book.labels), None
        if loss == "logistic" or n_classes == 1:
            scores = self.scores(cells, n_jobs)
        else:
            scores, factor = self.calibrated(cells, n_jobs)
        engine = engine_of(scores)
        return engine.to_library(probabilities(engine.to_host(scores), n_classes, factor), scores)

    def calibrated(self, cells: Any, n_jobs: int | None, copies: Copies | None = None) -> tuple[Any, float]:
        """Return scores and the inverse temperature of the same moment, and make ``copies`` with them.

        The temperature is fitted if it is not known.
        """
        seen = np.empty_like(self.window.seen)
        scores = self.scores(cells, n_jobs, [(seen, self.window.seen), *(copies or [])])
        factor = self.window.known_temperature(int(seen[0]))
        if factor is None:
            window, of_window = twin(self.window)
            scores = self.scores(cells, n_jobs, [*of_window, *(copies or [])])
            factor = window.inverse_temperature(len(self.book.labels))
            self.window.take_temperature(window)
        return scores, factor

    def answer(self, loss: str) -> Classes:
        """Return what scores mean, for a model as a forest."""
        labels = self.book.labels
        if len(labels) < 2:
            raise ValueError(f"model must have learned at least 2 classes; got {labels}.")
        if loss == "logistic":
            return Classes(labels, "softmax" if len(labels) == 2 else "sigmoid")
        return Classes(labels, "softmax", self.window.inverse_temperature(len(labels)))

    @property
    def intercept(self) -> NDArray[np.float64]:
        """What is added to scores: nothing."""
        return np.zeros(len(self.book.labels) if len(self.book.labels) > 2 else 1)

    @property
    def n_models(self) -> int:
        """Number of models that may give scores."""
        return 1

    def temperatures(self) -> list[float]:
        """Return the inverse temperature of each model."""
        return [self.window.inverse_temperature(len(self.book.labels))] if len(self.book.labels) > 1 else [1.0]

    def narrowed(self) -> Self:
        """Return the state to learn the next rows with."""
        return self

    def within(self, limit: int | None) -> Self:
        """Return the state with at most ``limit`` bytes of weights, as far as there is a choice; else warn."""
        tables = [getattr(self.model, name) for name in self.model.in_place]
        warn_of_size(sum(table.nbytes for table in tables if table is not None), limit)
        return self

    @property
    def until_narrowed(self) -> int:
        """Number of rows that may be learned before ``narrowed`` returns another state."""
        return BLOCK

    @staticmethod
    def check_scores(book: ClassBook, model: Any, window: ScoreWindow) -> None:
        """Raise ValueError unless classes, a model and a window have the same scores."""
        need(model.n_columns == book.n_columns > 0, "model must have the scores of the classes")
        need(window.scores.shape[1] == book.n_columns, "window must have the scores of the classes")
        is_known = (window.classes >= 0) & (window.classes < len(book.labels))
        need(is_known.all(), "window must have known classes only")


@dataclass(eq=False)
class OneVsRest(ClassScores):
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
        answers: Any = None,
    ) -> None:
        """Learn rows of known classes in order, in place and block by block.

        ``is_new`` tells whether the rows are learned for the first time; only then does the window take their scores.
        ``answers``, a ``ClassAnswers``, receives the scores before each row is learned.
        """
        book = self.book
        for part in blocks(len(labels)):
            numbers = book.numbers(labels[part])
            factors = book.row_factors(numbers, some(weights, part), class_weight)
            rule = steps.rule(book.counted_from(numbers), is_new=is_new)
            copies, scores = [(book.counts, book.counting(numbers).counts)], None
            if is_new:
                scores = np.empty((len(numbers), book.n_columns))
                copies += self.window.adding(scores, numbers)
            begun = None if answers is None else answers.begin(self, numbers)
            self.model.learn(cells[part], book.targets(numbers), factors, rule, scores=scores, copies=copies)
            if answers is not None:
                answers.add(begun, scores, np.zeros(len(numbers), dtype=np.intp))

    def writable(self) -> Self:
        """Return this state if a block can be learned in place, in one step; else a copy to learn it in."""
        is_in_place = isinstance(self.model, CellWeights) and can_change(self.model, self.book, self.window)
        return self if is_in_place else self.snapshot()

    def snapshot(self) -> Self:
        """Return a copy of one moment, even while another thread learns."""
        model, book, window = twins(self.model, self.book, self.window)
        return type(self)(book, model, window)

    def scores(self, cells: Any, n_jobs: int | None, copies: Copies | None = None) -> Any:
        """Return the scores of rows, (n,) for two classes, else (n, n_classes), and make ``copies`` with them."""
        return self.book.of_classes(engine_of(cells).scores(cells, self.model, n_jobs, copies))

    def state(self) -> State:
        """Return the parts of one moment."""
        return Part.state(self.snapshot())

    def check(self) -> None:
        """Raise ValueError unless classes, model and window have the same scores."""
        need(isinstance(self.book, ClassBook), "book must be a ClassBook")
        need(isinstance(self.model, CellModel), "model must be a CellWeights or SupportVectors")
        need(isinstance(self.window, ScoreWindow), "window must be a ScoreWindow")
        self.check_scores(self.book, self.model, self.window)

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
