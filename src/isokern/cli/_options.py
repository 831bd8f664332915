"""Options that several commands share."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Annotated, Any

import typer

from isokern.devices import is_compiled_core, torch_device


def panel(name: str) -> Any:
    """Return what makes options that stand together in the help under a name."""
    return functools.partial(typer.Option, rich_help_panel=name)


def check_target(option: str, path: str | None) -> None:
    """Raise if no file can be at a path, before any work is done for it."""
    if path is None or path == "-":
        return
    if not Path(path).parent.is_dir():
        raise ValueError(f"{option} must be in a folder that exists; got {path}. Make {Path(path).parent} first.")
    if Path(path).is_dir():
        raise ValueError(f"{option} must be a file; got the folder {path}.")


def use_device(learner: Any, device: str | None) -> None:
    """Let a model that was loaded map rows on a device."""
    if device is None:
        return
    kernel = getattr(learner, "kernel_", None)
    if kernel is None:
        raise ValueError(f"--device must be for a model with a map; got one of class {type(learner).__name__}.")
    if not is_compiled_core(device):
        torch_device(device)
    kernel.device = device


Model = Annotated[str, typer.Argument(help="A model that fit or stream has saved.", show_default=False)]
Block = Annotated[int, typer.Option(min=1, help="Rows that are read, predicted and learned at a time.")]
Device = Annotated[
    str | None,
    typer.Option(
        help="Where rows are mapped: cpu, or a PyTorch device such as cuda, cuda:1 or mps.", show_default=False
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]
Metrics = Annotated[
    str,
    typer.Option(
        help="Beside accuracy, as a,b,c: balanced_accuracy, f1, kappa, log_loss, auc, average_precision.",
        show_default=False,
    ),
]
