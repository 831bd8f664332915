"""The command line and files of any form: separators, headers, standard input, regression, and outputs that exist."""

from __future__ import annotations

import gzip
import io
import json
import sys

import numpy as np
import pytest

import isokern
from command_line import SMALL, fail, make_table, run, succeed, write_csv, write_files
from isokern.cli._input import Input

pytest.importorskip("pyarrow")


@pytest.fixture
def folder(tmp_path):
    """Return a folder with small files."""
    write_files(tmp_path)
    return tmp_path


FORMS = {
    "rows.tsv": (lambda text: text.replace(",", "\t"), ()),
    "semicolons.csv": (lambda text: text.replace(",", ";"), ()),
    "given.csv": (lambda text: text.replace(",", "\t"), ("--separator", "tab")),
    "index.csv": (lambda text: "".join(f",{line}\n" for line in text.splitlines()), ()),
    "more.csv": (
        lambda text: "".join(f"7,{line}\n" for line in text.splitlines()).replace("7,a", "id,a"),
        ("--drop", "id"),
    ),
}


@pytest.mark.parametrize("name", FORMS)
def test_every_form_of_the_same_table_gives_the_same_model(name, folder):
    change, options = FORMS[name]
    (folder / name).write_text(change((folder / "rows.csv").read_text()))
    for file, given in (("rows.csv", ()), (name, options)):
        succeed(folder, "fit", file, "--label", "kind", *SMALL, *given, "--out", f"{file}.isokern")
    assert (folder / f"{name}.isokern").read_bytes() == (folder / "rows.csv.isokern").read_bytes()


def test_without_a_header_the_label_is_a_position(folder):
    (folder / "bare.csv").write_text((folder / "rows.csv").read_text().partition("\n")[2])
    succeed(folder, "fit", "bare.csv", "--no-header", "--label", "4", *SMALL, "--out", "model")
    assert isokern.load(folder / "model").feature_names_in_.tolist() == ["0", "1", "2", "3"]
    facts = json.loads(succeed(folder, "evaluate", "model", "bare.csv", "--no-header", "--label", "4", "--json").out)
    assert facts["accuracy"] > 0.8


STDIN = {
    "+1 1:0.5 3:2\n": "libsvm",
    "-1\n": "libsvm",
    "? 1:2\n": "libsvm",
    "# a comment\n": "libsvm",
    "1.5e3 # nothing\n": "libsvm",
    "": "libsvm",
    "a,b,y\n": "csv",
    "1,2,3\n": "csv",
    "1;2\n": "csv",
    "1\t2\n": "csv",
    "12:30,5\n": "csv",
    "y\n": "csv",
}


@pytest.mark.parametrize("text", STDIN)
@pytest.mark.parametrize("compress", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_standard_input_is_told_by_its_first_line(text, compress, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(compress(text.encode())))))
    assert Input().at("-").kind == STDIN[text]
    assert Input(format="parquet").at("-").kind == "parquet"


def test_csv_may_come_from_a_pipe(folder):
    succeed(folder, "fit", "rows.csv", "--label", "kind", *SMALL, "--out", "model")
    from_pipe = succeed(folder, "predict", "model", "-", stdin=(folder / "rows.csv").read_text())
    assert from_pipe == succeed(folder, "predict", "model", "rows.csv")


# -- classification and regression

LABELS = {
    "text": (lambda X, y: np.where(y > 0, "same", "other"), "classification", "labels that are text"),
    "two": (lambda X, y: y, "classification", "2 different whole numbers"),
    "many": (lambda X, y: np.arange(600), "regression", "00 different whole numbers"),
    "fractions": (lambda X, y: X[:, 0], "regression", "labels with fractions"),
}


@pytest.mark.parametrize("kind", LABELS)
@pytest.mark.parametrize("command", ["fit", "stream"])
def test_the_kind_of_learner_is_guessed_and_said(command, kind, folder):
    make, guess, why = LABELS[kind]
    X, y = make_table()
    write_csv(folder / "rows.csv", X, make(X, y))
    short = ("--initial", 100) if command == "stream" else ()
    done = succeed(folder, command, "rows.csv", "--label", "kind", *SMALL, *short, "--out", "model")
    assert done.facts["kind"].startswith(f"{guess}, guessed from ")
    assert f"{why}; or else --kind " in done.facts["kind"]
    expected = isokern.IKOGDRegressor if guess == "regression" else isokern.IKOGDClassifier
    assert type(isokern.load(folder / "model")) is expected


def test_the_kind_of_learner_can_be_given(folder):
    for kind, expected in (("regression", isokern.IKOGDRegressor), ("classification", isokern.IKOGDClassifier)):
        assert succeed(folder, "fit", "rows.txt", "--kind", kind, *SMALL, "--out", kind).facts["kind"] == kind
        assert type(isokern.load(folder / kind)) is expected


# -- outputs that exist


def test_a_model_is_replaced_with_a_word(folder):
    first, second = (succeed(folder, "fit", "rows.txt", *SMALL).facts["model"] for _ in range(2))
    assert (first, second) == ("model.isokern", "model.isokern (replaced)")


def test_predictions_are_replaced_with_a_word(folder):
    succeed(folder, "fit", "rows.txt", *SMALL)
    first, second = (run(folder, "predict", "model.isokern", "rows.txt", "--out", "labels").err for _ in range(2))
    assert (first, second) == ("", "note: labels existed, and was replaced.\n")


def test_records_are_replaced_with_a_word(folder):
    arguments = ("stream", "rows.txt", *SMALL, "--initial", 100, "--records", "records")
    assert "records" not in succeed(folder, *arguments).facts
    assert succeed(folder, *arguments).facts["records"] == "records (replaced)"


def test_a_label_of_another_type_than_the_models_is_an_error(folder):
    succeed(folder, "fit", "rows.txt", *SMALL, "--out", "model")
    message = 'rows.csv, line 2: label column "kind" must be a number; got "'
    assert message in fail(folder, "evaluate", "model", "rows.csv", "--label", "kind")
