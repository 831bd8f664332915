"""Buffer the first rows of a stream until there are enough to draw a map or to learn a scaling from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from isokern.learners.classes import ClassBook
from isokern.learners.targets import Weights
from isokern.parts import Part, need

BUFFERED_ROWS = 1000  # default size of the buffer
_MOST_BYTES = 2**26  # of the rows that a stream keeps


class Batch(NamedTuple):
    """Validated rows with their targets and weights."""

    table: Any
    targets: NDArray[Any]
    weights: Weights

    def some(self, rows: Any) -> Batch:
        """Return some of the rows, given as a slice or a mask."""
        return Batch(self.table[rows], self.targets[rows], None if self.weights is None else self.weights[rows])

    def copy(self) -> Batch:
        """Return a copy, because the user may change the arrays after the call."""
        return Batch(self.table.copy(), self.targets.copy(), None if self.weights is None else self.weights.copy())


@dataclass(frozen=True, eq=False)
class WarmUp(Part):
    """Buffered rows. Immutable: adding rows returns a new buffer, so that a failed call changes nothing."""

    batches: tuple[Batch, ...] = ()
    book: ClassBook | None = None  # classes of these rows, for classifiers

    @property
    def n(self) -> int:
        """Number of rows."""
        return sum(len(batch.targets) for batch in self.batches)

    @property
    def targets(self) -> NDArray[Any]:
        """Targets of all rows, in order."""
        return np.concatenate([batch.targets for batch in self.batches])

    def holding(self, batch: Batch, book: ClassBook | None = None) -> Self:
        """Return the buffer with a copy of more rows."""
        return type(self)((*self.batches, batch.copy()), book)

    def gathering(self, batch: Batch) -> Self:
        """Return the buffer with more rows, in few batches."""
        return type(self)(tuple(gathered(self.batches, batch)), self.book)

    def followed_by(self, batch: Batch) -> Batch:
        """Return all buffered rows and this batch, in order."""
        return joined([*self.batches, batch]) if self.batches else batch

    def joined(self) -> Batch:
        """Return all buffered rows, in order."""
        return joined(self.batches)

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Return the buffer of this state, which holds batches as plain tuples."""
        return cls(tuple(Batch(*batch) for batch in state["batches"]), state["book"])

    def state(self) -> dict[str, Any]:
        """Return the batches as plain tuples."""
        return {"batches": tuple(tuple(batch) for batch in self.batches), "book": self.book}

    def check(self) -> None:
        """Raise ValueError unless every row has a target and the classes are a ClassBook."""
        need(self.book is None or isinstance(self.book, ClassBook), "book must be None or a ClassBook")
        need(all(batch.table.dtype.kind in "biuf" for batch in self.batches), "batches must hold numbers")
        need(all(table.shape[0] == len(targets) for table, targets, _ in self.batches), "batches must have targets")
        if self.book is not None:
            known = (np.isin(batch.targets, self.book.labels).all() for batch in self.batches)
            need(all(known), "batches must have known classes only")


def joined(batches: Sequence[Batch]) -> Batch:
    """Return the rows of several batches, in order."""
    tables, targets, weights = zip(*batches, strict=True)
    if all(part is None for part in weights):
        return Batch(stack_tables(tables), np.concatenate(targets), None)
    ones = [np.ones(len(t)) if w is None else w for w, t in zip(weights, targets, strict=True)]
    return Batch(stack_tables(tables), np.concatenate(targets), np.concatenate(ones))


def gathered(batches: Sequence[Batch], batch: Batch) -> list[Batch]:
    """Return batches with one more, of falling sizes: there are few of them, and a row is seldom copied."""
    gathered = [*batches, batch]
    while len(gathered) > 1 and len(gathered[-2].targets) <= len(gathered[-1].targets):
        gathered[-2:] = [joined(gathered[-2:])]
    return gathered


def rows_in_memory(table: Any) -> int:
    """Return how many rows like these a stream may keep."""
    n_bytes = table.data.nbytes + (table.indices.nbytes if sparse.issparse(table) else 0)
    return int(_MOST_BYTES * table.shape[0] // max(1, n_bytes))


def stack_tables(tables: Sequence[Any]) -> Any:
    """Return tables below each other, as CSR if any of them is sparse."""
    if any(sparse.issparse(table) for table in tables):
        return sparse.vstack([sparse.csr_array(table) for table in tables], format="csr")
    return np.concatenate(tables)
