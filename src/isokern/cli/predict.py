"""``isokern predict``."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, TextIO

import typer

import isokern
from isokern.cli import _input
from isokern.cli._input import Input, label_text, listed
from isokern.cli._options import Block, Device, Model, Quiet, check_target, use_device
from isokern.cli._show import followed
from isokern.files import replacing

Out = Annotated[str, typer.Option("--out", "-o", help="Where to write; - is standard output.")]
Scores = Annotated[bool, typer.Option("--scores", help="Write scores: a line of classes, then a line for each row.")]
Probabilities = Annotated[bool, typer.Option("--proba", help="Write probabilities, likewise.")]


def predict(
    model: Model,
    file: _input.File,
    *,
    out: Out = "-",
    scores: Scores = False,
    proba: Probabilities = False,
    block: Block = 1000,
    device: Device = None,
    quiet: Quiet = False,
    format: _input.Format = None,
    columns: _input.Columns = None,
    features: _input.Features = None,
    zero_based: _input.ZeroBased = None,
    dense: _input.Dense = None,
) -> None:
    """Predict the rows of a file, a line for each; labels in it are not looked at.

    Example: isokern predict a9a.isokern a9a.t --out a9a.predicted
    """
    check_target("--out", out)
    learner = isokern.load(model)
    use_device(learner, device)
    method = _method_name(learner, scores=scores, proba=proba)
    source = Input(file, format, None, listed(columns), features, zero_based, dense).with_columns_of(learner)
    with _writing(out) as target:
        if method != "predict":
            target.write(",".join(map(label_text, _scored_classes(learner, method))) + "\n")
        for X, _ in followed(source.blocks(block), "Predicting", quiet=quiet or out == "-"):
            values = getattr(learner, method)(X)
            lines = (",".join(map(label_text, row)) for row in values.reshape(len(values), -1))
            target.writelines(f"{line}\n" for line in lines)
            target.flush()


def _method_name(learner: Any, *, scores: bool, proba: bool) -> str:
    if scores and proba:
        raise ValueError("--scores and --proba must not be given together.")
    method = "decision_function" if scores else "predict_proba" if proba else "predict"
    if not hasattr(learner, method):
        raise ValueError(f"the model, of class {type(learner).__name__}, cannot do that: it has no {method}.")
    return method


def _scored_classes(learner: Any, method: str) -> Any:
    """Return the classes that columns of scores speak for: two classes share one score, for the second."""
    is_shared = method == "decision_function" and len(learner.classes_) == 2
    return learner.classes_[1:] if is_shared else learner.classes_


@contextmanager
def _writing(out: str) -> Iterator[TextIO]:
    """Open a file of text to write, which is there whole or not at all, or standard output."""
    if out == "-":
        yield sys.stdout
        return
    with replacing(out) as file:
        text = io.TextIOWrapper(file, encoding="utf-8")
        yield text
        text.detach()  # which writes what is left, and leaves the file open
