"""isokern plot: figures from saved records and models."""

from __future__ import annotations

import builtins
import inspect
import json
import re
import shlex

import numpy as np
import pytest

import isokern
from command_line import run, succeed, write_csv
from isokern import IKOGDClassifier, IKOGDRegressor, IsolationKernel, plotting
from isokern.cli.plot import _read_curve, plot
from isokern.data import write_libsvm

COMMANDS = {command.callback.__name__: command.callback for command in plot.registered_commands}
EXAMPLES = {
    name: re.findall(r"^Example: isokern (.+)$", inspect.getdoc(f), re.MULTILINE) for name, f in COMMANDS.items()
}
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
    isokern.save(IsolationKernel(n_cells=4).fit(X[:, :2]), folder / "kernel.isokern")
    (folder / "empty.jsonl").write_text("")
    (folder / "unlabelled.jsonl").write_text(json.dumps({"n_seen": 10, "accuracy": None}) + "\n")
    (folder / "broken.jsonl").write_text('{"n_seen": 1, "accuracy": 1.0}\n{"n_se')
    (folder / "other.jsonl").write_text('{"a": 1}\n')
    return folder


@pytest.fixture
def drawn(monkeypatch):
    """Return the figures that commands draw."""
    figures = []

    def keep(*arguments):
        figures.append(new_figure(*arguments))
        return figures[-1]

    new_figure = plotting.new_figure
    monkeypatch.setattr(plotting, "new_figure", keep)
    monkeypatch.setattr("isokern.plotting.displays.new_figure", keep)
    return figures


# -- help


@pytest.mark.parametrize("name", COMMANDS)
def test_every_figure_has_an_example_that_can_be_pasted(name, folder):
    (example,) = EXAMPLES[name]
    assert "figure" in succeed(folder, *shlex.split(example)).facts


@pytest.mark.parametrize("name", COMMANDS)
def test_an_example_stands_on_one_line_of_the_help(name, folder, monkeypatch):
    monkeypatch.setenv("TERMINAL_WIDTH", "80")
    assert any(
        f"isokern {EXAMPLES[name][0]}" in line for line in succeed(folder, "plot", name, "--help").out.splitlines()
    )


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_says_what_it_does(name):
    for parameter in inspect.signature(COMMANDS[name], eval_str=True).parameters.values():
        assert parameter.annotation.__metadata__[0].help, parameter.name


def test_the_help_names_the_figures(folder):
    assert set(COMMANDS) == {"stream", "regions", "kernel"}
    shown = succeed(folder, "plot", "--help").out
    assert all(re.search(rf"\b{name} ", shown) for name in COMMANDS)
    assert " plot " in succeed(folder, "--help").out


# -- figures


@pytest.mark.parametrize("suffix", BEGINNINGS)
def test_the_name_s_ending_tells_the_format(suffix, folder):
    succeed(folder, "plot", "stream", "run1.jsonl", "--out", f"x.{suffix}")
    assert (folder / f"x.{suffix}").read_bytes().startswith(BEGINNINGS[suffix])


def test_runs_become_lines_by_the_names_of_their_files_or_others(folder, drawn):
    succeed(folder, "plot", "stream", "run1.jsonl", "run2.csv", "--title", "Two runs")
    succeed(folder, "plot", "stream", "run1.jsonl", "run2.csv", "--names", "IK-OGD,NOGD")
    names = [[line.get_label() for line in panel.lines] for _, (panel,) in drawn]
    assert names == [["run1", "run2"], ["IK-OGD", "NOGD"]]
    assert drawn[0][1][0].get_title() == "Two runs"
    assert [line.get_color() for line in drawn[1][1][0].lines] == [plotting.COLOURS[name] for name in names[1]]
    records = [json.loads(line) for line in (folder / "run1.jsonl").read_text().splitlines()]
    expected = [[record["n_seen"], 100 * record["accuracy"]] for record in records if record["accuracy"] is not None]
    np.testing.assert_allclose(drawn[0][1][0].lines[0].get_xydata(), expected)


def test_json_and_csv_give_the_same_line(folder):
    records = [json.loads(line) for line in (folder / "run1.jsonl").read_text().splitlines()]
    lines = [",".join(map(str, record.values())).replace("None", "") for record in records]
    (folder / "same.csv").write_text("\n".join([",".join(records[0]), *lines, ""]))
    assert _read_curve(str(folder / "same.csv")) == _read_curve(str(folder / "run1.jsonl"))


