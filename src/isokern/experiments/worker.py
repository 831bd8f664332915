"""Measure cells in a worker process that ends itself at the time limit."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

from isokern.experiments.experiment import Cell, Plan
from isokern.experiments.measuring import Stopwatch
from isokern.experiments.settings import N_THREADS
from isokern.system import check_pipes_are_inherited

GRACE = 60.0  # CPU seconds beyond the limit: for reading data, and for measurements that watch the clock themselves
_LOOK = 0.5  # seconds between looks at the clock
_TIMED_OUT = 124  # exit code, that of the command timeout

_CODE = "from isokern.experiments.worker import serve; serve({}, {})"


class StoppedError(Exception):
    """A measurement did not finish; the text gives the reason."""


class Worker:
    """A process that measures one cell after another; after a timeout or a crash the next cell starts a new process.

    ``multiprocessing`` would run the user's main script again in each process, so this uses ``subprocess``.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def measure(self, function: Callable[[Cell, Plan], dict[str, Any]], cell: Cell, plan: Plan) -> dict[str, Any]:
        """Return ``function(cell, plan)`` with the CPU seconds of the cell, or raise StoppedError."""
        process = self._process or self._start()
        try:
            self._pipe.send((plan.time_limit + GRACE, function, cell, plan))
            measured, error = self._pipe.recv()
        except (EOFError, ConnectionError):
            code = process.wait()
            self.close()
            if code == _TIMED_OUT:
                raise StoppedError(f"time limit of {plan.time_limit:g} s") from None
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
                [sys.executable, "-c", _CODE.format(its_end.fileno(), os.getpid())],
                pass_fds=[its_end.fileno()],
                env=os.environ
                | dict.fromkeys(threads, str(N_THREADS))
                | {"PYTHONPATH": path, "PYTHONWARNINGS": "ignore"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
            )
        return self._process


def serve(handle: int, parent: int) -> None:
    """Measure what a parent process asks for through a pipe until it is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which kills this process
    pipe = Connection(handle)
    while True:
        try:
            limit, *work = pipe.recv()
        except EOFError:
            return
        has_ended = threading.Event()
        threading.Thread(target=_end_process, args=(limit, parent, has_ended), daemon=True).start()
        answer = _attempt(*work)
        has_ended.set()
        pipe.send(answer)


def _end_process(limit: float, parent: int, has_ended: threading.Event) -> None:
    """End this process after so many CPU seconds or if its parent has ended, unless the event comes before.

    A timer of the system could do this, too. But while one counts CPU time, Linux updates ``time.process_time`` only
    every few milliseconds.
    """
    watch = Stopwatch()
    while not has_ended.wait(_LOOK):
        if watch.has_passed(limit) or os.getppid() != parent:
            os._exit(_TIMED_OUT)


def _attempt(function: Any, cell: Cell, plan: Plan) -> tuple[dict[str, Any] | None, str]:
    """Return the measurements with the time of the whole cell, or None and the error in one line."""
    watch = Stopwatch()
    try:
        measured = function(cell, plan)
        return measured | {"cell_seconds": round(watch.elapsed, 1)}, ""
    except Exception as error:
        return None, " ".join(f"{type(error).__name__}: {error}".split()).rstrip(":")
