"""Count the rows and support vectors of an online model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from isokern import _core
from isokern.parts import State


class Clock(_core.Clock):
    """Rounds, support vectors, rows, and the scales behind lazy shrinkage and averaging; see ``Clock`` in ``cpp/``.

    It lives in the compiled core, whose loops advance it.
    """

    def state(self) -> State:
        """Return the fields by name, see ``isokern.parts``."""
        names = ("rounds", "n_support", "scale", "scale_sum", "n_rows")
        return {name: getattr(self, name) for name in names}

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Return the clock of this state; raise if its fields are invalid."""
        return cls(**state)

    def check(self) -> None:
        """Do nothing: the core checks the fields when it makes a clock."""

    @classmethod
    def of(cls, clock: _core.Clock) -> Self:
        """Return a copy of a clock."""
        return cls(clock.rounds, clock.n_support, clock.scale, clock.scale_sum, clock.n_rows)

    @classmethod
    def merge(cls, clocks: Sequence[_core.Clock], shares: NDArray[np.float64]) -> Self:
        """Return a clock with the weighted mean of the counts, and the scales of the start."""
        names = ("rounds", "n_support", "n_rows")
        return cls(**{name: int(np.rint(shares @ [float(getattr(one, name)) for one in clocks])) for name in names})

    def later(self, n_rounds: int, n_support: int, *, is_new: bool) -> Clock:
        """Return the clock after more rounds and support vectors, for models that learn in Python."""
        n_rows = self.n_rows + n_rounds * is_new
        return Clock(self.rounds + n_rounds, self.n_support + n_support, self.scale, self.scale_sum, n_rows)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle by the fields."""
        return type(self), tuple(self.state().values())
