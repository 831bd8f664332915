"""What comes of an experiment, and the files that show it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from isokern.experiments.datasets import at_hand
from isokern.experiments.experiment import Experiment, Plan, Record, Table, Verdict
from isokern.experiments.page import Block, Grid, Heading, Mark, Picture, Remarks, markdown_page
from isokern.experiments.tables import as_csv, as_texts, is_of_numbers
from isokern.files import replacing


@dataclass(frozen=True)
class Result:
    """What comes of an experiment.

    Attributes
    ----------
    name, title : str
    records : list of dict
        What was measured, cell by cell; one that came to no end has "stopped", which says why.
    table : Table
        Ours and the published numbers: ``table.columns``, ``table.rows``, ``table.notes``.
    verdicts : list of Verdict
        Whether the numbers bear the paper's claims out: ``claim``, ``rule``, ``holds``, ``found``.
    figure : matplotlib.figure.Figure or None
        None if there is none, or nothing to draw, or no matplotlib.
    missing : tuple of str
        The data sets that are not at hand.
    notes : tuple of str
        How this differs from the paper.
    """

    name: str
    title: str
    records: list[Record]
    table: Table
    verdicts: list[Verdict]
    figure: Any
    missing: tuple[str, ...]
    notes: tuple[str, ...]


def conclude(experiment: Experiment, records: list[Record], plan: Plan) -> Result:
    """Return what records show."""
    found = at_hand(plan, experiment.datasets)
    return Result(
        name=experiment.name,
        title=experiment.title,
        records=records,
        table=experiment.table(records, plan),
        verdicts=experiment.verdicts(records),
        figure=_drawn(experiment, records),
        missing=tuple(name for name, source in found.items() if source is None),
        notes=experiment.notes,
    )


def _drawn(experiment: Experiment, records: list[Record]) -> Any:
    measured = [record for record in records if "stopped" not in record]
    if experiment.draw is None or not measured:
        return None
    try:
        return experiment.draw(records)
    except ImportError:  # tables need no matplotlib
        return None


def write(result: Result, out: Path) -> None:
    """Write a result's table as CSV and Markdown, and its figure as PNG and PDF, to a folder of its name."""
    folder = out / result.name
    folder.mkdir(parents=True, exist_ok=True)
    for kind in ("png", "pdf"):
        picture = folder / f"{result.name}.{kind}"
        if result.figure is None:
            picture.unlink(missing_ok=True)  # of a run before, on other data
        else:
            with replacing(picture) as file:
                result.figure.savefig(file, format=kind, dpi=150)
    _write_text(folder / f"{result.name}.csv", as_csv(result.table))
    _write_text(folder / f"{result.name}.md", markdown_page(section(result, folder, "")))


def section(result: Result, folder: Path, link: str) -> Iterator[Block]:
    """Yield what a page says of a result whose picture is in a folder; ``link`` leads from the page to there."""
    yield Heading(result.title, anchor=result.name)
    judged = [(Mark(outcome(v), v.holds), v.claim, v.rule, v.found) for v in result.verdicts]
    yield Grid(("verdict", "claim", "rule", "numbers"), judged)
    if result.table.rows:
        numbers = frozenset(place for place in range(len(result.table.columns)) if is_of_numbers(result.table, place))
        yield Grid(result.table.columns, as_texts(result.table), numbers)
    if result.figure is not None:
        picture = f"{result.name}.png"
        yield Picture(folder / picture, f"{link}{picture}", result.title)
    if notes := [*result.table.notes, *result.notes, *_stopped(result)]:
        yield Remarks([_sentence(note) for note in notes])


def outcome(verdict: Verdict) -> str:
    """Return in words whether numbers bear a claim out."""
    return {True: "Borne out", False: "Not borne out", None: "Nothing to judge by"}[verdict.holds]


def _stopped(result: Result) -> Iterator[str]:
    """Yield a sentence for each cell that came to no end."""
    for record in result.records:
        if "stopped" in record:
            apart = {"stopped", "time_limit", "seed", "source"}
            values = (str(value) for name, value in record.items() if name not in apart)
            yield f"Stopped: {', '.join(values)} (seed {record.get('seed', 0)}): {record['stopped']}"


def _sentence(text: str) -> str:
    return text.rstrip(".") + "."


def _write_text(path: Path, text: str) -> None:
    with replacing(path) as file:
        file.write(text.encode())
