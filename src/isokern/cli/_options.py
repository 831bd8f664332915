"""Declare the options that several commands share, and expand groups of options."""

from __future__ import annotations

import ast
import functools
import inspect
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from isokern.container import is_container
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


# The parameters of Python that options of another name stand for; these names mean nothing else in a message.
_RENAMED = {
    "n_cells": "--cells",
    "n_partitionings": "--partitionings",
    "n_initial": "--initial",
    "n_jobs": "--threads",
    "n_features": "--features",
    "zero_based": "--zero-based",
    "random_state": "--seed",
}
_NAMED = (
    *("label", "columns", "drop", "types", "dates", "separator"),
    *("partitioning", "scale", "device", "metrics", "protocol", "prefix"),
)
_VALUE = r"""\[[^\]]*\]|\{[^}]*\}|"[^"]*"|'[^']*'|[\w.]+"""


def in_options(text: str) -> str:
    """Return a message of the library in the words of the command line.

    Messages say ``name must be ...`` of a parameter, and ``name=value`` in a cure; see CONTRIBUTING.md.
    """
    text = text.replace("header=False", "--no-header")
    text = re.sub(rf"(?<![\w-])({'|'.join(_NAMED)})=({_VALUE})", _option_with_value, text)
    text = re.sub(rf"(?<![\w-])({'|'.join(_NAMED)})(?= must )", r"--\1", text)
    return re.sub(
        rf"(?<![\w-])({'|'.join(_RENAMED)})\b(=?)", lambda found: _RENAMED[found[1]] + " " * len(found[2]), text
    )


def _option_with_value(found: re.Match[str]) -> str:
    try:
        value = ast.literal_eval(found[2])
    except (ValueError, SyntaxError):
        return found[0]
    if isinstance(value, dict):
        value = [f"{name}={kind}" for name, kind in value.items()]
    names = value if isinstance(value, list) else [str(value)]
    return f"--{found[1]} {shlex.quote(','.join(_quoted(name) for name in names))}"


def _quoted(name: str) -> str:
    """Return a name as a list a,b,c has it; see ``listed``."""
    return f'"{name}"' if "," in name else name


def check_target(option: str, path: str | None, *inputs: str) -> bool:
    """Return whether a file will be replaced; raise if it cannot or, as an input, must not be written."""
    if path is None or path == "-":
        return False
    if not Path(path).parent.is_dir():
        raise ValueError(f"{option} must be in a folder that exists; got {path}. Make {Path(path).parent} first.")
    if Path(path).is_dir():
        raise ValueError(f"{option} must be a file; got the folder {path}.")
    if Path(path).is_file() and any(Path(one).is_file() and Path(path).samefile(one) for one in inputs):
        raise ValueError(f"{option} must not be an input of the command; got {path}.")
    return Path(path).is_file() and Path(path).stat().st_size > 0


def check_model_target(path: str | None, *inputs: str) -> bool:
    """Return whether --out will replace a model; raise if it would replace anything else.

    A model is often fitted anew, and can be; other files are probably named by mistake.
    """
    if not check_target("--out", path, *inputs):
        return False
    if not is_container(str(path)):
        raise ValueError(f"--out must be a new file, or a model to replace; got {path}, which is something else.")
    return True


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
