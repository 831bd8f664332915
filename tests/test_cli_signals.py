"""Runs along a stream that are killed or interrupted, and gone on with: bit for bit as if nothing had happened."""

from __future__ import annotations

import os
import re
import signal
import time

import numpy as np
import pytest

import isokern
from command_line import (
    BLOCK,
    CELLS,
    INITIAL,
    N_ROWS,
    OUTPUTS,
    RUN,
    end_of,
    finish,
    make_table,
    run,
    start,
    succeed,
    untroubled,
    write_files,
)
from isokern.cli._run import Run
from isokern.data import blocks
from isokern.evaluation import prequential


@pytest.fixture
def folder(tmp_path):
    """Return a folder with one stream in several formats."""
    write_files(tmp_path, N_ROWS)
    return tmp_path


# -- kill -9

# Each child is a copy of a process that has imported everything, so that many can be killed in little time. Half of
# them are killed at any moment, half after they have come further than the one before.
KILLED = """
import os, random, signal, sys, time
from isokern.cli import main

folder, *sys.argv[1:] = sys.argv[1:]
os.chdir(folder)
moments = random.Random(0)

def start():
    child = os.fork()
    if child:
        return child
    with open(os.devnull, "w") as sys.stdout:
        try:
            main()
        except SystemExit as end:
            os._exit(end.code or 0)
        except BaseException:
            os._exit(99)

def checkpoint():
    try:
        return os.stat("checkpoints/checkpoint.isokern").st_mtime_ns
    except FileNotFoundError:
        return None

def has_ended(child):
    return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

def wait(child, seconds, until=lambda: False):
    end = time.monotonic() + seconds
    while time.monotonic() < end and not until() and not has_ended(child):
        time.sleep(0.001)

n_kills = n_in_the_middle = 0
while True:
    child, before = start(), checkpoint()
    if n_kills % 2:
        wait(child, 60, until=lambda: checkpoint() != before)
    wait(child, moments.uniform(0, 0.03) if n_kills < 10 else 60)
    os.kill(child, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code != -signal.SIGKILL:
        break
    n_kills, n_in_the_middle = n_kills + 1, n_in_the_middle + (checkpoint() != before)
print(code, n_kills, n_in_the_middle)
"""

RUNS = {
    "LIBSVM text": ("rows.txt", *CELLS),
    "CSV": ("rows.csv", "--label", "kind", *CELLS),
    "late labels": ("rows.txt", "--delay", 2, "--metrics", "auc,log_loss", *CELLS),
    "OGD": ("rows.txt", "--method", "ogd"),
}


@pytest.mark.parametrize("arguments", RUNS.values(), ids=RUNS)
def test_a_run_that_is_killed_again_and_again_ends_as_one_that_is_not(arguments, folder, run_script):
    facts = succeed(folder, "stream", *arguments, *RUN, *OUTPUTS).facts
    expected = end_of(folder)
    for file in ("records", "predictions", "model"):
        (folder / file).unlink()
    options = ("--checkpoint", "checkpoints", "--every", 0, "--resume")
    code, n_kills, n_in_the_middle = map(
        int, run_script(KILLED, folder, "stream", *arguments, *RUN, *OUTPUTS, *options).split()
    )
    assert code == 0
    assert n_kills >= n_in_the_middle >= 3
    assert end_of(folder) == expected
    again = succeed(folder, "stream", *arguments, *RUN, *OUTPUTS, *options).facts
    assert (again["accuracy"], again["rows"]) == (facts["accuracy"], facts["rows"])
    assert os.listdir(folder / "checkpoints") == ["checkpoint.isokern"]


# -- Ctrl-C and a request to terminate


def wait_for(process, path):
    """Wait until a process has written a file."""
    while not path.exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.005)


@pytest.mark.parametrize(
    ("number", "code", "arguments"),
    [(signal.SIGINT, 130, ("rows.txt",)), (signal.SIGTERM, 143, ("rows.csv", "--label", "kind"))],
    ids=["Ctrl-C", "a request to terminate"],
)
def test_a_run_that_is_interrupted_ends_after_a_whole_block(number, code, arguments, folder):
    expected, accuracy = untroubled(folder, *arguments)
    (folder / "predictions").unlink()
    options = (*arguments, *RUN, *CELLS, *OUTPUTS, "--checkpoint", "checkpoints")
    with start(folder, "stream", *options, "--every", 0) as process:
        wait_for(process, folder / "checkpoints" / "checkpoint.isokern")
        process.send_signal(number)
        done = finish(process)
    assert done.code == code
    n_rows = int(re.fullmatch(r"stopped after ([\d,]+) rows\n", done.err)[1].replace(",", ""))
    assert INITIAL <= n_rows < N_ROWS
    assert (n_rows - INITIAL) % BLOCK == 0
    assert (folder / "predictions").read_text().count("\n") == n_rows - INITIAL
    assert_learned(folder / "model", n_rows, is_dense=arguments != ("rows.txt",))
    assert succeed(folder, "stream", *options, "--resume").facts["accuracy"] == accuracy
    assert end_of(folder) == expected


