"""``isokern stream --resume``: what a run goes on from, and what it refuses to go on from."""

from __future__ import annotations

import os

import pytest

import isokern
from command_line import BLOCK, CELLS, INITIAL, N_ROWS, OUTPUTS, RUN, end_of, run, succeed, untroubled, write_files
from isokern.cli._run import Run


@pytest.fixture
def folder(tmp_path):
    """Return a folder with one stream in several formats."""
    write_files(tmp_path, N_ROWS)
    return tmp_path


def stop_after(monkeypatch, n_blocks):
    """Let the next run end in an error after some blocks, as if it had been killed."""
    take = Run.take

    def taken(self, X, y):
        if self.n_blocks == n_blocks:
            raise MemoryError("killed")
        return take(self, X, y)

    monkeypatch.setattr(Run, "take", taken)


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
            file.write("more\n" * 10**5 + "half a li")
    succeed(folder, "stream", *arguments, "--resume")
    assert end_of(folder) == untroubled(folder, "rows.txt")[0]


def test_what_a_killed_run_has_left_of_a_checkpoint_is_cleared_away(stopped):
    folder, arguments = stopped
    (folder / "checkpoints" / ".checkpoint.isokern.x1y2.part").write_text("half of i")
    succeed(folder, "stream", *arguments, "--resume")
    assert os.listdir(folder / "checkpoints") == ["checkpoint.isokern"]


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
