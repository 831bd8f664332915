"""Time spent, as every record has it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Stopwatch:
    """Elapsed seconds and CPU seconds of this process, from when it was made."""

    def __init__(self) -> None:
        self._elapsed, self._cpu = time.perf_counter(), time.process_time()

    @property
    def elapsed(self) -> float:
        """Elapsed seconds so far."""
        return time.perf_counter() - self._elapsed

    def seconds(self, prefix: str = "") -> dict[str, float]:
        """Return both times so far, as a record has them: ``seconds`` and ``cpu_seconds``.

        Examples
        --------
        >>> from isokern.experiments.measuring import Stopwatch
        >>> sorted(Stopwatch().seconds("cv_"))
        ['cv_cpu_seconds', 'cv_seconds']
        """
        return {f"{prefix}seconds": self.elapsed, f"{prefix}cpu_seconds": time.process_time() - self._cpu}


class Laps:
    """Seconds spent on each of several parts of a loop.

    Examples
    --------
    >>> from isokern.experiments.measuring import Laps
    >>> laps = Laps()
    >>> for part in ("map", "learn", "map"):
    ...     with laps.of(part):
    ...         pass
    >>> sorted(laps.seconds)
    ['learn', 'map']
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.cpu_seconds: dict[str, float] = {}

    @contextmanager
    def of(self, part: str) -> Iterator[None]:
        """Add the time of a ``with`` block to a part's."""
        watch = Stopwatch()
        yield
        spent = watch.seconds()
        self.seconds[part] = self.seconds.get(part, 0.0) + spent["seconds"]
        self.cpu_seconds[part] = self.cpu_seconds.get(part, 0.0) + spent["cpu_seconds"]
