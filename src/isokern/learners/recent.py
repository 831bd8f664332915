"""Keep the most recent rows of a stream, with their targets and weights."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

from isokern.learners.warm_up import Batch, gathered, joined, rows_in_memory
from isokern.parts import Part, need


@dataclass(frozen=True, eq=False)
class RecentRows(Part):
    """The last rows of a stream, at least ``n_most`` of them. Immutable: adding rows returns a new object."""

    n_most: int
    end: int  # number of rows of the stream up to the last one here
    batches: tuple[Batch, ...] = ()

    @classmethod
    def begun(cls, table: Any, n_most: int) -> Self:
        """Return an empty buffer for rows like these."""
        return cls(min(n_most, max(16, rows_in_memory(table))), 0)

    @property
    def n(self) -> int:
        """Number of rows."""
        return sum(len(batch.targets) for batch in self.batches)

    def followed_by(self, batch: Batch) -> Self:
        """Return the buffer with the next rows."""
        batches = gathered(self.batches, batch.copy())
        n = sum(len(one.targets) for one in batches)
        while n - len(batches[0].targets) >= self.n_most:
            n -= len(batches.pop(0).targets)
        return replace(self, end=self.end + len(batch.targets), batches=tuple(batches))

    def up_to(self, end: int) -> Self:
        """Return the buffer without rows after the first ``end`` of the stream: those were never learned."""
        if end == self.end:
            return self
        n = max(0, self.n - (self.end - end))
        return replace(self, end=end, batches=(self.last(self.n).some(slice(n)),) if n else ())

    def last(self, n: int) -> Batch:
        """Return the last n rows, or all if there are fewer."""
        parts = self._last_parts(n)
        return joined(parts) if len(parts) > 1 else parts[0]

    def last_with(self, batch: Batch) -> Batch:
        """Return the last ``n_most`` rows and the next ones."""
        return joined([*self._last_parts(self.n_most), batch]) if self.n else batch

    def _last_parts(self, n: int) -> list[Batch]:
        parts: list[Batch] = []
        for batch in reversed(self.batches):
            if n > 0:
                parts.insert(0, batch.some(slice(max(0, len(batch.targets) - n), None)))
            n -= len(batch.targets)
        return parts

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Return the buffer of this state, which holds rows as plain tuples."""
        return cls(state["n_most"], state["end"], tuple(Batch(*batch) for batch in state["batches"]))

    def state(self) -> dict[str, Any]:
        """Return the fields, with the last ``n_most`` rows in one tuple, however the stream was cut."""
        rows = (tuple(self.last(self.n_most)),) if self.n else ()
        return {"n_most": self.n_most, "end": self.end, "batches": rows}

    def check(self) -> None:
        """Raise ValueError unless every row has a target."""
        need(self.n_most > 0 and self.end >= self.n, "n_most must be positive, and end at least the number of rows")
        need(all(batch.table.dtype.kind in "biuf" for batch in self.batches), "batches must hold numbers")
        need(all(table.shape[0] == len(targets) for table, targets, _ in self.batches), "batches must have targets")
