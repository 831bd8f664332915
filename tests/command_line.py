"""Run the command line in tests, in this process or in one of its own, and write small input files for it."""

from __future__ import annotations

import io
import json
import os
import signal
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
PATIENCE = 600  # seconds after which a process has hung; long, because the machine may be busy
NAMES = ["a", "b", "c", "d"]

# Options of small models, and of a stream that is long enough to be stopped.
SMALL = ("--partitionings", 10, "--threads", 1)
N_ROWS, INITIAL, BLOCK = 2500, 100, 20
WITHOUT_INITIAL = ("--block", BLOCK, "--threads", 1)
RUN = ("--initial", INITIAL, *WITHOUT_INITIAL)
CELLS = ("--partitionings", 10, "--cells", 16)
OUTPUTS = ("--records", "records", "--predictions", "predictions", "--out", "model")


class Done(NamedTuple):
    """The exit code of a command, and what it printed."""

    code: int
    out: str
    err: str

    @property
    def facts(self):
        """The printed names and values."""
        return dict(line.split(maxsplit=1) for line in self.out.splitlines())


def run(folder, *arguments, stdin=""):
    """Run a command in a folder, within this process, which saves the time to import everything."""
    on_interrupt = signal.getsignal(signal.SIGINT)
    given = io.TextIOWrapper(io.BufferedReader(io.BytesIO(stdin.encode())))
    out, err = (io.TextIOWrapper(io.BytesIO(), write_through=True) for _ in range(2))
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
    signal.signal(signal.SIGINT, on_interrupt)
    return Done(ended.value.code or 0, *(stream.buffer.getvalue().decode() for stream in (out, err)))


def succeed(folder, *arguments, stdin=""):
    """Run a command that must succeed without a warning."""
    done = run(folder, *arguments, stdin=stdin)
    assert (done.code, done.err) == (0, "")
    return done


def fail(folder, *arguments, code=1):
    """Run a command that must print one line, an error, and nothing else; return that line."""
    return error_of(run(folder, *arguments), code)


def error_of(done, code=1):
    """Return the only line that a command has printed, an error."""
    assert (done.code, done.out) == (code, "")
    (line,) = done.err.splitlines()
    assert line.startswith("error: ") and "Traceback" not in line
    return line


def start(folder, *arguments, command=COMMAND, **options):
    """Start a command in a process of its own."""
    environment = os.environ | {"PYTHONPATH": str(Path(isokern.__file__).parents[1]), "PYTHONUNBUFFERED": ""}
    options = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE) | options
    return subprocess.Popen([*command, *map(str, arguments)], cwd=folder, env=environment, text=True, **options)


def finish(process, given=None):
    """Wait for the end of a process."""
    out, err = process.communicate(given, timeout=PATIENCE)
    return Done(process.returncode, out, err)


def make_table(n=600):
    """Return rows of four columns, and 1 or -1: whether the first two have the same sign."""
    X = np.random.default_rng(0).normal(size=(n, 4)).round(3)
    return X, np.where(X[:, 0] * X[:, 1] > 0, 1, -1)


def write_csv(path, X, y, names=NAMES):
    """Write rows, with labels as the last column; None is an empty field."""
    lines = [",".join([*map(str, row), "" if label is None else str(label)]) for row, label in zip(X, y, strict=True)]
    path.write_text("\n".join([",".join([*names, "kind"]), *lines, ""]))


def write_files(folder, n=600):
    """Write the same rows as LIBSVM text, compressed LIBSVM text, and CSV with strings as labels; return them."""
    X, y = make_table(n)
    write_libsvm(folder / "rows.txt", X, y)
    write_libsvm(folder / "rows.txt.xz", X, y)
    write_csv(folder / "rows.csv", X, np.where(y > 0, "same", "other"))
    return X, y


def without_times(record):
    """Return the part of a record that does not differ from run to run."""
    return {name: value for name, value in record.items() if "seconds" not in name}


def read_records(path):
    """Return the records in a file, without times."""
    lines = path.read_text().splitlines()
    return [without_times(json.loads(line, parse_constant=pytest.fail)) for line in lines]


def results_in(folder):
    """Return the outputs of a run, which must not depend on how often it was stopped."""
    return read_records(folder / "records"), (folder / "predictions").read_text(), (folder / "model").read_bytes()


def whole_run(folder, *arguments):
    """Return the outputs of a run that is never stopped, and its accuracy."""
    facts = succeed(folder, "stream", *arguments, *RUN, *CELLS, *OUTPUTS).facts
    return results_in(folder), facts["accuracy"]
