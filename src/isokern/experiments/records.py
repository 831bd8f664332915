"""Keep measurements in a file as they come, so that an interrupted run can resume."""

from __future__ import annotations

import json
import os
import zlib
from collections import defaultdict
from pathlib import Path
from typing import Any

import isokern
from isokern.data import list_datasets
from isokern.experiments.clocks import Run
from isokern.experiments.experiment import Cell, Plan, Record, is_out_of_time, is_stopped
from isokern.experiments.plan import available
from isokern.system import processor


class Records:
    """The records of an experiment: a file with a line of JSON for each measurement; the last line of a cell counts.

    A line is valid for one cell, scale, set of data files and release of the library, or a development version of it.
    With ``path=None`` nothing is kept; ``fresh`` deletes the file first.
    """

    def __init__(self, path: Path | None, plan: Plan, *, fresh: bool = False) -> None:
        self._path, self._plan = path, plan
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            if fresh:
                path.unlink(missing_ok=True)
        self._n_lines = 0
        self._runs: dict[str, list[Run]] = defaultdict(list)
        for line in _read_lines(path):
            self._append(line)

    def find(self, cell: Cell) -> Record | None:
        """Return the record of a cell, or None if the cell must be measured, for the first time or again."""
        record = self.latest(cell)
        return None if record is None or self._must_repeat(record) else record

    def latest(self, cell: Cell) -> Record | None:
        """Return the record of a cell, if there is one, even if the cell should be measured again."""
        runs = self.runs(cell)
        return runs[-1].record if runs else None

    def runs(self, cell: Cell) -> list[Run]:
        """Return all measurements of a cell, the latest last."""
        return self._runs.get(_key(self._line(cell)), [])

    def add(self, cell: Cell, result: dict[str, Any]) -> Record:
        """Append a measurement to the file and return the record."""
        text = json.dumps(self._line(cell) | {"machine": processor(), "result": result}, default=_plain)
        if self._path is not None:
            with open(self._path, "a", encoding="utf-8") as file:
                file.write(text + "\n")
        return self._append(json.loads(text))

    def _append(self, line: dict[str, Any]) -> Record:
        record = _record(line)
        self._runs[_key(line)].append(Run(self._n_lines, line.get("machine", ""), record))
        self._n_lines += 1
        return record

    def _line(self, cell: Cell) -> dict[str, Any]:
        return {
            "cell": cell,
            "scale": self._plan.scale,
            "files": _fingerprint(cell.get("dataset"), self._plan),
            "version": isokern.__version__,
            "time_limit": self._plan.time_limit,
        }

    def _must_repeat(self, record: Record) -> bool:
        """Return whether a stopped measurement may finish now: with more time, or after an error."""
        has_more_time = is_out_of_time(record) and self._plan.time_limit > record["time_limit"]
        return is_stopped(record) and (has_more_time or not is_out_of_time(record))


def _record(line: dict[str, Any]) -> Record:
    """Return a line's record; one that ran out of time has its own limit, which may differ from the plan's."""
    limit = {"time_limit": line["time_limit"]} if is_out_of_time(line["result"]) else {}
    return line["cell"] | line["result"] | limit


def _key(line: dict[str, Any]) -> str:
    release = str(line["version"]).partition(".dev")[0]
    return json.dumps([line["cell"], line["scale"], line["files"], release], sort_keys=True, default=_plain)


def _fingerprint(dataset: str | None, plan: Plan) -> str:
    """Return a checksum of the names and sizes of a data set's files."""
    source = available(plan, [dataset]).get(dataset) if dataset else None
    if source is None:
        return ""
    (info,) = (info for info in list_datasets(stand_ins=True) if info.name == source)
    files = [(path.name, path.stat().st_size) for path in info.find(plan.folder) or ()]
    return f"{zlib.crc32(repr(files).encode()):08x}"


def _read_lines(path: Path | None) -> list[dict[str, Any]]:
    """Return the lines of a file; cut off an incomplete last line, which a killed run leaves behind."""
    if path is None or not path.exists():
        return []
    text = path.read_bytes()
    complete = text[: text.rfind(b"\n") + 1]
    if len(complete) < len(text):
        os.truncate(path, len(complete))
    return [_parse(line, path, number) for number, line in enumerate(complete.splitlines(), start=1)]


def _parse(line: bytes, path: Path, number: int) -> dict[str, Any]:
    try:
        parsed = json.loads(line)
        _key(parsed), parsed["result"].get("stopped"), parsed["time_limit"]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{path}, line {number}: must be a record of a run; got {line[:40]!r}. Delete it, or start with --fresh."
        ) from error
    return parsed


def _plain(value: Any) -> Any:
    """Return a NumPy value as a JSON value."""
    return value.tolist()
