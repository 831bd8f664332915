"""Define the contract by which the parts of a model are saved, validated, merged and loaded.

A fitted estimator is composed of *parts*: its feature map, its class book, its weights, and so on. Code that saves,
copies or merges models uses only these methods of a part, never its private attributes:

==========================  ==========================================================================================
``state()``                 return plain values, arrays and other parts by name, enough to rebuild the part
``from_state(state)``       class method: rebuild the part
``check()``                 raise ``ValueError`` if the values are inconsistent, as those of a forged file may be;
                            ``check_types`` has checked the fields of a loaded part against their annotations
``merge(parts, shares)``    class method, where a mean is defined: return the mean weighted by shares that sum to 1
==========================  ==========================================================================================

Pickle, copy, joblib and skops use the same methods. The state of an estimator is its ``__dict__``, as usual in
scikit-learn; estimators define ``check`` as well.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from functools import cache
from numbers import Integral, Real
from types import UnionType
from typing import Any, Self, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

State = dict[str, Any]

LARGEST_COUNT = 2**53  # far from overflow, however many rows a loaded model still learns, and exact as a float


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


def restore_estimator(cls: Any, state: State) -> Any:
    """Rebuild an estimator from its ``__dict__``; refuse attributes that would shadow a method or property."""
    for name in state:
        found = getattr(cls, name, None)
        if callable(found) or isinstance(found, property):
            raise ValueError(f"{cls.__name__} must not have an attribute {name}.")
    names = cls._get_param_names()
    if any(name.endswith("_") for name in state.keys() - set(names)):  # it is fitted
        need(is_count(state["n_features_in_"], at_least=1), "n_features_in_ must be a positive integer")
        for name, kind in (("feature_names_in_", object), ("is_categorical_", np.bool_)):
            if state.get(name) is not None:
                need_array(state[name], kind, 1, name)
                need(len(state[name]) == state["n_features_in_"], f"{name} must have one value per column")
        counted = state.get("categories_", {})
        need(isinstance(counted, dict) and all(map(is_count, counted)), "categories_ must be a dict by column")
        need(all(type(part).__name__ == "Categories" for part in counted.values()), "categories_ must hold Categories")
    estimator = cls(**{name: state[name] for name in names if name in state})
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
    """Return whether a value is an integer (not a bool) from ``at_least`` to ``LARGEST_COUNT``."""
    return isinstance(value, Integral) and not isinstance(value, bool) and at_least <= int(value) <= LARGEST_COUNT


def check_types(part: Any) -> None:
    """Raise ValueError unless the fields of a dataclass or named tuple have their annotated types.

    An ``int`` is a count, and an array of ``np.int64``, ``np.int32`` or ``np.intp`` holds counts or indices: from 0 to
    ``LARGEST_COUNT``.
    """
    cls: Any = type(part)
    for name, expected in _annotations(cls).items():
        rule = getattr(expected, "__name__", None) or expected
        need(_is_of(getattr(part, name), expected), f"{name} of {cls.__name__} must be of type {rule}")


@cache
def _annotations(cls: Any) -> dict[str, Any]:
    names = [field.name for field in fields(cls) if field.init] if is_dataclass(cls) else getattr(cls, "_fields", ())
    hints = get_type_hints(cls)
    return {name: hints[name] for name in names}


def _is_of(value: Any, expected: Any) -> bool:
    """Return whether a value has an annotated type."""
    expected = _without_alias(expected)
    origin, arguments = get_origin(expected), get_args(expected)
    if origin in (Union, UnionType):
        return any(_is_of(value, choice) for choice in arguments)
    if expected in (bool, int, float):  # NumPy's scalars pass, too, because users give them as parameters
        is_bool = isinstance(value, bool | np.bool_)
        return {bool: is_bool, int: is_count(value), float: isinstance(value, Real) and not is_bool}[expected]
    if expected is Any or not isinstance(value, origin or expected):
        return expected is Any
    if origin is np.ndarray:
        return _has_dtype(value, get_args(arguments[1])[0])
    if origin in (list, tuple):
        items = arguments if origin is tuple and ... not in arguments else arguments[:1] * len(value)
        return len(value) == len(items) and all(map(_is_of, value, items))
    return True


def _without_alias(expected: Any) -> Any:
    """Return the type that a type alias stands for; NDArray is one since NumPy 2.5."""
    meaning = getattr(get_origin(expected), "__value__", None)
    return expected if meaning is None else meaning[get_args(expected)]


def _has_dtype(array: NDArray[Any], dtype: Any) -> bool:
    if dtype is Any:
        return True
    if array.dtype != dtype:
        return False
    return array.dtype.kind != "i" or array.size == 0 or bool(array.min() >= 0 and array.max() <= LARGEST_COUNT)
