"""``isokern stream --resume``: what a run can continue from, and what it refuses."""

from __future__ import annotations

import os
import random
import shutil

import pytest
from sklearn.base import clone

import isokern
from command_line import (
    BLOCK,
    CELLS,
    INITIAL,
    N_ROWS,
    OUTPUTS,
    RUN,
    WITHOUT_INITIAL,
    error_of,
    fail,
    results_in,
    run,
    succeed,
    whole_run,
    write_files,
)
from fuzz.models import change
from isokern import persistence
from isokern.cli._lock import FolderLock
from isokern.cli._run import Run

CHECKPOINT = ("--checkpoint", "checkpoints")
ARGUMENTS = ("rows.txt", *RUN, *CELLS, *OUTPUTS, *CHECKPOINT)


@pytest.fixture
def folder(tmp_path):
    """Return a folder with one stream in several formats."""
    write_files(tmp_path, N_ROWS)
    return tmp_path


def stop_after_50_blocks(folder, *arguments, remark=""):
    """Run a stream that fails after 50 blocks, each of which has a checkpoint."""
    take = Run.take

    def failing(self, X, y):
        if self.n_rows >= INITIAL + 49 * BLOCK:
            raise MemoryError("stopped")
        return take(self, X, y)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Run, "take", failing)
        done = run(folder, "stream", *arguments, "--every", 0)
    assert (done.code, done.out, done.err.splitlines()) == (1, "", [*filter(None, [remark]), "error: stopped"])


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
    assert sorted(os.listdir(stopped / "checkpoints")) == ["checkpoint.isokern", "lock"]


def test_records_as_csv_keep_their_one_header(folder):
    arguments = ("rows.txt", *RUN, "--records", "r.csv", *CHECKPOINT)
    stop_after_50_blocks(folder, *arguments)
    succeed(folder, "stream", *arguments, "--resume")
    header, *lines = (folder / "r.csv").read_text().splitlines()
    assert header.startswith("n_seen,")
    assert [int(line.split(",")[0]) for line in lines] == [*range(0, N_ROWS - INITIAL + 1, BLOCK)]


@pytest.mark.parametrize("options", [WITHOUT_INITIAL, (*RUN, "--cells", "cv")], ids=["default", "cross-validation"])
def test_every_kind_of_learner_continues_where_it_stopped(options, folder):
    arguments = ("rows.txt", *options, *OUTPUTS, "--partitionings", 10)
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
    again = resume(stopped).facts
    assert again == {name: value for name, value in first.facts.items() if name != "kind"}  # which needs the labels
    assert results_in(stopped) == expected


def test_the_file_name_and_the_time_between_checkpoints_may_change(stopped):
    (stopped / "rows.txt").rename(stopped / "moved.txt")
    succeed(stopped, "stream", "moved.txt", *ARGUMENTS[1:], "--every", 5, "--quiet", "--resume")
    (stopped / "moved.txt").rename(stopped / "rows.txt")
    assert results_in(stopped) == whole_run(stopped, "rows.txt")[0]


@pytest.mark.parametrize("n_rows", [INITIAL - 7, INITIAL + 3 * BLOCK, INITIAL + 3 * BLOCK + 7])
def test_a_finished_run_continues_on_a_file_that_has_grown(n_rows, folder):
    lines = (folder / "rows.txt").read_text().splitlines(keepends=True)
    (folder / "rows.txt").write_text("".join(lines[:n_rows]))
    done = run(folder, "stream", *ARGUMENTS, "--resume")
    assert (done.code, "rows.txt has only 93 rows" in done.err) == (0, n_rows < INITIAL)
    (folder / "rows.txt").write_text("".join(lines))
    stop_after_50_blocks(folder, *ARGUMENTS, "--resume", remark=f"rows.txt has grown: continuing after row {n_rows}")
    assert resume(folder).facts["rows"] == "2,500"
    assert (folder / "predictions").read_text().count("\n") == N_ROWS - min(n_rows, INITIAL)
    if n_rows == INITIAL + 3 * BLOCK:
        assert results_in(folder) == whole_run(folder, "rows.txt")[0]


# -- refused


def refusal(folder, *options):
    """Return the error of a run that refuses to start and changes no file."""
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    error = fail(folder, "stream", *ARGUMENTS, *options)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    return error


