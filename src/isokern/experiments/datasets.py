"""The rows that experiments run on: the paper's data sets, or what stands in for them, at the scale of the plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from isokern.data import list_datasets, load_dataset
from isokern.data.catalogue import Dataset
from isokern.experiments import settings
from isokern.experiments.experiment import Cell, Plan

Rows = Mapping[str, tuple[int | None, int | None]]  # scale -> rows to learn from and to test on, at most


def at_hand(plan: Plan, names: tuple[str, ...]) -> dict[str, str | None]:
    """Return for each of the paper's data sets what there is of it: itself, its stand-in, or None."""
    known = list_datasets(stand_ins=True)
    found: dict[str, str | None] = {}
    for name in names if plan.datasets is None else [name for name in names if name in plan.datasets]:
        candidates = [info for info in known if name in (info.name, info.stands_for)]
        found[name] = next((info.name for info in candidates if info.find(plan.folder)), None)
    return found


def cells_of(plan: Plan, datasets: tuple[str, ...], **what: Sequence[Any]) -> list[Cell]:
    """Return a cell for each data set at hand, seed and combination of the values in ``what``, data set by data set."""
    cells: list[Cell] = [
        {"dataset": name, "source": source, "seed": seed}
        for name, source in at_hand(plan, datasets).items()
        if source is not None
        for seed in range(plan.n_seeds)
    ]
    for key, values in what.items():
        cells = [cell | {key: value} for cell in cells for value in values]
    return cells


def load_rows(name: str, plan: Plan, seed: int, rows: Rows = settings.ROWS) -> Dataset:
    """Return a data set by the paper's name, two classes, shuffled by the seed; at quick scale, samples of its rows."""
    data = load_whole(name, plan)
    rng = np.random.default_rng(seed)
    train, test = (
        rng.permutation(len(y))[:n] for y, n in zip((data.y_train, data.y_test), rows[plan.scale], strict=True)
    )
    return Dataset(data.X_train[train], data.y_train[train], data.X_test[test], data.y_test[test], data.name)


def load_whole(name: str, plan: Plan) -> Dataset:
    """Return a data set by the paper's name, two classes, all rows in the order of the files."""
    return _load(at_hand(plan, (name,))[name], plan.folder)


@lru_cache(maxsize=1)  # cells of one data set follow each other
def _load(name: str, folder: object) -> Dataset:
    return load_dataset(name, folder, two_classes=True, download=False)  # type: ignore[arg-type]
