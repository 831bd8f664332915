"""``isokern fit``."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

import numpy as np
import typer

import isokern
from isokern.cli import _input, _method, _options
from isokern.cli._dask import fit_on_cluster
from isokern.cli._input import Input, labelled, listed
from isokern.cli._show import print_facts, working
from isokern.cli.evaluate import measured

Out = Annotated[str, typer.Option("--out", "-o", help="Where to save the model.")]
Dask = Annotated[
    str | None,
    typer.Option(
        help="Learn on a Dask cluster: the address of its scheduler, or local for one on this machine.",
        show_default=False,
    ),
]
Test = Annotated[str | None, typer.Option(help="A file of rows to test on afterwards.", show_default=False)]


def fit(
    file: _input.File,
    *,
    out: Out = "model.isokern",
    test: Test = None,
    dask: Dask = None,
    metrics: _options.Metrics = "",
    method: _method.Method = "ik-ogd",
    partitioning: _method.Partitioning = None,
    cells: _method.Cells = "auto",
    partitionings: _method.Partitionings = None,
    scale: _method.Scale = "auto",
    seed: _method.Seed = 0,
    settings: _method.Set = None,
    threads: _method.Threads = None,
    device: _options.Device = None,
    format: _input.Format = None,
    label: _input.Label = None,
    columns: _input.Columns = None,
    features: _input.Features = None,
    zero_based: _input.ZeroBased = None,
    dense: _input.Dense = None,
) -> None:
    """Learn from a whole file and save the model.

    Example: isokern fit a9a --test a9a.t --out a9a.isokern
    """
    source = Input(file, format, label, listed(columns), features, zero_based, dense)
    source.check_labelled()
    if test is not None:
        source._replace(path=test).check_labelled()
    _options.check_target("--out", out)
    make_learner = partial(
        _method.make_learner,
        method,
        is_dense=source.is_dense,
        partitioning=partitioning,
        cells=cells,
        partitionings=partitionings,
        scale=scale,
        seed=seed,
        threads=threads,
        device=device,
        settings=settings,
    )
    names = source.feature_names()
    learner, facts = _fit_here(make_learner, source) if dask is None else fit_on_cluster(make_learner, source, dask)
    name_columns(learner, names)
    isokern.save(learner, out)
    if hasattr(learner, "best_params_"):
        facts |= {"cells, by cross-validation": learner.best_params_["n_cells"]}
    if test is not None:
        tested = source._replace(path=test).with_columns_of(learner)
        facts |= measured(learner, tested, metrics, block=_TEST_BLOCK)
    print_facts(facts | {"model": out})


_TEST_BLOCK = 10_000


def _fit_here(make_learner: Callable[..., Any], source: Input) -> tuple[Any, dict[str, Any]]:
    """Return a fitted learner, and what there is to say about it."""
    learner = make_learner()
    with working(f"Reading {source.path}"):
        X, y = labelled(*source.whole())
    started = time.perf_counter()
    with working(f"Learning from {X.shape[0]:,} rows of {X.shape[1]:,} columns"):
        learner.fit(X, y)
    return learner, {"rows learned": X.shape[0], "seconds to learn": time.perf_counter() - started}


def name_columns(learner: Any, names: list[str] | None) -> None:
    """Let a learner know the names of the columns it was fitted to, as if they had come with a data frame."""
    if names is not None:
        learner.feature_names_in_ = np.array(names, dtype=object)
