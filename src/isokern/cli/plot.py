"""``isokern plot``: draw figures from saved records and models."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer
from sklearn.base import is_classifier

import isokern
from isokern import plotting
from isokern.checks import one_of
from isokern.cli._input import Input, listed
from isokern.cli._options import Model, check_target, panel, with_groups
from isokern.cli._show import print_facts
from isokern.container import is_container
from isokern.files import replacing

FORMATS = (".png", ".pdf", ".svg")
_kernel_option = panel("Kernel, if there is no model")

plot = typer.Typer(
    no_args_is_help=True,
    help="Draw figures from saved records and models.\n\nExample: isokern plot stream run1.jsonl --out run1.png",
)

Out = Annotated[str, typer.Option("--out", "-o", help="Save the figure here: .png, .pdf or .svg.")]
Title = Annotated[str, typer.Option(help="Title of the figure.", show_default=False)]
Data = Annotated[str, typer.Option(help="Rows to draw, with two feature columns: LIBSVM text, CSV or Parquet.")]


@plot.command(no_args_is_help=True)
def stream(
    records: Annotated[list[str], typer.Argument(help="Files of isokern stream --records.", show_default=False)],
    *,
    out: Out = "stream.png",
    names: Annotated[str | None, typer.Option(help="Names of the runs, as a,b,c. Default: the file names.")] = None,
    title: Title = "",
) -> None:
    """Draw the accuracy along a stream: so far, of each block, and where changes were found.

    Example: isokern plot stream run1.jsonl run2.jsonl --out runs.png
    """
    check_figure("--out", out)
    run_names = [Path(path).stem for path in records] if names is None else listed(names)
    if len(run_names) != len(records) or len(set(run_names)) < len(run_names):
        raise ValueError(f"--names must be {len(records)} different names, one per file; got {','.join(run_names)}.")
    runs = {name: _read_blocks(path) for name, path in zip(run_names, records, strict=True)}
    figure, (panel,) = plotting.new_figure(1)
    figure.set_figwidth(8)
    plotting.blocks_along_stream(panel, runs, title)
    _save(figure, out, title)


@plot.command(no_args_is_help=True)
@with_groups(without=("dense",))
def regions(model: Model, *, data: Data, out: Out = "regions.png", title: Title = "", source: Input) -> None:
    """Draw the decision regions of a model of two columns.

    Example: isokern plot regions model.isokern --data rows.csv --label kind
    """
    check_figure("--out", out)
    learner = _load_plane_model(model)
    if not is_classifier(learner):
        raise ValueError(f"{model} must be a model that predicts classes; got one of class {type(learner).__name__}.")
    source = _rows_to_draw(source, data).with_columns_of(learner)
    X, y = source.whole()
    display = plotting.DecisionRegionsDisplay.from_estimator(learner, X, y, **_axis_labels(source))
    _save(display.figure_, out, title)


@plot.command(no_args_is_help=True)
@with_groups(without=("dense",))
def kernel(
    model: Annotated[
        str | None, typer.Argument(help="Model file written by fit or stream. Default: a kernel fitted to the rows.")
    ] = None,
    *,
    data: Data,
    point: Annotated[str, typer.Option(help="Point to which the similarity is drawn, as x,y.")],
    out: Out = "kernel.png",
    title: Title = "",
    partitioning: Annotated[str, _kernel_option(help="tree or voronoi.")] = "tree",
    cells: Annotated[int, _kernel_option(min=2, help="Cells per partitioning, psi.")] = 10,
    partitionings: Annotated[int, _kernel_option(min=1, max=2**31 - 1, help="Number of partitionings, t.")] = 1000,
    seed: Annotated[int, _kernel_option(min=0, max=2**32 - 1, help="Random seed.")] = 0,
    source: Input,
) -> None:
    """Draw the contours of a kernel of two columns: its similarity to one point.

    Example: isokern plot kernel --data rows.csv --label kind --point 0,0
    """
    check_figure("--out", out)
    centre = _parsed_point(point)
    source = _rows_to_draw(source, data)
    if model is None:
        X, _ = source.whole()
        if X.shape[1] != 2:
            raise ValueError(f"{data} must have 2 feature columns; got {X.shape[1]}. Choose two with --columns a,b.")
        drawn = isokern.IsolationKernel(partitioning, partitionings, cells, random_state=seed).fit(X)
    else:
        learner = _load_plane_model(model)
        source = source.with_columns_of(learner)
        X, _ = source.whole()
        drawn = _kernel_of(model, learner)
    display = plotting.KernelContoursDisplay.from_kernel(drawn, X, centre, **_axis_labels(source))
    _save(display.figure_, out, title)


def _rows_to_draw(source: Input, path: str) -> Input:
    """Return the input that reads a file as dense rows; raise if it is a model."""
    if is_container(path):
        raise ValueError(f"--data must be rows: LIBSVM text, CSV or Parquet; got the model {path}.")
    return source._replace(path=path, dense=True)


def _load_plane_model(path: str) -> Any:
    """Load a model, which must have two columns."""
    if Path(path).is_file() and not is_container(path):
        raise ValueError(
            f"{path} must be a model file written by isokern fit or stream; got another file. "
            "Give rows by --data, and draw records with isokern plot stream."
        )
    model = isokern.load(path)
    n_columns = getattr(model, "n_features_in_", None)
    if n_columns != 2:
        raise ValueError(f"{path} must be a model of 2 columns, which become the axes; got one of {n_columns}.")
    if getattr(model, "is_categorical_", None) is not None:
        raise ValueError(f"{path} must be a model of 2 columns of numbers, which become the axes; got categories.")
    return model


def _kernel_of(path: str, model: Any) -> Any:
    """Return the kernel of a model, without column names, because the rows to draw are arrays."""
    kernel = getattr(model, "kernel_", model)
    if not isinstance(kernel, isokern.IsolationKernel):
        raise ValueError(f"{path} must have an Isolation Kernel; got a {type(model).__name__}.")
    kernel.__dict__.pop("feature_names_in_", None)
    return kernel


def _read_blocks(path: str) -> list[tuple[int, float, float, int]]:
    """Return rows seen, accuracy so far, accuracy of the block and changes found so far, after each block."""
    if is_container(path):
        raise ValueError(
            f"{path} must be a file of isokern stream --records; got a model. "
            "Draw a model with isokern plot regions or isokern plot kernel."
        )
    with open(path, encoding="utf-8", errors="replace", newline="") as file:
        records = list(csv.DictReader(file) if path.endswith(".csv") else _json_lines(path, file))
    try:
        blocks = [_block(record) for record in records if record["accuracy"] not in (None, "")]
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{path} must be a file of isokern stream --records; got other content.") from error
    if not blocks:
        raise ValueError(f"{path} must have records with an accuracy; got none in {len(records)} records.")
    return blocks


def _block(record: dict[str, Any]) -> tuple[int, float, float, int]:
    """Return the numbers to draw of a record: text if it is CSV; empty or missing if not known."""
    of_block, n_drifts = record.get("block_accuracy"), record.get("n_drifts")
    block_accuracy = math.nan if of_block in (None, "") else float(of_block)
    return int(record["n_seen"]), float(record["accuracy"]), block_accuracy, int(n_drifts or 0)


def _json_lines(path: str, file: Iterable[str]) -> Iterable[dict[str, Any]]:
    for number, line in enumerate(file, start=1):
        try:
            yield json.loads(line)
        except json.JSONDecodeError as error:
            rule = "a record must be JSON, as isokern stream --records writes it"
            raise ValueError(f"{path}, line {number}: {rule}; got {line.strip()!r:.60}.") from error


def check_figure(option: str, out: str) -> None:
    """Raise if a figure cannot be saved there."""
    check_target(option, out)
    if Path(out).suffix.lower() not in FORMATS:
        raise ValueError(f"{option} must end in {one_of(FORMATS)}; got {out}.")


def _parsed_point(point: str) -> tuple[float, float]:
    try:
        first, second = (float(part) for part in point.split(","))
    except ValueError:
        raise ValueError(f"--point must be two numbers, as x,y; got {point!r}.") from None
    return first, second


def _axis_labels(source: Input) -> dict[str, Any]:
    first, second = source.feature_names() or ["column 1", "column 2"]
    return {"xlabel": first, "ylabel": second}


def _save(figure: Any, out: str, title: str) -> None:
    figure.axes[0].set_title(title)
    save_figure(figure, out)
    print_facts({"figure": out})


def save_figure(figure: Any, out: str) -> None:
    """Write a figure in the format of the file's suffix."""
    with replacing(out) as file:
        figure.savefig(file, format=Path(out).suffix[1:].lower(), dpi=150)
