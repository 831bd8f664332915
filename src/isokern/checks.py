"""Small checks of parameters, what happens to an estimator when they fail, and how many threads there are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from numbers import Integral, Real
from threading import Lock
from typing import Any, TypeGuard

import joblib
import numpy as np
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

_SMALL_MATRIX = 2048  # rows
_BLAS_LOCK = Lock()


def is_integer(value: object, *, at_least: int) -> TypeGuard[int]:
    """Return whether a value is an integer, not a bool, and at least so large."""
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= at_least


def is_number(value: object) -> TypeGuard[float]:
    """Return whether a value is a finite number, not a bool."""
    return isinstance(value, Real) and not isinstance(value, bool) and abs(float(value)) < float("inf")


def n_threads(n_jobs: int | None) -> int:
    """Return the number of threads that the core is to use; 0 leaves it to OpenMP."""
    return 0 if n_jobs is None else int(joblib.effective_n_jobs(n_jobs))


@contextmanager
def one_thread_if_small(n: int) -> Iterator[None]:
    """Let NumPy and SciPy use one thread for the eigenvectors of a small matrix, of n rows.

    They take many short steps, after each of which threads wait for each other: on a busy machine that costs up to a
    hundred times what it saves.
    """
    with _BLAS_LOCK, _blas().limit(limits=1 if n <= _SMALL_MATRIX else None):  # locked, as it sets a global number
        yield


@cache  # to look for the libraries takes longer than a small matrix
def _blas() -> Any:
    return ThreadpoolController().select(user_api="blas")


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
