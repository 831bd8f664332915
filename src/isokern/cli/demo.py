"""``isokern demo``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Self

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import SGDClassifier

from isokern import AdaptiveIKClassifier, plotting
from isokern.cli._chart import line_chart
from isokern.cli._show import results
from isokern.cli.plot import check_figure, save_figure
from isokern.evaluation import Prequential

_BLOCK = 1000  # rows
_WINDOW = 5000  # rows that the forest is trained on
_COLOURS = {"linear SGD": "magenta", "random forest": "yellow", "isokern": "bold cyan"}  # the last is drawn on top
_LOWEST = 0.3  # accuracy at the bottom of the chart
_HEIGHTS = (24, 17, 10)  # of the chart, each with as many lines for ten points of accuracy


def demo(
    plot: Annotated[str, typer.Option(help="Save the plot here.")] = "isokern-demo.png",
    rows: Annotated[int, typer.Option(min=6 * _BLOCK, help="Length of the generated stream.")] = 60_000,
) -> None:
    """Watch isokern, a linear model and a forest along a stream that changes, in about a minute.

    Example: isokern demo
    """
    check_figure("--plot", plot)
    stream = Rings(rows)
    results.print(
        f"[bold]A stream of {rows:,} rows that changes.[/] The classes are odd and even rings, whose centre jumps at "
        f"row {stream.jump:,} and moves from row {stream.drift:,} on. Each block of {_BLOCK:,} rows is predicted "
        "before it is learned. isokern and linear SGD learn online; the forest is trained anew on the last "
        f"{_WINDOW:,} rows after each block.\n"
    )
    race = Race(stream)
    _show(race) if results.is_terminal else _list(race)
    results.print()
    results.print(race.summary())
    _save_plot(plot, race)


def _show(race: Race) -> None:
    """Run a race, and draw its chart while it runs."""
    with Live(race.picture(), console=results, refresh_per_second=8) as live:
        for _ in race.run():
            live.update(race.picture())


def _list(race: Race) -> None:
    """Run a race, and print a line after each tenth of the stream."""
    n_shown = 0
    for n_seen in race.run():
        if n_seen * 10 // race.stream.n_rows > n_shown:
            n_shown = n_seen * 10 // race.stream.n_rows
            latest = ", ".join(f"{name} {curve[-1][1]:.1%}" for name, curve in race.curves.items())
            results.print(f"row {n_seen:,}: {latest}")


class Rings:
    """Stream of rows in the plane; the class is the parity of the ring that a row lies in, around a centre.

    The centre stays for a third of the rows, is elsewhere for another third, and moves on half a circle in the last.
    """

    def __init__(self, n_rows: int) -> None:
        self.n_rows = n_rows
        self.jump, self.drift = (n_rows * k // (3 * _BLOCK) * _BLOCK for k in (1, 2))
        self.changes = {self.jump: "the centre jumps", self.drift: "it moves on"}
        self.parts = {
            "steady": (0, self.jump),
            "after the jump": (self.jump, self.drift),
            "moving": (self.drift, n_rows),
        }

    def blocks(self) -> Iterator[tuple[NDArray[np.float64], NDArray[np.int64]]]:
        """Yield blocks of rows and their classes."""
        rng = np.random.default_rng(0)
        for begin in range(0, self.n_rows, _BLOCK):
            X = rng.uniform(-1.0, 1.0, size=(min(_BLOCK, self.n_rows - begin), 2))
            radius = np.linalg.norm(X - self._centre(begin), axis=1)
            yield X, np.floor(3.0 * radius).astype(np.int64) % 2

    def _centre(self, row: int) -> NDArray[np.float64]:
        if row < self.jump:
            return np.zeros(2)
        angle = np.pi * max(0, row - self.drift) / (self.n_rows - self.drift)
        return 0.5 * np.array([np.cos(angle), np.sin(angle)])


class WindowForest(RandomForestClassifier):
    """Random forest that is trained anew on the latest rows of a stream."""

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Train on the last rows, up to these."""
        rows, labels = getattr(self, "window_", (X[:0], y[:0]))
        self.window_ = np.concatenate([rows, X])[-_WINDOW:], np.concatenate([labels, y])[-_WINDOW:]
        return self.fit(*self.window_)


