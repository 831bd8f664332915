"""A data set as a stream: all its rows in random order, the initial set first, then blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isokern.data import blocks, list_datasets
from isokern.data.rebatching import joined
from isokern.experiments import settings
from isokern.experiments.datasets import load_rows
from isokern.experiments.experiment import Cell, Plan
from isokern.learners import IKOGDClassifier


class Stream(NamedTuple):
    """Rows and labels in the order in which they come; the first ``n_initial`` are there before the stream begins."""

    X: Any
    y: NDArray[np.int64]
    n_initial: int

    @property
    def initial(self) -> tuple[Any, NDArray[np.int64]]:
        """The rows and labels of the initial set."""
        return self.X[: self.n_initial], self.y[: self.n_initial]

    @property
    def block_rows(self) -> int:
        """Rows in a block: the paper's, or fewer where blocks would be too few to see anything."""
        return min(settings.BLOCK_ROWS, max(1, (len(self.y) - self.n_initial) // settings.MIN_BLOCKS))

    def blocks(self) -> Iterator[tuple[Any, Any]]:
        """Yield the blocks after the initial set."""
        return blocks(self.X[self.n_initial :], self.y[self.n_initial :], self.block_rows)


def shuffled_rows(cell: Cell, plan: Plan) -> Stream:
    """Return the rows of a cell's data set as a stream whose initial set is as large as the training part."""
    data = load_rows(cell["dataset"], plan, cell["seed"])
    X, y = joined([(data.X_train, data.y_train), (data.X_test, data.y_test)])
    order = np.random.default_rng(cell["seed"]).permutation(len(y))
    return Stream(X[order], y[order], len(data.y_train))


def load_stream(cell: Cell, plan: Plan) -> Stream:
    """Return the same with a smaller initial set at quick scale and for stand-ins, which leave little after it."""
    stream = shuffled_rows(cell, plan)
    if not plan.is_quick and cell["source"] in {info.name for info in list_datasets()}:
        return stream
    return stream._replace(n_initial=round(settings.INITIAL_SHARE * len(stream.y)))


def initial_note(plan: Plan) -> str:
    """Return how large the initial set and the blocks are."""
    share = f"{settings.INITIAL_SHARE:.0%} of all rows"
    size = share if plan.is_quick else f"as large as the paper's training part, of stand-ins {share}"
    return (
        f"Training and test rows are one shuffled stream; the initial set is {size}; blocks have "
        f"{settings.BLOCK_ROWS:,} rows, or fewer, so that there are at least {settings.MIN_BLOCKS}."
    )


def learn_initial(learner: Any, stream: Stream, is_over: Callable[[], bool]) -> bool:
    """Train the first model, and return whether there was time for all of the initial set.

    The Isolation Kernel's map is drawn from all of it at once; rivals take it in blocks, so that they can stop.
    """
    if isinstance(learner, IKOGDClassifier):
        learner.fit(*stream.initial)
        return True
    first, *others = blocks(*stream.initial, settings.BLOCK_ROWS)
    learner.fit(*first)
    for block in others:
        if is_over():
            return False
        learner.partial_fit(*block)
    return True
