"""Options that several commands share."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Annotated, Any

import typer


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


Model = Annotated[str, typer.Argument(help="A model that fit or stream has saved.", show_default=False)]
Block = Annotated[int, typer.Option(min=1, help="Rows that are read, predicted and learned at a time.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]
Metrics = Annotated[
    str,
    typer.Option(
        help="Beside accuracy, as a,b,c: balanced_accuracy, f1, kappa, log_loss, auc, average_precision.",
        show_default=False,
    ),
]
