"""From records to what readers see: names of data sets, means with their spread, notes, and the tally of a verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any, NamedTuple

import joblib

from isokern.data import list_datasets
from isokern.experiments import _settings_e2 as settings
from isokern.experiments._datasets import QUICK_TEST, QUICK_TRAIN, at_hand
from isokern.experiments._experiment import Cell, Plan, Record, Table, Verdict

Outcome = tuple[bool, str]  # whether a data set bears a claim out, and the numbers


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


def select(records: Iterable[Record], **values: Any) -> list[Record]:
    """Return the records that have these values."""
    return [record for record in records if all(record.get(key) == value for key, value in values.items())]


def datasets_in(records: Iterable[Record]) -> list[str]:
    """Return the data sets that records are of, in their order."""
    return list(dict.fromkeys(record["dataset"] for record in records))


def label(name: str, source: str | None) -> str:
    """Return the name of a data set, with that of its stand-in, or that it is missing."""
    if source is None:
        return f"{name} (not at hand)"
    return name if source == name else f"{name} ({source})"


def labels(plan: Plan, datasets: tuple[str, ...]) -> dict[str, str]:
    """Return the labels of the data sets that a plan asks for."""
    return {name: label(name, source) for name, source in at_hand(plan, datasets).items()}


def mean(records: Iterable[Record], key: str) -> float | None:
    """Return the mean of what was measured, None if nothing was."""
    values = _values(records, key)
    return fmean(values) if values else None


def _values(records: Iterable[Record], key: str) -> list[float]:
    return [record[key] for record in records if record.get(key) is not None]


def shown(key: str, form: str = ".4g") -> Callable[[Sequence[Record], Plan], Any]:
    """Return a function that shows what was measured: mean, and spread over seeds; "-" if it was stopped."""
    return lambda records, _: "-" if _is_stopped(records) else _spread(_values(records, key), form)


accuracy = shown("accuracy", ".4f")


def seconds(records: Sequence[Record], plan: Plan) -> Any:
    """Return seconds for a table: mean, and spread over seeds; the limit if that stopped it."""
    if not _is_stopped(records):
        return _spread(_values(records, "seconds"), ".3g")
    return f"> {plan.time_limit:g} s" if is_out_of_time(records) else "-"


class Measure(NamedTuple):
    """A line of a table: how records are shown, and which of a method's published figures belongs beside them."""

    name: str
    show: Callable[[Sequence[Record], Plan], Any]
    place: int | None = None


Published = Mapping[str, Mapping[str, tuple[Any, ...]]]  # method -> data set -> figures


def comparison(
    records: Sequence[Record],
    plan: Plan,
    datasets: tuple[str, ...],
    methods: Iterable[str],
    measures: Sequence[Measure],
    *,
    published: Published | None = None,
) -> Table:
    """Return a table with a column for each method, those of the paper beside ours, and lines for each data set.

    A data set that is not at hand has only the lines of published figures, or an empty one.
    """
    published, methods = published or {}, list(methods)
    columns = ["data set", "measure"]
    for name in methods:
        columns += [name, f"{name}, paper"] if name in published else [name]
    rows: list[tuple[Any, ...]] = []
    for dataset, label_shown in labels(plan, datasets).items():
        found = {name: select(records, dataset=dataset, method=name) for name in methods}
        told = measures if any(found.values()) else [line for line in measures if line.place is not None]
        rows += [
            (label_shown, line.name, *_line(line, dataset, found, plan, published))
            for line in told or [Measure("", _nothing)]
        ]
    return Table(tuple(columns), rows, notes(plan, datasets))


def _line(
    measure: Measure, dataset: str, found: dict[str, list[Record]], plan: Plan, published: Published
) -> list[Any]:
    line = []
    for name, records in found.items():
        line.append(measure.show(records, plan))
        if name in published:
            figures = published[name].get(dataset)
            line.append(None if figures is None or measure.place is None else figures[measure.place])
    return line


