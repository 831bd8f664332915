"""``isokern stream --resume``: what a run can continue from, and what it refuses."""

from __future__ import annotations

import os

import pytest

import isokern
from command_line import BLOCK, CELLS, INITIAL, N_ROWS, OUTPUTS, RUN, fail, results_in, succeed, whole_run, write_files
from isokern.cli._run import Run

CHECKPOINT = ("--checkpoint", "checkpoints")
ARGUMENTS = ("rows.txt", *RUN, *CELLS, *OUTPUTS, *CHECKPOINT)


@pytest.fixture
def folder(tmp_path):
    """Return a folder with one stream in several formats."""
    write_files(tmp_path, N_ROWS)
    return tmp_path


def stop_after_50_blocks(folder, *arguments):
    """Run a stream that fails after 50 blocks, each of which has a checkpoint."""
    take = Run.take

    def failing(self, X, y):
        if self.n_blocks == 50:
            raise MemoryError("stopped")
        return take(self, X, y)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Run, "take", failing)
        assert fail(folder, "stream", *arguments, "--every", 0) == "error: stopped"


@pytest.fixture
def stopped(folder):
    """Return a folder in which a run has stopped after 50 blocks."""
    stop_after_50_blocks(folder, *ARGUMENTS)
    return folder


def resume(folder, *options):
    """Continue the run that has stopped."""
    return succeed(folder, "stream", *ARGUMENTS, "--resume", *options)


def test_a_run_continues_where_it_stopped(stopped):
    assert not (stopped / "model").exists()
    resume(stopped)
    assert results_in(stopped) == whole_run(stopped, "rows.txt")[0]


def test_what_a_killed_run_has_half_written_is_removed(stopped):
    for name in ("records", "predictions"):
        with (stopped / name).open("a") as file:
            file.write("more\n" * 10**5 + "half a li")
    (stopped / "checkpoints" / ".checkpoint.isokern.x1y2.part").write_text("half of i")
    resume(stopped)
    assert results_in(stopped) == whole_run(stopped, "rows.txt")[0]
    assert os.listdir(stopped / "checkpoints") == ["checkpoint.isokern"]


def test_records_as_csv_keep_their_one_header(folder):
    arguments = ("rows.txt", *RUN, "--records", "r.csv", *CHECKPOINT)
    stop_after_50_blocks(folder, *arguments)
    succeed(folder, "stream", *arguments, "--resume")
    header, *lines = (folder / "r.csv").read_text().splitlines()
    assert header.startswith("n_seen,")
    assert [int(line.split(",")[0]) for line in lines] == [*range(0, N_ROWS - INITIAL + 1, BLOCK)]


def test_cells_chosen_by_cross_validation_stay_chosen(folder):
    arguments = ("rows.txt", *RUN, *OUTPUTS, "--partitionings", 10, "--cells", "cv")
    succeed(folder, "stream", *arguments)
    expected = results_in(folder)
    stop_after_50_blocks(folder, *arguments, *CHECKPOINT)
    succeed(folder, "stream", *arguments, *CHECKPOINT, "--resume")
    assert results_in(folder) == expected


def test_without_a_checkpoint_a_run_starts_anew(folder):
    resume(folder)
    assert results_in(folder) == whole_run(folder, "rows.txt")[0]


def test_a_finished_run_only_saves_and_prints_its_results_again(stopped):
    first = resume(stopped)
    expected = results_in(stopped)
    (stopped / "rows.txt").unlink()
    (stopped / "model").unlink()
    assert resume(stopped) == first
    assert results_in(stopped) == expected


def test_the_file_name_and_the_time_between_checkpoints_may_change(stopped):
    (stopped / "rows.txt").rename(stopped / "moved.txt")
    succeed(stopped, "stream", "moved.txt", *ARGUMENTS[1:], "--every", 5, "--quiet", "--resume")
    (stopped / "moved.txt").rename(stopped / "rows.txt")
    assert results_in(stopped) == whole_run(stopped, "rows.txt")[0]


# -- refused


def refusal(folder, *options):
    """Return the error of a run that refuses to start and changes no file."""
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    error = fail(folder, "stream", *ARGUMENTS, *options)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    return error


CHANGED_OPTIONS = {
    "--block 30": "--resume needs the options of the first run: block was 20; got 30.",
    "--seed 1": "random_state was '0'; got '1'.",
    "--cells cv": "learner was 'IKOGDClassifier'; got 'IKOGDClassifierCV'.",
    "--set average=True": "average was 'False'; got 'True'.",
    "--delay 1": "delay was 0; got 1.",
    "--metrics f1": "metrics was []; got ['f1'].",
    "--predictions others": "predictions was 'predictions'; got 'others'.",
    "--dense": "scale was 'None'; got \"'minmax'\".",
    "--dense --scale none": "input was ['libsvm', None, None, False]; got ['libsvm', None, None, True].",
}


@pytest.mark.parametrize("changed", CHANGED_OPTIONS)
def test_changed_options_are_refused(changed, stopped):
    assert CHANGED_OPTIONS[changed] in refusal(stopped, "--resume", *changed.split())


@pytest.mark.parametrize("change", ["a value", "a label", "fewer rows"])
def test_changed_input_is_refused(change, stopped):
    lines = (stopped / "rows.txt").read_text().splitlines(keepends=True)
    label, _, rest = lines[500].partition(" ")
    lines[500] = {"a value": f"{label} 1:9\n", "a label": f"{-int(label)} {rest}"}.get(change, lines[500])
    (stopped / "rows.txt").write_text("".join(lines[:300] if change == "fewer rows" else lines))
    assert "--resume needs the same input; got other rows among the first 1,080." in refusal(stopped, "--resume")


@pytest.mark.parametrize("name", ["records", "predictions"])
@pytest.mark.parametrize("is_there", [False, True], ids=["missing", "shorter"])
def test_an_output_that_has_become_shorter_is_refused(name, is_there, stopped):
    (stopped / name).unlink()
    if is_there:
        (stopped / name).write_text("1\n")
    error = refusal(stopped, "--resume")
    assert f"{name} must have at least the " in error and "bytes that it had at the checkpoint" in error


def test_a_new_run_does_not_overwrite_a_checkpoint(stopped):
    assert "checkpoints has a checkpoint; add --resume to continue" in refusal(stopped)


def test_a_truncated_checkpoint_is_an_error(stopped):
    path = stopped / "checkpoints" / "checkpoint.isokern"
    path.write_bytes(path.read_bytes()[:-10])
    assert "checkpoint.isokern: truncated" in refusal(stopped, "--resume")


def test_a_model_is_not_a_checkpoint(stopped):
    isokern.save(isokern.IKOGDClassifier(), stopped / "checkpoints" / "checkpoint.isokern")
    assert "checkpoint.isokern must be a checkpoint" in refusal(stopped, "--resume")


def test_a_pipe_cannot_be_resumed(folder):
    os.mkfifo(folder / "pipe")
    assert "A pipe cannot be rewound" in fail(folder, "stream", "pipe", "--checkpoint", "c", "--resume")
