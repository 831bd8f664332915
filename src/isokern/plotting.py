"""Figures; they take numbers and return matplotlib's objects. Needs matplotlib, the extra ``plot``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

# One colour for each method, the same in all figures, told apart by colour-blind readers, too.
COLOURS = {
    "IK-OGD": "#0072B2",
    "NOGD": "#E69F00",
    "OGD": "#D55E00",
    "FOGD": "#009E73",
    "AdaRaker": "#CC79A7",
    "linear SGD": "#666666",
}


def new_figure(n_panels: int) -> tuple[Any, list[Any]]:
    """Return a figure and its panels, side by side."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("figures need a package: pip install isokern[plot]") from error
    # Made without pyplot, which would keep it and ask for a display.
    figure = Figure(figsize=(4.8 * n_panels, 3.6), layout="constrained")
    return figure, list(figure.subplots(1, n_panels, squeeze=False)[0])


def accuracy_along_stream(panel: Any, runs: Mapping[str, Sequence[tuple[int, float]]], title: str) -> None:
    """Draw the accuracy so far against the number of rows, a line for each run.

    Parameters
    ----------
    panel : matplotlib.axes.Axes
    runs : dict of str to list of (int, float)
        For each name, the rows seen and the accuracy up to there.
    title : str
    """
    for name, points in runs.items():
        rows, accuracies = zip(*points, strict=True)
        panel.plot(
            rows, [100 * accuracy for accuracy in accuracies], label=name, color=COLOURS.get(name), linewidth=1.8
        )
    panel.set(title=title, xlabel="rows seen", ylabel="accuracy so far (%)")
    panel.xaxis.set_major_formatter("{x:,.0f}")
    panel.locator_params(axis="x", nbins=5)
    panel.grid(alpha=0.3)
    panel.spines[["top", "right"]].set_visible(False)
    panel.legend(frameon=False)
