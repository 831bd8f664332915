"""Draw figures with panels for each data set, and the summary of all methods."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from isokern import plotting
from isokern.experiments import settings
from isokern.experiments.experiment import Record
from isokern.experiments.tables import datasets_in, having, label, mean, select, sizes_in


def dataset_panels(
    records: Sequence[Record], n_panels: int, draw: Callable[[list[Any], list[Record], str], None]
) -> Any:
    """Return a figure in which ``draw(panels, records, title)`` has drawn each data set; two panels take a line."""
    datasets = datasets_in(records)
    n_datasets = max(1, len(datasets))
    figure, panels = plotting.new_figure(n_panels * n_datasets, n_datasets if n_panels > 1 else 1)
    for k, dataset in enumerate(datasets):
        found = select(records, dataset=dataset)
        draw(panels[k * n_panels : (k + 1) * n_panels], found, label(dataset, found[0]["source"]))
    plotting.shared_legend(figure, panels)
    return figure


def draw_means(panel: Any, records: Sequence[Record], axis: str, key: str, **style: Any) -> None:
    """Draw the mean of a measurement against an axis."""
    measured = having(records, key)
    points = [(size, mean(measured, key, **{axis: size})) for size in sizes_in(measured, axis)]
    if points:
        panel.plot(*zip(*points, strict=True), **style)


_MARKERS = "osD^vP*X<>"


def summary(records: Sequence[Record]) -> Any:
    """Return a figure of accuracy against seconds: all methods of batch, here and as published, on the paper's sets.

    ``records`` are those of batch. Data sets that were not measured show the published numbers alone.
    """
    methods = list(dict.fromkeys(record["method"] for record in records))
    figure, panels = plotting.new_figure(len(settings.DATASETS), 3)
    figure.set_size_inches(13, 9)
    for panel, dataset in zip(panels, settings.DATASETS, strict=True):
        found = select(records, dataset=dataset)
        for method, marker in zip(methods, _MARKERS, strict=False):
            ours = [mean(found, key, method=method) for key in ("seconds", "accuracy")]
            numbers = settings.BATCH_PUBLISHED.get(method, {})
            theirs = [numbers.get(key, {}).get(dataset) for key in ("seconds", "accuracy")]
            _draw_pair(panel, _known(ours), _known(theirs), method, marker)
        panel.set(title=label(dataset, found[0]["source"] if found else "published"), xscale="log")
        plotting.plain(panel)
    plotting.shared_legend(figure, panels)
    figure.suptitle("Accuracy against CPU seconds of training and testing. Filled: measured here. Hollow: published.")
    return figure


def _known(point: Sequence[Any]) -> list[tuple[float, float]]:
    """Return a list of the point, or an empty one if a number is missing or the paper gives a reason instead."""
    return [(point[0], point[1])] if all(isinstance(value, int | float) for value in point) else []


def _draw_pair(
    panel: Any, ours: list[tuple[float, float]], theirs: list[tuple[float, float]], method: str, marker: str
) -> None:
    """Draw the points of a method; its name joins the legend in any case."""
    look = {"marker": marker, "color": plotting.COLOURS[method], "linestyle": "none", "ms": 8}
    panel.plot(*(zip(*ours, strict=True) if ours else ([], [])), label=method, zorder=3, **look)
    if theirs:
        panel.plot(*zip(*theirs, strict=True), mfc="none", alpha=0.6, **look)
    if ours and theirs:
        panel.plot(*zip(*ours, *theirs, strict=True), color=look["color"], lw=1, alpha=0.3)
