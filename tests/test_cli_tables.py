"""The command line and files of any form: separators, headers, standard input, regression, and outputs that exist."""

from __future__ import annotations

import gzip
import io
import json
import re
import sys

import numpy as np
import pytest

import isokern
from command_line import SMALL, fail, make_table, run, succeed, write_csv, write_files
from isokern.cli._input import Input
from isokern.cli._run import Run

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
    assert (f"{why}; or else --kind " if kind != "text" else why) in done.facts["kind"]
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


# -- words and holes


@pytest.fixture
def mixed(tmp_path):
    """Return a folder with a table of numbers, words and missing values; the label depends on both columns."""
    rng = np.random.default_rng(0)
    x, word = rng.normal(size=600).round(3), rng.choice(["red", "green", "blue", "7"], 600)
    label = np.where((x > 0) ^ np.isin(word, ["red", "7"]), "yes", "no")
    rows = [
        f"{'' if k % 11 == 0 else a},{'NA' if k % 13 == 0 else b},{c}\n"
        for k, (a, b, c) in enumerate(zip(x, word, label, strict=True))
    ]
    (tmp_path / "mixed.csv").write_text("x,colour,kind\n" + "".join(rows))
    sevens = [row for row in rows if ",7," in row]
    (tmp_path / "sevens.csv").write_text(
        "colour,x,kind\n" + "".join(re.sub("(.*),7,", r"7,\1,", row) for row in sevens)
    )
    return tmp_path


def test_a_table_of_words_and_holes_is_fitted_and_predicted(mixed):
    facts = succeed(mixed, "fit", "mixed.csv", "--label", "kind", "--out", "model").facts
    assert facts["columns"] == "2, of them 1 with text"
    assert (
        json.loads(succeed(mixed, "evaluate", "model", "mixed.csv", "--label", "kind", "--json").out)["accuracy"] > 0.85
    )
    assert set(succeed(mixed, "predict", "model", "mixed.csv").out.split()) == {"yes", "no"}


def test_a_column_of_digits_is_text_if_it_was_text_in_the_model(mixed):
    succeed(mixed, "fit", "mixed.csv", "--label", "kind", "--out", "model")
    lines = (mixed / "mixed.csv").read_text().splitlines()[1:]
    predicted = succeed(mixed, "predict", "model", "mixed.csv").out.split()
    expected = [label for label, line in zip(predicted, lines, strict=True) if ",7," in line]
    assert succeed(mixed, "predict", "model", "sevens.csv").out.split() == expected


def test_a_stream_of_words_goes_on_if_its_file_grows_and_not_if_it_changes(mixed):
    options = (
        "--label",
        "kind",
        *SMALL,
        "--initial",
        100,
        "--block",
        20,
        "--delay",
        8,
        "--checkpoint",
        "c",
        "--every",
        0,
    )
    lines = (mixed / "mixed.csv").read_text().splitlines(keepends=True)
    (mixed / "grows.csv").write_text("".join(lines[:221]))
    succeed(mixed, "stream", "grows.csv", *options, "--out", "model")
    (mixed / "grows.csv").write_text("".join(lines).replace("red", "blue"))
    assert "--resume needs the same input" in fail(mixed, "stream", "grows.csv", *options, "--resume")
    (mixed / "grows.csv").write_text("".join(lines))
    done = run(mixed, "stream", "grows.csv", *options, "--resume", "--out", "model")
    assert (done.code, done.facts["rows"]) == (0, "600")
    assert isokern.load(mixed / "model").is_categorical_.tolist() == [False, True]


def test_waiting_words_survive_a_stop_before_the_map_is_drawn(mixed):
    options = ("--label", "kind", *SMALL, "--initial", 100, "--block", 20, "--delay", 8, "--out")
    succeed(mixed, "stream", "mixed.csv", *options, "whole")
    take = Run.take

    def failing(self, X, y):
        if self.n_rows >= 160:
            raise MemoryError("stopped")
        return take(self, X, y)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Run, "take", failing)
        assert run(mixed, "stream", "mixed.csv", *options, "parts", "--checkpoint", "c", "--every", 0).code == 1
    succeed(mixed, "stream", "mixed.csv", *options, "parts", "--checkpoint", "c", "--resume")
    assert (mixed / "whole").read_bytes() == (mixed / "parts").read_bytes()


def test_learners_that_need_numbers_say_so(mixed):
    error = fail(mixed, "fit", "mixed.csv", "--label", "kind", "--partitioning", "voronoi")
    assert "colour" in error
    assert "--partitioning tree" in error
