"""``isokern demo``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import numpy as np
import typer
from rich.live import Live
from rich.table import Table
from sklearn.datasets import load_digits
from sklearn.linear_model import SGDClassifier
from sklearn.utils import shuffle

from isokern import IKOGDClassifier, NOGDClassifier, plotting
from isokern.cli._options import check_target
from isokern.cli._show import results
from isokern.data import blocks
from isokern.evaluation import Prequential
from isokern.files import replacing
from isokern.system import peak_memory

_BLOCK = 1000  # rows

Curve = list[tuple[int, float]]  # of (rows seen, accuracy so far)


def demo(
    plot: Annotated[str, typer.Option(help="Save the plot here.")] = "isokern-demo.png",
    rows: Annotated[int, typer.Option(min=2000, help="Length of the generated stream.")] = 500_000,
) -> None:
    """Compare three online learners on digits and on a long generated stream, in under a minute.

    Example: isokern demo
    """
    check_target("--plot", plot)
    X, y = shuffle(*load_digits(return_X_y=True), random_state=0)
    results.print("[bold]Handwritten digits[/], 10 classes: each block of 100 rows is predicted, then learned")
    digits = _race(blocks(X, y, 100), n_initial=100, classes=range(10), n_rows=len(X))
    results.print(f"\n[bold]A stream of {rows:,} rows[/], 2 classes: odd and even rings around the origin")
    rings = _race(_ring_blocks(rows), n_initial=_BLOCK, classes=range(2), n_rows=rows)
    results.print()
    _save_plot(plot, {"Handwritten digits": digits, "Rings": rings})


def _race(stream: Iterator[tuple[Any, Any]], *, n_initial: int, classes: Any, n_rows: int) -> dict[str, Curve]:
    """Run learners along a stream, show their accuracy and speed, and return their accuracy along it."""
    learners = {
        "IK-OGD": IKOGDClassifier(n_cells=min(256, n_initial), n_initial=n_initial, random_state=0),
        "NOGD": NOGDClassifier(n_initial=n_initial, random_state=0),
        "linear SGD": SGDClassifier(random_state=0),
    }
    runs = {name: Prequential(learner, classes=list(classes), protocol="blocks") for name, learner in learners.items()}
    seconds = dict.fromkeys(runs, 0.0)
    curves: dict[str, Curve] = {name: [] for name in runs}
    n_seen = 0
    with Live(console=results, refresh_per_second=8) as live:
        for X, y in stream:
            n_seen += len(X)
            for name, run in runs.items():
                record = run.step(X, y)
                seconds[name] += record.map_seconds + record.predict_seconds + record.learn_seconds
                if record.accuracy is not None and record.n_seen:
                    curves[name].append((n_seen, record.accuracy))
            if results.is_terminal or n_seen == n_rows:
                live.update(_table(n_seen, seconds, curves))
    return curves


def _table(n_seen: int, seconds: dict[str, float], curves: dict[str, Curve]) -> Table:
    """Return a table of the learners' accuracy and throughput so far."""
    megabytes = peak_memory()
    title = f"{n_seen:,} rows" + (f", {megabytes:,.0f} MB peak memory" if megabytes else "")
    table = Table(box=None, pad_edge=False, title=title, title_justify="left")
    table.add_column("learner", min_width=12)
    table.add_column("accuracy so far", justify="right", min_width=16)
    table.add_column("rows per second", justify="right", min_width=16)
    for name, curve in curves.items():
        accuracy = f"{curve[-1][1]:.1%}" if curve else ""
        table.add_row(name, accuracy, f"{n_seen / seconds[name]:,.0f}", style="bold" if name == "IK-OGD" else None)
    return table


def _ring_blocks(n_rows: int) -> Iterator[tuple[Any, Any]]:
    """Yield rows of four columns; the label is the parity of the ring that the first two columns lie in."""
    rng = np.random.default_rng(0)
    for begin in range(0, n_rows, _BLOCK):
        X = rng.uniform(-1, 1, size=(min(_BLOCK, n_rows - begin), 4))
        yield X, (np.floor(4 * np.hypot(X[:, 0], X[:, 1])) % 2).astype(int)


def _save_plot(path: str, races: dict[str, dict[str, Curve]]) -> None:
    try:
        figure, panels = plotting.new_figure(len(races))
    except ImportError as error:
        results.print(f"No plot: {error}", markup=False)
        return
    for panel, (title, curves) in zip(panels, races.items(), strict=True):
        plotting.accuracy_along_stream(panel, curves, title)
    with replacing(path) as file:
        figure.savefig(file, format="png", dpi=150)
    results.print(f"Plot saved to {path}", markup=False)
