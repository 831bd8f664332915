"""A run along a stream that can be killed at any moment and gone on with, bit for bit."""

from __future__ import annotations

import os
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from isokern import persistence
from isokern.cli._input import labelled
from isokern.cli._outputs import Outputs
from isokern.evaluation import Prequential, Record

_CHECKPOINT = "checkpoint.isokern"
_COUNTS = ("n_blocks", "n_rows", "checksum", "is_done", "seconds", "result")
_OF_A_BLOCK = ("block_accuracy", "map_seconds", "predict_seconds", "learn_seconds")


class Run:
    """Blocks predicted and then learned, what came of it, and where it stands."""

    def __init__(self, learner: Any, settings: dict[str, Any], outputs: Outputs) -> None:
        self.settings, self.outputs = settings, outputs
        self.n_blocks, self.n_rows, self.checksum, self.is_done = 0, 0, 0, False
        self.seconds = {"map_seconds": 0.0, "predict_seconds": 0.0, "learn_seconds": 0.0}
        self.evaluation = self._evaluation_of(learner)
        self.result: dict[str, Any] = {}  # how well it has done up to the last block

    @property
    def learner(self) -> Any:
        """The learner, as far as it has come."""
        return self.evaluation.learner

    def take(self, X: Any, y: Any) -> Record:
        """Predict a block, then learn it."""
        self.checksum = _checksum(X, y, self.checksum)
        if self.n_blocks == 0 and hasattr(self.learner, "cv"):
            self.learner.fit(*labelled(X, y))  # the initial rows choose the number of cells
            record = self.evaluation.step(X[:0], y[:0])
        else:
            record = self.evaluation.step(X, y)
        self.n_blocks += 1
        self.n_rows += X.shape[0]
        for name in self.seconds:
            self.seconds[name] += getattr(record, name)
        self.outputs.add(record)
        self.result = {name: value for name, value in record.as_dict().items() if name not in _OF_A_BLOCK}
        return record

    def finish(self) -> None:
        """Learn what is left."""
        self.evaluation.finish()
        self.is_done = True

    def skip(self, blocks: Iterator[tuple[Any, Any]]) -> None:
        """Pass over the rows that were learned before, if they are the same."""
        checksum = 0
        for _ in range(self.n_blocks):
            X, y = next(blocks, (np.empty((0, 0)), None))
            checksum = _checksum(X, y, checksum)
        if checksum != self.checksum:
            raise ValueError(f"--resume needs the same input: its first {self.n_rows:,} rows are not as they were.")

    def save(self, folder: Path) -> None:
        """Write a checkpoint, in place of the one before it."""
        state = {
            "settings": self.settings,
            "sizes": self.outputs.sync(),
            "evaluation": self.evaluation.state(),
            "learner": self.learner,
            **{name: getattr(self, name) for name in _COUNTS},
        }
        persistence.write_file(folder / _CHECKPOINT, state)

    def load(self, folder: Path) -> None:
        """Go on where a checkpoint was written."""
        state = persistence.read_file(folder / _CHECKPOINT)
        if not isinstance(state, dict) or "settings" not in state:
            raise ValueError(f"{folder / _CHECKPOINT} must be a checkpoint; got another file of isokern.")
        for name, value in self.settings.items():
            if value != state["settings"].get(name):
                before = state["settings"].get(name)
                raise ValueError(f"--resume needs the options of the run before: {name} was {before!r}; got {value!r}.")
        self.evaluation = self._evaluation_of(state["learner"]).restore(state["evaluation"])
        for name in _COUNTS:
            setattr(self, name, state[name])
        self.outputs.open(state["sizes"])

    def _evaluation_of(self, learner: Any) -> Prequential:
        names = ("classes", "delay", "metrics")
        return Prequential(learner, **{name: self.settings[name] for name in names})


class Checkpoints:
    """Checkpoints of a run in a folder, not more often than every so many seconds."""

    def __init__(self, folder: str | None, seconds: float) -> None:
        self.folder = None if folder is None else Path(folder)
        self._seconds, self._last = seconds, time.monotonic()

    def begin(self, run: Run, *, resume: bool) -> None:
        """Begin a run anew, or go on with the one in the folder, if there is one."""
        if self.folder is None:
            run.outputs.open(None)
            return
        os.makedirs(self.folder, exist_ok=True)
        for unfinished in self.folder.glob(f".{_CHECKPOINT}.*.part"):  # by a run that was killed
            unfinished.unlink()
        is_there = (self.folder / _CHECKPOINT).exists()
        if is_there and not resume:
            raise ValueError(f"{self.folder} holds a checkpoint: give --resume to go on with it, or another folder.")
        if is_there:
            run.load(self.folder)
        else:
            run.outputs.open(None)

    def save_if_due(self, run: Run) -> None:
        """Write a checkpoint if the last is old enough."""
        if time.monotonic() - self._last >= self._seconds:
            self.save(run)

    def save(self, run: Run) -> None:
        """Write a checkpoint."""
        if self.folder is not None:
            run.save(self.folder)
        self._last = time.monotonic()


def _checksum(X: Any, y: Any, before: int) -> int:
    arrays = [X.data, X.indices, X.indptr] if sparse.issparse(X) else [X]
    for array in arrays:
        before = zlib.crc32(np.ascontiguousarray(array).data, before)
    labels = "" if y is None else "\n".join(map(str, y.tolist()))
    return zlib.crc32(labels.encode(), before)
