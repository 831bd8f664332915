"""Learn online on all partitions: a race that decides once for all, then rounds whose results are averaged."""

from __future__ import annotations

import copy
import logging
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from dask import delayed
from numpy.typing import NDArray

from isokern.distributed.blocks import Block, Ground, Mapped, Rows
from isokern.learners import IKOGDClassifier
from isokern.learners.candidates import Candidate, candidates_of
from isokern.learners.classes import ClassBook, ClassWeight
from isokern.learners.one_vs_rest import OneVsRest
from isokern.learners.race import Race
from isokern.learners.steps import Steps
from isokern.learners.targets import some

RACED_ROWS = 20_000  # of a race, about, and of each of its partitions at most
_logger = logging.getLogger("isokern.distributed")

Learned = OneVsRest | Race


class Lesson(NamedTuple):
    """How all partitions learn their rows in a round."""

    steps: Steps
    class_weight: ClassWeight
    seed: tuple[int, int]
    is_new: bool

    @classmethod
    def of(cls, learner: IKOGDClassifier, seed: tuple[int, int], *, is_new: bool) -> Self:
        """Return a lesson with a learner's steps; ``seed`` sets the order of rows."""
        return cls(Steps.of(learner), learner.class_weight, seed, is_new)

    def teach(self, learned: Learned, rows: Rows, number: int, ground: Ground) -> None:
        """Let a state learn the rows of a partition in place, in an order that is drawn for its number."""
        order = np.random.default_rng([*self.seed, number]).permutation(len(rows.labels))
        chosen = ground.features(rows, learned)[order], rows.labels[order], some(rows.weights, order)
        learned.learn(*chosen, self.steps, class_weight=self.class_weight, is_new=self.is_new)


class Entrants(NamedTuple):
    """Candidates that start untrained in every race."""

    candidates: list[Candidate]
    book: ClassBook

    def errors_on(self, parts: list[Rows], number: int, ground: Ground, lesson: Lesson) -> NDArray[np.float64]:
        """Return the weights of the rows that each candidate missed before learning them, and of all rows."""
        book = copy.deepcopy(self.book)  # tasks on one worker share their arguments
        learned = Race.begun(self.candidates, book, ground.kernel.map_, ground.term, fade=1.0)
        lesson.teach(learned, Rows.joined(parts), number, ground)
        return learned.errors


def race(mapped: Mapped, learner: IKOGDClassifier, seed: tuple[int, int]) -> Mapped:
    """Keep the candidate with the fewest errors on all partitions, if there are several; return what it needs of them.

    Neighbouring small partitions race together, because few rows favour simple candidates. Only errors leave the
    workers; the winner stays untrained.
    """
    learned, lesson = learner.learned_, Lesson.of(learner, seed, is_new=True)
    if not isinstance(learned, Race) or len(learned.models) == 1:
        return mapped
    every = candidates_of(learner, learner.kernel_)
    entrants = Entrants([every[k] for k in learned.selection.running], learned.book)
    _logger.info("racing %d candidates", len(entrants.candidates))
    parts = [delayed(_raced_rows)(block, k, lesson) for k, block in enumerate(mapped.blocks)]
    groups = [[parts[k] for k in group] for group in _groups(mapped.sizes)]
    learned.errors = mapped.cluster.reduce(entrants.errors_on, groups, sum, mapped.ground, lesson)
    learner.learned_ = learned.compared(1)
    return mapped.trimmed(learner.learned_)


def _groups(sizes: Sequence[int]) -> list[list[int]]:
    """Return the numbers of the partitions of each race: neighbours, of about ``RACED_ROWS`` rows or a single one."""
    n, firsts = sum(sizes), np.cumsum([0, *sizes[:-1]])
    numbers = firsts * max(1, n // RACED_ROWS) // n
    return [np.flatnonzero(numbers == number).tolist() for number in np.unique(numbers)]


def _raced_rows(block: Block, number: int, lesson: Lesson) -> Rows:
    """Return random rows of a partition, as many as may race."""
    n = len(block.learned.labels)
    which = np.random.default_rng([*lesson.seed, number]).permutation(n)[:RACED_ROWS]
    return block.learned if n <= RACED_ROWS else block.learned.of(which)


def learn_round(mapped: Mapped, learner: IKOGDClassifier, seed: tuple[int, int], *, is_new: bool) -> IKOGDClassifier:
    """Return the learner after one pass over each block, averaged with weights proportional to the blocks' rows."""
    before = learner.learned_
    learned, _ = mapped.reduce(_learn_block, _join, before, Lesson.of(learner, seed, is_new=is_new))
    if isinstance(learned, Race):
        learned.errors = before.errors  # only the race counts errors
    else:
        learned.model.starts = before.model.starts  # share one array instead of keeping a copy
    if not is_new:
        learned.window = before.window  # unchanged in every part, so there is nothing to merge
    taught = copy.copy(learner)
    taught.learned_ = learned
    return taught


def _learn_block(block: Block, number: int, ground: Ground, learned: Learned, lesson: Lesson) -> tuple[Learned, int]:
    part = learned.snapshot()  # tasks on one worker share their arguments
    lesson.teach(part, block.learned, number, ground)
    return part, len(block.learned.labels)


def _join(parts: list[tuple[Any, int]]) -> tuple[Any, int]:
    learned, sizes = zip(*parts, strict=True)
    n = sum(sizes)
    return type(learned[0]).merge(learned, np.array(sizes) / n), n
