"""The figure of the online setting: for each data set a panel of accuracy and one of time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from isokern import plotting
from isokern.experiments.experiment import Record, is_stopped
from isokern.experiments.showing import datasets_in, label, select


def draw(records: Sequence[Record]) -> Any:
    """Draw accuracy and time along the stream, of the first seed."""
    first = select(records, seed=0)
    datasets = datasets_in(first)
    figure, panels = plotting.new_figure(2 * max(1, len(datasets)), max(1, len(datasets)))
    for k, dataset in enumerate(datasets):
        runs = select(first, dataset=dataset)
        title = label(dataset, runs[0]["source"])
        _draw_curves(panels[2 * k], runs, 1, f"Accuracy: {title}", "accuracy so far")
        _draw_curves(panels[2 * k + 1], runs, 2, f"Time: {title}", "elapsed seconds so far")
        panels[2 * k + 1].set_yscale("log")
        _tell_stopped(panels[2 * k + 1], runs)
    plotting.shared_legend(figure, panels)
    return figure


def _draw_curves(panel: Any, runs: Sequence[Record], place: int, title: str, ylabel: str) -> None:
    for run in runs:
        if not run.get("curve"):
            continue
        points = [(point[0], point[place]) for point in run["curve"]]
        panel.plot(*zip(*points, strict=True), label=run["method"], **plotting.style(run["method"]))
        if run["stopped_at_row"] is not None:
            panel.plot(*points[-1], marker="X", ms=9, color=plotting.COLOURS[run["method"]])
    panel.set(title=title, xlabel="rows of the stream", ylabel=ylabel)
    panel.xaxis.set_major_formatter("{x:,.0f}")
    panel.locator_params(axis="x", nbins=5)
    plotting.plain(panel)


def _tell_stopped(panel: Any, runs: Sequence[Record]) -> None:
    """Say which runs came to no end, below the panel, where no curve is in the way."""
    said = [
        f"{run['method']}: stopped "
        + (f"at row {run['stopped_at_row']:,}" if run.get("curve") else "before the stream")
        for run in runs
        if is_stopped(run)
    ]
    panel.set_xlabel("\n".join([panel.get_xlabel(), *said]))
