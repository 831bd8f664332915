"""From records to what readers see: means with their spread, tables, the notes below them, and verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any, NamedTuple

from isokern.data import list_datasets
from isokern.experiments import settings
from isokern.experiments.datasets import Rows, at_hand
from isokern.experiments.experiment import Plan, Record, Table, Verdict, is_out_of_time, is_stopped
from isokern.experiments.tables import accuracy_text, text_of

Outcome = tuple[bool, str]  # whether a data set bears a claim out, and the numbers

NOT_LOWER = f"mean accuracy not lower by {settings.TOLERANCE} or more, on every data set"

# -- records


def select(records: Iterable[Record], **values: Any) -> list[Record]:
    """Return the records that have these values."""
    return [record for record in records if all(record.get(key) == value for key, value in values.items())]


def having(records: Iterable[Record], key: str) -> list[Record]:
    """Return the records in which something was measured."""
    return [record for record in records if record.get(key) is not None]


def mean(records: Iterable[Record], key: str, **values: Any) -> float | None:
    """Return the mean of what was measured in the records that have these values, None if nothing was."""
    measured = [record[key] for record in having(select(records, **values), key)]
    return fmean(measured) if measured else None


def datasets_in(records: Iterable[Record]) -> list[str]:
    """Return the data sets that records are of, in their order."""
    return list(dict.fromkeys(record["dataset"] for record in records))


# -- tables


def label(name: str, source: str | None) -> str:
    """Return how tables and figures name a data set, of which ``source`` is at hand.

    Examples
    --------
    >>> [label("url", source) for source in ("url", "url-subset", None)]
    ['url', 'url (url-subset)', 'url (not at hand)']
    """
    return name if source == name else f"{name} ({source or 'not at hand'})"


def labels(plan: Plan, datasets: tuple[str, ...]) -> dict[str, str]:
    """Return the labels of the data sets that a plan asks for."""
    return {name: label(name, source) for name, source in at_hand(plan, datasets).items()}


def shown(records: Sequence[Record], key: str, plan: Plan) -> Any:
    """Return what a table shows of records that differ in their seeds: a number, or the mean and the spread.

    If one came to no end it is "-", but seconds that were over are more than the limit.
    """
    if any("left_out" in record for record in records):
        return "left out"
    if any(map(is_stopped, records)):
        limits = [record.get("time_limit", plan.time_limit) for record in records if is_out_of_time(record)]
        return f"> {min(limits):g} s" if key == "seconds" and limits else "-"
    return with_spread(records, key)


def with_spread(records: Sequence[Record], key: str) -> Any:
    """Return a number as it is, or as text the mean of several with the lowest and the highest.

    Examples
    --------
    >>> with_spread([{"accuracy": 0.84}], "accuracy")
    0.84
    >>> with_spread([{"accuracy": 0.84}, {"accuracy": 0.85}, {"accuracy": 0.89}], "accuracy")
    '.860 (.840–.890)'
    """
    values = [record[key] for record in having(records, key)]
    if len(set(values)) <= 1:
        return values[0] if values else None
    middle, low, high = (text_of(value, key) for value in (fmean(values), min(values), max(values)))
    return f"{middle} ({low}–{high})"


class Measure(NamedTuple):
    """A line of a table: its name, the key of what was measured and published, whether stopped runs show it, too."""

    name: str
    key: str
    even_if_stopped: bool = False


def comparison(
    records: Sequence[Record],
    plan: Plan,
    datasets: tuple[str, ...],
    methods: Iterable[str],
    measures: Sequence[Measure],
    *,
    published: settings.Published | None = None,
    notes: Iterable[str] = (),
) -> Table:
    """Return a table with a column for each method, those of the paper beside ours, and lines for each data set.

    A data set that is not at hand has only the lines of published figures, or an empty one.
    """
    published, methods = published or {}, list(methods)
    columns = ["data set", "measure"]
    for name in methods:
        columns += [name, f"{name}, paper"] if name in published else [name]
    are_published = {key for figures in published.values() for key in figures}
    rows: list[tuple[Any, ...]] = []
    for dataset, name in labels(plan, datasets).items():
        found = {method: select(records, dataset=dataset, method=method) for method in methods}
        told = [line for line in measures if any(found.values()) or line.key in are_published]
        rows += [(name, line.name, *_line(line, dataset, found, plan, published)) for line in told or [Measure("", "")]]
    return Table(tuple(columns), rows, tuple(notes))


def _line(
    measure: Measure, dataset: str, found: dict[str, list[Record]], plan: Plan, published: settings.Published
) -> list[Any]:
    line = []
    for name, records in found.items():
        line.append(with_spread(records, measure.key) if measure.even_if_stopped else shown(records, measure.key, plan))
        if name in published:
            line.append(published[name].get(measure.key, {}).get(dataset))
    return line


# -- notes


def notes_on(plan: Plan, datasets: tuple[str, ...], rows: Rows = settings.ROWS) -> list[str]:
    """Return what belongs below a table of measurements: stand-ins, the scale, seeds, and how time was taken."""
    said = stand_in_notes(plan, datasets)
    if plan.is_quick:
        n_train, n_test = rows[plan.scale]
        said.append(f"Quick scale: at most {n_train:,} training and {n_test:,} test rows of each data set.")
    if plan.n_seeds > 1:
        said.append(f"Means over {plan.n_seeds} seeds, the lowest and the highest in brackets.")
    said.append(f"Times are elapsed, with {settings.N_THREADS} threads; the paper's are CPU seconds.")
    return said


def stand_in_notes(plan: Plan, datasets: tuple[str, ...]) -> list[str]:
    """Return a sentence for each data set that is not the paper's file."""
    notes = {info.name: info.note for info in list_datasets(stand_ins=True)}
    return [
        f"{label(name, source)} is not the paper's file: {notes[source]}"
        for name, source in at_hand(plan, datasets).items()
        if source not in (None, name)
    ]


