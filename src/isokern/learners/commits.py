"""Change estimators in single steps, so that threads, interrupts and forks never meet a half-changed one.

All attributes of an estimator are replaced at once, by a new ``__dict__``. So a method that works on a view of the
estimator sees one state of it, and an exception, which Python may raise between any two instructions, comes before or
after the step. Rows are learned in blocks: on a copy of the model, which is then committed, or in place, by one call of
the compiled core under the lock of the model's clock (``cpp/online/model_lock.hpp``).
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import wraps
from itertools import chain
from threading import Lock, RLock
from typing import Any, TypeVar, cast
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from isokern import _core
from isokern.checks import Method, private
from isokern.learners.clock import Clock
from isokern.system import at_fork

BLOCK = 1000  # rows learned in one step
_LARGE = 2**16  # bytes of an array whose memory is worth recycling

Item = TypeVar("Item")
Copies = list[tuple[NDArray[Any], NDArray[Any]]]  # (to, from)


def blocks(n: int) -> Iterator[slice]:
    """Yield slices of n rows that are learned in one step."""
    return (slice(begin, min(begin + BLOCK, n)) for begin in range(0, n, BLOCK))


def ahead(items: Iterator[Item], n: int, threads: int) -> Iterator[Item]:
    """Yield n items; if there are several threads, one computes the next item while the caller works with the last."""
    with ThreadPoolExecutor(1) as thread:
        coming = None
        if n > 1 and threads != 1:
            with suppress(RuntimeError):  # the system starts no more threads
                coming = thread.submit(next, items, None)
        if coming is None:
            yield from items
            return
        while (item := coming.result()) is not None:
            coming = thread.submit(next, items, None)
            yield item


def commit(estimator: Any, *removed: str, **changes: Any) -> None:
    """Remove and replace attributes in one step."""
    after = vars(estimator) | changes
    for name in removed:
        after.pop(name, None)
    estimator.__dict__ = after


# -- decorators of an estimator's methods


def one_view(method: Method) -> Method:
    """Run a method that reads on the estimator as it is now, whatever is committed meanwhile."""

    @wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        view = object.__new__(type(self))
        view.__dict__ = self.__dict__
        return method(view, *args, **kwargs)

    return cast(Method, call)


def one_at_a_time(method: Method) -> Method:
    """Let concurrent calls of an estimator's methods that learn wait for each other."""

    @wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        with _lock_of(self):
            return method(self, *args, **kwargs)

    return cast(Method, call)


# Locks are kept here, not in the estimators, so that nobody copies or pickles them.
_locks: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
_locks_lock = Lock()


def _lock_of(estimator: Any) -> Any:
    with _locks_lock:
        return _locks.setdefault(estimator, RLock())


def _forget_locks() -> None:
    """Start anew in a forked child, where the threads that held locks do not exist."""
    global _locks, _locks_lock
    _locks, _locks_lock = WeakKeyDictionary(), Lock()
    _core.after_fork_in_child()


at_fork(before=_core.before_fork, in_parent=_core.after_fork_in_parent, in_child=_forget_locks)


# -- parts that the core changes in place: those that name such arrays in ``in_place``


def twin(part: Any, memory: _core.Memory | None = None) -> tuple[Any, Copies]:
    """Return a copy with arrays still to be filled, and the arrays (to, from) that the core has to copy for that.

    ``memory`` is where to take large arrays from.
    """
    copied, copies = private(part), []
    for name in part.in_place:
        array = getattr(part, name)
        if array is not None:
            if memory is not None and array.nbytes >= _LARGE:
                vars(copied)[name] = memory.empty_like(array)
            else:
                vars(copied)[name] = np.empty_like(array, subok=False)
            copies.append((vars(copied)[name], array))
    return copied, copies


def twins(model: Any, *parts: Any) -> list[Any]:
    """Return copies of a model and of the parts that are learned with it, all from one moment between two blocks."""
    copied, copies = zip(*map(twin, (model, *parts)), strict=True)
    copied[0].clock = Clock.of(_core.copy_model(model.clock, list(chain(*copies))))
    return list(copied)


def can_change(*parts: Any) -> bool:
    """Return whether no array is read-only, as memory-mapped ones are."""
    arrays = [getattr(part, name) for part in parts for name in part.in_place]
    return all(array is None or array.flags.writeable for array in arrays)


def copy_arrays(copies: Copies) -> None:
    """Copy arrays as the core does."""
    for to, source in copies:
        to[...] = source
