"""The command line as its tests drive it, within this process or in one of its own, and small files for it."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import warnings
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import numpy as np
import pytest

import isokern
from isokern.cli import main
from isokern.data import write_libsvm

COMMAND = [sys.executable, "-c", "from isokern.cli import main; main()"]
NAMES = ["a", "b", "c", "d"]

# A run along a stream that is long enough to be stopped.
N_ROWS, INITIAL, BLOCK = 2500, 100, 20
RUN = ("--initial", INITIAL, "--block", BLOCK, "--threads", 1)
CELLS = ("--partitionings", 10, "--cells", 16)
OUTPUTS = ("--records", "records", "--predictions", "predictions", "--out", "model")


class Done(NamedTuple):
    """How a command ended, and what it printed."""

    code: int
    out: str
    err: str

    @property
    def facts(self):
        """The printed names and values."""
        return dict(line.split(maxsplit=1) for line in self.out.splitlines())


def run(folder, *arguments, stdin=""):
    """Run a command in a folder, within this process: what its own process would do, without the wait for imports."""
    given, out, err = (io.TextIOWrapper(io.BytesIO(text.encode()), write_through=True) for text in (stdin, "", ""))
    with (
        chdir(folder),
        patch.object(sys, "argv", ["isokern", *map(str, arguments)]),
        patch.object(sys, "stdin", given),
        patch.object(warnings, "showwarning", warnings.showwarning),
        redirect_stdout(out),
        redirect_stderr(err),
        pytest.raises(SystemExit) as ended,
    ):
        main()
    return Done(ended.value.code or 0, *(stream.buffer.getvalue().decode() for stream in (out, err)))


def succeed(folder, *arguments, stdin=""):
    """Run a command that must have nothing to complain of."""
    done = run(folder, *arguments, stdin=stdin)
    assert (done.code, done.err) == (0, "")
    return done


def start(folder, *arguments, **options):
    """Start a command in a process of its own."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    there = os.environ | {"PYTHONPATH": str(Path(isokern.__file__).parents[1]), "PYTHONUNBUFFERED": ""}
    return subprocess.Popen([*COMMAND, *map(str, arguments)], cwd=folder, env=there, text=True, **pipes | options)


def finish(process, given=None):
    """Wait for the end of a process."""
    out, err = process.communicate(given, timeout=60)
    return Done(process.returncode, out, err)


def make_table(n=600):
    """Return rows of four columns, of few digits, and whether the first two have the same sign, as 1 and -1."""
    X = np.random.default_rng(0).normal(size=(n, 4)).round(3)
    return X, np.where(X[:, 0] * X[:, 1] > 0, 1, -1)


def write_csv(path, X, y, names=NAMES):
    """Write rows and, as the last column, labels; None is an empty field."""
    lines = [",".join([*map(str, row), "" if label is None else str(label)]) for row, label in zip(X, y, strict=True)]
    path.write_text("\n".join([",".join([*names, "kind"]), *lines, ""]))


def write_files(folder, n=600):
    """Write the same rows as LIBSVM text, CSV with text for labels, and Parquet; return them."""
    X, y = make_table(n)
    write_libsvm(folder / "rows.txt", X, y)
    write_libsvm(folder / "rows.txt.xz", X, y)
    write_csv(folder / "rows.csv", X, np.where(y > 0, "same", "other"))
    return X, y


def without_times(record):
    """Return what does not differ from run to run."""
    return {name: value for name, value in record.items() if "seconds" not in name}


def read_records(path):
    """Return records without what differs from run to run."""
    lines = path.read_text().splitlines()
    return [without_times(json.loads(line, parse_constant=pytest.fail)) for line in lines]


def end_of(folder):
    """Return all that a run leaves that must not depend on how often it was stopped."""
    return read_records(folder / "records"), (folder / "predictions").read_text(), (folder / "model").read_bytes()


def untroubled(folder, *arguments):
    """Return what a run leaves that is never stopped, and how well it did."""
    facts = succeed(folder, "stream", *arguments, *RUN, *CELLS, *OUTPUTS).facts
    return end_of(folder), facts["accuracy"]
