"""Errors and warnings of the command line: one line, and an exit code."""

from __future__ import annotations

import os
import re
import shlex

import pytest

import isokern
from command_line import PATIENCE, SMALL, error_of, fail, finish, make_table, run, start, succeed, write_files
from isokern import IKOGDClassifier, IsolationKernel


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with small files and models of them, and with broken files."""
    folder = tmp_path_factory.mktemp("models")
    write_files(folder)
    for file in ("rows.txt", "rows.csv"):
        succeed(folder, "fit", file, "--label", "kind", *SMALL, "--out", f"{file}.isokern")
    texts = {"empty": "", "one": "1 1:2\n1 1:3\n", "bad": "1 1:2\n1 1:x\n", "wide": "1 1:2 9:3\n"}
    for name, text in texts.items():
        (folder / f"{name}.txt").write_text(text)
    tables = {"bare": "1,2\n3,4\n", "dates": "the day,kind\n2020-01-01,x\n", "words": "a,b,c,d\n1,2,3,4\nx,2,3,4\n"}
    for name, text in tables.items():
        (folder / f"{name}.csv").write_text(text)
    (folder / "cut.isokern").write_bytes((folder / "rows.txt.isokern").read_bytes()[:-1])
    isokern.save(IsolationKernel(random_state=0).fit(make_table()[0]), folder / "kernel.isokern")
    isokern.save(IKOGDClassifier(), folder / "new.isokern")
    return folder


WRONG_OPTIONS = {
    "fit rows.txt --bogus 1": "No such option: --bogus",
    "fit rows.txt --seed x": "--seed",
    "fit rows.txt --partitionings 0": "--partitionings",
    "fit rows.txt --partitionings 9223372036854775808": "--partitionings",
    "fit rows.txt --threads 2147483648": "--threads",
    "fit rows.txt --seed 4294967296": "--seed",
    "predict rows.txt.isokern": "Missing argument",
    "bogus": "No such command 'bogus'. See isokern --help.",
}
MISTAKES = {
    "fit rows.txt --method svm": '--method must be "ik-ogd", ',
    "fit rows.txt --cells many": "--cells must be a number, auto or cv; got 'many'.",
    "fit rows.txt --cells 1": "--cells must be",
    "fit rows.txt --cells cv --method ogd": "--cells cv must come with --method ik-ogd; got ogd.",
    "fit rows.txt --cells 8 --method fogd": "--cells is not an option of --method fogd.",
    "fit rows.txt --partitioning box": "--partitioning must be",
    "fit rows.txt --scale much": "--scale must be",
    "fit rows.txt --scale standard": "--scale must be",
    "fit rows.txt --set n_passes": "--set must be name=value with a parameter of IKOGDClassifier, partitioning, ",
    "fit rows.txt --set bogus=1": "got 'bogus=1'.",
    "fit rows.txt --set n_passes=0": "n_passes must be",
    "fit rows.txt --set kernel=5": "kernel must be an IsolationKernel or None; got 5.",
    "fit rows.txt --format json": '--format must be "libsvm", "csv" or "parquet"; got \'json\'.',
    "fit rows.csv": "--label must name the label column of rows.csv.",
    "fit rows.csv --label none": '--label must be one of "a", "b", ',
    "fit rows.csv --label kind --columns a,z": 'rows.csv: there must be a column "z"; got "a", "b", ',
    "fit rows.txt --test rows.csv": "--label must name the label column of rows.csv.",
    "fit rows.txt --features 2": "rows.txt, line 1: ",
    "fit rows.txt --out none/model": "--out must be in a folder that exists; got none/model. Make none first.",
    "fit rows.txt --out .": "--out must be a file; got the folder .",
    "fit rows.txt --out rows.txt": "--out must not be an input of the command; got rows.txt.",
    "fit rows.txt --out rows.csv": "--out must be a new file, or a model to replace; got rows.csv, which is something",
    "predict rows.txt.isokern rows.txt --out rows.txt": "--out must not be an input of the command; got rows.txt.",
    "fit rows.txt --kind ranking": '--kind must be "classification" or "regression"; got \'ranking\'.',
    "fit rows.txt --kind regression --method ogd": "--kind regression must come with --method ik-ogd or adaptive, ",
    "fit rows.txt --method adaptive --cells 8": "--cells is not an option of --method adaptive.",
    "fit rows.txt --method adaptive --scale minmax": "--scale is not an option of --method adaptive.",
    "fit rows.txt --method adaptive --cells cv": "--cells cv must come with --method ik-ogd; got adaptive.",
    "fit rows.txt --method adaptive --set average=True": "--set must be name=value with a parameter of AdaptiveIKClass",
    "fit rows.csv --label kind --types a:text": "--types must be name=text or name=number; got 'a:text'.",
    "fit rows.csv --label kind --drop z": '--drop must be among "a", "b", ',
    "fit rows.csv --label kind --dates text": '--dates must be None or "number"; got',
    "fit rows.csv --label kind --separator ab": "--separator must be None or one character",
    "fit bare.csv --label 2": 'the header must name the columns; got "1,2". Without a header, pass --no-header.',
    "fit dates.csv --label kind": "with --drop 'the day', or read it as seconds since 1970 with --dates number.",
    "predict rows.csv.isokern words.csv": 'words.csv, line 3: column "a" must be a number; got "x". Correct the field',
    "fit missing.txt": "missing.txt",
    "fit empty.txt": "there must be rows to learn from; got none.",
    "fit one.txt": "class",
    "predict rows.txt.isokern empty.txt --scores --proba": "--scores and --proba must not be given together.",
    "predict rows.txt rows.txt": "rows.txt: not an isokern file.",
    "predict cut.isokern rows.txt": "cut.isokern: truncated",
    "predict kernel.isokern rows.txt": "model must have predict; got one of class IsolationKernel.",
    "predict rows.txt.isokern wide.txt": "wide.txt, line 1: ",
    "predict rows.txt.isokern bad.txt": "bad.txt, line 2: ",
    "predict rows.csv.isokern missing.csv": "missing.csv",
    "predict rows.txt.isokern rows.txt --out none/x": "--out must be in a folder that exists",
    "evaluate rows.csv.isokern rows.csv": "--label must name the label column of rows.csv.",
    "evaluate rows.txt.isokern rows.txt --metrics bogus": "--metrics must be",
    "evaluate rows.txt.isokern empty.txt": "empty.txt must have rows; got none.",
    "evaluate new.isokern rows.txt": "learner must be fitted; got an unfitted IKOGDClassifier.",
    "demo --plot none/x.png": "--plot must be in a folder that exists",
    "data bogus": "bogus",
    "info rows.txt": "rows.txt: not an isokern file.",
}


@pytest.mark.parametrize("command", WRONG_OPTIONS | MISTAKES)
def test_an_error_is_one_line(command, folder):
    code = 2 if command in WRONG_OPTIONS else 1
    assert (WRONG_OPTIONS | MISTAKES)[command] in fail(folder, *shlex.split(command), code=code)


def test_a_process_prints_that_line_and_exits_with_that_code(tmp_path):
    assert "missing.txt" in error_of(finish(start(tmp_path, "fit", "missing.txt")))


@pytest.mark.filterwarnings("default")
def test_a_warning_is_one_line(folder):
    done = run(folder, "fit", "rows.txt", *SMALL, "--cells", 5000)
    assert done.code == 0
    assert re.fullmatch(r"warning: --cells 5000 .*\n", done.err)


def test_a_closed_output_pipe_ends_a_command_silently(folder):
    line = (folder / "rows.txt").read_text().splitlines(keepends=True)[0]
    with start(folder, "predict", "rows.txt.isokern", "-", "--block", 1) as process:
        process.stdin.write(line)
        process.stdin.flush()
        assert process.stdout.readline() in {"1\n", "-1\n"}
        process.stdout.close()
        process.stdin.write(line * 3)
        process.stdin.close()
        assert (process.stderr.read(), process.wait(PATIENCE)) == ("", 1)


@pytest.mark.parametrize("command", ["predict rows.txt.isokern rows.txt", "--help"])
def test_a_closed_standard_output_is_an_error(command, folder):
    done = finish(start(folder, *shlex.split(command), preexec_fn=lambda: os.close(1)))
    assert error_of(done).startswith("error: standard output must be open; got a closed one.")


def test_a_closed_standard_error_is_no_error(folder):
    command = ("stream", "rows.txt", *SMALL, "--initial", 100, "--records", "-")
    done = finish(start(folder, *command, preexec_fn=lambda: os.close(2)))
    assert (done.code, done.out.count("\n")) == (0, 2)


def test_a_full_standard_output_is_an_error(folder):
    with open("/dev/full", "w") as full:
        done = finish(start(folder, "info", "rows.txt.isokern", stdout=full))
    assert (done.code, done.err) == (1, "error: [Errno 28] No space left on device\n")