def stopped_notes(records: Iterable[Record], rows: str) -> list[str]:
    """Return a sentence for each run that stopped by itself; ``rows`` is the key of the number of all rows."""
    return [
        f"{record['method']} on {record['dataset']}, seed {record['seed']}, stopped by itself at the time limit, after "
        f"{record['stopped_at_row']:,} of {record[rows]:,} rows."
        for record in having(records, "stopped_at_row")
    ]


def left_out_notes(records: Iterable[Record]) -> list[str]:
    """Return a sentence for each method that was left out on a data set."""
    said = [f"{r['method']} on {r['dataset']} is left out: {r['left_out']}." for r in having(records, "left_out")]
    return list(dict.fromkeys(said))  # once for all seeds


def better_rivals(records: Sequence[Record], published: settings.Published, rivals: Mapping[str, str]) -> list[str]:
    """Return a sentence for each rival that does better here than as published, on files that are the paper's.

    Parameters
    ----------
    records : list of dict
    published : dict
        As in the settings.
    rivals : dict of str to str
        Our methods, and the published ones that they are held against.
    """
    said = []
    for ours, theirs in rivals.items():
        better = []
        for dataset, figure in published[theirs]["accuracy"].items():
            accuracy = mean(records, "accuracy", dataset=dataset, source=dataset, method=ours)
            if accuracy is not None and isinstance(figure, float) and accuracy > figure + settings.TOLERANCE:
                better.append(f"{dataset} ({accuracy_text(accuracy)} against {accuracy_text(figure, 2)})")
        if better:
            said.append(f"{ours}: more accurate here than {theirs} as published, on {', '.join(better)}.")
    return said


# -- verdicts


def tally(
    claim: str,
    rule: str,
    outcomes: Mapping[str, Outcome],
    records: Sequence[Record],
    nothing: str = "nothing to judge by",
) -> Verdict:
    """Return the verdict on a claim that must hold on every data set.

    Parameters
    ----------
    claim, rule : str
    outcomes : dict of str to (bool, str)
        For each data set that can be judged, whether it holds there, and the numbers that decided.
    records : list of dict
        All records: those that were stopped are named if they left their data set without an outcome.
    nothing : str
        What was found if there is no outcome.

    Examples
    --------
    >>> tally("A beats B", "on every data set", {"a9a": (True, "2 to 1"), "url": (False, "1 to 3")}, []).found
    'on 1 of 2 data sets: a9a (2 to 1); not on url (1 to 3)'
    """
    held, failed = (
        [f"{name} ({numbers})" for name, (holds, numbers) in outcomes.items() if holds is wanted]
        for wanted in (True, False)
    )
    found = f"on {len(held)} of {len(outcomes)} data sets" if outcomes else nothing
    found += f": {', '.join(held)}" if held else ""
    found += f"; not on {', '.join(failed)}" if failed else ""
    open_ones = [name for name in datasets_in(filter(is_stopped, records)) if name not in outcomes]
    found += f"; stopped before it could be judged on {', '.join(open_ones)}" if open_ones else ""
    return Verdict(claim, rule, not failed if outcomes else None, found)


def compare_accuracy(
    records: Sequence[Record], ours: str, other: str, tolerance: float = settings.TOLERANCE
) -> dict[str, Outcome]:
    """Return for each data set whether a method's mean accuracy is not below another's by the tolerance or more."""
    outcomes = {}
    for dataset in datasets_in(records):
        first, second = (mean(records, "accuracy", dataset=dataset, method=name) for name in (ours, other))
        if first is not None and second is not None:
            # Rounded, lest the last bit decides where they differ by just the tolerance.
            is_met = round(first - second, 9) > -tolerance
            outcomes[dataset] = is_met, f"{accuracy_text(first)} against {accuracy_text(second)}"
    return outcomes
