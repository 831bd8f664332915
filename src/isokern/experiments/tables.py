"""Select records, lay them out as tables with notes, and format them."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from statistics import fmean, median_low
from typing import Any

from isokern.data import list_datasets
from isokern.experiments import settings
from isokern.experiments.experiment import Plan, Record, Table, is_stopped
from isokern.experiments.plan import available

_CHOICES = ("chosen", "psi", "C")  # numbers from a list, whose mean need not be in it

Layout = Callable[[Sequence[Record], Plan], Table]
Note = Callable[[Sequence[Record], Plan], list[str]]

# -- records


def select(records: Iterable[Record], **values: Any) -> list[Record]:
    """Return the records with these values."""
    return [record for record in records if all(record.get(key) == value for key, value in values.items())]


def having(records: Iterable[Record], key: str) -> list[Record]:
    """Return the records that have a measurement."""
    return [record for record in records if record.get(key) is not None]


def mean(records: Iterable[Record], key: str, **values: Any) -> float | None:
    """Return the mean of a measurement over the records with these values, or None if none has it."""
    measured = [record[key] for record in having(select(records, **values), key)]
    return fmean(measured) if measured else None


def datasets_in(records: Iterable[Record]) -> list[str]:
    """Return the data sets of records in order of appearance."""
    return list(dict.fromkeys(record["dataset"] for record in records))


def sizes_in(records: Iterable[Record], axis: str) -> list[int]:
    """Return the values of an axis, sorted."""
    return sorted({record[axis] for record in records})


# -- layouts


def comparison(
    datasets: tuple[str, ...],
    methods: Iterable[str],
    measures: Mapping[str, str],
    *,
    published: settings.Published | None = None,
    rivals: Mapping[str, str] | None = None,
    even_if_stopped: tuple[str, ...] = (),
    max_rows: settings.MaxRows = settings.ROWS,
    notes: Sequence[Note] = (),
) -> Layout:
    """Return a layout with a line for each measure of each data set, and a column for each method beside the paper's.

    ``measures`` gives titles and the keys of measurements. Stopped runs show only those in ``even_if_stopped``. Data
    sets that are not available show only published numbers. A note compares ``rivals`` with the published methods.
    """
    published, methods = published or {}, list(methods)
    notes = (*notes, partial(_better_rivals, published, rivals or {}))
    columns = [column for name in methods for column in ([name, f"{name}, paper"] if name in published else [name])]
    published_keys = {key for numbers in published.values() for key in numbers}

    def line(found: Sequence[Record], dataset: str, key: str) -> Iterable[Any]:
        for name in methods:
            runs = select(found, method=name)
            yield with_range(runs, key) if key in even_if_stopped else shown(runs, key)
            if name in published:
                yield published[name].get(key, {}).get(dataset)

    def table(records: Sequence[Record], plan: Plan) -> Table:
        rows: list[tuple[Any, ...]] = []
        for dataset, title in labels(plan, datasets).items():
            found = select(records, dataset=dataset)
            lines = {name: key for name, key in measures.items() if found or key in published_keys} or {"": ""}
            rows += [(title, name, *line(found, dataset, key)) for name, key in lines.items()]
        return Table(("data set", "measure", *columns), rows, _all_notes(records, plan, datasets, max_rows, notes))

    return table


def by_axis(
    datasets: tuple[str, ...],
    axis: str,
    heading: str,
    columns: Mapping[str, tuple[str, str]],
    notes: Sequence[Note] = (),
) -> Layout:
    """Return a layout with a line for each data set and value of an axis; ``columns`` are (method, key) by title."""

    def table(records: Sequence[Record], plan: Plan) -> Table:
        rows: list[tuple[Any, ...]] = []
        for dataset, title in labels(plan, datasets).items():
            found = select(records, dataset=dataset)
            for size in sizes_in(found, axis):
                runs = [(select(found, method=name, **{axis: size}), key) for name, key in columns.values()]
                rows.append((title, size, *(shown(of_method, key) for of_method, key in runs)))
            if not found:
                rows.append((title, *[None] * (1 + len(columns))))
        return Table(("data set", heading, *columns), rows, _all_notes(records, plan, datasets, settings.ROWS, notes))

    return table


def labels(plan: Plan, datasets: tuple[str, ...]) -> dict[str, str]:
    """Return how tables name the data sets that a plan asks for."""
    return {name: label(name, source) for name, source in available(plan, datasets).items()}


def label(name: str, source: str | None) -> str:
    """Return how tables and figures name a data set: "url", "url (url-subset)" or "url (missing)"."""
    return name if source == name else f"{name} ({source or 'missing'})"


def shown(records: Sequence[Record], key: str) -> Any:
    """Return the table cell of records that differ in their seeds; a stopped run shows "-", its seconds "> limit".

    What the whole would have taken follows in brackets, marked as extrapolated by "~".
    """
    if any(map(is_stopped, records)):
        limits = [record["time_limit"] for record in having(records, "time_limit")]
        expected = mean(records, "expected_seconds")
        whole = f" (~{seconds_text(expected)} s)" if expected else ""
        return f"> {min(limits):g} s{whole}" if key == "seconds" and limits else "-"
    return with_range(records, key)


def with_range(records: Sequence[Record], key: str) -> Any:
    """Return a single number as it is, and several as text: the mean, or median of choices, with both extremes."""
    values = [record[key] for record in having(records, key)]
    if len(set(values)) <= 1:
        return values[0] if values else None
    average = median_low if key in _CHOICES else fmean
    middle, low, high = (text_of(value, key) for value in (average(values), min(values), max(values)))
    return f"{middle} ({low}–{high})"


# -- notes


def _all_notes(
    records: Sequence[Record],
    plan: Plan,
    datasets: tuple[str, ...],
    max_rows: settings.MaxRows,
    notes: Sequence[Note],
) -> tuple[str, ...]:
    """Return the notes on stand-ins, scale, seeds and times, then those of the experiment."""
    lines = stand_in_notes(plan, datasets)
    if plan.is_quick:
        n_train, n_test = max_rows["quick"]
        lines.append(f"Quick scale: at most {n_train:,} training and {n_test:,} test rows of each data set.")
    if plan.n_seeds > 1:
        lines.append(
            f"Values are means over {plan.n_seeds} seeds (of psi and C medians), with the range in brackets. A "
            f"measurement that was stopped or took more than {settings.SEEDS_SECONDS / 60:g} minutes, with its search, "
            "has one seed."
        )
    lines.append("Times are CPU seconds of one thread; the paper's are CPU seconds, too.")
    return (*lines, *(line for note in notes for line in note(records, plan)))


def stand_in_notes(plan: Plan, datasets: tuple[str, ...]) -> list[str]:
    """Return a line for each data set that is not the paper's file."""
    described = {info.name: info.note for info in list_datasets(stand_ins=True)}
    lines = []
    for name, source in available(plan, datasets).items():
        if source in settings.GENERATED:
            papers = name.removesuffix("-generated")
            lines.append(
                f"{name} is generated, with the size of {papers}: its times, from one seed, count; its accuracies say "
                f"nothing about {papers}. {described[source]}"
            )
        elif source not in (None, name):
            lines.append(f"{label(name, source)} is not the paper's file: {described[source]}")
    return lines


