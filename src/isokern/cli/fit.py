"""``isokern fit``."""

from __future__ import annotations

import time
from typing import Annotated, Any

import numpy as np
import typer

import isokern
from isokern.cli._dask import fit_on_cluster
from isokern.cli._input import File, Input, labelled
from isokern.cli._method import Learning
from isokern.cli._options import Metrics, check_target, with_groups
from isokern.cli._show import print_facts, working
from isokern.cli.evaluate import measured

_TEST_BLOCK = 10_000  # rows


@with_groups()
def fit(
    file: File,
    *,
    out: Annotated[str, typer.Option("--out", "-o", help="Save the model here.")] = "model.isokern",
    test: Annotated[str | None, typer.Option(help="Test the model on this file afterwards.")] = None,
    dask: Annotated[
        str | None, typer.Option(help="Fit on a Dask cluster: the address of its scheduler, or local.")
    ] = None,
    metrics: Metrics = "",
    learning: Learning,
    source: Input,
) -> None:
    """Fit a model to all rows of a file and save it.

    Example: isokern fit a9a --test a9a.t --out a9a.isokern
    """
    source = source._replace(path=file)
    source.check_labelled()
    if test is not None:
        source._replace(path=test).check_labelled()
    check_target("--out", out)
    names = source.feature_names()
    learner, facts = _fit_here(learning, source) if dask is None else fit_on_cluster(learning, source, dask)
    name_columns(learner, names)
    isokern.save(learner, out)
    if hasattr(learner, "best_params_"):
        facts |= {"cells, by cross-validation": learner.best_params_["n_cells"]}
    if test is not None:
        tested = source._replace(path=test).with_columns_of(learner)
        facts |= measured(learner, tested, metrics, block=_TEST_BLOCK)
    print_facts(facts | {"model": out})


def _fit_here(learning: Learning, source: Input) -> tuple[Any, dict[str, Any]]:
    """Return a learner that this process has fitted, and facts about the fit."""
    learner = learning.make_learner(is_dense=source.is_dense)
    with working(f"Reading {source.path}"):
        X, y = labelled(*source.whole())
    started = time.perf_counter()
    with working(f"Learning from {X.shape[0]:,} rows of {X.shape[1]:,} columns"):
        learner.fit(X, y)
    return learner, {"rows learned": X.shape[0], "seconds to learn": time.perf_counter() - started}


def name_columns(learner: Any, names: list[str] | None) -> None:
    """Store the names of the columns in a learner, as if it had been fitted to a data frame."""
    if names is not None:
        learner.feature_names_in_ = np.array(names, dtype=object)
