"""Make inputs, give them to workers, count how they end, and keep the smallest input of each fault."""

from __future__ import annotations

import hashlib
import os
import random
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from fuzz.targets import TARGETS

MEGABYTES = 1024  # for one file, on top of what the libraries take
PATIENCE = 600  # seconds of silence after which a worker has hung without using the CPU


class Worker:
    """A process that uses files; started anew when one has ended it."""

    def __init__(self, name):
        self._name, self._process = name, None

    def ending_of(self, path):
        """Return how the use of a file ended, see ``fuzz.worker``."""
        if self._process is None:
            self._process = self._start()
        self._process.stdin.write(f"{path}\n".encode())
        self._process.stdin.flush()
        ready, _, _ = select.select([self._process.stdout], [], [], PATIENCE)
        answer = self._process.stdout.readline().decode().strip() if ready else ""
        if answer:
            return answer
        if not ready:
            self._process.kill()
        code = self.stop()
        is_slow = not ready or code == -signal.SIGPROF
        return "fault hang" if is_slow else f"fault crash-{signal.Signals(-code).name if code < 0 else code}"

    def stop(self):
        """End the process, if there is one, and return its exit code."""
        process, self._process = self._process, None
        if process is None:
            return None
        process.communicate()
        return process.returncode

    def _start(self):
        tests = Path(__file__).parents[1]
        paths = [str(tests), *filter(None, [os.environ.get("PYTHONPATH")])]
        # Threads take address space, which is what is limited.
        limits = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "ARROW_NUM_THREADS": "1"}
        return subprocess.Popen(
            [sys.executable, "-m", "fuzz.worker", self._name, str(MEGABYTES)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **limits, "PYTHONPATH": os.pathsep.join(paths)},
        )


def fuzz(name, found, *, seed=0, seconds=float("inf"), most=float("inf")):
    """Fuzz one target until time or inputs are used up; return the counts of endings."""
    target, counts, start, worker = TARGETS[name], Counter(), time.monotonic(), Worker(name)
    with tempfile.TemporaryDirectory() as folder:
        seeds, work = Path(folder, "seeds"), Path(folder, "work")
        seeds.mkdir()
        work.mkdir()
        target.write_seeds(seeds)
        files = sorted(seeds.iterdir())
        while counts["tried"] < most and time.monotonic() - start < seconds:
            rng = random.Random(f"{name} {seed}")
            file = files[seed % len(files)]
            seed += 1
            try:
                content = target.change(rng, file, work / "made")
            except (LookupError, RecursionError, TypeError, ValueError):
                continue  # two changes that spoil each other
            path = work / f"input{file.suffix}"
            path.write_bytes(content)
            ending, _, fault = worker.ending_of(path).partition(" ")
            counts.update(["tried", ending])
            if fault:
                keep(found, f"{name}-{fault}", content, file.suffix)
    worker.stop()
    return counts


def keep(folder, fault, content, suffix):
    """Keep an input under the name of its fault and its hash, unless a smaller one with that fault is there."""
    folder.mkdir(parents=True, exist_ok=True)
    name = fault.replace("<", "").replace(">", "")
    for older in folder.glob(f"{name}.*"):
        if older.stat().st_size <= len(content):
            return
        older.unlink()
    digest = hashlib.blake2b(content, digest_size=4).hexdigest()
    (folder / f"{name}.{digest}{suffix}").write_bytes(content)
