"""Draw what columns add to scores: a swarm of rows for each column, and bars of their importance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isokern.plotting.figures import new_figure, plain

_LOW, _MIDDLE, _HIGH, _UNKNOWN = "#0072B2", "#B9A4C9", "#D55E00", "#999999"
_OUTPUT_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#F0E442", "#666666")
_SWARM_BINS = 120  # along the axis; rows of one bin are stacked
_SWARM_HEIGHT = 0.38  # on each side of a column's line, which are 1 apart
_DRAWN_SHARE = 0.998  # of all values; larger ones would squeeze the others, and become arrows at the border


def explanation_figure(
    values: NDArray[np.float64], data: ArrayLike, names: Sequence[str], outputs: Sequence[Any] | None = None
) -> Any:
    """Draw the SHAP values of a few columns, the most important at the top.

    Parameters
    ----------
    values : ndarray of shape (n, n_columns), or (n, n_columns, n_outputs)
        A swarm of rows and the mean absolute values; of several outputs, the mean absolute values alone.
    data : array-like of shape (n, n_columns)
        The rows, for the colours of dots: from low to high values of a column, grey if they are missing or no numbers.
    names : sequence of str
        Names of the columns.
    outputs : sequence, default=None
        Names of the outputs.

    Returns
    -------
    figure : matplotlib.figure.Figure
    """
    height = 1.4 + 0.36 * len(names)
    if values.ndim == 3:
        figure, (bars,) = new_figure(1)
        figure.set_size_inches(8, height)
        importance_bars(bars, np.abs(values).mean(axis=0), names, outputs)
        return figure
    figure, panels = new_figure(2)
    figure.set_size_inches(10, height)
    for unused in panels:
        unused.remove()
    swarm, bars = figure.subplots(1, 2, width_ratios=(2.2, 1), sharey=True)
    swarms(swarm, values, data, names)
    importance_bars(bars, np.abs(values).mean(axis=0)[:, None], names)
    return figure


def importance_bars(
    panel: Any, importance: NDArray[np.float64], names: Sequence[str], outputs: Sequence[Any] | None = None
) -> None:
    """Draw a bar of mean absolute values for each column, (n_columns, n_outputs), stacked over the outputs."""
    places, ends = np.arange(len(names)), np.zeros(len(names))
    for k, part in enumerate(importance.T):
        label = None if outputs is None else str(outputs[k])
        colour = _OUTPUT_COLOURS[k % len(_OUTPUT_COLOURS)]
        panel.barh(places, part, left=ends, height=0.6, color=colour, label=label)
        ends = ends + part
    panel.set_yticks(places, [_short(name) for name in names])
    panel.set_ylim(len(names) - 0.4, -0.6)
    panel.set(xlabel="mean |SHAP value|", axisbelow=True)
    plain(panel)
    if outputs is not None:
        panel.legend(frameon=False, loc="lower right", fontsize="small", ncols=-(-len(outputs) // 10))


def swarms(panel: Any, values: NDArray[np.float64], data: ArrayLike, names: Sequence[str]) -> None:
    """Draw a dot for each row and column, at its value; rows of similar value are stacked, the largest are arrows."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LinearSegmentedColormap

    colours = LinearSegmentedColormap.from_list("low to high", [_LOW, _MIDDLE, _HIGH]).with_extremes(bad=_UNKNOWN)
    limit = 1.05 * float(np.quantile(np.abs(values), _DRAWN_SHARE)) or 1.0
    for j, (column, rows) in enumerate(zip(values.T, _numbers(data).T, strict=True)):
        shown, shades = np.clip(column, -limit, limit), colours(_ranks(rows))
        heights, far = j + _stacked(shown, limit), np.sign(column) * (np.abs(column) > limit)
        for which, marker, size in ((far == 0, "o", 9), (far > 0, ">", 24), (far < 0, "<", 24)):
            look = {"marker": marker, "s": size, "linewidths": 0, "rasterized": True, "zorder": 2}
            panel.scatter(shown[which], heights[which], color=shades[which], **look)
    panel.axvline(0.0, color="#666666", linewidth=0.8, zorder=1)
    panel.set_yticks(np.arange(len(names)), [_short(name) for name in names])
    panel.set(xlabel="SHAP value: what the column adds to the score", xlim=_range(np.clip(values, -limit, limit)))
    plain(panel)
    bar = panel.figure.colorbar(ScalarMappable(cmap=colours), ax=panel, aspect=60, pad=0.01, ticks=[0.0, 1.0])
    bar.ax.set_yticklabels(["low", "high"])
    bar.set_label("value of the column (grey: none)")
    bar.outline.set_visible(False)


def _range(values: NDArray[np.float64]) -> tuple[float, float]:
    """Return the ends of an axis with some room beside all values and 0."""
    low, high = min(0.0, float(values.min())), max(0.0, float(values.max()))
    room = 0.04 * (high - low) or 1.0
    return low - room, high + room


def _stacked(column: NDArray[np.float64], widest: float) -> NDArray[np.float64]:
    """Return how far from its line each row is drawn: rows of one bin side by side, around the line."""
    bins = np.round(column / widest * _SWARM_BINS / 2).astype(int)
    order = np.argsort(bins, kind="stable")
    firsts = np.searchsorted(bins[order], bins[order])
    turns = np.empty(len(column))
    turns[order] = np.arange(len(column)) - firsts
    offsets = np.ceil(turns / 2) * np.where(turns % 2 == 0, 1, -1)
    return offsets * min(0.08, _SWARM_HEIGHT / max(1.0, np.abs(offsets).max(initial=1.0)))


def _ranks(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the rank of each value from 0 to 1, equal ones alike; NaN for missing ones."""
    known = np.sort(rows[np.isfinite(rows)])
    if not len(known) or known[0] == known[-1]:
        return np.where(np.isfinite(rows), 0.5, np.nan)
    below, upto = (np.searchsorted(known, rows, side) for side in ("left", "right"))
    ranks = 0.5 * (below + upto) / len(known)
    lowest, highest = ranks[rows == known[0]][0], ranks[rows == known[-1]][0]
    return np.where(np.isfinite(rows), (ranks - lowest) / (highest - lowest), np.nan)


def _numbers(data: ArrayLike) -> NDArray[np.float64]:
    """Return rows as numbers, NaN for what is none."""
    rows = np.asarray(data)
    if rows.dtype.kind in "biuf":
        return rows.astype(np.float64)
    return np.vectorize(_number, otypes=[np.float64])(rows)


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float | np.number) else np.nan


def _short(name: str, longest: int = 28) -> str:
    return name if len(name) <= longest else f"{name[: longest - 3]}..."
