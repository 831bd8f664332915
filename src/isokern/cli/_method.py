"""Make learners from options."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple

import numpy as np

import isokern
from isokern.checks import one_of
from isokern.cli._options import Device, panel
from isokern.learners.answers import present_labels

METHODS: dict[str, Any] = {
    "ik-ogd": isokern.IKOGDClassifier,
    "adaptive": isokern.AdaptiveIKClassifier,
    "ik-svm": isokern.IKSVC,
    "ogd": isokern.OGDClassifier,
    "nogd": isokern.NOGDClassifier,
    "fogd": isokern.FOGDClassifier,
    "adaraker": isokern.AdaRakerClassifier,
}
_REGRESSORS: dict[str, Any] = {"ik-ogd": isokern.IKOGDRegressor, "adaptive": isokern.AdaptiveIKRegressor}
KINDS = ("classification", "regression")
# Whole numbers are classes if there are at most this many of them and, unless they are very few, each occurs twice.
_MOST_CLASSES, _ALWAYS_FEW = 100, 20
_TEXT = "labels that are text"
_option = panel("Learner")
_LARGEST = 2**31 - 1
_MOST_THREADS = 1024  # more than the system allows would end the process


class Learning(NamedTuple):
    """The options that describe a learner."""

    method: Annotated[
        str,
        _option(
            help="ik-ogd, adaptive, ik-svm, ogd, nogd, fogd, adaraker or auto: for streams adaptive, unless an option "
            "such as --cells or --initial needs ik-ogd; else ik-ogd."
        ),
    ] = "auto"
    kind: Annotated[
        str | None, _option(help="classification or regression (ik-ogd, adaptive). Default: guessed from the labels.")
    ] = None
    partitioning: Annotated[str | None, _option(help="tree or voronoi (ik-ogd, ik-svm). Default: tree.")] = None
    cells: Annotated[
        str,
        _option(help="Cells per partitioning, psi: a number, auto, or cv for 5-fold cross-validation over 4 to 4096."),
    ] = "auto"
    partitionings: Annotated[
        int | None, _option(min=1, max=_LARGEST, help="Number of partitionings, t. Default: the learner's.")
    ] = None
    scale: Annotated[
        str,
        _option(help="Scaling of columns: none, minmax, standard or maxabs. Trees need none; for others, try minmax."),
    ] = "none"
    seed: Annotated[int, _option(min=0, max=2**32 - 1, help="Random seed.")] = 0
    settings: Annotated[
        list[str] | None,
        _option("--set", help="Any other parameter of the learner, such as --set average=True. Can be repeated."),
    ] = None
    threads: Annotated[
        int | None,
        _option(min=1, max=_MOST_THREADS, help="Number of threads. Default: $OMP_NUM_THREADS, else all CPUs."),
    ] = None
    device: Device = None

    def for_table(self) -> Learning:
        """Return the options with the method for tables, unless another one is given."""
        return self._replace(method="ik-ogd") if self.method == "auto" else self

    def for_stream(self, initial: int | None) -> tuple[Learning, str]:
        """Return the options with the method for streams, unless another one is given, and how to say so."""
        if self.method != "auto":
            return self, self.method
        options = {name: option for name, (option, _) in self._given(initial).items()}
        options |= {"n_cells": "--cells"} if self.cells == "cv" else {}
        names = [setting.partition("=")[0] for setting in self.settings or []]
        options |= {name: f"--set {name}" for name in names if name in _parameters("ik-ogd")}
        reason = next((option for name, option in options.items() if name not in _parameters("adaptive")), None)
        if reason is None:
            return self._replace(method="adaptive"), "adaptive"
        return self._replace(method="ik-ogd"), f"ik-ogd, because of {reason}"

    def guessed(self, y: Any) -> tuple[Learning, str]:
        """Return the options with the kind of learner that fits the labels, unless it is given, and how to say so."""
        if self.kind is not None:
            return self, self.kind
        if self.method not in _REGRESSORS:
            return self._replace(kind="classification"), "classification"
        kind, why = _kind_of(y)
        if why == _TEXT:
            return self._replace(kind=kind), f"{kind}, guessed from {why}"
        other = next(name for name in KINDS if name != kind)
        return self._replace(kind=kind), f"{kind}, guessed from {why}; or else --kind {other}"

    def make_learner(self, *, initial: int | None = None, methods: Mapping[str, Any] = METHODS) -> Any:
        """Return an unfitted learner; ``initial`` is the length of its warm-up."""
        if self.method not in methods:
            raise ValueError(f"--method must be {one_of(methods)}; got {self.method!r}.")
        if self.kind not in (None, *KINDS):
            raise ValueError(f"--kind must be {one_of(KINDS)}; got {self.kind!r}.")
        make = methods[self.method]
        if self.kind == "regression":
            if methods is not METHODS or self.method not in _REGRESSORS:
                raise ValueError("--kind regression must come with --method ik-ogd or adaptive, without --dask.")
            make = _REGRESSORS[self.method]
        if self.cells == "cv":
            if self.method != "ik-ogd":
                raise ValueError(f"--cells cv must come with --method ik-ogd; got {self.method}.")
            make = isokern.IKOGDRegressorCV if self.kind == "regression" else isokern.IKOGDClassifierCV
        given, known = self._given(initial), inspect.signature(make).parameters
        for name, (option, _) in given.items():
            if name not in known:
                raise ValueError(f"{option} is not an option of --method {self.method}.")
        parameters = {"random_state": self.seed} | {name: value for name, (_, value) in given.items()}
        return make(**parameters | self._other_parameters(make))

    def _given(self, initial: int | None) -> dict[str, tuple[str, Any]]:
        """Return the options that are given and their values, by the parameters that they stand for."""
        values = {
            "partitioning": ("--partitioning", self.partitioning),
            "n_cells": ("--cells", self._n_cells()),
            "n_partitionings": ("--partitionings", self.partitionings),
            "n_initial": ("--initial", initial),
            "scale": ("--scale", None if self.scale == "none" else self.scale),
            "n_jobs": ("--threads", self.threads),
            "device": ("--device", self.device),
        }
        return {name: given for name, given in values.items() if given[1] is not None}

    def _n_cells(self) -> int | None:
        if self.cells in {"auto", "cv"}:
            return None
        if not self.cells.isdecimal():
            raise ValueError(f"--cells must be a number, auto or cv; got {self.cells!r}.")
        return int(self.cells)

    def _other_parameters(self, make: Any) -> dict[str, Any]:
        """Parse name=value; a value that is not a Python literal is a string."""
        known, parsed = inspect.signature(make).parameters, {}
        for setting in self.settings or []:
            name, equals, text = setting.partition("=")
            if not equals or name not in known:
                names = ", ".join(known)
                raise ValueError(
                    f"--set must be name=value with a parameter of {make.__name__}, {names}; got {setting!r}."
                )
            try:
                parsed[name] = ast.literal_eval(text)
            except (ValueError, SyntaxError):
                parsed[name] = text
        return parsed


def _parameters(method: str) -> set[str]:
    """Return the names of the parameters of a method's classifier and regressor."""
    return {name for make in (METHODS[method], _REGRESSORS[method]) for name in inspect.signature(make).parameters}


def _kind_of(y: Any) -> tuple[str, str]:
    """Return the kind of learner that fits labels, and why: few whole numbers and words are classes."""
    given = present_labels(y)[0]
    labels = np.unique(given)
    if labels.dtype.kind != "f":
        return "classification", _TEXT
    if (labels % 1 != 0).any():
        return "regression", "labels with fractions"
    are_few = len(labels) <= min(_MOST_CLASSES, max(_ALWAYS_FEW, len(given) / 2))
    kind = "classification" if are_few else "regression"
    return kind, f"{len(labels):,} different whole numbers"
