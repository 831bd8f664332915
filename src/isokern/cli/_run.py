"""Run a learner along a stream, with checkpoints from which a killed run continues bit for bit."""

from __future__ import annotations

import os
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from isokern import persistence
from isokern.cli._input import labelled
from isokern.cli._lock import FolderLock
from isokern.cli._outputs import Outputs, naming
from isokern.evaluation import Prequential, Record
from isokern.parts import is_count, need

_CHECKPOINT = "checkpoint.isokern"
_COUNTS = ("n_rows", "checksums", "is_done", "seconds")
_NO_ROWS = [0, 0, 0, 0]  # checksums
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
        self._lock: FolderLock | None = None
        self.n_rows, self.checksums, self.is_done = 0, _NO_ROWS, False
        self.seconds = {"map_seconds": 0.0, "predict_seconds": 0.0, "learn_seconds": 0.0}
        self.evaluation = self._evaluation_of(learner)

    @property
    def learner(self) -> Any:
        """The learner in its current state."""
        return self.evaluation.learner

    @property
    def result(self) -> dict[str, Any]:
        """The totals of all rows so far."""
        record = self.evaluation.step(np.empty((0, 0)), np.empty(0))  # an empty block changes nothing
        return {name: value for name, value in record.as_dict().items() if name not in _OF_ONE_BLOCK}

    def start(self, *, resume: bool) -> None:
        """Start anew, or continue from the checkpoint if there is one."""
        if self._checkpoint is not None:
            folder = self._checkpoint.parent
            if folder.exists() and not folder.is_dir():
                raise ValueError(f"--checkpoint must be a folder; got the file {folder}.")
            os.makedirs(folder, exist_ok=True)
            self._lock = FolderLock(folder)
            for unfinished in folder.glob(f".{_CHECKPOINT}.*.part"):  # of a run that was killed
                unfinished.unlink()
        if self._checkpoint is None or not self._checkpoint.exists():
            self.outputs.open()
        elif resume:
            self._load(self._checkpoint)
        else:
            raise ValueError(f"{folder} has a checkpoint; add --resume to continue, or change the folder.")

    def close(self) -> None:
        """Close the outputs, and let other runs use the folder of checkpoints."""
        self.outputs.close()
        if self._lock is not None:
            self._lock.close()

    def take(self, X: Any, y: Any) -> Record:
        """Predict and learn a block; the initial one is only learned."""
        checksums = _checksums(X, y, self.checksums)
        if self.n_rows == 0 and hasattr(self.learner, "cv"):
            self.learner.fit(*labelled(X, y))  # the initial rows choose the number of cells
            record = self.evaluation.step(X[:0], y[:0])
        elif self.n_rows == 0 and self.settings["initial"] is not None:
            record = self.evaluation.learn(X, y)
        else:
            record = self.evaluation.step(X, y)
        self.n_rows, self.checksums, self.is_done = self.n_rows + X.shape[0], checksums, False
        for name in self.seconds:
            self.seconds[name] += getattr(record, name)
        self.outputs.add(record)
        return record

    def finish(self) -> None:
        """Learn the blocks whose labels are late."""
        self.evaluation.finish()
        self.is_done = True

    def skip(self, blocks: Iterator[tuple[Any, Any]]) -> Iterator[tuple[Any, Any]]:
        """Return the blocks after the rows that the checkpoint has learned; raise if these rows have changed.

        The last block of a file that has grown since may have been learned in part; the rest of it comes first.
        """
        n_left, checksums = self.n_rows, _NO_ROWS
        while n_left and (block := next(blocks, None)) is not None:
            X, y = block
            n = min(n_left, X.shape[0])
            checksums = _checksums(X[:n], y[:n], checksums)
            n_left -= n
            if n < X.shape[0]:
                blocks = chain([(X[n:], y[n:])], blocks)
        if n_left or checksums != self.checksums:
            raise ValueError(f"--resume needs the same input; got other rows among the first {self.n_rows:,}.")
        return blocks

    def save_if_due(self) -> None:
        """Write a checkpoint if the last one is old enough."""
        if time.monotonic() - self._last_saved >= self._every:
            self.save()

    def save(self) -> None:
        """Write a checkpoint that replaces the previous one."""
        if self._checkpoint is not None and self._lock is not None:
            self._lock.check()
            state = {
                "settings": self.settings,
                "sizes": self.outputs.sync(),
                "evaluation": self.evaluation.state(),
                "learner": self.learner,
                **{name: getattr(self, name) for name in _COUNTS},
            }
            with naming(self._checkpoint):
                persistence.write_file(self._checkpoint, state)
        self._last_saved = time.monotonic()

    def _load(self, path: Path) -> None:
        state = persistence.read_file(path)
        if not (isinstance(state, dict) and isinstance(state.get("settings"), dict)):
            raise ValueError(f"{path} must be a checkpoint; got another isokern file.")
        for name, value in self.settings.items():
            before = state["settings"].get(name)
            if value != before:
                raise ValueError(f"--resume needs the options of the first run: {name} was {before!r}; got {value!r}.")
        try:
            self._restore(state)
        except ValueError as error:
            raise ValueError(f"{path}: damaged: {error} Remove {path.parent} to start anew.") from error
        self.outputs.open(state["sizes"])

    def _restore(self, state: dict[str, Any]) -> None:
        _check_dict("a checkpoint", state, {"settings", "sizes", "evaluation", "learner", *_COUNTS})
        need(is_count(state["n_rows"]), "n_rows must be an integer of at least 0")
        checksums = state["checksums"]
        need(isinstance(checksums, list) and len(checksums) == len(_NO_ROWS), "checksums must be a list of 4")
        need(all(is_count(n) and n < 2**32 for n in checksums), "checksums must be integers of 32 bits")
        need(type(state["is_done"]) is bool, "is_done must be true or false")
        _check_dict("seconds", state["seconds"], self.seconds, _is_duration)
        _check_dict("sizes", state["sizes"], {"records", "predictions"}, is_count)
        need(_options(state["learner"]) == _options(self.learner), "learner must have the options of the run")
        self.evaluation = self._evaluation_of(state["learner"]).restore(state["evaluation"])
        need(self.result["n_seen"] <= state["n_rows"], "n_seen must be at most n_rows")
        is_learned = hasattr(self.learner, "n_features_in_") and state["n_rows"] > 0
        need(is_learned or not state["evaluation"]["has_learned"], "learner must have learned rows")
        for name in _COUNTS:
            setattr(self, name, state[name])

    def _evaluation_of(self, learner: Any) -> Prequential:
        names = ("classes", "delay", "metrics", "protocol")
        return Prequential(learner, **{name: self.settings[name] for name in names})