def search_note(records: Sequence[Record], plan: Plan) -> list[str]:
    """Return how psi was chosen."""
    most, few = settings.CROSS_VALIDATION_ROWS[plan.scale], settings.SLOW_CROSS_VALIDATION_ROWS[plan.scale]
    rows = f"{f'at most {most:,}' if most else 'all'} training rows (OGD, AdaRaker and SVM, which take long: {few:,})"
    lines = [
        f"psi was chosen from {', '.join(map(str, settings.N_CELLS_SEARCHED[plan.scale]))} by {settings.N_FOLDS}-fold "
        f"cross-validation on {rows}. Isolation Kernels skip a psi above the number of rows in a fold. Times exclude "
        "this search."
    ]
    if any(dataset in settings.GENERATED for dataset in datasets_in(records)):
        lines.append(f"On generated rows psi is {settings.GENERATED_CELLS}, without a search.")
    return lines


def stopped_notes(rows: str) -> Note:
    """Return a note on runs that stopped themselves; ``rows`` is the key of the number of all rows."""

    def note(records: Sequence[Record], plan: Plan) -> list[str]:
        return [_stopped_note(record, rows) for record in having(records, "stopped_at_row")]

    return note


def _stopped_note(record: Record, rows: str) -> str:
    axis = f", size {record['size']:,}" if "size" in record else ""
    expected = record.get("expected_seconds")
    whole = f"; all would take about {seconds_text(expected)} s, extrapolated by a power law" if expected else ""
    return (
        f"{record['method']} on {record['dataset']}{axis}, seed {record['seed']}, stopped at the time limit after "
        f"{record['stopped_at_row']:,} of {record[rows]:,} rows{whole}."
    )


