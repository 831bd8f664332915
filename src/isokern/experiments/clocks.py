"""Take the times of a data set from one processor, so that only times of the same processor are compared."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from isokern.experiments.experiment import Cell, Record, is_stopped

# What comes from a clock, beside all names that end in "seconds". A time limit does, because a faster processor might
# have come to the end.
_TIMES = frozenset({"time_limit", "share", "growth", "total", "map", "learn"})


class Run(NamedTuple):
    """A measurement of a cell: the number of its line in the file, the processor and the record."""

    number: int
    machine: str
    record: Record


class OneMachine(NamedTuple):
    """Records in which the times of each data set come from one processor."""

    records: list[Record]
    machines: tuple[tuple[str, str], ...]  # data sets and the processors of their times
    n_untimed: int  # cells, over all seeds, whose times are left out


def of_one_machine(measured: Sequence[tuple[Cell, Sequence[Run]]]) -> OneMachine:
    """Return a record for each cell, with its times if they come from the processor of its data set.

    This is the processor that measured most of the data set's cells or, of several, that of the latest record.
    """
    machines = _machines(measured)
    records: list[Record] = []
    timed: set[object] = set()
    untimed: set[object] = set()
    for cell, runs in measured:
        record = _record(runs, machines[cell.get("dataset", "")])
        records.append(record)
        is_untimed = without_times(record) == record != runs[-1].record
        (untimed if is_untimed else timed).add(frozenset((cell | {"seed": 0}).items()))
    return OneMachine(records, tuple(sorted(pair for pair in machines.items() if pair[0])), len(untimed - timed))


def without_times(record: Record) -> Record:
    """Return a record without what comes from a clock."""
    kept = {key: value for key, value in record.items() if key not in _TIMES and not key.endswith("seconds")}
    if "curve" in kept:
        kept["curve"] = [[n_rows, accuracy] for n_rows, accuracy, *_ in kept["curve"]]
    return kept


def _machines(measured: Iterable[tuple[Cell, Sequence[Run]]]) -> dict[str, str]:
    """Return the processor of each data set's times."""
    numbers: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for cell, runs in measured:
        for machine, number in {run.machine: run.number for run in runs}.items():
            numbers[cell.get("dataset", "")][machine].append(number)
    return {name: max(found, key=lambda one: (len(found[one]), max(found[one]))) for name, found in numbers.items()}


def _record(runs: Sequence[Run], machine: str) -> Record:
    """Return the latest record of a processor, unless it stopped where a later one of another finished."""
    latest = runs[-1].record
    own = [run.record for run in runs if run.machine == machine]
    if own and (is_stopped(latest) or not is_stopped(own[-1])):
        return own[-1]
    return without_times(latest)
