"""``isokern export``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

import isokern
from isokern.checks import one_of
from isokern.cli._options import Model, check_target
from isokern.cli._show import print_facts, replaced_text, working
from isokern.export import estimate_size, is_export, to_c, to_json, to_onnx
from isokern.files import replacing

FORMATS = {".onnx": "onnx", ".c": "c", ".json": "json"}


def export(
    model: Model,
    *,
    to: Annotated[str, typer.Option("--to", "-o", help="Write this file: .onnx, .c or .json.", show_default=False)],
    float64: Annotated[bool, typer.Option("--float64", help="ONNX: take float64 input instead of float32.")] = False,
    prefix: Annotated[str, typer.Option(help="C: beginning of all names.")] = "isokern",
    estimate: Annotated[bool, typer.Option("--estimate", help="Estimate the size and write nothing.")] = False,
) -> None:
    """Write a model of trees as an ONNX model, as C source or as JSON.

    Example: isokern export a9a.isokern --to a9a.onnx
    """
    form = _format_of(to)
    is_replaced = _check_target(to, form, model)
    learner = isokern.load(model)
    if estimate:
        print_facts({"file": to, "bytes, about": estimate_size(learner, form)})
        return
    with working(f"Writing {to}"):
        content = _content(learner, form, float64=float64, prefix=prefix)
        with replacing(to) as file:
            file.write(content)
    print_facts({"file": replaced_text(to, is_replaced), "bytes": len(content)})


def _format_of(path: str) -> str:
    suffix = Path(path).suffix.lower()
    if suffix not in FORMATS:
        raise ValueError(f"--to must end in {one_of(FORMATS)}; got {path}.")
    return FORMATS[suffix]


def _check_target(path: str, form: str, model: str) -> bool:
    """Return whether an exported model will be replaced; raise if it would be anything else."""
    if not check_target("--to", path, model):
        return False
    if not is_export(path, form):
        raise ValueError(f"--to must be a new file, or an exported model to replace; got {path}, which is neither.")
    return True


def _content(learner: Any, form: str, *, float64: bool, prefix: str) -> bytes:
    if form == "onnx":
        return bytes(to_onnx(learner, dtype="float64" if float64 else "float32").SerializeToString())
    return (to_c(learner, prefix=prefix) if form == "c" else to_json(learner)).encode()