def _nothing(_records: Sequence[Record], _plan: Plan) -> None:
    return None


def is_out_of_time(records: Iterable[Record]) -> bool:
    """Return whether the time limit stopped one of the records, and not an error or a lack of memory."""
    return any(
        record.get("stopped", "").startswith("time limit") or record.get("stopped_at_row") is not None
        for record in records
    )


def _is_stopped(records: Iterable[Record]) -> bool:
    return any("stopped" in record or record.get("stopped_at_row") is not None for record in records)


def _spread(values: list[float], form: str) -> Any:
    """Return one value as a number, the mean of more with the least and the largest in brackets."""
    if len(values) > 1:
        low, middle, high = (format(value, form) for value in (min(values), fmean(values), max(values)))
        return f"{middle} [{low}-{high}]"
    if not values:
        return None
    number = float(format(values[0], form))
    return int(number) if number.is_integer() and isinstance(values[0], int) else number


def tally(claim: str, rule: str, outcomes: Mapping[str, Outcome]) -> Verdict:
    """Return the verdict on a claim that must hold on every data set.

    Examples
    --------
    >>> from isokern.experiments._showing import tally
    >>> tally("A beats B", "on every data set", {"a9a": (True, "2 to 1"), "url": (False, "1 to 3")}).found
    'on 1 of 2 data sets: a9a (2 to 1); not on url (1 to 3)'
    """
    if not outcomes:
        return Verdict(claim, rule, None, "nothing to judge by")
    held, failed = (
        ", ".join(f"{name} ({numbers})" for name, (holds, numbers) in outcomes.items() if holds is wanted)
        for wanted in (True, False)
    )
    n_held = sum(holds for holds, _ in outcomes.values())
    found = f"on {n_held} of {len(outcomes)} data sets" + (f": {held}" if held else "")
    return Verdict(claim, rule, n_held == len(outcomes), found + (f"; not on {failed}" if failed else ""))


def at_least_as_accurate(records: Sequence[Record], ours: str, other: str) -> dict[str, Outcome]:
    """Return for each data set whether a method's mean accuracy is not below another's by the tolerance or more."""
    outcomes = {}
    for dataset in datasets_in(records):
        first, second = (mean(select(records, dataset=dataset, method=name), "accuracy") for name in (ours, other))
        if first is not None and second is not None:
            outcomes[dataset] = first > second - settings.TOLERANCE, f"{first:.3f} against {second:.3f}"
    return outcomes


def stopped_notes(records: Iterable[Record], rows: str) -> tuple[str, ...]:
    """Return a sentence for each run that stopped by itself; ``rows`` is the key of the number of all rows."""
    return tuple(
        f"{record['method']} on {record['dataset']}, seed {record['seed']}, stopped by itself at the time limit, after "
        f"{record['stopped_at_row']:,} of {record[rows]:,} rows."
        for record in records
        if record.get("stopped_at_row") is not None
    )


def notes(plan: Plan, datasets: tuple[str, ...], *, times: bool = True) -> tuple[str, ...]:
    """Return what belongs below every table: stand-ins, what is missing, the scale, seeds, and how time was taken."""
    found = at_hand(plan, datasets)
    infos = {info.name: info for info in list_datasets(stand_ins=True)}
    said = [
        f"{label(name, source)} is not the paper's file: {infos[source].note}"
        for name, source in found.items()
        if source is not None and source != name
    ]
    missing = [name for name, source in found.items() if source is None]
    if missing:
        said.append(f"Not at hand: {', '.join(missing)}.")
    if plan.is_quick:
        said.append(f"Quick scale: at most {QUICK_TRAIN:,} training and {QUICK_TEST:,} test rows of each data set.")
    if plan.n_seeds > 1:
        said.append(f"Means over {plan.n_seeds} seeds, the lowest and the highest in brackets.")
    if times:
        said.append(f"Times are elapsed seconds with {joblib.cpu_count()} threads; the paper's are CPU seconds.")
    return tuple(said)
