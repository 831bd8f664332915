"""Draw the chart of the page on choosing an estimator, legible on a phone: python docs/images/choosing.py"""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt

QUESTION, ANSWER, NOTE, LINE = "#eef2f7", "#005b8f", "#44505c", "#8a97a6"
WIDTH, LINE_HEIGHT, INDENT = 4.9, 0.22, 0.36  # inches

# From top to bottom: the level, the case, and either a question or an estimator and how to use it.
STEPS = [
    (0, "", "What do you have?", None),
    (1, "a table", "Does it fit into the memory of one machine?", None),
    (2, "yes", "IKOGDClassifier, IKOGDRegressor", "fit"),
    (2, "yes, and you want the optimum of the SVM problem", "IKSVC", "fit"),
    (2, "no", "IKOGDClassifier, IKOGDRegressor", "partial_fit on blocks of iter_csv, iter_parquet, ..."),
    (2, "no, but you have a cluster", "DaskIKOGDClassifier", "fit on Dask arrays or data frames"),
    (1, "a stream", "May its rows change their meaning over time?", None),
    (2, "yes, or you do not know", "AdaptiveIKClassifier, AdaptiveIKRegressor", "partial_fit"),
    (2, "no", "IKOGDClassifier, IKOGDRegressor", "partial_fit"),
    (1, "another method that takes features or a kernel", "IsolationKernel", "transform, similarity"),
]


def draw(ax):
    """Draw the steps below each other, each with a line from the question that it answers; return the height."""
    y, parents = 0.0, {}
    for level, case, text, use in STEPS:
        x = level * INDENT
        if level:
            ax.text(x, y, case, fontsize=10, color=NOTE, style="italic", va="center")
            start, parent = parents[level - 1], (level - 1) * INDENT + 0.14
            ax.plot([parent, parent, x - 0.05], [start, y, y], color=LINE, linewidth=1.2, zorder=0)
            y -= LINE_HEIGHT
        if use is None:
            y -= 0.06
            box = {"boxstyle": "round,pad=0.35", "facecolor": QUESTION, "edgecolor": LINE}
            ax.text(x + 0.07, y, text, fontsize=11, va="center", bbox=box)
            parents[level] = y - 0.14
        else:
            ax.text(x, y, text, fontsize=11, weight="bold", color=ANSWER, va="center")
            y -= LINE_HEIGHT
            ax.text(x, y, use, fontsize=10, va="center")
        y -= LINE_HEIGHT + 0.14
    return -y


if __name__ == "__main__":
    plt.rcParams["svg.hashsalt"] = "choosing"  # the same names inside the file in each run
    figure = plt.figure()
    ax = figure.add_axes((0, 0, 1, 1))
    height = draw(ax)
    figure.set_size_inches(WIDTH, height)
    ax.set(xlim=(-0.1, WIDTH - 0.1), ylim=(0.2 - height, 0.2))
    ax.axis("off")
    figure.savefig(Path(__file__).with_suffix(".svg"), metadata={"Date": None})
