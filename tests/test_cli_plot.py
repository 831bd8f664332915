"""``isokern plot``: figures from saved records and models."""

from __future__ import annotations

import csv
import inspect
import json
import re
import shlex
import sys

import numpy as np
import pytest

import isokern
from command_line import fail, succeed, write_csv
from isokern import IKOGDClassifier, IKOGDRegressor, IsolationKernel, plotting
from isokern.cli.plot import _read_blocks, kernel, regions, stream
from isokern.data import write_libsvm

BEGINNINGS = {"png": b"\x89PNG", "pdf": b"%PDF", "svg": b"<?xml"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with rows of two and three columns, models of them, and records."""
    folder = tmp_path_factory.mktemp("plots")
    X = np.random.default_rng(0).normal(size=(300, 3)).round(3)
    y = np.where(X[:, 0] * X[:, 1] > 0, "same", "other")
    write_csv(folder / "rows.csv", X[:, :2], y, ["a", "b"])
    write_csv(folder / "three.csv", X, y, ["a", "b", "c"])
    write_libsvm(folder / "rows.txt", X[:, :2], (y == "same").astype(int))
    run_options = ("--initial", 100, "--block", 50, "--partitionings", 10)
    for file, records in (("rows.csv", "run1.jsonl"), ("three.csv", "run2.csv"), ("rows.txt", "run2.jsonl")):
        label = () if file.endswith("txt") else ("--label", "kind")
        succeed(folder, "stream", file, *label, *run_options, "--records", records, "--out", f"{file}.isokern")
    (folder / "model.isokern").write_bytes((folder / "rows.csv.isokern").read_bytes())
    isokern.save(IKOGDRegressor(n_cells=4).fit(X[:, :2], X[:, 2]), folder / "regressor.isokern")
    kernel = IsolationKernel(n_cells=4).fit(X[:, :2])
    isokern.save(kernel, folder / "kernel.isokern")
    kernel.is_categorical_ = np.array([False, True])
    isokern.save(kernel, folder / "words.isokern")
    isokern.save(isokern.NOGDClassifier().fit(X[:, :2], y), folder / "nogd.isokern")
    texts = {
        "empty": "",
        "unlabelled": '{"n_seen": 10, "accuracy": null}\n',
        "broken": '{"n_seen": 1, "accuracy": 1.0}\n{"n_se',
        "other": '{"a": 1}\n',
        "infinite": '{"n_seen": 1e400, "accuracy": 1}\n',
        "words": '{"n_seen": 1, "accuracy": "x"}\n',
        "bytes": "\x80\n",
    }
    for name, text in texts.items():
        (folder / f"{name}.jsonl").write_text(text, encoding="latin-1")
    return folder


@pytest.fixture
def panels(monkeypatch):
    """Return the panels that commands draw."""
    panels, new_figure = [], plotting.new_figure

    def recorded(n_panels):
        figure, (panel,) = new_figure(n_panels)
        panels.append(panel)
        return figure, [panel]

    monkeypatch.setattr(plotting, "new_figure", recorded)
    monkeypatch.setattr("isokern.plotting.displays.new_figure", recorded)
    return panels


@pytest.mark.parametrize("figure", [stream, regions, kernel])
def test_examples_can_be_pasted(figure, folder):
    (example,) = re.findall(r"^Example: isokern (.+)$", inspect.getdoc(figure), re.MULTILINE)
    assert "figure" in succeed(folder, *shlex.split(example)).facts


@pytest.mark.parametrize("suffix", BEGINNINGS)
def test_the_suffix_gives_the_format(suffix, folder):
    succeed(folder, "plot", "stream", "run1.jsonl", "--out", f"x.{suffix}")
    assert (folder / f"x.{suffix}").read_bytes().startswith(BEGINNINGS[suffix])


def test_each_run_is_a_line_named_by_its_file_or_by_an_option(folder, panels):
    succeed(folder, "plot", "stream", "run1.jsonl", "run2.csv", "--title", "Two runs")
    succeed(folder, "plot", "stream", "run1.jsonl", "run2.csv", "--names", "IK-OGD,NOGD")
    names = [[text.get_text() for text in panel.get_legend().get_texts()] for panel in panels]
    assert names == [["run1, so far", "run2, so far", "each block"], ["IK-OGD, so far", "NOGD, so far", "each block"]]
    assert panels[0].get_title() == "Two runs"
    assert [line.get_color() for line in panels[1].lines[:4]] == [
        plotting.COLOURS[name] for name in ("IK-OGD", "NOGD")
    ] * 2
    records = [json.loads(line) for line in (folder / "run1.jsonl").read_text().splitlines()]
    scored = [record for record in records if record["accuracy"] is not None]
    for line, name in ((panels[0].lines[0], "accuracy"), (panels[0].lines[2], "block_accuracy")):
        np.testing.assert_allclose(line.get_xydata(), [[record["n_seen"], 100 * record[name]] for record in scored])


def test_records_without_accuracies_of_blocks_are_drawn(folder, panels):
    (folder / "short.jsonl").write_text('{"n_seen": 10, "accuracy": 0.5}\n{"n_seen": 20, "accuracy": 0.75}\n')
    succeed(folder, "plot", "stream", "short.jsonl")
    assert panels[0].lines[0].get_xydata().tolist() == [[10, 50], [20, 75]]


def test_json_and_csv_give_the_same_line(folder):
    records = [json.loads(line) for line in (folder / "run1.jsonl").read_text().splitlines()]
    with (folder / "same.csv").open("w", newline="") as file:
        csv.writer(file).writerows([records[0], *(record.values() for record in records)])
    assert _read_blocks(str(folder / "same.csv")) == _read_blocks(str(folder / "run1.jsonl"))


@pytest.mark.parametrize(
    ("model", "data", "axes"),
    [("rows.csv", ("rows.csv", "--label", "kind"), ("a", "b")), ("rows.txt", ("rows.txt",), ("column 1", "column 2"))],
)
def test_regions_are_those_of_the_model(model, data, axes, folder, panels):
    succeed(folder, "plot", "regions", f"{model}.isokern", "--data", *data)
    assert (panels[0].get_xlabel(), panels[0].get_ylabel()) == axes
    shown = np.asarray(panels[0].collections[0].get_array()).ravel()
    assert 0.3 < shown.mean() < 0.7  # two classes, of two quadrants each
    assert sum(len(rows.get_offsets()) for rows in panels[0].collections[1:]) == 300


def test_without_a_label_column_regions_have_black_dots(folder, panels):
    succeed(folder, "plot", "regions", "rows.csv.isokern", "--data", "rows.csv")
    assert panels[0].get_legend() is None


def test_classes_of_the_model_that_the_rows_lack_are_drawn(folder, panels):
    X = np.random.default_rng(0).normal(size=(60, 2))
    isokern.save(IKOGDClassifier(n_cells=4).fit(X, np.arange(60) % 3), folder / "three.isokern")
    succeed(folder, "plot", "regions", "three.isokern", "--data", "rows.txt")
    assert len(panels[0].collections) == 4


@pytest.mark.parametrize("model", [(), ("rows.csv.isokern",), ("kernel.isokern",)])
def test_a_kernel_is_that_of_a_model_or_fitted_to_the_rows(model, folder, panels):
    succeed(folder, "plot", "kernel", *model, "--data", "rows.csv", "--label", "kind", "--point", "-0.5,1")
    assert panels[0].lines[0].get_xydata().tolist() == [[-0.5, 1.0]]
    assert panels[0].get_ylabel() == "b"


# -- errors

MISTAKES = {
    "stream run1.jsonl --out x.gif": '--out must end in ".png", ".pdf" or ".svg"; got x.gif.',
    "stream run1.jsonl --out none/x.png": "--out must be in a folder that exists",
    "stream none.jsonl": "none.jsonl",
    "stream empty.jsonl": "empty.jsonl must have records with an accuracy; got none in 0 records.",
    "stream unlabelled.jsonl": "got none in 1 records.",
    "stream broken.jsonl": "broken.jsonl, line 2: a record must be JSON, as isokern stream --records writes it; got",
    "stream infinite.jsonl": "infinite.jsonl must be a file of isokern stream --records",
    "stream words.jsonl": "words.jsonl must be a file of isokern stream --records",
    "stream bytes.jsonl": "bytes.jsonl, line 1: ",
    "stream other.jsonl": "other.jsonl must be a file of isokern stream --records",
    "stream rows.csv": "rows.csv must be a file of isokern stream --records",
    "stream rows.txt": "rows.txt, line 1: a record must be JSON, as isokern stream --records writes it; got",
    "stream model.isokern": "model.isokern must be a file of isokern stream --records; got a model. Draw a model with",
    "stream run2.csv run2.jsonl": "--names must be 2 different names, one per file; got run2,run2.",
    "stream run1.jsonl --names a,b": "--names must be 1 different names",
    "regions three.csv.isokern --data three.csv --label kind": "must be a model of 2 columns, which become the axes",
    "regions regressor.isokern --data rows.csv --label kind": "must be a model that predicts classes; got one of class",
    "regions kernel.isokern --data rows.csv --label kind": "must be a model that predicts classes; got one of",
    "regions run1.jsonl --data rows.csv --label kind": "must be a model file written by isokern fit or stream; got",
    "regions rows.csv --data model.isokern": "rows.csv must be a model file written by isokern fit or stream; got",
    "regions model.isokern --data model.isokern": "--data must be rows: LIBSVM text, CSV or Parquet; got the model",
    "regions words.isokern --data rows.csv": "must be a model of 2 columns of numbers, which become the axes; got cat",
    "regions none.isokern --data rows.csv": "none.isokern",
    "kernel run1.jsonl --data rows.csv --point 0,0": "draw records with isokern plot stream",
    "kernel --data model.isokern --point 0,0": "--data must be rows: LIBSVM text, CSV or Parquet; got the model",
    "kernel three.csv.isokern --data three.csv --label kind --point 0,0": "must be a model of 2 columns",
    "kernel --data three.csv --label kind --point 0,0": "three.csv must have 2 feature columns; got 3. Choose two",
    "kernel --data rows.csv --label kind --point 1": "--point must be two numbers, as x,y; got '1'.",
    "kernel --data rows.csv --label kind --point a,b": "--point must be two numbers, as x,y; got 'a,b'.",
    "kernel --data rows.csv --label kind --point 0,0 --partitioning box": "partitioning must be",
    "kernel nogd.isokern --data rows.csv --label kind --point 0,0": "must have an Isolation Kernel; got a NOGDClass",
}


@pytest.mark.parametrize("arguments", MISTAKES)
def test_an_error_is_one_line(arguments, folder):
    assert MISTAKES[arguments] in fail(folder, "plot", *shlex.split(arguments))


def test_without_matplotlib_the_error_names_the_extra(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)  # so that importing it raises
    assert "pip install isokern[plot]" in fail(folder, "plot", "stream", "run1.jsonl", "--out", "never.png")
    assert not (folder / "never.png").exists()
