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
    """A prequential evaluation with its outputs, its totals, its position in the stream and its checkpoints.

    ``folder`` is the folder for checkpoints, None for no checkpoints; ``every`` is the seconds between them.
    """

    def __init__(
        self, learner: Any, settings: dict[str, Any], outputs: Outputs, *, folder: str | None, every: float
    ) -> None:
        self.settings, self.outputs = settings, outputs
        self._checkpoint = None if folder is None else Path(folder) / _CHECKPOINT
        self._every, self._last_saved = every, time.monotonic()
        self.n_blocks, self.n_rows, self.checksum, self.is_done = 0, 0, 0, False
        self.seconds = {"map_seconds": 0.0, "predict_seconds": 0.0, "learn_seconds": 0.0}
        self.evaluation = self._evaluation_of(learner)
        self.result: dict[str, Any] = {}  # of all rows so far

    @property
    def learner(self) -> Any:
        """The learner in its current state."""
        return self.evaluation.learner

    def start(self, *, resume: bool) -> None:
        """Start anew, or continue from the checkpoint if there is one."""
        if self._checkpoint is not None:
            os.makedirs(self._checkpoint.parent, exist_ok=True)
            for unfinished in self._checkpoint.parent.glob(f".{_CHECKPOINT}.*.part"):  # of a run that was killed
                unfinished.unlink()
        if self._checkpoint is None or not self._checkpoint.exists():
            self.outputs.open()
        elif resume:
            self._load(self._checkpoint)
        else:
            folder = self._checkpoint.parent
            raise ValueError(f"{folder} has a checkpoint; add --resume to continue, or change the folder.")

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

    def save_if_due(self) -> None:
        """Write a checkpoint if the last one is old enough."""
        if time.monotonic() - self._last_saved >= self._every:
            self.save()

    def save(self) -> None:
        """Write a checkpoint that replaces the previous one."""
        if self._checkpoint is not None:
            state = {
                "settings": self.settings,
                "sizes": self.outputs.sync(),
                "evaluation": self.evaluation.state(),
                "learner": self.learner,
                **{name: getattr(self, name) for name in _COUNTS},
            }
            persistence.write_file(self._checkpoint, state)
        self._last_saved = time.monotonic()

    def _load(self, path: Path) -> None:
        state = persistence.read_file(path)
        if not isinstance(state, dict) or "settings" not in state:
            raise ValueError(f"{path} must be a checkpoint; got another isokern file.")
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


def _checksum(X: Any, y: Any, before: int) -> int:
    """Return the CRC-32 of all blocks so far."""
    arrays = [X.data, X.indices, X.indptr] if sparse.issparse(X) else [X]
    for array in arrays:
        before = zlib.crc32(np.ascontiguousarray(array).data, before)
    labels = "" if y is None else "\n".join(map(str, y.tolist()))
    return zlib.crc32(labels.encode(), before)
