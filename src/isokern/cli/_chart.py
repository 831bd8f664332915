"""Draw lines in a terminal with braille characters, each of which has two by four dots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from rich.text import Text

_BRAILLE = 0x2800  # character without dots
_DOTS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])  # bit of each dot, by line and column
_MARGIN = 7  # characters left of the lines

Points = Sequence[tuple[float, float]]


def line_chart(
    lines: Mapping[str, Points],
    *,
    size: tuple[int, int],
    x_range: tuple[float, float],
    y_range: tuple[float, float],
    marks: Mapping[int, str],
) -> Text:
    """Return a chart of percentages; where lines meet, the last one is seen.

    ``lines`` holds points by colour, from left to right, ``size`` the width and height in characters, and ``marks`` the
    names of places on the x axis, each of which gets a vertical line.
    """
    width, height = size[0] - _MARGIN, size[1] - 2
    shown = np.full((height, width), " ", dtype="U1")
    colours = np.full((height, width), "", dtype=object)
    places = {round((x - x_range[0]) / (x_range[1] - x_range[0]) * (width - 1)): name for x, name in marks.items()}
    shown[:, list(places)], colours[:, list(places)] = "┊", "bright_black"
    for colour, points in lines.items():
        codes = _codes(points, width, height, x_range, y_range)
        has_dots = codes > 0
        shown[has_dots] = [chr(_BRAILLE + code) for code in codes[has_dots]]
        colours[has_dots] = colour
    return Text("\n").join([*_rows(shown, colours, y_range), Text(" " * _MARGIN + "─" * width), _names(places, width)])


def _codes(
    points: Points, width: int, height: int, x_range: tuple[float, float], y_range: tuple[float, float]
) -> NDArray[np.int64]:
    """Return the dots of a line as codes of characters, (height, width)."""
    dots = np.zeros((4 * height, 2 * width), dtype=bool)
    if points:
        x, y = np.array(points).T
        columns = np.linspace(*x_range, 2 * width)
        is_drawn = (columns >= x[0]) & (columns <= x[-1])
        share = (np.interp(columns, x, y) - y_range[0]) / (y_range[1] - y_range[0])
        lines = np.rint((1.0 - np.clip(share, 0.0, 1.0)) * (len(dots) - 1)).astype(int)
        before = np.concatenate([lines[:1], lines[:-1]])
        for k in np.flatnonzero(is_drawn):  # down or up from the dot before, so that there are no gaps
            before_k = before[k] if k and is_drawn[k - 1] else lines[k]
            low, high = sorted((before_k, lines[k]))
            dots[low + (before_k < lines[k]) : high + (before_k <= lines[k]), k] = True
            dots[lines[k], k] = True
    return np.einsum("iajb,ab->ij", dots.reshape(height, 4, width, 2), _DOTS)


def _rows(shown: NDArray[np.str_], colours: NDArray[np.object_], y_range: tuple[float, float]) -> list[Text]:
    """Return the lines of characters behind the labels of the y axis."""
    height = len(shown)
    rows = []
    for k in range(height):
        share = y_range[1] - (y_range[1] - y_range[0]) * k / (height - 1)
        label = f"{share:4.0%} ┤" if abs(10 * share - round(10 * share)) < 1e-6 else "     │"
        row = Text(f"{label:<{_MARGIN}}", style="default")
        for character, colour in zip(shown[k], colours[k], strict=True):
            row.append(character, style=colour)
        rows.append(row)
    return rows


def _names(places: Mapping[int, str], width: int) -> Text:
    """Return the names of marked places, each below its place or as near as there is room."""
    line = ""
    for place, name in sorted(places.items()):
        line = line.ljust(max(0, min(place - len(name) // 2, width - len(name))))
        line += name + " "
    return Text(" " * _MARGIN + line)
