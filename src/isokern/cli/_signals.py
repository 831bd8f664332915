"""Ctrl-C, and the like, between two blocks rather than within one."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Interrupts:
    """Signals that ask to end: heeded at once while waiting for input, else as soon as a block is done.

    A second signal ends at once in any case, and leaves everything as it stands, whole or not.
    """

    def __init__(self) -> None:
        self._is_busy = False
        self.number: int | None = None

    @contextmanager
    def heeded(self) -> Iterator[Interrupts]:
        """Let Ctrl-C and a request to terminate raise KeyboardInterrupt, when it does no harm."""
        before = {number: signal.signal(number, self._heed) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield self
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    @contextmanager
    def put_off(self) -> Iterator[None]:
        """Put them off to the end of the block."""
        self._is_busy = True
        try:
            yield
        finally:
            self._is_busy = False
        if self.number is not None:
            raise KeyboardInterrupt

    def _heed(self, number: int, frame: Any) -> None:
        if self.number is not None:
            raise SystemExit(128 + number)
        self.number = number
        if not self._is_busy:
            raise KeyboardInterrupt