def assert_learned(path, n_rows, *, is_dense):
    """Check that a model is what Python learns from the first rows."""
    X, y = make_table(N_ROWS)
    scale = "minmax" if is_dense else None
    twin = isokern.IKOGDClassifier(n_partitionings=10, n_cells=16, n_initial=INITIAL, scale=scale, random_state=0)
    labels = np.where(y > 0, "same", "other") if is_dense else y
    for _ in prequential(twin, blocks(X[:n_rows], labels[:n_rows], BLOCK, initial=INITIAL)):
        pass
    model = isokern.load(path)
    vars(model).pop("feature_names_in_", None)
    assert np.array_equal(model.decision_function(X), twin.decision_function(X))


def test_a_run_that_waits_for_rows_can_be_interrupted(folder):
    lines = (folder / "rows.txt").read_text().splitlines(keepends=True)[: INITIAL + BLOCK + 1]
    with start(folder, "stream", "-", *RUN, *CELLS, "--records", "-", "--out", "model") as process:
        process.stdin.write("".join(lines))
        process.stdin.flush()
        for _ in range(2):
            process.stdout.readline()
        process.send_signal(signal.SIGINT)
        process.wait(timeout=60)  # with its input still open
        assert process.returncode == 130
        assert process.stderr.read().endswith(f"stopped after {INITIAL + BLOCK} rows\n")
    assert_learned(folder / "model", INITIAL + BLOCK, is_dense=False)


def test_a_signal_within_a_block_waits_for_its_end(folder, monkeypatch):
    expected, _ = untroubled(folder, "rows.txt")
    options = ("rows.txt", *RUN, *CELLS, *OUTPUTS, "--checkpoint", "checkpoints")
    take = Run.take

    def interrupted(self, X, y):
        if self.n_blocks == 8:
            os.kill(os.getpid(), signal.SIGINT)
        return take(self, X, y)

    with monkeypatch.context() as patched:
        patched.setattr(Run, "take", interrupted)
        done = run(folder, "stream", *options)
    assert (done.code, done.err) == (130, f"stopped after {INITIAL + 8 * BLOCK} rows\n")
    assert_learned(folder / "model", INITIAL + 8 * BLOCK, is_dense=False)
    succeed(folder, "stream", *options, "--resume")
    assert end_of(folder) == expected


def test_a_second_signal_ends_at_once_and_leaves_the_checkpoint_as_it_was(folder, monkeypatch):
    expected, _ = untroubled(folder, "rows.txt")
    options = ("rows.txt", *RUN, *CELLS, *OUTPUTS, "--checkpoint", "checkpoints", "--every", 0)
    take = Run.take

    def interrupted(self, X, y):
        record = take(self, X, y)
        if self.n_blocks == 8:
            self.n_blocks = 1000  # in the middle of its work
            for _ in range(2):
                os.kill(os.getpid(), signal.SIGINT)
        return record

    with monkeypatch.context() as patched:
        patched.setattr(Run, "take", interrupted)
        done = run(folder, "stream", *options)
    assert (done.code, done.err) == (130, "")
    succeed(folder, "stream", *options, "--resume")
    assert end_of(folder) == expected


def test_signals_are_as_before_when_a_run_has_ended(folder):
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    untroubled(folder, "rows.txt")
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_a_run_may_be_interrupted_before_its_first_block(folder, monkeypatch):
    expected, _ = untroubled(folder, "rows.txt")
    options = ("rows.txt", *RUN, *CELLS, *OUTPUTS, "--checkpoint", "checkpoints")
    with monkeypatch.context() as patched:
        patched.setattr(Run, "skip", lambda run, blocks: os.kill(os.getpid(), signal.SIGTERM))
        done = run(folder, "stream", *options)
    assert (done.code, done.err) == (143, "stopped after 0 rows\n")
    succeed(folder, "stream", *options, "--resume")
    assert end_of(folder) == expected


def test_ctrl_c_is_no_traceback(folder):
    with start(folder, "fit", "-") as process:
        process.stdin.write("1 1:2\n")
        process.stdin.flush()
        wait_until_reading(process)
        process.send_signal(signal.SIGINT)
        process.wait(timeout=60)
        assert process.returncode == 130
        assert process.stderr.read() == ""


def wait_until_reading(process):
    """Wait until a process sleeps in a read of its standard input, as Linux tells, or long enough."""
    for _ in range(1000):
        try:
            with open(f"/proc/{process.pid}/wchan", encoding="ascii") as file:
                if "pipe" in file.read():
                    return
        except OSError:
            time.sleep(5)
            return
        time.sleep(0.01)
