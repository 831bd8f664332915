"""Test ``isokern explain``: its table, files and figures, and mistakes."""

from __future__ import annotations

import csv

import numpy as np
import pytest

import isokern
from command_line import NAMES, fail, make_table, succeed, write_csv
from isokern.data import write_libsvm
from isokern.inspection import explain


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with rows of numbers, of three classes and of text, LIBSVM rows, and models of them."""
    folder = tmp_path_factory.mktemp("explain")
    X, y = make_table(300)
    write_csv(folder / "rows.csv", X, y)
    write_csv(folder / "kinds.csv", X, np.digitize(X[:, 0], [-0.5, 0.5]))
    write_libsvm(folder / "rows.svm", np.maximum(X, 0), y)
    jobs = np.array(["cook", "baker", ""])[np.arange(300) % 3]
    with open(folder / "words.csv", "w", newline="") as file:
        csv.writer(file).writerows([["job", "a", "kind"], *zip(jobs, X[:, 0], y, strict=True)])
    for name in ("rows.csv", "kinds.csv", "rows.svm", "words.csv"):
        label = [] if name.endswith("svm") else ["--label", "kind"]
        succeed(folder, "fit", name, *label, "--partitionings", 5, "--threads", 1, "--out", f"{name}.model")
    return folder


def test_the_table_has_the_most_important_columns_first(folder):
    done = succeed(folder, "explain", "rows.csv.model", "rows.csv", "--top", 2)
    model = isokern.load(folder / "rows.csv.model")
    found = explain(model, rows_of(folder, "rows.csv"))
    first, second = np.argsort(-found.importance)[:2]
    lines = done.out.splitlines()
    assert [line.split()[0] for line in lines[1:3]] == [NAMES[first], NAMES[second]]
    assert lines[1].split()[1] == f"{found.importance[first]:.4f}"
    assert lines[3].split() == ["rows", "300"]


def rows_of(folder, name):
    import pandas as pd

    return pd.read_csv(folder / name)[NAMES]


@pytest.mark.parametrize("suffix", ["csv", "npy"])
def test_all_values_are_written(folder, suffix):
    succeed(folder, "explain", "rows.csv.model", "rows.csv", "--rows", 270, "--out", f"values.{suffix}")
    found = explain(isokern.load(folder / "rows.csv.model"), rows_of(folder, "rows.csv")[:270])
    if suffix == "npy":
        np.testing.assert_array_equal(np.load(folder / "values.npy"), found.values)
        return
    with open(folder / "values.csv", newline="") as file:
        head, *lines = csv.reader(file)
    assert head == ["base value", *NAMES]
    np.testing.assert_array_equal(np.array(lines, dtype=float)[:, 1:], found.values)
    np.testing.assert_array_equal(np.array(lines, dtype=float)[:, 0], found.base_values)


def test_several_classes_have_lines_of_their_own(folder):
    done = succeed(folder, "explain", "kinds.csv.model", "kinds.csv", "--rows", 5, "--out", "kinds.csv.values.csv")
    assert "most for" in done.out.splitlines()[0]
    with open(folder / "kinds.csv.values.csv", newline="") as file:
        head, *lines = csv.reader(file)
    assert head == ["output", "base value", *NAMES]
    assert [line[0] for line in lines] == ["0", "1", "2"] * 5


@pytest.mark.parametrize("name", ["rows.csv", "kinds.csv", "rows.svm", "words.csv"])
@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_figures_of_all_kinds_of_rows_are_drawn(folder, name, suffix):
    done = succeed(folder, "explain", f"{name}.model", name, "--rows", 20, "--plot", f"{name}.{suffix}")
    assert done.out.splitlines()[-1].split() == ["figure", f"{name}.{suffix}"]
    begin = (folder / f"{name}.{suffix}").read_bytes()[:100]
    assert begin.startswith(b"\x89PNG") if suffix == "png" else b"<?xml" in begin


def test_background_rows_are_the_first_hundred_of_a_file(folder):
    succeed(folder, "explain", "rows.csv.model", "rows.csv", "--rows", 7, "--background", "rows.csv", "--out", "b.npy")
    rows = rows_of(folder, "rows.csv")
    found = explain(isokern.load(folder / "rows.csv.model"), rows[:7], background=rows[:100])
    np.testing.assert_array_equal(np.load(folder / "b.npy"), found.values)


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        (["--out", "values.txt"], "--out must end in .csv or .npy; got values.txt."),
        (["--plot", "figure.gif"], '--plot must end in ".png", ".pdf" or ".svg"; got figure.gif.'),
        (["--out", "rows.csv"], "--out must not be an input of the command; got rows.csv."),
    ],
)
def test_an_error_is_one_line(folder, options, rule):
    assert rule in fail(folder, "explain", "rows.csv.model", "rows.csv", *options)


def test_a_model_without_trees_is_refused(folder):
    isokern.save(isokern.FOGDClassifier().fit(*make_table(100)), folder / "other.model")
    assert "model must be a classifier or regressor on isolation trees" in fail(
        folder, "explain", "other.model", "rows.csv", "--columns", ",".join(NAMES)
    )
