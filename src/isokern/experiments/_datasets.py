"""The rows that experiments run on: the paper's data sets, or what stands in for them, at the scale of the plan."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from isokern.data import list_datasets, load_dataset
from isokern.data.catalogue import Dataset
from isokern.experiments._experiment import Plan

QUICK_TRAIN, QUICK_TEST = 5_000, 2_000  # rows, at most


def at_hand(plan: Plan, names: tuple[str, ...]) -> dict[str, str | None]:
    """Return for each of the paper's data sets what there is of it: itself, its stand-in, or None."""
    known = list_datasets(stand_ins=True)
    found: dict[str, str | None] = {}
    for name in names if plan.datasets is None else [name for name in names if name in plan.datasets]:
        candidates = [info for info in known if name in (info.name, info.stands_for)]
        found[name] = next((info.name for info in candidates if info.find(plan.folder)), None)
    return found


def load_rows(name: str, plan: Plan, seed: int) -> Dataset:
    """Return a data set by the paper's name, two classes, shuffled by the seed; at quick scale, samples of its rows."""
    data = load_whole(name, plan)
    rng = np.random.default_rng(seed)
    train, test = (rng.permutation(len(y)) for y in (data.y_train, data.y_test))
    if plan.is_quick:
        train, test = train[:QUICK_TRAIN], test[:QUICK_TEST]
    return Dataset(data.X_train[train], data.y_train[train], data.X_test[test], data.y_test[test], data.name)


def load_whole(name: str, plan: Plan) -> Dataset:
    """Return a data set by the paper's name, two classes, all rows in the order of the files."""
    return _load(at_hand(plan, (name,))[name], plan.folder)


def row_label(name: str, source: str | None) -> str:
    """Return how a table names a data set, of which ``source`` is at hand.

    Examples
    --------
    >>> [row_label("url", source) for source in ("url", "url-subset", None)]
    ['url', 'url (url-subset)', 'url (not at hand)']
    """
    return name if source == name else f"{name} ({source or 'not at hand'})"


def stand_in_notes(found: dict[str, str | None]) -> list[str]:
    """Return a sentence for each data set that is not the paper's file."""
    notes = {info.name: info.note for info in list_datasets(stand_ins=True)}
    pairs = [(name, source) for name, source in found.items() if source not in (None, name)]
    return [f"{row_label(name, source)} is not the paper's file: {notes[source]}" for name, source in pairs if source]


@lru_cache(maxsize=1)  # cells of one data set follow each other
def _load(name: str, folder: object) -> Dataset:
    return load_dataset(name, folder, two_classes=True, download=False)  # type: ignore[arg-type]
