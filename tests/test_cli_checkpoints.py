"""Runs along a stream that are stopped, politely or not, and gone on with: bit for bit as if nothing had happened."""

from __future__ import annotations

import os
import re
import signal
import time

import numpy as np
import pytest

import isokern
from command_line import finish, make_table, run, start, succeed, write_csv
from isokern.cli._run import Run
from isokern.data import blocks, write_libsvm
from isokern.evaluation import prequential
from test_cli_stream import read_records

N_ROWS, INITIAL, BLOCK = 3000, 100, 20
RUN = ("--initial", INITIAL, "--block", BLOCK, "--threads", 1)
CELLS = ("--partitionings", 10, "--cells", 16)
OUTPUTS = ("--records", "records", "--predictions", "predictions", "--out", "model")


@pytest.fixture
def folder(tmp_path):
    """Return a folder with one stream as LIBSVM text and CSV."""
    X, y = make_table(N_ROWS)
    write_libsvm(tmp_path / "rows.txt", X, y)
    write_csv(tmp_path / "rows.csv", X, np.where(y > 0, "same", "other"))
    return tmp_path


def end_of(folder):
    """Return all that a run leaves that must not depend on how often it was stopped."""
    return read_records(folder / "records"), (folder / "predictions").read_text(), (folder / "model").read_bytes()


def untroubled(folder, *arguments):
    """Return what a run leaves that is never stopped, and how well it did."""
    facts = succeed(folder, "stream", *arguments, *RUN, *CELLS, *OUTPUTS).facts
    return end_of(folder), facts["accuracy"]


def stop_after(monkeypatch, n_blocks, error=MemoryError):
    """Let the next run end in an error after some blocks, as if it had been killed."""
    take = Run.take

    def taken(self, X, y):
        if self.n_blocks == n_blocks:
            raise error("killed")
        return take(self, X, y)

    monkeypatch.setattr(Run, "take", taken)


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
    wait(child, moments.uniform(0, 0.03) if n_kills < 12 else 60)
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
    "NOGD": ("rows.txt", "--method", "nogd"),
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


@pytest.mark.parametrize("command", ["fit", "stream"])
def test_ctrl_c_before_there_is_anything_to_save_is_no_traceback(command, folder):
    with start(folder, command, "-", *(("--checkpoint", "c") if command == "stream" else ())) as process:
        process.stdin.write("1 1:2\n")
        process.stdin.flush()
        wait_until_reading(process)
        process.send_signal(signal.SIGINT)
        process.wait(timeout=60)
        assert process.returncode == 130
        assert "Traceback" not in process.stderr.read()


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


# -- going on


@pytest.fixture
def stopped(folder, monkeypatch):
    """Return a folder in which a run has stopped after 50 blocks, of which it has saved all, and its arguments."""
    arguments = ("rows.txt", *RUN, *CELLS, *OUTPUTS, "--checkpoint", "checkpoints")
    with monkeypatch.context() as patched:
        stop_after(patched, 50)
        assert run(folder, "stream", *arguments, "--every", 0).err == "error: killed\n"
    return folder, arguments


def test_a_run_goes_on_where_it_stopped(stopped):
    folder, arguments = stopped
    assert not (folder / "model").exists()
    succeed(folder, "stream", *arguments, "--resume")
    assert end_of(folder) == untroubled(folder, "rows.txt")[0]


def test_what_was_written_after_the_checkpoint_is_cut_off(stopped):
    folder, arguments = stopped
    for name in ("records", "predictions"):
        with (folder / name).open("a") as file:
            file.write("half a li")
    succeed(folder, "stream", *arguments, "--resume")
    assert end_of(folder) == untroubled(folder, "rows.txt")[0]


def test_records_of_csv_keep_their_one_header(folder, monkeypatch):
    arguments = ("rows.txt", *RUN, "--records", "r.csv", "--checkpoint", "checkpoints", "--every", 0)
    with monkeypatch.context() as patched:
        stop_after(patched, 50)
        run(folder, "stream", *arguments)
    succeed(folder, "stream", *arguments, "--resume")
    header, *lines = (folder / "r.csv").read_text().splitlines()
    assert header.startswith("n_seen,")
    assert [int(line.split(",")[0]) for line in lines] == [*range(0, N_ROWS - INITIAL + 1, BLOCK)]


def test_cells_chosen_by_cross_validation_stay_chosen(folder, monkeypatch):
    arguments = ("rows.txt", *RUN, *OUTPUTS, "--partitionings", 10, "--cells", "cv")
    succeed(folder, "stream", *arguments)
    expected = end_of(folder)
    options = (*arguments, "--checkpoint", "checkpoints", "--every", 0)
    with monkeypatch.context() as patched:
        stop_after(patched, 50)
        run(folder, "stream", *options)
    succeed(folder, "stream", *options, "--resume")
    assert end_of(folder) == expected


