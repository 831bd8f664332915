"""``isokern evaluate``."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

import isokern
from isokern.cli import _input
from isokern.cli._input import Input, listed
from isokern.cli._options import Block, Device, Metrics, Model, Quiet, use_device
from isokern.cli._outputs import plain_numbers
from isokern.cli._show import followed, print_facts
from isokern.evaluation import measure

Json = Annotated[bool, typer.Option("--json", help="Print one line of JSON.")]


def evaluate(
    model: Model,
    file: _input.File,
    *,
    metrics: Metrics = "",
    block: Block = 10_000,
    as_json: Json = False,
    device: Device = None,
    quiet: Quiet = False,
    format: _input.Format = None,
    label: _input.Label = None,
    columns: _input.Columns = None,
    features: _input.Features = None,
    zero_based: _input.ZeroBased = None,
    dense: _input.Dense = None,
) -> None:
    """Measure a saved model on rows with labels.

    Example: isokern evaluate a9a.isokern a9a.t --metrics auc,f1
    """
    learner = isokern.load(model)
    use_device(learner, device)
    source = Input(file, format, label, listed(columns), features, zero_based, dense).with_columns_of(learner)
    source.check_labelled()
    facts = measured(learner, source, metrics, block=block, quiet=quiet)
    if as_json:
        typer.echo(json.dumps(facts))
    else:
        print_facts(facts)


def measured(learner: Any, source: Input, metrics: str, *, block: int, quiet: bool = False) -> dict[str, Any]:
    """Return how many rows of a file a model predicts right, and other metrics."""
    blocks = followed(source.blocks(block), "Testing", quiet=quiet)
    seconds = dict.fromkeys(("map_seconds", "predict_seconds"), 0.0)
    facts: dict[str, Any] = {}
    for record in measure(learner, blocks, metrics=listed(metrics) or ()):
        seconds = {name: before + getattr(record, name) for name, before in seconds.items()}
        kept = ("n_labelled", "n_correct", "accuracy", *record.metrics)
        facts = {name: value for name, value in plain_numbers(record).items() if name in kept}
    if not facts:
        raise ValueError(f"{source.path} must have rows; got none.")
    return facts | seconds
