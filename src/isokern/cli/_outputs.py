"""Write the records and predictions of a stream; a resumed run truncates them to where its checkpoint was."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO

from isokern.cli._input import label_text
from isokern.evaluation import Record


class Outputs:
    """The files of records, one per block, and predictions, one per row; "-" is standard output, None no file."""

    def __init__(self, records: str | None, predictions: str | None) -> None:
        paths = {"records": records, "predictions": predictions}
        self._paths = {name: path for name, path in paths.items() if path is not None}
        self._files: dict[str, BinaryIO] = {}
        self._is_csv = records is not None and records.endswith(".csv")

    def open(self, sizes: dict[str, int] | None = None) -> None:
        """Begin empty files, or continue files after their first ``sizes`` bytes."""
        for name, path in self._paths.items():
            size = 0 if sizes is None else sizes[name]
            self._files[name] = sys.stdout.buffer if path == "-" else _open_after(path, size)
        self._has_header = sizes is not None and sizes["records"] > 0

    def add(self, record: Record) -> None:
        """Write the record and the predictions of a block."""
        numbers = plain_numbers(record)
        if not self._is_csv:
            self._write("records", json.dumps(numbers) + "\n")
        elif not self._has_header:
            self._write("records", _csv_line(numbers) + _csv_line(numbers.values()))
        else:
            self._write("records", _csv_line(numbers.values()))
        self._has_header = True
        if record.predictions is not None:
            labels = record.predictions.tolist()
            lines_of = {label: f"{label_text(label)}\n" for label in set(labels)}  # a long stream has few labels
            self._write("predictions", "".join(lines_of[label] for label in labels))

    def sync(self) -> dict[str, int]:
        """Flush the files to the disk and return their sizes, 0 for what is not a file."""
        sizes = {"records": 0, "predictions": 0}
        for name, file in self._files.items():
            if os.path.isfile(self._paths[name]):  # devices and pipes cannot be synced
                os.fsync(file.fileno())
                sizes[name] = file.tell()
        return sizes

    def close(self) -> None:
        """Close the files."""
        for name, file in self._files.items():
            if self._paths[name] != "-":
                with suppress(OSError):  # flushing again what could not be written
                    file.close()

    def _write(self, name: str, text: str) -> None:
        if name in self._files:
            with naming(self._paths[name]):
                self._files[name].write(text.encode())
                self._files[name].flush()  # other programs may follow the file


def _open_after(path: str, size: int) -> BinaryIO:
    """Open a file to append after its first bytes; what follows them is dropped."""
    if size and (not os.path.isfile(path) or os.path.getsize(path) < size):
        raise ValueError(f"{path} must have at least the {size:,} bytes that it had at the checkpoint.")
    file = open(path, "r+b" if size else "wb")  # noqa: SIM115
    if size:
        file.truncate(size)
        file.seek(size)
    return file


@contextmanager
def naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """Add a path to system errors that lack one, such as that of a full disk."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and error.filename is None:
            error.filename = os.fspath(path)
        raise


def plain_numbers(record: Record) -> dict[str, Any]:
    """Return a record's numbers by name; NaN, which JSON does not have, becomes None."""
    numbers = record.as_dict().items()
    return {name: None if isinstance(value, float) and math.isnan(value) else value for name, value in numbers}


def _csv_line(numbers: Iterable[Any]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(numbers)
    return line.getvalue()
