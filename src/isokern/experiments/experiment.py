"""What an experiment is: cells to be measured one by one, and what their records show."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Cell = dict[str, Any]  # what is to be measured, in plain JSON values: {"dataset": "a9a", "method": "NOGD", "seed": 0}

# A cell with what was measured, or instead with "stopped" or "left_out", which say why there is nothing. A run that
# ended itself at the time limit has "stopped_at_row", and what was measured up to there.
Record = dict[str, Any]


def is_stopped(record: Record) -> bool:
    """Return whether a cell came to no end, stopped from outside or by itself."""
    return "stopped" in record or record.get("stopped_at_row") is not None


def is_out_of_time(record: Record) -> bool:
    """Return whether the time limit stopped it, and not an error or a lack of memory."""
    return record.get("stopped_at_row") is not None or record.get("stopped", "").startswith("time limit")


@dataclass(frozen=True)
class Plan:
    """How much of an experiment to run, and on what.

    Attributes
    ----------
    scale : {"quick", "full"}
        Row samples and few settings, for minutes on two cores, or the paper's sizes.
    datasets : tuple of str or None
        The data sets asked for, by the paper's names; None means those of the experiment.
    n_seeds : int
        Runs of each cell with seeds 0, 1, ...; tables show the mean and the spread.
    time_limit : float
        Seconds that one cell may take.
    folder : Path or None
        Where the data are; None means as in ``load_dataset``.
    """

    scale: str = "quick"
    datasets: tuple[str, ...] | None = None
    n_seeds: int = 1
    time_limit: float = 120.0
    folder: Path | None = None

    @property
    def is_quick(self) -> bool:
        """Whether rows are sampled."""
        return self.scale == "quick"


@dataclass(frozen=True)
class Table:
    """A table: numbers, strings and None (nothing to show), written as CSV as they are and as Markdown for readers.

    Attributes
    ----------
    columns : tuple of str
        Our columns are named by the method, the published ones by ``"<method>, paper"``, each beside the other.
    rows : list of tuple
    notes : tuple of str
        Sentences for below the table.
    """

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Verdict:
    """Whether numbers bear a claim out.

    Attributes
    ----------
    claim : str
        The paper's claim, in one line of our own words.
    rule : str
        By what it is judged.
    holds : bool or None
        None if there is nothing to judge by.
    found : str
        The numbers that decided, in one line: "on 5 of 6 data sets; not on a9a (.842 against .845)".
    """

    claim: str
    rule: str
    holds: bool | None
    found: str


@dataclass(frozen=True)
class Experiment:
    """A table or figure of the paper.

    Attributes
    ----------
    name : str
        As the command line calls it: "effect-of-t".
    title : str
    cells : callable
        ``cells(plan)`` lists what is to be measured, of the data sets at hand only.
    measure : callable
        ``measure(cell, plan)`` returns the numbers to be added to the cell: JSON values, seconds included. It runs in
        a process of its own, which is ended at the time limit, so that it must be a function of a module.
    table : callable
        ``table(records, plan)``, from the records of all cells that are there.
    verdicts : callable
        ``verdicts(records)``, one or more.
    draw : callable or None
        ``draw(records)`` returns a matplotlib figure.
    datasets : tuple of str
        The paper's names of the data sets that it uses, whether they are at hand or not.
    notes : tuple of str
        What a reader should know: how this differs from the paper.
    """

    name: str
    title: str
    cells: Callable[[Plan], list[Cell]]
    measure: Callable[[Cell, Plan], dict[str, Any]]
    table: Callable[[Sequence[Record], Plan], Table]
    verdicts: Callable[[Sequence[Record]], list[Verdict]]
    draw: Callable[[Sequence[Record]], Any] | None = None
    datasets: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default=())
