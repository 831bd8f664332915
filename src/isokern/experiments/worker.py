"""Measure cells in a worker process that is killed at the time limit."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

from isokern.experiments.experiment import Cell, Plan
from isokern.experiments.settings import N_THREADS
from isokern.system import check_pipes_are_inherited

GRACE = 60.0  # seconds beyond the limit: for reading data, and for measurements that watch the clock themselves

_CODE = "from isokern.experiments.worker import serve; serve({})"


class StoppedError(Exception):
    """A measurement did not finish; the text gives the reason."""


class Worker:
    """A process that measures one cell after another; after a timeout or a crash the next cell starts a new process.

    ``multiprocessing`` would run the user's main script again in each process, so this uses ``subprocess``.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def measure(self, function: Callable[[Cell, Plan], dict[str, Any]], cell: Cell, plan: Plan) -> dict[str, Any]:
        """Return ``function(cell, plan)`` or raise StoppedError; the time limit excludes the start of the process."""
        process = self._process or self._start()
        try:
            self._pipe.send((function, cell, plan))
            self._pipe.recv()  # the process has started and begins
            if not self._pipe.poll(plan.time_limit + GRACE):
                raise StoppedError(f"time limit of {plan.time_limit:g} s")
            measured, error = self._pipe.recv()
        except (EOFError, ConnectionError):
            code = process.wait()
            self.close()
            how = f"by {signal.Signals(-code).name}; perhaps memory ran out" if code < 0 else f"with code {code}"
            raise StoppedError(f"its process ended {how}") from None
        except BaseException:
            self.close()
            raise
        if measured is None:
            raise StoppedError(error)
        return measured

    def close(self) -> None:
        """Kill the process."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._pipe.close()
            self._process = None

    def _start(self) -> subprocess.Popen[bytes]:
        check_pipes_are_inherited()
        threads = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
        path = os.pathsep.join(entry for entry in sys.path if entry)
        self._pipe, its_end = Pipe()
        with its_end:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _CODE.format(its_end.fileno())],
                pass_fds=[its_end.fileno()],
                env=os.environ
                | dict.fromkeys(threads, str(N_THREADS))
                | {"PYTHONPATH": path, "PYTHONWARNINGS": "ignore"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
            )
        return self._process


def serve(handle: int) -> None:
    """Measure what is asked for through a pipe until it is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which kills this process
    pipe = Connection(handle)
    while True:
        try:
            function, cell, plan = pipe.recv()
        except EOFError:
            return
        pipe.send("begun")
        pipe.send(_attempt(function, cell, plan))


def _attempt(function: Any, cell: Cell, plan: Plan) -> tuple[dict[str, Any] | None, str]:
    """Return the measurements, or None and the error in one line."""
    try:
        return function(cell, plan), ""
    except Exception as error:
        return None, " ".join(f"{type(error).__name__}: {error}".split()).rstrip(":")
