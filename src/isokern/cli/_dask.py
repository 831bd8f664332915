"""Fit a learner on a Dask cluster, for ``isokern fit --dask``."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from isokern.cli._input import Input
from isokern.cli._method import Learning
from isokern.cli._show import errors
from isokern.learners.answers import present_labels


def fit_on_cluster(learning: Learning, source: Input, address: str) -> tuple[Any, dict[str, Any]]:
    """Return an ordinary learner that a cluster has fitted, and facts about the fit."""
    from isokern.distributed import DaskIKOGDClassifier
    from isokern.distributed.cluster import connected

    learner = learning.make_learner(methods={"ik-ogd": DaskIKOGDClassifier})
    if not isinstance(learner, DaskIKOGDClassifier):
        raise ValueError("--cells must be a number or auto with --dask; got cv.")
    with connected(address) as client:
        errors.print(Text(f"Dask's dashboard: {client.dashboard_link}"), soft_wrap=True)
        started = time.perf_counter()
        with _progress_from_log(3 + learner.n_rounds + learner.n_steps):
            learner.fit(*_labelled(*source.collections()))
        seconds = time.perf_counter() - started
    return learner.to_local(), {"rows learned": learner.n_rows_, "seconds to learn": seconds}


def _labelled(X: Any, y: Any) -> tuple[Any, Any]:
    """Return the rows that have a label, and their labels; how many there are is not known yet."""
    has_label = y.map_blocks(lambda labels: present_labels(labels)[1], dtype=bool)
    unknown = ((np.nan,) * y.numblocks[0],)
    return X[has_label], y.map_blocks(lambda labels: present_labels(labels)[0], dtype=y.dtype, chunks=unknown)


@contextmanager
def _progress_from_log(n_steps: int) -> Iterator[None]:
    """Show each log message of the learner as one step of a progress bar, if there is a terminal."""
    columns = (SpinnerColumn(), BarColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    logger = logging.getLogger("isokern.distributed")
    before = logger.level
    with Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal) as progress:
        task = progress.add_task("Reading", total=n_steps)

        def show(record: logging.LogRecord) -> bool:
            progress.update(task, advance=1, description=record.getMessage())
            return True

        logger.addFilter(show)
        logger.setLevel(logging.INFO)
        try:
            yield
        finally:
            logger.removeFilter(show)
            logger.setLevel(before)
