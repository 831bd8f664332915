"""How far an online model has learned."""

from __future__ import annotations

from typing import Any, Self

from isokern import _core
from isokern.parts import State


class Clock(_core.Clock):
    """Rows learned, rows that changed the model, and what lazy shrinkage and averaging need; see ``cpp/online.hpp``.

    It lives in the compiled core, whose loops move it on.
    """

    def state(self) -> State:
        """Return the fields by name, see ``isokern.parts``."""
        names = ("rounds", "n_support", "scale", "scale_sum")
        return {name: getattr(self, name) for name in names}

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Return the clock that has this state; raise if its fields do not fit each other."""
        return cls(**state)

    def check(self) -> None:
        """Do nothing: the core checks what a clock is made from."""

    def later(self, n_rounds: int, n_support: int) -> Clock:
        """Return the clock after so many more rounds and support vectors, for models that Python moves on."""
        return Clock(self.rounds + n_rounds, self.n_support + n_support, self.scale, self.scale_sum)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle by the fields."""
        return type(self), tuple(self.state().values())