@pytest.mark.parametrize(
    ("model", "data", "axes"),
    [("rows.csv", ("rows.csv", "--label", "kind"), ("a", "b")), ("rows.txt", ("rows.txt",), ("column 1", "column 2"))],
)
def test_regions_are_those_of_the_model(model, data, axes, folder, drawn):
    succeed(folder, "plot", "regions", f"{model}.isokern", "--data", *data)
    panel = drawn[0][1][0]
    assert (panel.get_xlabel(), panel.get_ylabel()) == axes
    shown = np.asarray(panel.collections[0].get_array()).ravel()
    assert 0.3 < shown.mean() < 0.7  # two classes, of two quadrants each
    assert sum(len(rows.get_offsets()) for rows in panel.collections[1:]) == 300


def test_without_a_label_column_regions_have_black_dots(folder, drawn):
    succeed(folder, "plot", "regions", "rows.csv.isokern", "--data", "rows.csv")
    assert drawn[0][1][0].get_legend() is None


@pytest.mark.parametrize("model", [(), ("rows.csv.isokern",), ("kernel.isokern",)])
def test_a_kernel_is_that_of_a_model_or_drawn_from_the_rows(model, folder, drawn):
    succeed(folder, "plot", "kernel", *model, "--data", "rows.csv", "--label", "kind", "--point", "-0.5,1")
    panel = drawn[0][1][0]
    assert panel.lines[0].get_xydata().tolist() == [[-0.5, 1.0]]
    assert panel.get_ylabel() == "b"


# -- mistakes

MISTAKES = {
    "stream run1.jsonl --out x.gif": '--out must end in ".png", ".pdf" or ".svg"; got x.gif.',
    "stream run1.jsonl --out none/x.png": "--out must be in a folder that exists",
    "stream none.jsonl": "none.jsonl",
    "stream empty.jsonl": "empty.jsonl must have records with an accuracy; got none in 0 records.",
    "stream unlabelled.jsonl": "got none in 1 records.",
    "stream broken.jsonl": "broken.jsonl, line 2: ",
    "stream other.jsonl": "other.jsonl must hold records of isokern stream --records",
    "stream rows.csv": "rows.csv must hold records of isokern stream --records",
    "stream run2.csv run2.jsonl": "--names must be 2 different names, one for each file; got run2,run2.",
    "stream run1.jsonl --names a,b": "--names must be 1 different names",
    "regions three.csv.isokern --data three.csv --label kind": "must be a model of 2 columns, which become the axes",
    "regions regressor.isokern --data rows.csv --label kind": "estimator must be a fitted classifier; got IKOGDR",
    "kernel three.csv.isokern --data three.csv --label kind --point 0,0": "must be a model of 2 columns",
    "kernel --data three.csv --label kind --point 0,0": "three.csv must have 2 columns; got 3. Choose two",
    "kernel --data rows.csv --label kind --point 1": "--point must be two numbers, as x,y; got '1'.",
    "kernel --data rows.csv --label kind --point a,b": "--point must be two numbers, as x,y; got 'a,b'.",
    "kernel --data rows.csv --label kind --point 0,0 --partitioning box": "partitioning must be",
}


@pytest.mark.parametrize("arguments", MISTAKES)
def test_mistakes_are_told_in_one_line(arguments, folder):
    done = run(folder, "plot", *shlex.split(arguments))
    assert done.code == 1
    (line,) = done.err.splitlines()
    assert MISTAKES[arguments] in line


def test_without_matplotlib_the_extra_is_named(folder, monkeypatch):
    def without(name, *arguments, **options):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return there(name, *arguments, **options)

    there = builtins.__import__
    monkeypatch.setattr(builtins, "__import__", without)
    done = run(folder, "plot", "stream", "run1.jsonl", "--out", "never.png")
    assert done.code == 1
    assert "pip install isokern[plot]" in done.err
    assert not (folder / "never.png").exists()


def test_a_kernel_that_is_no_isolation_kernel_cannot_be_drawn(folder):
    X = np.random.default_rng(0).normal(size=(50, 2))
    isokern.save(isokern.NOGDClassifier().fit(X, X[:, 0] > 0), folder / "nogd.isokern")
    done = run(folder, "plot", "kernel", "nogd.isokern", "--data", "rows.csv", "--label", "kind", "--point", "0,0")
    assert done.code == 1
    assert "nogd.isokern must have an Isolation Kernel; got a NOGDClassifier." in done.err


def test_classes_of_a_model_that_starts_later_are_drawn(folder, drawn):
    X = np.random.default_rng(0).normal(size=(60, 2))
    isokern.save(IKOGDClassifier(n_cells=4).fit(X, np.arange(60) % 3), folder / "three.isokern")
    succeed(folder, "plot", "regions", "three.isokern", "--data", "rows.txt")
    assert len(drawn[0][1][0].collections) == 4
