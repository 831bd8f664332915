"""``isokern info``."""

from __future__ import annotations

import importlib.metadata
import platform
from pathlib import Path
from typing import Annotated, Any

import joblib
import numpy as np
import typer

import isokern
from isokern import _core
from isokern.cli._input import label_text
from isokern.cli._show import drifts_text, print_facts, print_table, results
from isokern.container import writer_of
from isokern.inspection import SimilarRows

_PACKAGES = ("numpy", "scipy", "scikit-learn", "pyarrow", "backports.zstd", "matplotlib", "onnx", "torch", "dask")
_MOST_CLASSES, _MOST_COLUMNS, _MOST_CATEGORIES = 10, 30, 20
_LONGEST_NAME = 40


def info(
    file: Annotated[str | None, typer.Argument(help="Model file written by fit or stream.")] = None,
) -> None:
    """Describe a saved model or, without one, this installation.

    Example: isokern info a9a.isokern
    """
    if file is None:
        print_facts(_installation())
        return
    model = isokern.load(file)
    if isinstance(model, SimilarRows):
        print_facts({"stored rows": model.n, "bytes of each": model.bytes_per_row})
        model = model.kernel
    print_facts(_facts(file, model))
    if hasattr(model, "drifts_") and model.selection_ is not None:
        results.print()
        print_table(_experts(**model.selection_))
    if columns := _columns(model):
        results.print()
        print_facts(columns)


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


def _facts(file: str, model: Any) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "class": type(model).__name__,
        "written by": f"isokern {writer_of(file)}",
        "bytes": Path(file).stat().st_size,
    }
    for name in ("n_features_in_", "n_support_", "best_params_"):
        if hasattr(model, name):
            facts[name] = getattr(model, name)
    selection = getattr(model, "selection_", None)
    if selection is not None:
        name = "leader" if "leader" in selection else "chosen"
        facts[name] = selection[name]
    if hasattr(model, "drifts_"):
        facts |= {"rows learned": model.n_rows_seen_, "error so far": model.error_, "drifts": drifts_text(model)}
    if hasattr(model, "recent_") and model.recent_.n:
        facts["recent rows"] = f"{model.recent_.n:,} in the file; isokern.save(model, path, buffer=False) drops them"
    kernel = getattr(model, "kernel_", model)
    if hasattr(kernel, "n_cells_"):
        facts["n_cells_"] = kernel.n_cells_
    if hasattr(model, "classes_"):
        names = [_printable(label_text(label)) for label in model.classes_[:_MOST_CLASSES]]
        facts["classes_"] = _listed(names, len(model.classes_))
    return facts | {name: repr(value) for name, value in sorted(model.get_params(deep=False).items())}


def _experts(candidates: list[str], errors: Any, running: list[str], leader: str) -> list[dict[str, Any]]:
    """Return the experts that learn, their recent errors and which of them leads."""
    errors_of = dict(zip(candidates, errors.tolist(), strict=True))
    return [
        {"expert": name, "recent error": errors_of[name], "": "leader" if name == leader else ""} for name in running
    ]


def _columns(model: Any) -> dict[str, str]:
    """Return the first columns and their types; nothing if the columns are numbers without names."""
    names, is_categorical = (getattr(model, name, None) for name in ("feature_names_in_", "is_categorical_"))
    if names is None and is_categorical is None:
        return {}
    n_columns = model.n_features_in_
    is_category = np.zeros(n_columns, dtype=bool) if is_categorical is None else is_categorical
    shown = {"columns": f"{n_columns:,}, of which {is_category.sum():,} are categories"}
    for k in range(min(n_columns, _MOST_COLUMNS)):
        name = "" if names is None else _printable(str(names[k]))
        shown[f"{k:>4}  {name}"] = _categories(model, k) if is_category[k] else "number"
    return shown | ({" ...": f"and {n_columns - _MOST_COLUMNS:,} more"} if n_columns > _MOST_COLUMNS else {})


def _categories(model: Any, column: int) -> str:
    """Describe a categorical column: how many categories the first rows had, and the commonest with their counts."""
    found = getattr(model, "categories_", {}).get(column)
    if found is None:
        return "category"
    pairs = zip(found.names[:_MOST_CATEGORIES], found.counts.tolist(), strict=False)
    names = [f"{_printable(name)} ({count:,})" for name, count in pairs]
    return f"category, {found.n:,} in the rows of the map: {_listed(names, found.n)}"


def _listed(names: list[str], n: int) -> str:
    """Join names, the first of n."""
    return ", ".join(names) + (", ..." if n > len(names) else "")


def _printable(text: str) -> str:
    """Return text that fits into a line: a file may hold names of any length, and of control characters."""
    text = text if text.isprintable() else ascii(text)
    return text if len(text) <= _LONGEST_NAME else f"{text[: _LONGEST_NAME - 3]}..."
