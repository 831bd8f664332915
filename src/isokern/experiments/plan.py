"""A plan from what a user asks for."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable
from pathlib import Path

from isokern.checks import is_integer, is_number, one_of
from isokern.data import list_datasets
from isokern.experiments.experiment import Experiment, Plan
from isokern.experiments.settings import DATASETS, TIME_LIMITS


def make_plan(
    data: str | os.PathLike[str] | None,
    *,
    scale: str,
    datasets: str | Iterable[str] | None,
    n_seeds: int,
    time_limit: float | None,
) -> Plan:
    """Return a plan, or raise if something in it cannot be."""
    if scale not in TIME_LIMITS:
        raise ValueError(f'scale must be {one_of(TIME_LIMITS)}; got "{scale}".')
    if not is_integer(n_seeds, at_least=1):
        raise ValueError(f"n_seeds must be an integer of at least 1; got {n_seeds!r}.")
    if time_limit is not None and not (is_number(time_limit) and time_limit > 0):
        raise ValueError(f"time_limit must be None or a number of seconds above 0; got {time_limit!r}.")
    folder = None if data is None else Path(data).expanduser()
    if folder is not None and not folder.is_dir():
        raise ValueError(f"data must be a folder; got {folder}. Make it, or leave data out to use ISOKERN_DATA.")
    limit = TIME_LIMITS[scale] if time_limit is None else float(time_limit)
    return Plan(scale, _known(datasets), int(n_seeds), limit, folder)


def check_use(experiment: Experiment, plan: Plan) -> None:
    """Raise if a plan asks for none of an experiment's data sets."""
    if not is_used(experiment, plan):
        raise ValueError(
            f"datasets must have one of those of {experiment.name}: {one_of(experiment.datasets)}; "
            f"got {', '.join(plan.datasets or ())}."
        )


def is_used(experiment: Experiment, plan: Plan) -> bool:
    """Return whether a plan asks for any of an experiment's data sets, or the experiment needs none."""
    return plan.datasets is None or not experiment.datasets or not set(plan.datasets).isdisjoint(experiment.datasets)


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the question whether another name was meant, or nothing if none is near."""
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f' Did you mean "{near[0]}"?' if near else ""


def _known(datasets: str | Iterable[str] | None) -> tuple[str, ...] | None:
    if datasets is None:
        return None
    names = tuple(datasets.split(",") if isinstance(datasets, str) else datasets)
    stands_for = {info.name: info.stands_for for info in list_datasets(stand_ins=True) if info.stands_for}
    for name in names:
        if name not in DATASETS:
            hint = f' Did you mean "{stands_for[name]}"?' if name in stands_for else nearest(str(name), DATASETS)
            raise ValueError(f'datasets must be among {one_of(DATASETS)}; got "{name}".{hint}')
    if not names:
        raise ValueError("datasets must be None or have a name; got none.")
    return names
