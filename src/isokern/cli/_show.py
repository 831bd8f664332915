"""Print results on standard output; print errors, warnings and progress on standard error."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import Progress, ProgressColumn, SpinnerColumn, Task, TextColumn, TimeElapsedColumn
from rich.status import Status
from rich.table import Table
from rich.text import Text

results = Console(highlight=False)
errors = Console(stderr=True, highlight=False)
_MOST_DRIFTS = 5  # that are listed


def working(text: str) -> Status:
    """Return a context that shows a spinner if there is a terminal."""
    return errors.status(Text(text))


class _RateColumn(ProgressColumn):
    """Show rows per second."""

    def render(self, task: Task) -> Text:
        """Return the rate as text."""
        rate = task.finished_speed or task.speed
        return Text(f"{rate:,.0f} rows/s" if rate else "")


@contextmanager
def rows_progress(description: str, *, quiet: bool) -> Iterator[Any]:
    """Show progress during the block; yield a function (n_rows, note) that advances it."""
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        TextColumn("{task.completed:,.0f} rows"),
        _RateColumn(),
        TextColumn("{task.fields[note]}", markup=False),
        TimeElapsedColumn(),
    )
    is_shown = errors.is_terminal and not quiet
    with Progress(*columns, console=errors, transient=True, disable=not is_shown) as progress:
        task = progress.add_task(description, total=None, note="")
        yield lambda n_rows, note="": progress.update(task, advance=n_rows, note=note)


def with_progress(blocks: Iterable[tuple[Any, Any]], description: str, *, quiet: bool) -> Iterator[tuple[Any, Any]]:
    """Yield blocks and show how many rows have been processed."""
    with rows_progress(description, quiet=quiet) as advance:
        for X, y in blocks:
            yield X, y
            advance(X.shape[0])


def print_remark(kind: str, text: str, style: str) -> None:
    """Print an error or a warning on one line."""
    errors.print(Text.assemble((f"{kind}:", f"bold {style}"), f" {' '.join(text.split())}"), soft_wrap=True)


def replaced_text(path: str, is_replaced: bool) -> str:
    """Return the name of an output, with a word if an older file of this name is gone."""
    return f"{path} (replaced)" if is_replaced else path


def print_facts(facts: Mapping[str, Any]) -> None:
    """Print names and values, one pair per line."""
    width = max(len(name) for name in facts)
    for name, value in facts.items():
        results.print(Text(f"{name:<{width}}  {as_text(value)}"), soft_wrap=True)


def drifts_text(learner: Any) -> str:
    """Return how many changes of a stream a learner has found, and where the latest are."""
    rows = ", ".join(f"{row:,}" for row in learner.drifts_[-_MOST_DRIFTS:])
    return f"{learner.n_drifts_:,}" + (f", latest at rows {rows}" if rows else "")


def print_table(rows: Iterable[Mapping[str, Any]]) -> None:
    """Print rows under the names of their values."""
    rows = list(rows)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name, value in rows[0].items():
        table.add_column(name, justify="right" if isinstance(value, int | float) else "left", no_wrap=True)
    for row in rows:
        table.add_row(*(Text(as_text(value)) for value in row.values()))
    results.print(table)


def as_text(value: Any) -> str:
    """Format a value: thousands separators, four decimals, nothing for None."""
    if value is None:
        return ""
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.4f}" if abs(value) < 1e6 else f"{value:.4g}"
    return str(value)
