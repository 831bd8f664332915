"""``isokern evaluate``."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer
from sklearn.base import is_regressor

import isokern
from isokern.cli._input import File, Input, listed
from isokern.cli._options import Block, Device, Metrics, Model, Quiet, use_device, with_groups
from isokern.cli._outputs import plain_numbers
from isokern.cli._show import print_facts, with_progress
from isokern.evaluation import measure


@with_groups()
def evaluate(
    model: Model,
    file: File,
    *,
    metrics: Metrics = "",
    block: Block = 10_000,
    as_json: Annotated[bool, typer.Option("--json", help="Print one line of JSON.")] = False,
    device: Device = None,
    quiet: Quiet = False,
    source: Input,
) -> None:
    """Measure how well a saved model predicts the labels of a file.

    By default: accuracy, balanced accuracy, F1 and log-loss; MAE, RMSE and R² of a regressor.

    Example: isokern evaluate a9a.isokern a9a.t --metrics auc,f1
    """
    learner = isokern.load(model)
    use_device(learner, device)
    source = source.at(file).with_columns_of(learner)
    source.check_labelled()
    facts = measured(learner, source, metrics, block=block, quiet=quiet)
    if as_json:
        typer.echo(json.dumps(facts))
    else:
        print_facts(facts)


def measured(learner: Any, source: Input, metrics: str, *, block: int, quiet: bool = False) -> dict[str, Any]:
    """Return the accuracy and other metrics of a model on a file, and the seconds that it took."""
    blocks = with_progress(source.blocks(block), "Testing", quiet=quiet)
    seconds = dict.fromkeys(("map_seconds", "predict_seconds"), 0.0)
    facts: dict[str, Any] = {}
    for record in measure(learner, blocks, metrics=listed(metrics) or _usual_metrics(learner)):
        seconds = {name: before + getattr(record, name) for name, before in seconds.items()}
        counts = () if is_regressor(learner) else ("n_correct", "accuracy")
        kept = ("n_labelled", *counts, *record.metrics)
        facts = {name: value for name, value in plain_numbers(record).items() if name in kept}
    if not facts:
        raise ValueError(f"{source.path} must have rows; got none.")
    return facts | seconds


def _usual_metrics(learner: Any) -> list[str]:
    """Return the metrics that cost little beside the predictions and tell whether accuracy misleads."""
    if is_regressor(learner):
        return []  # all of them
    return ["balanced_accuracy", "f1", *(["log_loss"] if hasattr(learner, "predict_proba") else [])]
