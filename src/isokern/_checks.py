"""Small checks of parameters, and what happens to an estimator when they fail."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any, TypeGuard

import joblib
import numpy as np


def is_integer(value: object, *, at_least: int) -> TypeGuard[int]:
    """Return whether a value is an integer, not a bool, and at least so large."""
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= at_least


def is_number(value: object) -> TypeGuard[float]:
    """Return whether a value is a finite number, not a bool."""
    return isinstance(value, Real) and not isinstance(value, bool) and abs(float(value)) < float("inf")


def n_threads(n_jobs: int | None) -> int:
    """Return the number of threads that the core is to use; 0 leaves it to OpenMP."""
    return 0 if n_jobs is None else int(joblib.effective_n_jobs(n_jobs))


def own_arrays(model: object) -> None:
    """Replace a model's read-only arrays, as of one that was loaded from a memory map, by copies that may change."""
    for name, value in list(vars(model).items()):
        if isinstance(value, np.ndarray) and not value.flags.writeable:
            setattr(model, name, value.copy())


def one_of(names: Iterable[str]) -> str:
    """Return names as they stand in an error: "a", "b" or "c"."""
    *first, last = (f'"{name}"' for name in names)
    return f"{', '.join(first)} or {last}" if first else last


@contextmanager
def unchanged_on_error(estimator: Any) -> Iterator[None]:
    """Put an estimator's attributes back as they were if the block raises."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise
