"""Cope with standard streams that are closed, full, or pipes whose reader has gone."""

from __future__ import annotations

import io
import os
import sys
from typing import Any


class _ClosedOutput(io.RawIOBase):
    """Standard output that was closed by the caller, as by ``>&-``."""

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        raise OSError("standard output must be open; got a closed one. Redirect it to a file or to /dev/null.")


def replace_closed_streams() -> None:
    """Replace closed standard streams: writing to standard output raises, the others are the null device.

    Otherwise the next file to be opened would get the number of a closed stream, and with it what C libraries print.
    """
    while (handle := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(handle, True)
    os.close(handle)
    if sys.stdin is None:
        sys.stdin = open(0)  # noqa: SIM115
    if sys.stdout is None:
        sys.stdout = io.TextIOWrapper(_ClosedOutput(), write_through=True)
    if sys.stderr is None:
        sys.stderr = open(2, "w")  # noqa: SIM115


def discard_unwritten() -> None:
    """Discard text that cannot be written; Python would try again at its exit, and print a traceback."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