def _better_rivals(
    published: settings.Published, rivals: Mapping[str, str], records: Sequence[Record], plan: Plan
) -> list[str]:
    """Return a line for each method that is more accurate here than the published one, on the paper's own files."""
    lines = []
    for ours, theirs in rivals.items():
        better = []
        for dataset, number in published[theirs]["accuracy"].items():
            accuracy = mean(records, "accuracy", dataset=dataset, source=dataset, method=ours)
            if accuracy is not None and isinstance(number, float) and accuracy > number + settings.TOLERANCE:
                better.append(f"{dataset} ({accuracy_text(accuracy)} vs {accuracy_text(number, 2)})")
        if better:
            lines.append(f"{ours}: more accurate here than the published {theirs}, on {', '.join(better)}.")
    return lines


# -- formats


def as_csv(table: Table) -> str:
    """Return a table as CSV, numbers with all their digits."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([table.columns, *table.rows])
    return text.getvalue()


def as_texts(table: Table) -> list[list[str]]:
    """Return the cells of a table with rounded numbers, row by row.

    The column's name or a text in the row says what a number is: "accuracy", "seconds".
    """
    texts = []
    for row in table.rows:
        words = " ".join(value for value in row if isinstance(value, str))
        cells = zip(table.columns, row, strict=True)
        texts.append([text_of(value, f"{name} {words}", name.endswith(", paper")) for name, value in cells])
    return texts


def text_of(value: Any, what: str, is_published: bool = False) -> str:
    """Return a value as text; published numbers have the paper's digits."""
    if value is None:
        return "-"
    if isinstance(value, int):
        return f"{value:,}"
    if not isinstance(value, float):
        return str(value)
    if "accuracy" in what:
        return accuracy_text(value, 2 if is_published else 3)
    if "seconds" in what and not is_published:
        return seconds_text(value)
    return f"{value:,.0f}" if value.is_integer() or abs(value) >= 1000 else f"{value:.4g}"


def accuracy_text(accuracy: float, digits: int = 3) -> str:
    """Return an accuracy without its leading zero.

    Examples
    --------
    >>> [accuracy_text(accuracy) for accuracy in (0.8421, 1.0)]
    ['.842', '1.000']
    """
    return f"{accuracy:.{digits}f}".removeprefix("0")


def seconds_text(seconds: float) -> str:
    """Return a time with two or three significant digits.

    Examples
    --------
    >>> [seconds_text(seconds) for seconds in (0.0002, 0.0123, 0.9, 1.234, 12.34, 12345.6)]
    ['< 0.001', '0.012', '0.90', '1.23', '12.3', '12,346']
    """
    if seconds < 0.001:
        return "< 0.001"
    return f"{seconds:#.2g}" if seconds < 1 else f"{seconds:,.{max(0, 3 - len(str(int(seconds))))}f}"
