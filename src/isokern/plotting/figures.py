"""Make figures and draw panels from numbers, with one colour per method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

# The same colour for a method in all figures, distinguishable for colour-blind readers.
COLOURS = {
    "IK-OGD": "#0072B2",
    "NOGD": "#E69F00",
    "OGD": "#D55E00",
    "FOGD": "#009E73",
    "AdaRaker": "#CC79A7",
    "IK_i-OGD": "#0072B2",
    "IK_i-OGD, uncapped": "#56B4E9",
    "IK_a-OGD": "#1B2A5E",
    "IKOGDClassifier()": "#009E73",
    "AdaptiveIKClassifier()": "#004D38",
    "IK-OGD(dual)": "#882255",
    "IK-OGD(naive)": "#882255",
    "OGD, lambda from data": "#8A3D00",
    "NOGD, lambda from data": "#A67200",
    "linear SGD": "#666666",
    "random forest": "#E69F00",
    "isokern": "#0072B2",
    "tree map": "#0072B2",
    "tree map, CSR": "#56B4E9",
    "Voronoi map": "#D55E00",
    "Voronoi map, CSR": "#E69F00",
    "learning pass": "#009E73",
    "Laplacian": "#666666",
    "Isolation Kernel, trees": "#56B4E9",
    "Isolation Kernel, trees, capped": "#0072B2",
    "Isolation Kernel, Voronoi": "#1B2A5E",
}

# Methods of similar colour also differ in their lines.
_DASHES = {
    "IK_i-OGD, uncapped": "--",
    "IK_a-OGD": "-.",
    "AdaptiveIKClassifier()": "--",
    "OGD, lambda from data": ":",
    "NOGD, lambda from data": ":",
}

_LEGEND_INCHES = 2.4  # width of a legend entry


def style(name: str) -> dict[str, Any]:
    """Return the arguments of matplotlib's ``plot`` for the line of a method."""
    return {"color": COLOURS.get(name), "linestyle": _DASHES.get(name, "-"), "linewidth": 1.8}


def plain(panel: Any) -> None:
    """Give a panel a faint grid, and remove the top and right spines."""
    panel.grid(alpha=0.3)
    panel.spines[["top", "right"]].set_visible(False)


def shared_legend(figure: Any, panels: Sequence[Any]) -> None:
    """Put one legend below all panels, with the names of all their lines."""
    lines = {name: line for panel in panels for line, name in zip(*panel.get_legend_handles_labels(), strict=True)}
    if lines:
        columns = max(1, min(len(lines), int(figure.get_figwidth() / _LEGEND_INCHES)))
        figure.legend(
            lines.values(), lines.keys(), loc="outside lower center", ncols=columns, frameon=False, fontsize="small"
        )


def new_figure(n_panels: int, n_lines: int = 1) -> tuple[Any, list[Any]]:
    """Return a figure and its panels, arranged in ``n_lines`` lines, from left to right and top to bottom."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("figures need matplotlib: pip install isokern[plot]") from error
    # Made without pyplot, which would keep a reference and need a display.
    n_columns = -(-n_panels // n_lines)
    figure = Figure(figsize=(4.8 * n_columns, 3.6 * n_lines), layout="constrained")
    panels = list(figure.subplots(n_lines, n_columns, squeeze=False).flat)
    for unused in panels[n_panels:]:
        unused.remove()
    return figure, panels[:n_panels]


def accuracy_along_stream(panel: Any, runs: Mapping[str, Sequence[tuple[int, float]]], title: str) -> None:
    """Draw the accuracy so far against the number of rows, one line per run.

    Parameters
    ----------
    panel : matplotlib.axes.Axes
    runs : dict of str to list of (int, float)
        For each name, pairs of rows seen and accuracy so far.
    title : str
    """
    for name, points in runs.items():
        rows, accuracies = zip(*points, strict=True)
        panel.plot(rows, [100 * accuracy for accuracy in accuracies], label=name, **style(name))
    panel.set(title=title, xlabel="rows seen", ylabel="accuracy so far (%)")
    panel.xaxis.set_major_formatter("{x:,.0f}")
    panel.locator_params(axis="x", nbins=5)
    plain(panel)
    panel.legend(frameon=False)


def blocks_along_stream(panel: Any, runs: Mapping[str, Sequence[tuple[int, float, float, int]]], title: str) -> None:
    """Draw the accuracy so far and, as a thin line, that of each block; shade blocks in which a change was found.

    Parameters
    ----------
    panel : matplotlib.axes.Axes
    runs : dict of str to list of (int, float, float, int)
        For each name and block: rows seen, accuracy so far, accuracy of the block and changes found so far.
    title : str
    """
    accuracy_along_stream(panel, {name: [point[:2] for point in points] for name, points in runs.items()}, title)
    colours = [line.get_color() for line in panel.lines]
    for line in panel.lines:
        line.set_label(f"{line.get_label()}, so far")
    for colour, points in zip(colours, runs.values(), strict=True):
        rows, _, accuracies, n_drifts = zip(*points, strict=True)
        percents = [100 * accuracy for accuracy in accuracies]
        panel.plot(rows, percents, color=colour, linewidth=0.7, alpha=0.7, zorder=1.5)  # behind the accuracy so far
        for k, n_found in enumerate(n_drifts):
            if n_found > (n_drifts[k - 1] if k else 0):
                panel.axvspan(rows[k - 1] if k else 0, rows[k], color=colour, alpha=0.2, linewidth=0.5)
    shared = colours[0] if len(runs) == 1 else "grey"
    panel.plot([], [], color=shared, linewidth=0.7, label="each block")
    if panel.patches:
        panel.fill_between([], [], color=shared, alpha=0.2, label="change found")
    panel.set_ylabel("accuracy (%)")
    panel.margins(x=0.01)
    # Below the axes, because lines of single blocks may be anywhere.
    panel.legend(frameon=False, fontsize="small", ncols=4, loc="upper center", bbox_to_anchor=(0.5, -0.15))


def cost_growth(
    panel: Any,
    runs: Mapping[str, Sequence[tuple[float, float]]],
    labels: Mapping[str, str],
    *,
    xlabel: str,
    ylabel: str,
) -> None:
    """Draw a cost against a size on logarithmic axes, where a power law is a straight line.

    Parameters
    ----------
    panel : matplotlib.axes.Axes
    runs : dict of str to list of (float, float)
        For each name, pairs of size and cost.
    labels : dict of str to str
        For each name, its text in the legend.
    xlabel, ylabel : str
    """
    for name, points in runs.items():
        panel.plot(*zip(*points, strict=True), label=labels[name], marker="o", ms=4, **style(name))
    panel.set(xscale="log", yscale="log", xlabel=xlabel, ylabel=ylabel)
    sizes = sorted({size for points in runs.values() for size, _ in points}, reverse=True)
    shown = sizes[:: -(-len(sizes) // 6)]  # more tick labels would overlap
    panel.set_xticks(shown, [f"{size:,.0f}" for size in shown])
    panel.set_xticks([], minor=True)
    plain(panel)
    panel.legend(frameon=False, fontsize="small", ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1.0))
