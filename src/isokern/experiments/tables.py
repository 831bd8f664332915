"""Tables as CSV, with numbers as they are, and as text for readers."""

from __future__ import annotations

import csv
import io
from typing import Any

from isokern.experiments.experiment import Table


def as_csv(table: Table) -> str:
    """Return a table as CSV: numbers with all their digits, nothing where there is nothing to show.

    Examples
    --------
    >>> from isokern.experiments.experiment import Table
    >>> print(as_csv(Table(("data set", "rows", "accuracy"), [("a9a", 32561, 0.8421), ("url", None, None)])))
    data set,rows,accuracy
    a9a,32561,0.8421
    url,,
    """
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([table.columns, *table.rows])
    return text.getvalue()


def as_texts(table: Table) -> list[list[str]]:
    """Return the cells of a table as readers like them, row by row.

    What a number is, the name of its column tells, or another cell of its row: "accuracy", "seconds".

    Examples
    --------
    >>> from isokern.experiments.experiment import Table
    >>> as_texts(Table(("data set", "rows", "accuracy"), [("a9a", 32561, 0.8421), ("url", None, None)]))
    [['a9a', '32,561', '.842'], ['url', '-', '-']]
    """
    texts = []
    for row in table.rows:
        said = " ".join(value for value in row if isinstance(value, str))
        cells = zip(row, table.columns, strict=True)
        texts.append(
            [text_of(value, f"{column} {said}", is_published=column.endswith(", paper")) for value, column in cells]
        )
    return texts


def is_of_numbers(table: Table, column: int) -> bool:
    """Return whether a column has numbers, which stand at its right."""
    return any(isinstance(row[column], int | float) for row in table.rows)


def text_of(value: Any, what: str, *, is_published: bool = False) -> str:
    """Return a value as readers like it; published ones have the paper's digits."""
    if value is None:
        return "-"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return _float_text(value, what, is_published) if isinstance(value, float) else str(value)


def _float_text(value: float, what: str, is_published: bool) -> str:
    if "accuracy" in what:
        return accuracy_text(value, 2 if is_published else 3)
    return seconds_text(value) if "seconds" in what and not is_published else _number_text(value)


def accuracy_text(accuracy: float, digits: int = 3) -> str:
    """Return an accuracy as the paper prints it, with one more digit.

    Examples
    --------
    >>> [accuracy_text(accuracy) for accuracy in (0.8421, 1.0)]
    ['.842', '1.000']
    """
    return f"{accuracy:.{digits}f}".removeprefix("0")


def seconds_text(seconds: float) -> str:
    """Return a time in no more digits than it deserves.

    Examples
    --------
    >>> [seconds_text(seconds) for seconds in (0.0002, 0.0123, 0.9, 1.234, 12.34, 12345.6)]
    ['< 0.001', '0.012', '0.90', '1.23', '12.3', '12,346']
    """
    if seconds < 0.001:
        return "< 0.001"
    return f"{seconds:#.2g}" if seconds < 1 else f"{seconds:,.{max(0, 3 - len(str(int(seconds))))}f}"


def _number_text(number: float) -> str:
    return f"{number:,.0f}" if number.is_integer() or abs(number) >= 1000 else f"{number:.4g}"
