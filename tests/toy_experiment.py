"""Define an experiment for tests of the runner, in a module of its own because the worker process imports it."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import numpy as np

from isokern.experiments import Experiment, Table, Verdict

ACTIONS = {
    "square": lambda n: {"square": np.int64(n * n), "seconds": 0.25},
    "work": lambda n: sum(iter(lambda: time.process_time() < n, False)),
    "raise": lambda n: {}["a missing\nkey"],
    "die": lambda n: os.kill(os.getpid(), signal.SIGKILL),
    "exhaust": lambda n: np.empty(2**58),
    "tell": lambda n: {"pid": os.getpid(), "threads": os.environ["OMP_NUM_THREADS"]},
}


def measure(cell, plan):
    """Do what the cell says, and append its action to the cell's trace file."""
    if "trace" in cell:
        with Path(cell["trace"]).open("a", encoding="utf-8") as file:
            file.write(cell["do"])
    return ACTIONS[cell["do"]](cell["n"])


def judge(records):
    """Return the verdict whether all squares were measured."""
    holds = all("square" in record for record in records) if records else None
    return Verdict("It works.", "All squares are there.", holds, f"{len(records)} records")


def toy(*cells):
    """Return an experiment with these cells."""
    return Experiment(
        name="toy",
        title="A toy",
        cells=lambda plan: list(cells),
        measure=measure,
        table=lambda records, plan: Table(("n", "square"), [(r["n"], r.get("square")) for r in records], ("A note.",)),
        claims=(judge,),
    )


def cell(do, n=0, trace=None):
    """Return a cell; each measurement adds a word to the file at ``trace``."""
    return {"do": do, "n": n} | ({"trace": str(trace)} if trace else {})
