"""Declare the options that several commands share, and expand groups of options."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from isokern.devices import is_compiled_core, torch_device

Command = Callable[..., None]


def panel(name: str) -> Any:
    """Return ``typer.Option`` for options that the help shows in a panel of this name."""
    return functools.partial(typer.Option, rich_help_panel=name)


def with_groups(*, without: tuple[str, ...] = ()) -> Callable[[Command], Command]:
    """Let a command take groups of options: NamedTuples whose annotated fields are options.

    Typer reads a signature in which each group is replaced by its options, except those in ``without``, which keep
    their defaults. So an option that many commands have is declared once.
    """

    def decorate(command: Command) -> Command:
        options: list[inspect.Parameter] = []
        groups: dict[str, Any] = {}
        signature = inspect.signature(command, eval_str=True)
        for name, parameter in signature.parameters.items():
            if hasattr(parameter.annotation, "_field_defaults"):
                groups[name] = parameter.annotation
                options += (option for option in _options_of(parameter.annotation) if option.name not in without)
            else:
                options.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))

        @functools.wraps(command)
        def expanded(**values: Any) -> None:
            for name, group in groups.items():
                values[name] = group(**{field: values.pop(field) for field in group._fields if field in values})
            command(**values)

        expanded.__signature__ = signature.replace(parameters=options)  # type: ignore[attr-defined]
        return expanded

    return decorate


def _options_of(group: Any) -> list[inspect.Parameter]:
    """Return the fields of a group that have an option in their annotation, as parameters of a function."""
    return [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=group._field_defaults[name], annotation=annotation
        )
        for name, annotation in get_type_hints(group, include_extras=True).items()
        if hasattr(annotation, "__metadata__")
    ]


def check_target(option: str, path: str | None) -> None:
    """Raise if a path cannot be written, before any work is done for it."""
    if path is None or path == "-":
        return
    if not Path(path).parent.is_dir():
        raise ValueError(f"{option} must be in a folder that exists; got {path}. Make {Path(path).parent} first.")
    if Path(path).is_dir():
        raise ValueError(f"{option} must be a file; got the folder {path}.")


def use_device(learner: Any, device: str | None) -> None:
    """Let a loaded model map rows on a device."""
    if device is None:
        return
    kernel = getattr(learner, "kernel_", None)
    if kernel is None:
        raise ValueError(
            f"--device must be for a model with an Isolation Kernel; got one of class {type(learner).__name__}."
        )
    if not is_compiled_core(device):
        torch_device(device)
    kernel.device = device


Model = Annotated[str, typer.Argument(help="Model file written by fit or stream.", show_default=False)]
Block = Annotated[int, typer.Option(min=1, help="Rows per block.")]
Device = Annotated[
    str | None,
    typer.Option(help="Device that maps rows: cpu, or a PyTorch device such as cuda, cuda:1 or mps."),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]
Metrics = Annotated[
    str,
    typer.Option(
        help="Metrics besides accuracy, as a,b,c: balanced_accuracy, f1, kappa, log_loss, calibration_error, auc, "
        "average_precision.",
        show_default=False,
    ),
]
