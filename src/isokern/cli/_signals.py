"""Handle Ctrl-C and SIGTERM: without a traceback, and between blocks instead of within one."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from isokern.cli import exit_at_once


@contextmanager
def keyboard_interrupts() -> Iterator[None]:
    """Let Ctrl-C raise KeyboardInterrupt within the block, and exit at once after it."""
    if signal.getsignal(signal.SIGINT) is not exit_at_once:
        yield
        return
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        yield
    finally:
        signal.signal(signal.SIGINT, exit_at_once)


class Interrupts:
    """Turn SIGINT and SIGTERM into KeyboardInterrupt: at once while waiting for input, else at the end of the block.

    A second signal exits at once, whatever state the work is in.
    """

    def __init__(self) -> None:
        self._is_deferred = False
        self.number: int | None = None

    @contextmanager
    def handled(self) -> Iterator[Interrupts]:
        """Handle signals within the block, and restore the former handlers after it."""
        before = {number: signal.signal(number, self._handle) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield self
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    @contextmanager
    def deferred(self) -> Iterator[None]:
        """Defer signals to the end of the block."""
        self._is_deferred = True
        try:
            yield
        finally:
            self._is_deferred = False
        if self.number is not None:
            raise KeyboardInterrupt

    def _handle(self, number: int, frame: Any) -> None:
        if self.number is not None:
            raise SystemExit(128 + number)
        self.number = number
        if not self._is_deferred:
            raise KeyboardInterrupt