CHANGED_OPTIONS = {
    "--block 30": "--resume needs the options of the first run: block was 20; got 30.",
    "--seed 1": "--seed was '0'; got '1'.",
    "--cells cv": "learner was 'IKOGDClassifier'; got 'IKOGDClassifierCV'.",
    "--set average=True": "average was 'False'; got 'True'.",
    "--delay 1": "delay was 0; got 1.",
    "--metrics f1": "metrics was []; got ['f1'].",
    "--predictions others": "predictions was 'predictions'; got 'others'.",
    "--scale maxabs": "scale was 'None'; got \"'maxabs'\".",
    "--dense": "input was ['libsvm', None, None, False]; got ['libsvm', None, None, True].",
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


FORGED = {
    "n_rows": [-5, 10**12, 2.5, True, None, "1080"],
    "checksums": [[0, 0, 0, 0], [0], [-1, 0, 0, 0], 7],
    "is_done": [1, None],
    "seconds": [{}, {"map_seconds": -1.0, "predict_seconds": 0.0, "learn_seconds": 0.0}],
    "sizes": [{"records": 10**15, "predictions": 0}, {"records": -1, "predictions": 0}, {"records": 0}, 5],
    "learner": [None, "learner", isokern.IKOGDClassifier(), isokern.OGDClassifier()],
    "settings": [{}, []],
    "evaluation": [None, {}, {"n_seen": 5}],
}


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_checkpoint_is_refused(name, stopped):
    path = stopped / "checkpoints" / "checkpoint.isokern"
    state = persistence.read_file(path)
    for value in FORGED[name]:
        persistence.write_file(path, state | {name: value})
        error = refusal(stopped, "--resume")
        assert any(text in error for text in ("checkpoint.isokern", "--resume needs ", "that it had at the checkpoint"))


def test_an_unfitted_learner_in_a_checkpoint_is_refused(stopped):
    path = stopped / "checkpoints" / "checkpoint.isokern"
    state = persistence.read_file(path)
    persistence.write_file(path, state | {"learner": clone(state["learner"])})
    assert "learner must have learned rows. Remove checkpoints to start anew." in refusal(stopped, "--resume")


@pytest.mark.filterwarnings("ignore")  # of labels that are too large
def test_checkpoints_that_are_changed_at_random_are_continued_or_refused(folder):
    arguments = (*ARGUMENTS, "--delay", 2, "--metrics", "f1,auc,log_loss")
    stop_after_50_blocks(folder, *arguments)
    path = folder / "checkpoints" / "checkpoint.isokern"
    before = shutil.copy(path, folder)
    n_refused = 0
    for seed in range(60):
        change(random.Random(seed), before, path)
        done = run(folder, "stream", *arguments, "--resume")
        if done.code:
            error_of(done)
            n_refused += 1
    assert n_refused > 30


def test_two_runs_cannot_use_one_folder(stopped):
    lock = FolderLock(stopped / "checkpoints")
    try:
        assert "checkpoints is in use by another run." in refusal(stopped, "--resume")
    finally:
        lock.close()
    resume(stopped)


@pytest.mark.parametrize("is_made_anew", [False, True])
def test_a_folder_that_is_removed_during_a_run_is_an_error(is_made_anew, folder, monkeypatch):
    def remove(self):
        shutil.rmtree(folder / "checkpoints")
        if is_made_anew:
            (folder / "checkpoints").mkdir()
            FolderLock(folder / "checkpoints").close()
        monkeypatch.undo()
        self.save()

    monkeypatch.setattr(Run, "save_if_due", remove)
    assert "checkpoints must stay until the end of the run" in fail(folder, "stream", *ARGUMENTS)


def test_a_file_is_not_a_folder_of_checkpoints(folder):
    assert "--checkpoint must be a folder; got the file rows.csv." in fail(
        folder, "stream", "rows.txt", "--checkpoint", "rows.csv"
    )


def test_a_pipe_cannot_be_resumed(folder):
    os.mkfifo(folder / "pipe")
    assert "A pipe cannot be rewound" in fail(folder, "stream", "pipe", "--checkpoint", "c", "--resume")


def test_records_may_go_to_a_device_that_cannot_be_synced(folder):
    arguments = ("rows.txt", *RUN, *CELLS, *CHECKPOINT, "--records", "/dev/null", "--predictions", "/dev/null")
    assert run(folder, "stream", *arguments).code == 0
