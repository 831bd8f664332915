"""Accuracy and time along a stream: the paper's figure of the online setting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from isokern.evaluation import Prequential
from isokern.experiments import settings
from isokern.experiments.datasets import cells_of
from isokern.experiments.experiment import Cell, Experiment, Plan, Record, Table, Verdict
from isokern.experiments.measuring import Stopwatch
from isokern.experiments.methods import FROM_DATA, METHODS, choose, search_note
from isokern.experiments.online_figure import draw
from isokern.experiments.showing import (
    NOT_LOWER,
    Measure,
    Outcome,
    compare_accuracy,
    comparison,
    datasets_in,
    mean,
    notes_on,
    stopped_notes,
    tally,
)
from isokern.experiments.stream import Stream, initial_note, learn_initial, load_stream

_METHODS = [name for name in METHODS if name != "AdaRaker"]  # in the paper, too, it is for the batch setting only


def cells(plan: Plan) -> list[Cell]:
    """List every method on every data set at hand."""
    return cells_of(plan, settings.ONLINE_DATASETS, method=_METHODS)


def measure(cell: Cell, plan: Plan) -> dict[str, Any]:
    """Choose psi on the initial set, train the first model, then predict and learn block by block."""
    since_start = Stopwatch()
    stream = load_stream(cell, plan)
    chosen, cv_seconds = choose(cell["method"], *stream.initial, plan, cell["seed"])
    learner, watch = METHODS[cell["method"]].make(cell["seed"], **chosen), Stopwatch()
    run = _Run(learner, watch, since_start, plan.time_limit)
    run.follow(stream)
    return {
        **watch.seconds(),
        **cv_seconds,
        **run.results(),
        "chosen": chosen.get("n_cells"),
        "n_support": learner.n_support_,
        "n_initial": stream.n_initial,
        "n_stream": len(stream.y) - stream.n_initial,
        "block_rows": stream.block_rows,
    }


class _Run:
    """A learner on its way along a stream, until the end or until its time is over."""

    def __init__(self, learner: Any, watch: Stopwatch, since_start: Stopwatch, limit: float) -> None:
        self.learner, self.watch, self.since_start, self.limit = learner, watch, since_start, limit
        self.points: list[list[float]] = []  # rows, accuracy so far, seconds so far
        self.row_seconds: list[float] = []
        self.stopped_at_row: int | None = None

    def is_over(self) -> bool:
        """Return whether to stop, here rather than from outside, so that what was measured is kept."""
        return self.since_start.elapsed > self.limit

    def follow(self, stream: Stream) -> None:
        """Train the first model, then predict and learn blocks."""
        if not learn_initial(self.learner, stream, self.is_over):
            self.stopped_at_row = 0
            return
        run = Prequential(self.learner)
        for X, y in stream.blocks():
            if self.is_over():
                self.stopped_at_row = int(self.points[-1][0]) if self.points else 0
                return
            before = self.watch.elapsed
            step = run.step(X, y)
            assert step.accuracy is not None  # classifiers have one
            self.points.append([step.n_seen, step.accuracy, self.watch.elapsed])
            self.row_seconds.append((self.watch.elapsed - before) / len(y))

    def results(self) -> dict[str, Any]:
        """Return the curve, thinned; the final accuracy, if there is one; and how a row's time grows to the end."""
        has_ended = self.stopped_at_row is None
        return {
            "accuracy": self.points[-1][1] if has_ended else None,
            "curve": thinned(self.points),
            "n_done": int(self.points[-1][0]) if self.points else 0,
            "stopped_at_row": self.stopped_at_row,
            "growth": growth(self.row_seconds),
        }


def growth(seconds: list[float]) -> float | None:
    """Return the time of a row in the last tenth of blocks over that in the first, None without any.

    It is that of the fastest block of a tenth, since other work on the machine only ever adds.
    """
    tenth = max(1, len(seconds) // 10)
    return min(seconds[-tenth:]) / min(seconds[:tenth]) if seconds else None


def thinned(points: list[list[float]]) -> list[list[float]]:
    """Return every so many of the points, the last among them, at most CURVE_POINTS."""
    step = -(-len(points) // settings.CURVE_POINTS) or 1
    return points[::-1][::step][::-1]


def table(records: Sequence[Record], plan: Plan) -> Table:
    """Return where each method stands at the end of the stream."""
    measures = (
        Measure("accuracy at the end", "accuracy"),
        Measure("seconds, first model and stream", "seconds"),
        Measure("a row's time, last tenth / first", "growth", even_if_stopped=True),
        Measure("psi", "chosen"),
        Measure("rows of the stream done", "n_done", even_if_stopped=True),
    )
    notes = (
        *notes_on(plan, settings.ONLINE_DATASETS),
        search_note(plan),
        initial_note(plan),
        *stopped_notes(records, "n_stream"),
    )
    return comparison(records, plan, settings.ONLINE_DATASETS, _METHODS, measures, notes=notes)


def verdicts(records: Sequence[Record]) -> list[Verdict]:
    """Judge accuracy against NOGD, and how time grows."""
    return [
        tally(
            "IK-OGD is at least as accurate as NOGD",
            f"{NOT_LOWER} (capped trees)",
            compare_accuracy(records, "IK_i-OGD", "NOGD"),
            records,
        ),
        tally(
            "IK-OGD is at least as accurate as NOGD whose lambda is from the data (not the paper's rival)",
            f"{NOT_LOWER} (capped trees)",
            compare_accuracy(records, "IK_i-OGD", f"NOGD{FROM_DATA}"),
            records,
        ),
        tally(
            "IK-OGD's time for a block stays the same along the stream, while OGD's grows",
            "time of a row in the fastest block of the last tenth against that of the first, on every data set: at "
            f"most {settings.FLAT_RATIO} times for IK-OGD (capped trees), more for OGD",
            _growths(records),
            records,
        ),
    ]


def _growths(records: Sequence[Record]) -> dict[str, Outcome]:
    outcomes = {}
    for dataset in datasets_in(records):
        ours, theirs = (mean(records, "growth", dataset=dataset, method=name) for name in ("IK_i-OGD", "OGD"))
        if ours is not None and theirs is not None:
            holds = ours <= settings.FLAT_RATIO < theirs
            outcomes[dataset] = holds, f"{ours:.2f} times, OGD {theirs:.2f} times"
    return outcomes


EXPERIMENT = Experiment(
    name="online",
    title="Accuracy and time along the stream",
    cells=cells,
    measure=measure,
    table=table,
    verdicts=verdicts,
    draw=draw,
    datasets=settings.ONLINE_DATASETS,
    notes=(
        "Each block is predicted with what was learned before it, then learned; the map, and what NOGD takes as "
        "landmarks, come from the initial set. The paper shows this as a figure, without numbers.",
        "OGD and NOGD have the Laplacian kernel with lambda = ln(psi)/d, as in the paper, or lambda from the data.",
    ),
)