class Race:
    """Learners along a stream, and the accuracy of each in each block."""

    def __init__(self, stream: Rings) -> None:
        self.stream = stream
        learners = (
            SGDClassifier(random_state=0),
            WindowForest(n_jobs=-1, random_state=0),
            AdaptiveIKClassifier(random_state=0),
        )
        runs = [Prequential(learner, classes=[0, 1], protocol="blocks") for learner in learners]
        self.runs = dict(zip(_COLOURS, runs, strict=True))
        self.curves: dict[str, list[tuple[int, float]]] = {name: [] for name in self.runs}
        self.seconds = dict.fromkeys(self.runs, 0.0)

    def run(self) -> Iterator[int]:
        """Let all learners predict and learn the stream; yield the number of rows after each block."""
        n_seen = 0
        for X, y in self.stream.blocks():
            n_seen += len(X)
            for name, run in self.runs.items():
                record = run.step(X, y)
                self.seconds[name] += record.map_seconds + record.predict_seconds + record.learn_seconds
                if record.n_seen:  # nobody can predict the first block
                    self.curves[name].append((n_seen, record.block_accuracy or 0.0))
            if n_seen > _BLOCK:
                yield n_seen

    def picture(self) -> Group:
        """Return the chart so far, and the latest accuracies."""
        lines = {_COLOURS[name]: curve for name, curve in self.curves.items()}
        height = next((height for height in _HEIGHTS if height < results.height - 6), _HEIGHTS[-1])
        size, marks = (min(100, results.width - 1), height), self.stream.changes
        chart = line_chart(lines, size=size, x_range=(0, self.stream.n_rows), y_range=(_LOWEST, 1.0), marks=marks)
        legend = [Text.assemble(("━━ ", _COLOURS[name]), name, *_latest(curve)) for name, curve in self.curves.items()]
        return Group(Text("   ").join(reversed(legend)), chart)

    def accuracy(self, name: str, begin: int, end: int) -> float:
        """Return the mean accuracy of the blocks between two rows."""
        return float(np.mean([accuracy for n_seen, accuracy in self.curves[name] if begin < n_seen <= end]))

    def summary(self) -> Table:
        """Return the accuracy of each learner in each part of the stream, and its speed."""
        table = Table(box=None, pad_edge=False, header_style="bold")
        table.add_column("accuracy", min_width=14)
        for title in (*self.stream.parts, "whole stream", "rows per second"):
            table.add_column(title, justify="right")
        for name in reversed(self.curves):
            parts = (*self.stream.parts.values(), (0, self.stream.n_rows))
            shares = [f"{self.accuracy(name, *part):.1%}" for part in parts]
            rate = f"{self.stream.n_rows / self.seconds[name]:,.0f}"
            table.add_row(name, *shares, rate, style=_COLOURS[name] if name == "isokern" else None)
        return table


def _latest(curve: list[tuple[int, float]]) -> list[str]:
    return [f" {curve[-1][1]:6.1%}"] if curve else []


def draw_race(panel: Any, race: Race, title: str) -> None:
    """Draw the accuracy of each block, and where the stream changes."""
    plotting.accuracy_along_stream(panel, race.curves, title)
    panel.set_ylabel(f"accuracy of blocks of {_BLOCK:,} rows (%)")
    for row, text in race.stream.changes.items():
        panel.axvline(row, color="grey", linestyle=":")
        panel.text(row, panel.get_ylim()[0], f" {text}", color="grey", va="bottom")


def _save_plot(path: str, race: Race) -> None:
    try:
        figure, (panel,) = plotting.new_figure(1)
    except ImportError as error:
        results.print(f"No plot: {error}", markup=False)
        return
    figure.set_size_inches(9, 4)
    draw_race(panel, race, "A stream that changes")
    save_figure(figure, path)
    results.print(f"\nPlot saved to {path}", markup=False)
