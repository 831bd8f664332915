"""Tell users how far long work is: by the logger ``isokern`` and, if ``verbose`` asks for it, on standard error."""

from __future__ import annotations

import logging
import shutil
import sys
from contextlib import suppress
from time import monotonic
from typing import Any, Self

from isokern.checks import is_integer

_log = logging.getLogger("isokern")
_REDRAWN = 0.1  # seconds after which the bar of a terminal is drawn again
_REPEATED = 10.0  # seconds after which a file or a notebook gets another line
_WIDTH = 24  # characters of a bar


def check_verbose(verbose: Any) -> None:
    """Raise ValueError unless ``verbose`` is 0 or 1."""
    if not (isinstance(verbose, bool) or (is_integer(verbose, at_least=0) and verbose <= 1)):
        raise ValueError(f"verbose must be 0 or 1; got {verbose!r}.")


def tell(learner: Any, text: str, level: int = logging.INFO) -> None:
    """Log a step of a learner's work, and print it if the learner is verbose."""
    _log.log(level, "%s: %s", type(learner).__name__, text)
    if learner.verbose:
        _write(f"{type(learner).__name__}: {text}", "\n")


class Bar:
    """Show how much of its work a verbose learner has done: by a bar on a terminal, else by a line now and then.

    Use it as a context, and call ``advance`` with the number of units done.
    """

    def __init__(self, learner: Any, what: str, total: int) -> None:
        self._title, self._total, self._n = f"{type(learner).__name__}: {what}", total, 0
        self._is_shown = bool(learner.verbose)
        self._begun = self._shown = monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_shown and _is_terminal():
            _write("", "\r")

    def advance(self, n: int) -> None:
        """Count n units as done."""
        self._n += n
        if self._is_shown and monotonic() - self._shown >= (_REDRAWN if _is_terminal() else _REPEATED):
            self._shown = monotonic()
            share = min(1.0, self._n / self._total)
            left = f"{share:.0%}, {(self._shown - self._begun) * (1.0 / share - 1.0):,.0f} s left"
            if _is_terminal():
                _write(f"{self._title} [{'#' * round(_WIDTH * share):.<{_WIDTH}}] {left}", "")
            else:
                _write(f"{self._title}: {left}", "\n")


def _is_terminal() -> bool:
    with suppress(AttributeError, ValueError):  # there may be no standard error, or a closed one
        return sys.stderr.isatty()
    return False


def _write(text: str, end: str) -> None:
    """Write text over the bar that a terminal may show."""
    if _is_terminal():
        width = shutil.get_terminal_size().columns - 1
        text = f"\r{(text if end else text[:width]):<{width}}"
    with suppress(AttributeError, ValueError, OSError):  # learning goes on if nobody can read this
        sys.stderr.write(text + end)
        sys.stderr.flush()
