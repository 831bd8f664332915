"""Draw figures with panels for each data set."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from isokern import plotting
from isokern.experiments.experiment import Record
from isokern.experiments.tables import datasets_in, label, mean, select, sizes_in


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
    points = [(size, mean(records, key, **{axis: size})) for size in sizes_in(records, axis)]
    if points:
        panel.plot(*zip(*points, strict=True), **style)
