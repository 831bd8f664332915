"""What commands show: results on standard output, everything else on standard error."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, Task, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

results = Console(highlight=False)
errors = Console(stderr=True, highlight=False)


@contextmanager
def working(text: str) -> Iterator[None]:
    """Show that something is going on, where there is a terminal to show it on."""
    if not errors.is_terminal:
        yield
        return
    with errors.status(Text(text)):
        yield


class RateColumn(TextColumn):
    """Rows per second since the task began."""

    def render(self, task: Task) -> Text:
        """Return the rate as text."""
        rate = task.finished_speed or task.speed
        return Text(f"{rate:,.0f} rows/s" if rate else "")


@contextmanager
def rows_progress(description: str, *, quiet: bool) -> Iterator[Any]:
    """Give a function (rows, note) that shows how many more rows are done, and how well."""
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        TextColumn("{task.completed:,.0f} rows"),
        RateColumn(""),
        TextColumn("{task.fields[note]}", markup=False),
        TimeElapsedColumn(),
    )
    is_shown = errors.is_terminal and not quiet
    with Progress(*columns, console=errors, transient=True, disable=not is_shown) as progress:
        task = progress.add_task(description, total=None, note="")
        yield lambda rows, note="": progress.update(task, advance=rows, note=note)


def followed(blocks: Iterable[tuple[Any, Any]], description: str, *, quiet: bool) -> Iterator[tuple[Any, Any]]:
    """Yield blocks and show how many rows have gone by."""
    with rows_progress(description, quiet=quiet) as advance:
        for X, y in blocks:
            yield X, y
            advance(X.shape[0])


def print_remark(kind: str, text: str, style: str) -> None:
    """Print an error or a warning, in one line."""
    errors.print(Text.assemble((f"{kind}:", f"bold {style}"), f" {' '.join(text.split())}"), soft_wrap=True)


def print_facts(facts: Mapping[str, Any]) -> None:
    """Print names and values, a line each."""
    width = max(len(name) for name in facts)
    for name, value in facts.items():
        results.print(Text(f"{name:<{width}}  {as_text(value)}"), soft_wrap=True)


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
    """Return a value as a reader likes it: thousands apart, four digits of a fraction."""
    if isinstance(value, bool) or value is None:
        return "" if value is None else "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.4f}" if abs(value) < 1e6 else f"{value:.4g}"
    return str(value)
