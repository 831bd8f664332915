"""Files that grow along a stream, and can be cut back to where a checkpoint was."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import sys
from typing import Any, BinaryIO

from isokern.cli._input import label_lines
from isokern.evaluation import Record


class GrowingFile:
    """A file to which text is added; "-" is standard output, None no file at all."""

    def __init__(self, path: str | None) -> None:
        self.path = path
        self._file: BinaryIO | None = None

    def open(self, size: int) -> None:
        """Begin after the first ``size`` bytes of what is there."""
        if self.path == "-":
            self._file = sys.stdout.buffer
        elif self.path is not None:
            if size and (not os.path.isfile(self.path) or os.path.getsize(self.path) < size):
                raise ValueError(f"--resume needs {self.path} as it was left, with at least {size:,} bytes.")
            self._file = open(self.path, "r+b" if size else "wb")  # noqa: SIM115
            if size:
                self._file.truncate(size)
                self._file.seek(size)

    def write(self, text: str) -> None:
        """Add text, for others to read at once."""
        if self._file is not None:
            self._file.write(text.encode())
            self._file.flush()

    def sync(self) -> int:
        """Make sure that all of it is on the disk, and return its size."""
        if self._file is None or self.path == "-":
            return 0
        os.fsync(self._file.fileno())
        return self._file.tell()

    def close(self) -> None:
        """End."""
        if self._file is not None and self.path != "-":
            self._file.close()


class Outputs:
    """What a run along a stream writes, a line for each block or row."""

    def __init__(self, records: str | None, predictions: str | None) -> None:
        self._as_csv = records is not None and records.endswith(".csv")
        self._files = {"records": GrowingFile(records), "predictions": GrowingFile(predictions)}

    def open(self, sizes: dict[str, int] | None) -> None:
        """Begin anew, or after what had been written by a checkpoint."""
        for name, file in self._files.items():
            file.open(0 if sizes is None else sizes[name])
        self._has_header = sizes is not None and sizes["records"] > 0

    def add(self, record: Record) -> None:
        """Write what came of a block."""
        numbers = plain_numbers(record)
        if self._as_csv:
            lines = [numbers.values()] if self._has_header else [numbers.keys(), numbers.values()]
            self._files["records"].write(_csv_text(lines))
        else:
            self._files["records"].write(json.dumps(numbers) + "\n")
        self._has_header = True
        if record.predictions is not None:
            self._files["predictions"].write(label_lines(record.predictions))

    def sync(self) -> dict[str, int]:
        """Make sure that all of it is on the disk, and return the files' sizes."""
        return {name: file.sync() for name, file in self._files.items()}

    def close(self) -> None:
        """End."""
        for file in self._files.values():
            file.close()


def plain_numbers(record: Record) -> dict[str, Any]:
    """Return a record's numbers by name; NaN, which JSON does not have, becomes None."""
    numbers = record.as_dict().items()
    return {name: None if isinstance(value, float) and math.isnan(value) else value for name, value in numbers}


def _csv_text(rows: Any) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()
