"""Validate parameters, warn, change estimators in whole steps, and choose thread counts."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from numbers import Integral, Real
from threading import Lock
from typing import Any, TypeGuard, TypeVar, cast

import joblib
import numpy as np
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

_SMALL_MATRIX = 2048  # rows
MOST_JOBS = 2**31 - 1  # the core counts threads in 32 bits
_BLAS_LOCK = Lock()

Method = TypeVar("Method", bound=Callable[..., Any])


def is_integer(value: object, *, at_least: int) -> TypeGuard[int]:
    """Return whether a value is an integer (not a bool) of at least ``at_least``."""
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= at_least


def is_number(value: object) -> TypeGuard[float]:
    """Return whether a value is a finite number (not a bool)."""
    return isinstance(value, Real) and not isinstance(value, bool) and abs(float(value)) < float("inf")


def n_threads(n_jobs: int | None) -> int:
    """Return the number of threads for the core; 0 is the default of ``cpp/common/threads.hpp``."""
    if n_jobs is None:
        return 0
    if not is_integer(n_jobs, at_least=-MOST_JOBS) or n_jobs == 0 or n_jobs > MOST_JOBS:
        raise ValueError(f"n_jobs must be None or an integer below 2^31, not 0; got {n_jobs!r}.")
    return int(joblib.effective_n_jobs(n_jobs))


@contextmanager
def one_thread_if_small(n: int) -> Iterator[None]:
    """Limit BLAS to one thread for the eigendecomposition of a small matrix of n rows.

    LAPACK synchronises its threads after every short step. On a busy machine that makes small problems up to a hundred
    times slower than one thread.
    """
    with _BLAS_LOCK, _blas().limit(limits=1 if n <= _SMALL_MATRIX else None):  # the limit is a global setting
        yield


@cache  # finding the libraries takes longer than decomposing a small matrix
def _blas() -> Any:
    return ThreadpoolController().select(user_api="blas")


def own_arrays(model: object) -> None:
    """Replace a model's read-only arrays, for example memory-mapped ones, by writable copies."""
    for name, value in list(vars(model).items()):
        if isinstance(value, np.ndarray) and not value.flags.writeable:
            setattr(model, name, value.copy())


def one_of(names: Iterable[str]) -> str:
    """Format names for an error message: "a", "b" or "c"."""
    *first, last = (f'"{name}"' for name in names)
    return f"{', '.join(first)} or {last}" if first else last


def warn_user(text: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line that called this package."""
    level, frame = 1, inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "isokern":
        level, frame = level + 1, frame.f_back
    warnings.warn(text, category, stacklevel=level)


def private(value: Any) -> Any:
    """Return a shallow copy, whose attributes can be replaced without a change of the original."""
    copied = object.__new__(type(value))
    vars(copied).update(vars(value))
    return copied


def all_or_nothing(method: Method) -> Method:
    """Run a method on a copy; if it does not raise, the estimator gets the copy's attributes in one step."""

    @wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        changed = private(self)
        result = method(changed, *args, **kwargs)
        self.__dict__ = vars(changed)
        return self if result is changed else result

    return cast(Method, call)
