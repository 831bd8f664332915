"""Draw the chart of the page on choosing an estimator: python docs/images/choosing.py"""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt

QUESTION, ANSWER, LINE = "#eef2f7", "#0072B2", "#8a97a6"

# By name: the text, and the place of its centre.
QUESTIONS = {
    "have": ("What do you have?", (0.9, 4.0)),
    "table": ("Does it fit into\nthe memory\nof one machine?", (4.2, 5.4)),
    "stream": ("May the rows\nchange their meaning\nover time?", (4.2, 2.6)),
}
ANSWERS = {
    "fit": ("IKOGDClassifier, IKOGDRegressor", "fit", (9.0, 6.8)),
    "svc": ("IKSVC", "if you want the optimum of the SVM problem", (9.0, 5.9)),
    "file": (
        "IKOGDClassifier, IKOGDRegressor",
        "partial_fit on blocks of iter_csv, iter_parquet, iter_libsvm",
        (9.0, 4.9),
    ),
    "dask": ("DaskIKOGDClassifier", "on a cluster", (9.0, 4.0)),
    "adaptive": ("AdaptiveIKClassifier, AdaptiveIKRegressor", "partial_fit", (9.0, 3.0)),
    "growing": ("IKOGDClassifier, IKOGDRegressor", "partial_fit", (9.0, 2.1)),
    "kernel": ("IsolationKernel", "transform for features, similarity for a kernel matrix", (9.0, 1.0)),
}
BRANCHES = [
    ("have", "table", "a table"),
    ("have", "stream", "a stream"),
    ("have", "kernel", "another method that takes features or a kernel"),
    ("table", "fit", "yes"),
    ("table", "svc", "yes"),
    ("table", "file", "no, one machine"),
    ("table", "dask", "no, several"),
    ("stream", "adaptive", "yes, or unknown"),
    ("stream", "growing", "no"),
]


def draw(ax):
    """Draw questions, answers and the lines between them."""
    places = {name: place for name, (_, place) in QUESTIONS.items()}
    places |= {name: place for name, (_, _, place) in ANSWERS.items()}
    for begin, end, text in BRANCHES:
        (x0, y0), (x1, y1) = places[begin], places[end]
        bend = x0 if end == "kernel" else x0 + 1.35  # the last answer is below all questions
        reach = x1 - 2.05 if end in ANSWERS else x1  # boxes of questions hide the ends of lines
        ax.plot([x0, bend, bend, reach], [y0, y0, y1, y1], color=LINE, linewidth=1.3, zorder=0)
        ax.text(bend + 0.08, y1 + 0.06, text, fontsize=8.5, color="#44505c", va="bottom")
    for text, (x, y) in QUESTIONS.values():
        box = {"boxstyle": "round,pad=0.5", "facecolor": QUESTION, "edgecolor": LINE}
        ax.text(x, y, text, ha="center", va="center", fontsize=10, bbox=box)
    for name, note, (x, y) in ANSWERS.values():
        ax.text(x - 1.95, y + 0.13, name, fontsize=10, weight="bold", color=ANSWER, va="center")
        ax.text(x - 1.95, y - 0.2, note, fontsize=8.5, color="#44505c", va="center")


if __name__ == "__main__":
    figure, ax = plt.subplots(figsize=(10, 5.2), layout="constrained")
    draw(ax)
    ax.set(xlim=(-0.15, 12.1), ylim=(0.6, 7.2))
    ax.axis("off")
    figure.savefig(Path(__file__).with_suffix(".png"), dpi=120)
