"""Turn what a user asks for into a plan and, with the available data sets, into cells."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from isokern.checks import is_integer, is_number, one_of
from isokern.data import list_datasets
from isokern.data.catalogue import did_you_mean
from isokern.experiments.experiment import Cell, Experiment, Plan
from isokern.experiments.settings import BATCH_DATASETS, GENERATED, TIME_LIMITS

Axis = Iterable[Any] | Mapping[str, Iterable[Any]]  # values, or values by scale


def make_plan(
    data: str | os.PathLike[str] | None,
    *,
    scale: str,
    datasets: str | Iterable[str] | None,
    n_seeds: int,
    time_limit: float | None,
) -> Plan:
    """Return a plan, or raise ValueError if an argument is invalid."""
    if scale not in TIME_LIMITS:
        raise ValueError(f'scale must be {one_of(TIME_LIMITS)}; got "{scale}".')
    if not is_integer(n_seeds, at_least=1):
        raise ValueError(f"n_seeds must be an integer of at least 1; got {n_seeds!r}.")
    if time_limit is not None and not (is_number(time_limit) and time_limit > 0):
        raise ValueError(f"time_limit must be None or a number of seconds above 0; got {time_limit!r}.")
    folder = None if data is None else Path(data).expanduser()
    if folder is not None and not folder.is_dir():
        raise ValueError(f"data must be a folder; got {folder}. Create it, or leave data out to use ISOKERN_DATA.")
    limit = TIME_LIMITS[scale] if time_limit is None else float(time_limit)
    return Plan(scale, _dataset_names(datasets), int(n_seeds), limit, folder)


def _dataset_names(datasets: str | Iterable[str] | None) -> tuple[str, ...] | None:
    if datasets is None:
        return None
    names = tuple(datasets.split(",") if isinstance(datasets, str) else datasets)
    if not names:
        raise ValueError("datasets must be None or at least one name; got none.")
    stands_for = {info.name: info.stands_for for info in list_datasets(stand_ins=True)}
    for name in names:
        if name not in BATCH_DATASETS:
            hint = did_you_mean(stands_for.get(name) or name, BATCH_DATASETS)
            raise ValueError(f'datasets must be among {one_of(BATCH_DATASETS)}; got "{name}".{hint}')
    return names


def is_used(experiment: Experiment, plan: Plan) -> bool:
    """Return whether a plan asks for any of an experiment's data sets, or the experiment needs none."""
    return plan.datasets is None or not experiment.datasets or not set(plan.datasets).isdisjoint(experiment.datasets)


def available(plan: Plan, names: Iterable[str]) -> dict[str, str | None]:
    """Return for each data set that a plan asks for what is available: itself, its stand-in or None.

    Generated data sets have the paper's sizes, so quick scale leaves them out.
    """
    known = list_datasets(stand_ins=True)
    found: dict[str, str | None] = {}
    for name in names:
        is_wanted = plan.datasets is None or name in plan.datasets
        if is_wanted and not (plan.is_quick and name in GENERATED):
            candidates = (info for info in known if name in (info.name, info.stands_for))
            found[name] = next((info.name for info in candidates if info.find(plan.folder) is not None), None)
    return found


def grid(
    datasets: tuple[str, ...],
    *,
    n_seeds: int | None = None,
    search: Callable[[Cell], str | None] = lambda cell: None,
    **axes: Axis,
) -> Callable[[Plan], list[Cell]]:
    """Return a function of a plan that lists a cell for each available data set, seed and combination of the axes.

    Generated data sets have one seed, because only their times count.
    At full scale, ``search`` marks cells with how their parameters are chosen, so that the records of cells for which
    this has changed do not count any more.
    """

    def cells(plan: Plan) -> list[Cell]:
        seeds = range(n_seeds or plan.n_seeds)
        found: list[Cell] = [{"seed": seed} for seed in seeds]
        if datasets:
            sources = {name: source for name, source in available(plan, datasets).items() if source is not None}
            found = [
                {"dataset": name, "source": source, "seed": seed}
                for name, source in sources.items()
                for seed in (seeds[:1] if name in GENERATED else seeds)
            ]
        for name, axis in axes.items():
            values = axis[plan.scale] if isinstance(axis, Mapping) else axis
            found = [cell | {name: value} for cell in found for value in values]
        marks = [None if plan.is_quick else search(cell) for cell in found]
        return [cell | ({"search": mark} if mark else {}) for cell, mark in zip(found, marks, strict=True)]

    return cells
