"""Run a learner along a stream, with checkpoints from which a killed run continues bit for bit."""

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
_OF_ONE_BLOCK = ("block_accuracy", "map_seconds", "predict_seconds", "learn_seconds")


class Run:
    """A prequential evaluation with its outputs, its totals and its position in the stream."""

    def __init__(self, learner: Any, settings: dict[str, Any], outputs: Outputs) -> None:
        self.settings, self.outputs = settings, outputs
        self.n_blocks, self.n_rows, self.checksum, self.is_done = 0, 0, 0, False
        self.seconds = {"map_seconds": 0.0, "predict_seconds": 0.0, "learn_seconds": 0.0}
        self.evaluation = self._evaluation_of(learner)
        self.result: dict[str, Any] = {}  # of all rows so far

    @property
    def learner(self) -> Any:
        """The learner in its current state."""
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
        self.result = {name: value for name, value in record.as_dict().items() if name not in _OF_ONE_BLOCK}
        return record

    def finish(self) -> None:
        """Learn the blocks whose labels are late."""
        self.evaluation.finish()
        self.is_done = True

    def skip(self, blocks: Iterator[tuple[Any, Any]]) -> None:
        """Skip the blocks that were learned before the checkpoint; raise if they have changed."""
        checksum = 0
        for _ in range(self.n_blocks):
            X, y = next(blocks, (np.empty((0, 0)), None))
            checksum = _checksum(X, y, checksum)
        if checksum != self.checksum:
            raise ValueError(f"--resume needs the same input; got other rows among the first {self.n_rows:,}.")

    def save(self, folder: Path) -> None:
        """Write a checkpoint that replaces the previous one."""
        state = {
            "settings": self.settings,
            "sizes": self.outputs.sync(),
            "evaluation": self.evaluation.state(),
            "learner": self.learner,
            **{name: getattr(self, name) for name in _COUNTS},
        }
        persistence.write_file(folder / _CHECKPOINT, state)

    def load(self, folder: Path) -> None:
        """Continue from the checkpoint in a folder."""
        state = persistence.read_file(folder / _CHECKPOINT)
        if not isinstance(state, dict) or "settings" not in state:
            raise ValueError(f"{folder / _CHECKPOINT} must be a checkpoint; got another isokern file.")
        for name, value in self.settings.items():
            before = state["settings"].get(name)
            if value != before:
                raise ValueError(f"--resume needs the options of the first run: {name} was {before!r}; got {value!r}.")
        self.evaluation = self._evaluation_of(state["learner"]).restore(state["evaluation"])
        for name in _COUNTS:
            setattr(self, name, state[name])
        self.outputs.open(state["sizes"])

    def _evaluation_of(self, learner: Any) -> Prequential:
        return Prequential(learner, **{name: self.settings[name] for name in ("classes", "delay", "metrics")})


class Checkpoints:
    """Checkpoints of a run in a folder; None writes none."""

    def __init__(self, folder: str | None, seconds: float) -> None:
        self._folder = None if folder is None else Path(folder)
        self._seconds, self._last = seconds, time.monotonic()

    def begin(self, run: Run, *, resume: bool) -> None:
        """Start a new run, or continue the one in the folder if there is one."""
        if self._folder is not None:
            os.makedirs(self._folder, exist_ok=True)
            for unfinished in self._folder.glob(f".{_CHECKPOINT}.*.part"):  # of a run that was killed
                unfinished.unlink()
            if (self._folder / _CHECKPOINT).exists():
                if not resume:
                    raise ValueError(
                        f"{self._folder} has a checkpoint; add --resume to continue, or change the folder."
                    )
                run.load(self._folder)
                return
        run.outputs.open()

    def save_if_due(self, run: Run) -> None:
        """Write a checkpoint if the last one is old enough."""
        if time.monotonic() - self._last >= self._seconds:
            self.save(run)

    def save(self, run: Run) -> None:
        """Write a checkpoint."""
        if self._folder is not None:
            run.save(self._folder)
        self._last = time.monotonic()


def _checksum(X: Any, y: Any, before: int) -> int:
    """Return the CRC-32 of all blocks so far."""
    arrays = [X.data, X.indices, X.indptr] if sparse.issparse(X) else [X]
    for array in arrays:
        before = zlib.crc32(np.ascontiguousarray(array).data, before)
    labels = "" if y is None else "\n".join(map(str, y.tolist()))
    return zlib.crc32(labels.encode(), before)
