"""``isokern predict``."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from contextlib import nullcontext
from typing import Annotated, Any

import typer

import isokern
from isokern.cli._input import File, Input, label_text
from isokern.cli._options import Block, Device, Model, Quiet, check_target, use_device, with_groups
from isokern.cli._show import print_remark, with_progress
from isokern.files import replacing


@with_groups(without=("label",))
def predict(
    model: Model,
    file: File,
    *,
    out: Annotated[str, typer.Option("--out", "-o", help="Write predictions here; - is standard output.")] = "-",
    scores: Annotated[bool, typer.Option("--scores", help="Write scores as CSV, one column per class.")] = False,
    proba: Annotated[bool, typer.Option("--proba", help="Write probabilities as CSV, one column per class.")] = False,
    block: Block = 1000,
    device: Device = None,
    quiet: Quiet = False,
    source: Input,
) -> None:
    """Predict each row of a file, one per line; labels in the file are ignored.

    Example: isokern predict a9a.isokern a9a.t --out a9a.predicted
    """
    is_replaced = check_target("--out", out, model, file)
    learner = isokern.load(model)
    use_device(learner, device)
    method = _method_name(learner, scores=scores, proba=proba)
    source = source.at(file).with_columns_of(learner)
    with nullcontext(sys.stdout.buffer) if out == "-" else replacing(out) as target:
        if method != "predict":
            target.write(_csv_line(_scored_classes(learner, method)))
        for X, _ in with_progress(source.blocks(block), "Predicting", quiet=quiet or out == "-"):
            values = getattr(learner, method)(X)
            target.writelines(_csv_line(row) for row in values.reshape(len(values), -1))
            target.flush()
    if is_replaced:
        print_remark("note", f"{out} existed, and was replaced.", "cyan")


def _csv_line(values: Iterable[Any]) -> bytes:
    return f"{','.join(map(label_text, values))}\n".encode()


def _method_name(learner: Any, *, scores: bool, proba: bool) -> str:
    if scores and proba:
        raise ValueError("--scores and --proba must not be given together.")
    method = "decision_function" if scores else "predict_proba" if proba else "predict"
    if not hasattr(learner, method):
        raise ValueError(f"model must have {method}; got one of class {type(learner).__name__}.")
    return method


def _scored_classes(learner: Any, method: str) -> Any:
    """Return the classes of the columns of scores; two classes share one column, which is that of the second."""
    is_shared = method == "decision_function" and len(learner.classes_) == 2
    return learner.classes_[1:] if is_shared else learner.classes_
