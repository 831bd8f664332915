"""``isokern info``."""

from __future__ import annotations

import importlib.metadata
import platform
from pathlib import Path
from typing import Annotated, Any

import joblib
import typer

import isokern
from isokern import _core
from isokern.cli._input import label_text
from isokern.cli._show import print_facts

_PACKAGES = ("numpy", "scipy", "scikit-learn", "pyarrow", "backports.zstd", "matplotlib", "torch", "dask")
_MOST_CLASSES = 10


def info(
    file: Annotated[str | None, typer.Argument(help="Model file written by fit or stream.")] = None,
) -> None:
    """Describe a saved model or, without one, this installation.

    Example: isokern info a9a.isokern
    """
    print_facts(_installation() if file is None else _model(file))


def _installation() -> dict[str, Any]:
    facts = {
        "isokern": isokern.__version__,
        "Python": platform.python_version(),
        "machine": f"{platform.machine()}, {joblib.cpu_count()} cores, {_core.instruction_set()} vector instructions",
    }
    for package in _PACKAGES:
        try:
            facts[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            facts[package] = "not installed"
    return facts


def _model(file: str) -> dict[str, Any]:
    model = isokern.load(file)
    facts: dict[str, Any] = {"class": type(model).__name__, "bytes": Path(file).stat().st_size}
    for name in ("n_features_in_", "n_support_", "best_params_"):
        if hasattr(model, name):
            facts[name] = getattr(model, name)
    kernel = getattr(model, "kernel_", model)
    if hasattr(kernel, "n_cells_"):
        facts["n_cells_"] = kernel.n_cells_
    if hasattr(model, "classes_"):
        names = [label_text(label) for label in model.classes_[:_MOST_CLASSES]]
        facts["classes_"] = ", ".join(names) + (", ..." if len(model.classes_) > _MOST_CLASSES else "")
    return facts | {name: repr(value) for name, value in sorted(model.get_params(deep=False).items())}
