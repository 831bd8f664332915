"""``isokern plot``: figures from what other commands have saved."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

import isokern
from isokern import plotting
from isokern.checks import one_of
from isokern.cli import _input, _options
from isokern.cli._input import Input, listed
from isokern.cli._show import print_facts
from isokern.files import replacing

FORMATS = (".png", ".pdf", ".svg")

plot = typer.Typer(no_args_is_help=True, help="Draw what other commands have saved.")

Out = Annotated[str, typer.Option("--out", "-o", help="Where to save the figure: .png, .pdf or .svg.")]
Records = Annotated[list[str], typer.Argument(help="Records that stream has saved.", show_default=False)]
Names = Annotated[str | None, typer.Option(help="What to call the runs, as a,b,c; otherwise as their files.")]
Title = Annotated[str, typer.Option(help="A title for the figure.", show_default=False)]
Data = Annotated[str, typer.Option(help="Rows to draw: LIBSVM text, CSV or Parquet, of two columns.")]
Kernel = Annotated[
    str | None,
    typer.Argument(help="A model that fit or stream has saved; without one, a kernel is drawn from the rows."),
]
Point = Annotated[str, typer.Option(help="Where K is 1, as x,y.")]
Partitioning = Annotated[str, typer.Option(help="Without a model: tree or voronoi.")]
Cells = Annotated[int, typer.Option(min=2, help="Without a model: cells of a partitioning, psi.")]
Partitionings = Annotated[int, typer.Option(min=1, help="Without a model: number of partitionings, t.")]
Seed = Annotated[int, typer.Option(min=0, help="Without a model: seed of all that is random.")]


@plot.command(no_args_is_help=True)
def stream(records: Records, *, out: Out = "stream.png", names: Names = None, title: Title = "") -> None:
    """Draw the accuracy along a stream, a line for each run.

    Example: isokern plot stream run1.jsonl run2.jsonl --out runs.png
    """
    _check_out(out)
    called = listed(names) or [Path(path).stem for path in records]
    if len(called) != len(records) or len(set(called)) < len(called):
        raise ValueError(f"--names must be {len(records)} different names, one for each file; got {','.join(called)}.")
    runs = {name: _read_curve(path) for name, path in zip(called, records, strict=True)}
    figure, (panel,) = plotting.new_figure(1)
    plotting.accuracy_along_stream(panel, runs, title)
    _save(figure, out)


@plot.command(no_args_is_help=True)
def regions(
    model: _options.Model,
    *,
    data: Data,
    out: Out = "regions.png",
    title: Title = "",
    format: _input.Format = None,
    label: _input.Label = None,
    columns: _input.Columns = None,
    features: _input.Features = None,
    zero_based: _input.ZeroBased = None,
) -> None:
    """Draw which class a model predicts where, on rows of two columns.

    Example: isokern plot regions model.isokern --data rows.csv --label kind
    """
    _check_out(out)
    learner = isokern.load(model)
    source = Input(data, format, label, listed(columns), features, zero_based, True).with_columns_of(learner)
    _check_columns(model, learner)
    X, y = source.whole()
    axes = _axis_names(source)
    display = plotting.DecisionRegionsDisplay.from_estimator(learner, X, y, xlabel=axes[0], ylabel=axes[1])
    display.ax_.set_title(title)
    _save(display.figure_, out)


@plot.command(no_args_is_help=True)
def kernel(
    model: Kernel = None,
    *,
    data: Data,
    point: Point,
    out: Out = "kernel.png",
    title: Title = "",
    partitioning: Partitioning = "tree",
    cells: Cells = 10,
    partitionings: Partitionings = 1000,
    seed: Seed = 0,
    format: _input.Format = None,
    label: _input.Label = None,
    columns: _input.Columns = None,
    features: _input.Features = None,
    zero_based: _input.ZeroBased = None,
) -> None:
    """Draw a kernel's contours: how similar the points of a plane are to one of them.

    Example: isokern plot kernel --data rows.csv --label kind --point 0,0
    """
    _check_out(out)
    centre = _numbers(point)
    source = Input(data, format, label, listed(columns), features, zero_based, True)
    drawn = isokern.IsolationKernel(partitioning, partitionings, cells, random_state=seed)
    if model is not None:
        learner = isokern.load(model)
        source = source.with_columns_of(learner)
        drawn = _kernel_of(model, learner)
    X, _ = source.whole()
    if X.shape[1] != 2:
        raise ValueError(f"{data} must have 2 columns; got {X.shape[1]}. Choose two with --columns a,b.")
    if model is None:
        drawn.fit(X)
    axes = _axis_names(source)
    display = plotting.KernelContoursDisplay.from_kernel(drawn, X, centre, xlabel=axes[0], ylabel=axes[1])
    display.ax_.set_title(title)
    _save(display.figure_, out)


def _kernel_of(path: str, model: Any) -> isokern.IsolationKernel:
    """Return a model's kernel, which forgets the names of columns, since rows will come to it as arrays."""
    kernel = getattr(model, "kernel_", model)
    if not isinstance(kernel, isokern.IsolationKernel):
        raise ValueError(f"{path} must have an Isolation Kernel; got a {type(model).__name__}.")
    _check_columns(path, kernel)
    kernel.__dict__.pop("feature_names_in_", None)
    return kernel


def _read_curve(path: str) -> list[tuple[int, float]]:
    """Return the rows seen and the accuracy up to there, block by block."""
    with open(path, encoding="utf-8", newline="") as file:
        records = list(csv.DictReader(file) if path.endswith(".csv") else _json_lines(path, file))
    try:
        told = [(int(record["n_seen"]), record["accuracy"]) for record in records]
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} must hold records of isokern stream --records; got something else.") from error
    curve = [(n_seen, float(accuracy)) for n_seen, accuracy in told if accuracy not in (None, "")]
    if not curve:
        raise ValueError(f"{path} must have records with an accuracy; got none in {len(told)} records.")
    return curve


def _json_lines(path: str, file: Iterable[str]) -> Iterable[dict[str, Any]]:
    for number, line in enumerate(file, start=1):
        try:
            yield json.loads(line)
        except json.JSONDecodeError as error:
            raise ValueError(f"{path}, line {number}: {error}.") from error


def _check_out(out: str) -> None:
    _options.check_target("--out", out)
    if Path(out).suffix.lower() not in FORMATS:
        raise ValueError(f"--out must end in {one_of(FORMATS)}; got {out}.")


def _check_columns(path: str, model: Any) -> None:
    n_columns = getattr(model, "n_features_in_", None)
    if n_columns != 2:
        raise ValueError(f"{path} must be a model of 2 columns, which become the axes; got one of {n_columns}.")


def _numbers(point: str) -> list[float]:
    try:
        first, second = (float(part) for part in point.split(","))
    except ValueError:
        raise ValueError(f"--point must be two numbers, as x,y; got {point!r}.") from None
    return [first, second]


def _axis_names(source: Input) -> list[str]:
    return source.feature_names() or ["column 1", "column 2"]


def _save(figure: Any, out: str) -> None:
    with replacing(out) as file:
        figure.savefig(file, format=Path(out).suffix[1:].lower(), dpi=150)
    print_facts({"figure": out})
