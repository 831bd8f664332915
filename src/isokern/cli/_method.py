"""Learners by name, made from options."""

from __future__ import annotations

import ast
import inspect
from typing import Annotated, Any

import isokern
from isokern.checks import one_of
from isokern.cli._options import panel

METHODS: dict[str, Any] = {
    "ik-ogd": isokern.IKOGDClassifier,
    "ik-svm": isokern.IKSVC,
    "ogd": isokern.OGDClassifier,
    "nogd": isokern.NOGDClassifier,
    "fogd": isokern.FOGDClassifier,
    "adaraker": isokern.AdaRakerClassifier,
}
_option = panel("How to learn")

Method = Annotated[str, _option(help="ik-ogd, ik-svm, ogd, nogd, fogd or adaraker.")]
Partitioning = Annotated[
    str | None,
    _option(help="tree, the default, or voronoi; for ik-ogd and ik-svm."),
]
Cells = Annotated[
    str,
    _option(help="Cells of a partitioning, psi: a number, auto, or cv for 5-fold cross-validation over 4 to 4096."),
]
Partitionings = Annotated[
    int | None,
    _option(min=1, help="Number of partitionings, t; otherwise 100."),
]
Scale = Annotated[
    str,
    _option(help="minmax, standard, maxabs or none; auto: minmax for dense rows, none for sparse."),
]
Seed = Annotated[int, _option(min=0, help="Seed of all that is random.")]
Set = Annotated[
    list[str] | None,
    _option("--set", help="Any other parameter of the learner, for example --set average=True; may be repeated."),
]
Threads = Annotated[
    int | None,
    _option(min=1, help="Threads; otherwise all there are."),
]


def make_learner(
    method: str,
    *,
    is_dense: bool,
    partitioning: str | None,
    cells: str,
    partitionings: int | None,
    scale: str,
    seed: int,
    threads: int | None,
    device: str | None = None,
    initial: int | None = None,
    settings: list[str] | None = None,
    methods: dict[str, Any] = METHODS,
) -> Any:
    """Return the learner that options describe."""
    if method not in methods:
        raise ValueError(f"--method must be {one_of(methods)}; got {method!r}.")
    make = methods[method]
    if cells == "cv":
        if method != "ik-ogd":
            raise ValueError(f"--cells cv is for --method ik-ogd; got {method}.")
        make = isokern.IKOGDClassifierCV
    given = {
        "partitioning": ("--partitioning", partitioning),
        "n_cells": ("--cells", _cells(cells)),
        "n_partitionings": ("--partitionings", partitionings),
        "n_initial": ("--initial", initial if method != "ik-svm" else None),
        "n_jobs": ("--threads", threads),
        "device": ("--device", device),
    }
    parameters = {"scale": _scale(scale, is_dense), "random_state": seed}
    known = inspect.signature(make).parameters
    for name, (option, value) in given.items():
        if value is not None and name not in known:
            raise ValueError(f"{option} is not an option of --method {method}.")
        if value is not None:
            parameters[name] = value
    return make(**parameters | _settings(settings or [], make))


def _cells(cells: str) -> int | None:
    if cells in {"auto", "cv"}:
        return None
    if not cells.isdecimal():
        raise ValueError(f"--cells must be a number, auto or cv; got {cells!r}.")
    return int(cells)


def _scale(scale: str, is_dense: bool) -> str | None:
    if scale == "auto":
        return "minmax" if is_dense else None
    return None if scale == "none" else scale


def _settings(settings: list[str], make: Any) -> dict[str, Any]:
    """Return parameters from name=value, the value as Python writes it; anything else is a string."""
    parsed = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals or name not in inspect.signature(make).parameters:
            names = ", ".join(inspect.signature(make).parameters)
            raise ValueError(f"--set must be name=value with a parameter of {make.__name__}, {names}; got {setting!r}.")
        try:
            parsed[name] = ast.literal_eval(text)
        except (ValueError, SyntaxError):
            parsed[name] = text
    return parsed
