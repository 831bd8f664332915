"""Records that are kept as they come, so that an interrupted run goes on where it stopped."""

from __future__ import annotations

import json
import os
import zlib
from pathlib import Path
from typing import Any

import isokern
from isokern.data import list_datasets
from isokern.experiments.datasets import at_hand
from isokern.experiments.experiment import Cell, Plan, Record, is_out_of_time, is_stopped


class Records:
    """What is known of an experiment's cells: a line of JSON for each that was measured, the last one counts.

    A line belongs to a cell at a scale, on the same files, by the same version of the library.

    Parameters
    ----------
    path : Path or None
        The file; with None, nothing is kept.
    plan : Plan
    fresh : bool, default=False
        Whether to forget what the file holds.
    """

    def __init__(self, path: Path | None, plan: Plan, *, fresh: bool = False) -> None:
        self._path, self._plan = path, plan
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            if fresh:
                path.unlink(missing_ok=True)
        lines = [] if path is None else _whole_lines(path)
        self._lines = {_key(line): line for line in lines}

    def find(self, cell: Cell) -> Record | None:
        """Return the record of a cell, or None if it is to be measured: for the first time, or once more."""
        line = self._lines.get(_key(self._line(cell)))
        return None if line is None or self._is_worth_another_try(line) else _record(line)

    def add(self, cell: Cell, result: dict[str, Any]) -> Record:
        """Keep what was measured, and return the record."""
        text = json.dumps(self._line(cell) | {"result": result}, default=_plain)
        if self._path is not None:
            with open(self._path, "a", encoding="utf-8") as file:
                file.write(text + "\n")
        return _record(json.loads(text))

    def _line(self, cell: Cell) -> dict[str, Any]:
        plan = self._plan
        return {
            "cell": cell,
            "scale": plan.scale,
            "files": _fingerprint(cell.get("dataset"), plan),
            "version": isokern.__version__,
            "time_limit": plan.time_limit,
        }

    def _is_worth_another_try(self, line: dict[str, Any]) -> bool:
        """Return whether a cell came to no end for a reason that may be gone."""
        has_more_time = self._plan.time_limit > line["time_limit"]
        return is_stopped(line["result"]) and (has_more_time or not is_out_of_time(line["result"]))


def _record(line: dict[str, Any]) -> Record:
    """Return a line's record; one that ran out of time says at which limit, which may not be that of the plan."""
    limit = {"time_limit": line["time_limit"]} if is_out_of_time(line["result"]) else {}
    return line["cell"] | line["result"] | limit


def _key(line: dict[str, Any]) -> str:
    return json.dumps([line[name] for name in ("cell", "scale", "files", "version")], sort_keys=True, default=_plain)


def _fingerprint(dataset: str | None, plan: Plan) -> str:
    """Return what tells the files of a data set from others: a checksum of their names and sizes."""
    found = at_hand(plan, (dataset,)).get(dataset) if dataset else None
    if found is None:
        return ""
    (info,) = (info for info in list_datasets(stand_ins=True) if info.name == found)
    files = [(path.name, path.stat().st_size) for path in info.find(plan.folder) or ()]
    return f"{zlib.crc32(repr(files).encode()):08x}"


def _whole_lines(path: Path) -> list[dict[str, Any]]:
    """Return a file's lines; the last one, if it was not written to its end, is cut off."""
    if not path.exists():
        return []
    text = path.read_bytes()
    whole = text[: text.rfind(b"\n") + 1]
    if len(whole) < len(text):
        os.truncate(path, len(whole))
    return [_parsed(line, path, number) for number, line in enumerate(whole.splitlines(), start=1)]


def _parsed(line: bytes, path: Path, number: int) -> dict[str, Any]:
    try:
        parsed = json.loads(line)
        _key(parsed), parsed["result"].get("stopped"), parsed["time_limit"]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{path}, line {number}: must be a record of a run; got {line[:40]!r}. Delete it, or begin with --fresh."
        ) from error
    return parsed


def _plain(value: Any) -> Any:
    """Return a NumPy value as JSON has it."""
    return value.tolist()