def _checksums(X: Any, y: Any, before: list[int]) -> list[int]:
    """Continue the CRC-32 of values, columns or text, lengths of rows, and labels, however rows are cut into blocks."""
    if sparse.issparse(X):
        arrays = (X.data, X.indices, np.diff(X.indptr))
    else:
        arrays = (X, np.empty(0), np.empty(0)) if isinstance(X, np.ndarray) else (*_numbers_and_text(X), np.empty(0))
    labels = "".join(f"{label}\n" for label in y.tolist()).encode()
    parts = [*(np.ascontiguousarray(array) for array in arrays), np.frombuffer(labels, np.uint8)]
    return [zlib.crc32(part.data, checksum) for part, checksum in zip(parts, before, strict=True)]


def _numbers_and_text(table: Any) -> tuple[Any, Any]:
    """Return the numbers of a table of pyarrow, and its text as bytes, row by row."""
    columns = [np.asarray(column) for column in table.columns]
    numbers = [column for column in columns if column.dtype.kind != "O"]
    text = [column.tolist() for column in columns if column.dtype.kind == "O"]
    lines = "".join(f"{row}\n" for row in zip(*text, strict=True)).encode("utf-8", "surrogatepass")
    return np.column_stack(numbers) if numbers else np.empty(0), np.frombuffer(lines, np.uint8)


def _options(learner: Any) -> Any:
    """Return the class and the parameters of a learner, except n_initial, which a short stream has lowered."""
    parameters = learner.get_params(deep=False) if hasattr(learner, "get_params") else {}
    return type(learner), {name: repr(value) for name, value in parameters.items() if name != "n_initial"}


def _check_dict(name: str, value: Any, keys: Iterable[str], is_valid: Callable[[Any], bool] = lambda _: True) -> None:
    is_complete = isinstance(value, dict) and set(value) == set(keys)
    need(is_complete, f"{name} must have {', '.join(sorted(keys))}")
    need(all(map(is_valid, value.values())), f"{name} must be numbers of at least 0; got {value!r}")


def _is_duration(value: object) -> bool:
    return isinstance(value, float) and 0 <= value < float("inf")
