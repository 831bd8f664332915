"""The contract by which every piece of a model is saved, checked, merged and loaded.

A fitted estimator is made of *parts*: its map, the classes it has met, its weights, and so on. Each part knows its own
state; whoever saves, copies or merges models uses the methods below and looks at nothing else.

==========================  ==========================================================================================
``state()``                 plain values, arrays and other parts by name: all it takes to make the part again
``from_state(state)``       class method: the part that has this state
``check()``                 raise ``ValueError`` unless the values fit each other, as those of a file may not
``merge(parts, shares)``    class method, where a mean makes sense: the mean of parts, weighted by shares of sum 1
==========================  ==========================================================================================

Pickle, copy, joblib and skops take the same way. Estimators follow scikit-learn's convention instead of ``state``: what
they are is in their ``__dict__``, parameters and what was learned; they have ``check`` and ``merge``, too.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Self

import numpy as np

State = dict[str, Any]


class Part:
    """A dataclass whose fields are its state; fields with ``init=False`` are made from the others or are caches."""

    def state(self) -> State:
        """Return the values of all fields that the part is made from, by name."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.init}  # type: ignore[arg-type]

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Return the part that has this state."""
        return cls(**state)

    def check(self) -> None:
        """Raise ValueError unless the fields fit each other."""

    def __getstate__(self) -> State:
        return self.state()

    def __setstate__(self, state: State) -> None:
        vars(self).update(vars(self.from_state(state)))


def restore_estimator(cls: type, state: State) -> Any:
    """Return an estimator of such attributes, none of which hides a method."""
    for name in state:
        found = getattr(cls, name, None)
        if callable(found) or isinstance(found, property):
            raise ValueError(f"{cls.__name__} must not have an attribute {name}.")
    estimator: Any = object.__new__(cls)
    vars(estimator).update(state)
    return estimator


def need(condition: object, rule: str) -> None:
    """Raise ValueError unless a rule holds."""
    if not condition:
        raise ValueError(f"{rule}.")


def need_array(value: object, dtype: type, n_dimensions: int, name: str) -> None:
    """Raise ValueError unless a value is an array of this dtype and number of dimensions."""
    is_array = isinstance(value, np.ndarray) and value.dtype == dtype and value.ndim == n_dimensions
    need(is_array, f"{name} must be an array of {np.dtype(dtype)} of {n_dimensions} dimensions")


def is_count(value: object, *, at_least: int = 0) -> bool:
    """Return whether a value is a Python integer that can count something."""
    return type(value) is int and value >= at_least
