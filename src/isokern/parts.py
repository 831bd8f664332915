"""Define the contract by which the parts of a model are saved, validated, merged and loaded.

A fitted estimator is composed of *parts*: its feature map, its class book, its weights, and so on. Code that saves,
copies or merges models uses only these methods of a part, never its private attributes:

==========================  ==========================================================================================
``state()``                 return plain values, arrays and other parts by name, enough to rebuild the part
``from_state(state)``       class method: rebuild the part
``check()``                 raise ``ValueError`` if the values are inconsistent, as those of a forged file may be
``merge(parts, shares)``    class method, where a mean is defined: return the mean weighted by shares that sum to 1
==========================  ==========================================================================================

Pickle, copy, joblib and skops use the same methods. The state of an estimator is its ``__dict__``, as usual in
scikit-learn; estimators define ``check`` as well.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Self

import numpy as np

State = dict[str, Any]


class Part:
    """Base of the parts: dataclasses whose state is their fields, except those with ``init=False`` (caches)."""

    def state(self) -> State:
        """Return the fields by name."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.init}  # type: ignore[arg-type]

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Rebuild a part from its state."""
        return cls(**state)

    def check(self) -> None:
        """Raise ValueError if the fields are inconsistent."""

    def __getstate__(self) -> State:
        return self.state()

    def __setstate__(self, state: State) -> None:
        vars(self).update(vars(self.from_state(state)))


def restore_estimator(cls: type, state: State) -> Any:
    """Rebuild an estimator from its ``__dict__``; refuse attributes that would shadow a method or property."""
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
    """Return whether a value is a Python integer (not a bool) of at least ``at_least``."""
    return type(value) is int and value >= at_least
