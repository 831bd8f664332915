"""What the command line says when something is wrong: one line, and an exit code."""

from __future__ import annotations

import shlex

import pytest

import isokern
from command_line import Done, finish, make_table, run, start, succeed, write_files
from isokern import IKOGDClassifier, IsolationKernel

SMALL = ("--partitionings", 10, "--threads", 1)


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """Return a folder with small files and models of them."""
    folder = tmp_path_factory.mktemp("models")
    write_files(folder)
    for file in ("rows.txt", "rows.csv"):
        succeed(folder, "fit", file, "--label", "kind", *SMALL, "--out", f"{file}.isokern")
    return folder


def error_of(done: Done, code=1):
    """Return the text of an error, after a check that it is one line and nothing else."""
    assert done.code == code
    assert done.out == ""
    (line,) = done.err.splitlines()
    assert line.startswith("error: ")
    assert "Traceback" not in line
    return line.removeprefix("error: ")


WRONG_OPTIONS = {
    ("fit", "rows.txt", "--bogus", "1"): "No such option: --bogus",
    ("fit", "rows.txt", "--seed", "x"): "--seed",
    ("fit", "rows.txt", "--partitionings", "0"): "--partitionings",
    ("predict", "rows.txt.isokern"): "Missing argument",
    ("bogus",): "No such command 'bogus'. See isokern --help.",
}


@pytest.mark.parametrize("arguments", WRONG_OPTIONS, ids=" ".join)
def test_wrong_options_are_told_in_one_line(arguments, fitted):
    assert WRONG_OPTIONS[arguments] in error_of(run(fitted, *arguments), code=2)


MISTAKES = {
    "fit rows.txt --method svm": '--method must be "ik-ogd", ',
    "fit rows.txt --cells many": "--cells must be a number, auto or cv; got 'many'.",
    "fit rows.txt --cells 1": "n_cells must be",
    "fit rows.txt --cells cv --method ogd": "--cells cv is for --method ik-ogd; got ogd.",
    "fit rows.txt --cells 8 --method fogd": "--cells is not an option of --method fogd.",
    "fit rows.txt --partitioning box": "partitioning must be",
    "fit rows.txt --scale much": "scale must be",
    "fit rows.txt --scale standard": "scale must be",
    "fit rows.txt --set n_passes": "--set must be name=value with a parameter of IKOGDClassifier, partitioning, ",
    "fit rows.txt --set bogus=1": "got 'bogus=1'.",
    "fit rows.txt --set n_passes=0": "n_passes must be",
    "fit rows.txt --set kernel=5": "kernel must be an IsolationKernel or None; got 5.",
    "fit rows.txt --format json": '--format must be "libsvm", "csv" or "parquet"; got \'json\'.',
    "fit rows.csv": "--label must name the column of labels in rows.csv.",
    "fit rows.csv --label none": 'label must be one of "a", "b", ',
    "fit rows.csv --label kind --columns a,z": 'columns must be among "a", "b", ',
    "fit rows.txt --test rows.csv": "--label must name the column of labels in rows.csv.",
    "fit rows.txt --features 2": "rows.txt, line 1: ",
    "fit rows.txt --out none/model": "--out must be in a folder that exists; got none/model. Make none first.",
    "fit rows.txt --out .": "--out must be a file; got the folder .",
    "fit missing.txt": "missing.txt",
    "fit empty.txt": "must have labels; got none.",
    "fit one.txt": "class",
    "predict rows.txt.isokern empty.txt --scores --proba": "--scores and --proba must not be given together.",
    "predict rows.txt rows.txt": "rows.txt: not an isokern file.",
    "predict cut.isokern rows.txt": "cut.isokern: truncated",
    "predict kernel.isokern rows.txt": "of class IsolationKernel, cannot do that: it has no predict.",
    "predict rows.txt.isokern wide.txt": "wide.txt, line 1: ",
    "predict rows.txt.isokern bad.txt": "bad.txt, line 2: ",
    "predict rows.csv.isokern missing.csv": "missing.csv",
    "predict rows.txt.isokern rows.txt --out none/x": "--out must be in a folder that exists",
    "evaluate rows.csv.isokern rows.csv": "--label must name the column of labels in rows.csv.",
    "evaluate rows.txt.isokern rows.txt --metrics bogus": "metrics must be",
    "evaluate rows.txt.isokern empty.txt": "empty.txt must have rows; got none.",
    "evaluate new.isokern rows.txt": "learner must be fitted; got IKOGDClassifier that is not.",
    "demo --plot none/x.png": "--plot must be in a folder that exists",
    "data bogus": "bogus",
    "info rows.txt": "rows.txt: not an isokern file.",
}


@pytest.fixture(scope="module")
def spoilt(fitted):
    """Return a folder in which some files are not as they should be."""
    (fitted / "empty.txt").write_text("")
    (fitted / "one.txt").write_text("1 1:2\n1 1:3\n")
    (fitted / "bad.txt").write_text("1 1:2\n1 1:x\n")
    (fitted / "wide.txt").write_text("1 1:2 9:3\n")
    (fitted / "cut.isokern").write_bytes((fitted / "rows.txt.isokern").read_bytes()[:-1])
    isokern.save(IsolationKernel(random_state=0).fit(make_table()[0]), fitted / "kernel.isokern")
    isokern.save(IKOGDClassifier(), fitted / "new.isokern")
    return fitted


@pytest.mark.parametrize("command", MISTAKES)
def test_a_mistake_is_told_in_one_line(command, spoilt):
    assert MISTAKES[command] in error_of(run(spoilt, *shlex.split(command)))


def test_a_process_ends_with_that_line_and_an_exit_code(tmp_path):
    assert "missing.txt" in error_of(finish(start(tmp_path, "fit", "missing.txt")))


@pytest.mark.filterwarnings("default")
def test_a_warning_is_one_line(fitted):
    done = run(fitted, "fit", "rows.txt", *SMALL, "--cells", 5000)
    assert done.code == 0
    assert done.err == "warning: n_cells=5000 is more than the 600 rows there are; all are used.\n"


def test_a_reader_who_has_seen_enough_is_no_error(fitted):
    line = (fitted / "rows.txt").read_text().splitlines(keepends=True)[0]
    with start(fitted, "predict", "rows.txt.isokern", "-", "--block", 1) as process:
        process.stdin.write(line)
        process.stdin.flush()
        assert process.stdout.readline() in {"1\n", "-1\n"}
        process.stdout.close()
        process.stdin.write(line * 3)
        process.stdin.close()
        assert process.stderr.read() == ""