def test_without_a_checkpoint_a_run_begins_anew(folder):
    succeed(folder, "stream", "rows.txt", *RUN, *CELLS, *OUTPUTS, "--checkpoint", "checkpoints", "--resume")
    assert end_of(folder) == untroubled(folder, "rows.txt")[0]


def test_a_run_that_has_ended_is_not_gone_on_with(stopped):
    folder, arguments = stopped
    first = succeed(folder, "stream", *arguments, "--resume")
    expected = end_of(folder)
    (folder / "rows.txt").unlink()
    (folder / "model").unlink()
    assert succeed(folder, "stream", *arguments, "--resume") == first
    assert end_of(folder) == expected


def test_what_changes_nothing_may_be_changed(stopped):
    folder, arguments = stopped
    (folder / "rows.txt").rename(folder / "moved.txt")
    succeed(folder, "stream", "moved.txt", *arguments[1:], "--every", 5, "--quiet", "--resume")
    (folder / "moved.txt").rename(folder / "rows.txt")
    assert end_of(folder) == untroubled(folder, "rows.txt")[0]


REFUSED = {
    ("--block", "30"): "--resume needs the options of the run before: block was 20; got 30.",
    ("--seed", "1"): "random_state was '0'; got '1'.",
    ("--cells", "cv"): "learner was 'IKOGDClassifier'; got 'IKOGDClassifierCV'.",
    ("--set", "average=True"): "average was 'False'; got 'True'.",
    ("--delay", "1"): "delay was 0; got 1.",
    ("--metrics", "f1"): "metrics was []; got ['f1'].",
    ("--predictions", "others"): "predictions was 'predictions'; got 'others'.",
    ("--dense",): "scale was 'None'; got \"'minmax'\".",
    ("--dense", "--scale", "none"): "input was ['libsvm', None, None, False]; got ['libsvm', None, None, True].",
}


@pytest.mark.parametrize("changed", REFUSED, ids=" ".join)
def test_other_options_are_refused(changed, stopped):
    folder, arguments = stopped
    assert REFUSED[changed] in refusal(folder, *arguments, "--resume", *changed)


def refusal(folder, *arguments):
    """Return the one line that a run which cannot begin ends with, having changed nothing."""
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    done = run(folder, "stream", *arguments)
    assert (done.code, done.out, done.err.count("\n")) == (1, "", 1)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    return done.err


@pytest.mark.parametrize("change", ["a value", "a label", "fewer rows"])
def test_another_input_is_refused(change, stopped):
    folder, arguments = stopped
    lines = (folder / "rows.txt").read_text().splitlines(keepends=True)
    label, _, rest = lines[500].partition(" ")
    lines[500] = {"a value": f"{label} 1:9\n", "a label": f"{-int(label)} {rest}"}.get(change, lines[500])
    (folder / "rows.txt").write_text("".join(lines[:300] if change == "fewer rows" else lines))
    error = refusal(folder, *arguments, "--resume")
    assert "--resume needs the same input: its first 1,080 rows are not as they were." in error


@pytest.mark.parametrize("name", ["records", "predictions"])
@pytest.mark.parametrize("is_there", [False, True], ids=["missing", "shorter"])
def test_a_file_that_is_not_as_it_was_left_is_refused(name, is_there, stopped):
    folder, arguments = stopped
    (folder / name).unlink()
    if is_there:
        (folder / name).write_text("1\n")
    assert f"--resume needs {name} as it was left, with at least " in refusal(folder, *arguments, "--resume")


def test_a_checkpoint_is_not_overwritten_by_another_run(stopped):
    folder, arguments = stopped
    assert "checkpoints holds a checkpoint: give --resume to go on with it" in refusal(folder, *arguments)


def test_a_truncated_checkpoint_is_an_error(stopped):
    folder, arguments = stopped
    path = folder / "checkpoints" / "checkpoint.isokern"
    path.write_bytes(path.read_bytes()[:-10])
    assert "checkpoint.isokern: truncated" in refusal(folder, *arguments, "--resume")


def test_a_model_is_no_checkpoint(stopped):
    folder, arguments = stopped
    isokern.save(isokern.IKOGDClassifier(), folder / "checkpoints" / "checkpoint.isokern")
    assert "checkpoint.isokern must be a checkpoint" in refusal(folder, *arguments, "--resume")


def test_a_pipe_cannot_be_gone_on_with(folder):
    os.mkfifo(folder / "pipe")
    assert "A pipe cannot be rewound" in run(folder, "stream", "pipe", "--checkpoint", "c", "--resume").err
