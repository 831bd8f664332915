"""What tables and verdicts say of records: means and spreads, what was stopped, what is missing, where claims fail."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

import joblib
import numpy as np

from isokern.data import list_datasets
from isokern.data.catalogue import Dataset
from isokern.experiments._datasets import at_hand
from isokern.experiments._experiment import Cell, Plan, Record, Verdict

PAPERS_DATASETS = tuple(info.name for info in list_datasets())


class Timer:
    """Seconds spent in a ``with`` block: elapsed, and those of all cores of this process."""

    def __enter__(self) -> Self:
        self._began = time.perf_counter(), time.process_time()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.seconds = time.perf_counter() - self._began[0]
        self.cpu_seconds = time.process_time() - self._began[1]


def grid_of(plan: Plan, methods: Sequence[str]) -> list[Cell]:
    """Return a cell for each data set at hand, method and seed."""
    names = [name for name, found in at_hand(plan, PAPERS_DATASETS).items() if found]
    return [
        {"dataset": name, "method": method, "seed": seed}
        for name in names
        for method in methods
        for seed in range(plan.n_seeds)
    ]


def sizes_of(data: Dataset) -> dict[str, Any]:
    """Return what a record says of its data: its own name, which may be that of a stand-in, and its size."""
    n_features = int(data.X_train.shape[1])
    return {"data": data.name, "n_train": len(data.y_train), "n_test": len(data.y_test), "n_features": n_features}


def chosen(records: Sequence[Record], **wanted: Any) -> list[Record]:
    """Return the records that have these values."""
    return [record for record in records if all(record.get(name) == value for name, value in wanted.items())]


def ended(records: Sequence[Record]) -> list[Record]:
    """Return the records of the cells that came to their end."""
    return [record for record in records if "stopped" not in record]


def shown(records: Sequence[Record], name: str, digits: int = 4) -> Any:
    """Return what a table shows of a number: itself, or mean and spread over seeds; "-" if all were stopped."""
    values = [record[name] for record in ended(records)]
    if not values:
        return "-" if records else None
    if len(values) == 1:
        return round(values[0], digits) if isinstance(values[0], float) else values[0]
    return f"{np.mean(values):,.{digits}g} ({min(values):,.{digits}g}–{max(values):,.{digits}g})"


def shown_seconds(records: Sequence[Record], plan: Plan, name: str = "seconds") -> Any:
    """Return what a table shows of a time; what was stopped at its limit took more than that."""
    if not ended(records) and any(record["stopped"].startswith("time limit") for record in records):
        return f"> {plan.time_limit:g} s"
    return shown(records, name, 3)


def mean_of(records: Sequence[Record], name: str, **wanted: Any) -> float | None:
    """Return the mean of a number over the records with these values, or None if none has ended."""
    values = [record[name] for record in ended(chosen(records, **wanted))]
    return float(np.mean(values)) if values else None


def row_names(plan: Plan) -> dict[str, str]:
    """Return for each data set that the plan asks for how a table names it."""
    names = {}
    for name, found in at_hand(plan, PAPERS_DATASETS).items():
        names[name] = name if found == name else f"{name} ({found or 'not at hand'})"
    return names


def notes_on(records: Sequence[Record], plan: Plan) -> tuple[str, ...]:
    """Return sentences on what stands in for what, how many rows were taken, and seeds."""
    n_threads = joblib.cpu_count()
    notes = [f"Times are elapsed seconds with {n_threads} threads; the paper's are CPU seconds on its own machine."]
    replaced = {name: found for name, found in at_hand(plan, PAPERS_DATASETS).items() if found not in (None, name)}
    if replaced:
        listed = ", ".join(f"{found} for {name}" for name, found in replaced.items())
        notes.append(f"Names in brackets stand in for the paper's files, which they are not: {listed}.")
    if plan.is_quick and (done := ended(records)):
        largest = [max(record[size] for record in done) for size in ("n_train", "n_test")]
        notes.append(
            f"Quick scale: samples of at most {largest[0]:,} rows to learn from and {largest[1]:,} to test on; "
            "the paper's figures are for all rows."
        )
    if plan.n_seeds > 1:
        notes.append(f"Means over {plan.n_seeds} seeds, with the least and the largest in brackets.")
    return tuple(notes)


def judged(
    claim: str,
    rule: str,
    outcomes: Mapping[str, tuple[bool, str]],
    records: Sequence[Record],
    nothing: str = "nothing to judge by",
) -> Verdict:
    """Return the verdict on a claim that is to hold on every data set.

    Parameters
    ----------
    claim, rule : str
    outcomes : dict of str to (bool, str)
        For each data set that can be judged, whether it holds there, and the numbers that decided.
    records : list of dict
        All records: those that were stopped are named if they left their data set without an outcome.
    nothing : str
        What was found if there is no outcome.
    """
    failed = [f"{name} ({numbers})" for name, (holds, numbers) in outcomes.items() if not holds]
    found = f"on {len(outcomes) - len(failed)} of {len(outcomes)} data sets" if outcomes else nothing
    found += f"; not on {', '.join(failed)}" if failed else ""
    stopped = {record["dataset"] for record in records if "stopped" in record} - outcomes.keys()
    found += f"; stopped before it could be judged on {', '.join(sorted(stopped))}" if stopped else ""
    return Verdict(claim, rule, not failed if outcomes else None, found)


def as_accuracy(value: float) -> str:
    """Return an accuracy as the paper prints it, with one more digit."""
    return f"{value:.3f}".removeprefix("0")
