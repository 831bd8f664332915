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
from isokern.cli._options import Metrics, check_model_target, with_groups
from isokern.cli._show import print_facts, replaced_text, working
from isokern.cli.evaluate import measured
from isokern.data.columns import is_text

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
    source = source.at(file)
    source.check_labelled()
    if test is not None:
        source._replace(path=test).check_labelled()
    is_replaced = check_model_target(out, file, *([] if test is None else [test]))
    names, learning = source.feature_names(), learning.for_table()
    learner, facts = _fit_here(learning, source) if dask is None else fit_on_cluster(learning, source, dask)
    name_columns(learner, names)
    isokern.save(learner, out)
    if hasattr(learner, "best_params_"):
        facts |= {"cells, by cross-validation": learner.best_params_["n_cells"]}
    if test is not None:
        tested = source._replace(path=test).with_columns_of(learner)
        facts |= measured(learner, tested, metrics, block=_TEST_BLOCK)
    print_facts(facts | {"model": replaced_text(out, is_replaced)})


def _fit_here(learning: Learning, source: Input) -> tuple[Any, dict[str, Any]]:
    """Return a learner that this process has fitted, and facts about the fit."""
    learning.make_learner()  # wrong options raise before a large file is read
    with working(f"Reading {source.path}"):
        X, y = labelled(*source.whole())
    learning, kind = learning.guessed(y)
    learner = learning.make_learner()
    started = time.perf_counter()
    with working(f"Learning from {X.shape[0]:,} rows of {X.shape[1]:,} columns"):
        learner.fit(X, y)
    seconds = time.perf_counter() - started
    facts = {"kind": kind, "columns": _columns_text(X), "rows learned": X.shape[0], "seconds to learn": seconds}
    return learner, facts


def _columns_text(X: Any) -> str:
    """Return the number of columns, and how many of them are text."""
    n_text = sum(is_text(kind) for kind in X.schema.types) if hasattr(X, "schema") else 0
    return f"{X.shape[1]:,}" + (f", of them {n_text:,} with text" if n_text else "")


def name_columns(learner: Any, names: list[str] | None) -> None:
    """Store the names of the columns in a learner, as if it had been fitted to a data frame."""
    if names is not None:
        learner.feature_names_in_ = np.array(names, dtype=object)
