"""Load the rows that measurements run on, and measure their time."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

import numpy as np

from isokern.data import load_dataset
from isokern.data.catalogue import Dataset
from isokern.experiments import settings
from isokern.experiments.experiment import Cell, Plan


def load_rows(cell: Cell, plan: Plan, max_rows: settings.MaxRows = settings.ROWS) -> Dataset:
    """Return a cell's data set with two classes and rows shuffled by its seed; at quick scale a sample of them."""
    load, source = _load_sample if plan.is_quick else _load_shuffled, cell.get("source", cell["dataset"])
    return load(str(source), plan.folder, cell["seed"], *max_rows[plan.scale])


def _load_shuffled(name: str, folder: Path | None, seed: int, n_train: int | None, n_test: int | None) -> Dataset:
    data, rng = _load(name, folder), np.random.default_rng(seed)
    train, test = (rng.permutation(len(y))[:n] for y, n in ((data.y_train, n_train), (data.y_test, n_test)))
    return Dataset(data.X_train[train], data.y_train[train], data.X_test[test], data.y_test[test], data.name)


_load_sample = lru_cache(maxsize=None)(_load_shuffled)  # samples are small, and most experiments use the same


@lru_cache(maxsize=1)  # the cells of a data set follow one another
def _load(name: str, folder: Path | None) -> Dataset:
    return load_dataset(name, folder, two_classes=True, download=False)


class Stopwatch:
    """CPU seconds of this process since the watch was made; other programs on the machine hardly change them."""

    def __init__(self) -> None:
        self._begin = time.process_time()

    @property
    def elapsed(self) -> float:
        """CPU seconds so far."""
        return time.process_time() - self._begin

    def has_passed(self, limit: float) -> bool:
        """Return whether more seconds have elapsed; a run that checks this can keep what it measured so far."""
        return self.elapsed > limit

    def seconds(self, prefix: str = "") -> dict[str, float]:
        """Return the time under its key in records."""
        return {f"{prefix}seconds": self.elapsed}


class Laps:
    """Seconds spent on each part of a loop."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)

    @contextmanager
    def of(self, part: str) -> Iterator[None]:
        """Add the time of a ``with`` block to a part."""
        watch = Stopwatch()
        yield
        self.seconds[part] += watch.elapsed
