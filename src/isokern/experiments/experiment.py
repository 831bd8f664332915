"""Define the types of an experiment: its plan, cells and records, and the table and verdicts that records give."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Cell = dict[str, Any]  # what to measure, as JSON values: {"dataset": "a9a", "method": "NOGD", "seed": 0}

# A cell with its measurements. If there are none, "stopped" gives the reason. A run that stopped itself at the time
# limit has "stopped_at_row", its measurements up to that row and, extrapolated for all rows, "expected_seconds".
Record = dict[str, Any]


def is_stopped(record: Record) -> bool:
    """Return whether a measurement did not finish."""
    return "stopped" in record or record.get("stopped_at_row") is not None


def is_out_of_time(record: Record) -> bool:
    """Return whether a measurement reached the time limit; errors and lack of memory stop one, too."""
    return record.get("stopped_at_row") is not None or record.get("stopped", "").startswith("time limit")


@dataclass(frozen=True)
class Plan:
    """How much of an experiment to run, and on which data."""

    scale: str = "quick"  # samples of rows and few settings, for minutes on two cores; or "full", the paper's sizes
    datasets: tuple[str, ...] | None = None  # by the paper's names; None means all of the experiment's
    n_seeds: int = 1  # each cell runs with seeds 0, 1, ...; tables show the mean and the range
    time_limit: float = 120.0  # CPU seconds per cell
    folder: Path | None = None  # where the data sets are; None means as in ``load_dataset``
    searches: Path | None = None  # the file that keeps searches; None keeps nothing

    @property
    def is_quick(self) -> bool:
        """Whether rows are sampled."""
        return self.scale == "quick"


@dataclass(frozen=True)
class Table:
    """A table with notes; the published numbers of a method stand beside ours, in the column "<method>, paper"."""

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]  # None is an empty cell
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Verdict:
    """Whether measurements confirm a claim, by a rule."""

    claim: str
    rule: str
    holds: bool | None  # None if there are no measurements
    found: str  # the numbers that decided: "on 5 of 6 data sets: ...; not on a9a (.842 vs .845)"
    is_papers: bool = True  # False for claims that we add
    why: str = ""  # the reason, in a sentence, if the claim is not confirmed


@dataclass(frozen=True)
class Experiment:
    """A table or figure of the paper."""

    name: str  # on the command line, for example "effect-of-t"
    title: str
    cells: Callable[[Plan], list[Cell]]  # lists what to measure on the available data sets
    # Returns the measurements of a cell as JSON values. A worker process imports it, so it must be a module's function.
    measure: Callable[[Cell, Plan], dict[str, Any]]
    table: Callable[[Sequence[Record], Plan], Table]
    claims: tuple[Callable[[Sequence[Record]], Verdict], ...]
    draw: Callable[[Sequence[Record]], Any] | None = None  # returns a matplotlib figure
    datasets: tuple[str, ...] = ()  # by the paper's names, available or not
    notes: tuple[str, ...] = ()  # how it differs from the paper's
    has_times: bool = True  # whether it shows times

    def verdicts(self, records: Sequence[Record]) -> list[Verdict]:
        """Judge all claims by records."""
        return [claim(records) for claim in self.claims]


@dataclass(frozen=True)
class Result:
    """The result of an experiment: measurements, our numbers beside the published ones, verdicts and a figure."""

    name: str
    title: str
    records: list[Record]  # cell by cell; "stopped" says why one did not finish
    table: Table
    verdicts: list[Verdict]
    figure: Any  # of matplotlib; None without a figure, measurements or matplotlib
    missing: tuple[str, ...]  # the data sets that are not available
    notes: tuple[str, ...]  # how the experiment differs from the paper's
    n_open: int = 0  # the number of measurements still to be made, if only a report was asked for
    machines: tuple[tuple[str, str], ...] = ()  # data sets and the processors of their times; empty without times
    n_untimed: int = 0  # the number of cells without times, because only another processor measured them
