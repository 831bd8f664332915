"""Learning on a Dask cluster, as ``isokern fit --dask`` does."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from isokern.cli._input import Input
from isokern.cli._show import errors
from isokern.evaluation.labels import checked_block


def fit_on_cluster(make_learner: Callable[..., Any], source: Input, address: str) -> tuple[Any, dict[str, Any]]:
    """Return an ordinary learner, fitted on a cluster, and what there is to say about it."""
    from isokern.distributed import DaskIKOGDClassifier
    from isokern.distributed.cluster import connected

    learner = make_learner(methods={"ik-ogd": DaskIKOGDClassifier})
    if not isinstance(learner, DaskIKOGDClassifier):
        raise ValueError("--cells must be a number or auto with --dask; got cv.")
    with connected(address) as client:
        errors.print(Text(f"Dask's dashboard: {client.dashboard_link}"), soft_wrap=True)
        started = time.perf_counter()
        with _steps_shown(2 + learner.n_rounds + learner.n_steps):
            learner.fit(*_labelled(*source.collections()))
        seconds = time.perf_counter() - started
    return learner.to_local(), {"rows learned": learner.n_rows_, "seconds to learn": seconds}


def _labelled(X: Any, y: Any) -> tuple[Any, Any]:
    """Return the rows that have a label, and those, of which the number is not known yet."""
    unknown = ((np.nan,) * y.numblocks[0],)
    return X[y.map_blocks(_has_label, dtype=bool)], y.map_blocks(_plain_labels, dtype=y.dtype, chunks=unknown)


def _has_label(labels: NDArray[Any]) -> NDArray[np.bool_]:
    return checked_block(labels[:, None], labels)[2]


def _plain_labels(labels: NDArray[Any]) -> NDArray[Any]:
    return checked_block(labels[:, None], labels)[1]


@contextmanager
def _steps_shown(n_steps: int) -> Iterator[None]:
    """Show what the learner says it is doing, where there is a terminal, and how much of it is done."""
    columns = (SpinnerColumn(), BarColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    logger = logging.getLogger("isokern.distributed")
    with Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal) as progress:
        handler = _Shown(progress, n_steps)
        before = logger.level
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
        try:
            yield
        finally:
            logger.removeHandler(handler)
            logger.setLevel(before)


class _Shown(logging.Handler):
    """Takes each message of a logger for one more step."""

    def __init__(self, progress: Progress, n_steps: int) -> None:
        super().__init__()
        self._progress = progress
        self._task = progress.add_task("Reading", total=n_steps)

    def emit(self, record: logging.LogRecord) -> None:
        """Show a message."""
        self._progress.update(self._task, advance=1, description=record.getMessage())
