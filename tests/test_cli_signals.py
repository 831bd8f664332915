"""``isokern stream`` when it is killed or interrupted: a resumed run equals one that was never stopped."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import isokern
from command_line import (
    BLOCK,
    CELLS,
    INITIAL,
    N_ROWS,
    OUTPUTS,
    PATIENCE,
    RUN,
    finish,
    make_table,
    results_in,
    run,
    start,
    succeed,
    whole_run,
    write_files,
)
from isokern.cli._run import Run
from isokern.data import blocks
from isokern.evaluation import prequential

OPTIONS = (*RUN, *CELLS, *OUTPUTS, "--checkpoint", "checkpoints", "--every", 0)


@pytest.fixture
def folder(tmp_path):
    """Return a folder with one stream in several formats."""
    write_files(tmp_path, N_ROWS)
    return tmp_path


# -- kill -9


def test_runs_that_are_killed_or_run_out_of_disk_space_end_like_others(tmp_path):
    script = Path(__file__).with_name("crash.py")
    done = finish(start(tmp_path, 5, 0, command=[sys.executable, script]))
    assert (done.code, done.err) == (0, "")


# -- SIGINT and SIGTERM


def assert_learned(path, n_rows, *, are_text=False):
    """Check that a model is what Python learns from the first rows."""
    X, y = make_table(N_ROWS)
    twin = isokern.IKOGDClassifier(n_partitionings=10, n_cells=16, n_initial=INITIAL, random_state=0)
    labels = np.where(y > 0, "same", "other") if are_text else y
    X = X if are_text else sparse.csr_array(X)  # as files in the LIBSVM format are read
    list(prequential(twin, blocks(X[:n_rows], labels[:n_rows], BLOCK, initial=INITIAL)))
    assert np.array_equal(isokern.load(path).decision_function(X), twin.decision_function(X))


@pytest.mark.parametrize(
    ("number", "code", "file", "options"),
    [(signal.SIGINT, 130, "rows.txt", ()), (signal.SIGTERM, 143, "rows.csv", ("--format", "csv", "--label", "kind"))],
    ids=["SIGINT", "SIGTERM"],
)
def test_a_run_that_waits_for_rows_can_be_interrupted_and_resumed(number, code, file, options, folder):
    expected, accuracy = whole_run(folder, file, *options)
    (folder / "records").unlink()
    n_rows, header = INITIAL + BLOCK, file == "rows.csv"
    lines = (folder / file).read_text().splitlines(keepends=True)
    with start(folder, "stream", "-", *options, *OPTIONS) as process:
        process.stdin.write("".join(lines[: header + n_rows + 1]))  # one row more than whole blocks
        process.stdin.flush()
        while not (folder / "records").exists() or (folder / "records").read_text().count("\n") < 2:
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.01)
        process.send_signal(number)
        process.wait(timeout=PATIENCE)  # with its input still open
        assert (process.returncode, process.stderr.read()) == (code, f"stopped after {n_rows} rows\n")
    assert (folder / "predictions").read_text().count("\n") == BLOCK
    assert_learned(folder / "model", n_rows, are_text=file == "rows.csv")
    assert succeed(folder, "stream", file, *options, *OPTIONS, "--resume").facts["accuracy"] == accuracy
    assert results_in(folder) == expected


TAKE = Run.take


def interrupt_in_a_block(run, X, y):
    if run.n_rows == INITIAL + 7 * BLOCK:
        os.kill(os.getpid(), signal.SIGINT)
    return TAKE(run, X, y)


def interrupt_twice_in_a_block(run, X, y):
    record = TAKE(run, X, y)
    if run.n_rows == INITIAL + 8 * BLOCK:
        run.n_rows = 1000  # a state that must not be saved
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGINT)
    return record


def terminate(run, blocks):
    os.kill(os.getpid(), signal.SIGTERM)


INTERRUPTED = {
    "in a block, which ends first": ("take", interrupt_in_a_block, 130, f"stopped after {INITIAL + 8 * BLOCK} rows\n"),
    "twice in a block, which ends at once": ("take", interrupt_twice_in_a_block, 130, ""),
    "before the first block": ("skip", terminate, 143, "stopped after 0 rows\n"),
}


@pytest.mark.parametrize(("method", "replacement", "code", "message"), INTERRUPTED.values(), ids=INTERRUPTED)
def test_an_interrupted_run_can_be_resumed(method, replacement, code, message, folder, monkeypatch):
    expected, _ = whole_run(folder, "rows.txt")
    with monkeypatch.context() as patched:
        patched.setattr(Run, method, replacement)
        done = run(folder, "stream", "rows.txt", *OPTIONS)
    assert (done.code, done.err) == (code, message)
    if replacement is interrupt_in_a_block:
        assert_learned(folder / "model", INITIAL + 8 * BLOCK)
    succeed(folder, "stream", "rows.txt", *OPTIONS, "--resume")
    assert results_in(folder) == expected


def test_a_run_restores_the_signal_handlers(folder):
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    whole_run(folder, "rows.txt")
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


# A process that interrupts itself when it looks for a module, so that the test does not depend on time.
INTERRUPTED_IMPORT = """
import os, signal, sys

class Interrupt:
    def find_spec(self, name, path, target=None):
        if name == sys.argv[1]:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupt())
from isokern.cli import main
main()
"""


@pytest.mark.parametrize("module", ["isokern.cli._app", "numpy", "sklearn.linear_model"])
def test_ctrl_c_during_imports_prints_no_traceback(module, tmp_path):
    process = start(tmp_path, module, command=[sys.executable, "-c", INTERRUPTED_IMPORT])
    assert finish(process) == (130, "", "")


def test_ctrl_c_while_a_command_reads_prints_no_traceback(tmp_path, monkeypatch):
    def interrupted(*_):
        os.kill(os.getpid(), signal.SIGINT)
        yield b"1 1:2\n"

    monkeypatch.setattr("isokern.data.lines._arriving", interrupted)
    assert run(tmp_path, "fit", "-") == (130, "", "")


def test_an_ignored_ctrl_c_stays_ignored(tmp_path):
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        assert run(tmp_path, "--version").code == 0
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
