"""The first rows of a stream, held back until there are enough to draw a map from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from isokern.checks import is_integer
from isokern.learners.classes import ClassBook
from isokern.learners.targets import Weights
from isokern.parts import Part, need

FIRST_ROWS = 1000  # that a stream waits for unless it is told otherwise


class Batch(NamedTuple):
    """Rows that have been read, with their targets and weights."""

    table: Any
    targets: NDArray[Any]
    weights: Weights

    def copy(self) -> Batch:
        """Return a copy, since the user may change rows after a call."""
        return Batch(self.table.copy(), self.targets.copy(), None if self.weights is None else self.weights.copy())


@dataclass(frozen=True, eq=False)
class WarmUp(Part):
    """Rows that wait. It never changes: to hold more rows gives another one, so that a failed call loses nothing."""

    batches: tuple[Batch, ...] = ()
    book: ClassBook | None = None
    """The classes of these rows, if they are labels."""

    @property
    def n(self) -> int:
        """The number of rows."""
        return sum(len(batch.targets) for batch in self.batches)

    def holding(self, batch: Batch, book: ClassBook | None = None) -> Self:
        """Return what holds a copy of more rows, too."""
        return type(self)((*self.batches, batch.copy()), book)

    def followed_by(self, batch: Batch) -> Batch:
        """Return all rows that wait and those that come now, in order."""
        return _joined([*self.batches, batch]) if self.batches else batch

    def joined(self) -> Batch:
        """Return all rows that wait, in order."""
        return _joined(self.batches)

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Return the rows that have this state, in which batches are plain tuples."""
        return cls(tuple(Batch(*batch) for batch in state["batches"]), state["book"])

    def state(self) -> dict[str, Any]:
        """Return the batches as plain tuples."""
        return {"batches": tuple(tuple(batch) for batch in self.batches), "book": self.book}

    def check(self) -> None:
        """Raise unless every row has a target, and classes are in a book."""
        need(self.book is None or isinstance(self.book, ClassBook), "the classes must be those of a class book")
        need(all(table.shape[0] == len(targets) for table, targets, _ in self.batches), "rows must have targets")


def _joined(batches: Sequence[Batch]) -> Batch:
    tables, targets, weights = zip(*batches, strict=True)
    is_sparse = any(sparse.issparse(table) for table in tables)
    table = sparse.vstack(tables, format="csr") if is_sparse else np.concatenate(tables)
    if all(part is None for part in weights):
        return Batch(table, np.concatenate(targets), None)
    ones = [np.ones(len(t)) if w is None else w for w, t in zip(weights, targets, strict=True)]
    return Batch(table, np.concatenate(targets), np.concatenate(ones))


def check_n_initial(n_initial: Any) -> None:
    """Raise unless a parameter tells how many rows to wait for."""
    if n_initial is not None and not is_integer(n_initial, at_least=2):
        raise ValueError(f"n_initial must be None or an integer of at least 2; got {n_initial!r}.")
