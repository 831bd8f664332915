"""Follow accuracy and time along streams, block by block: the experiment online."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isokern import plotting
from isokern.data import blocks
from isokern.data.rebatching import joined
from isokern.evaluation import Prequential
from isokern.experiments import settings
from isokern.experiments.claims import Claim, Outcome, not_less_accurate
from isokern.experiments.experiment import Cell, Experiment, Plan, Record, is_stopped
from isokern.experiments.figures import dataset_panels
from isokern.experiments.measuring import Stopwatch, load_rows
from isokern.experiments.methods import METHODS, choose, searches_all_rows
from isokern.experiments.plan import grid
from isokern.experiments.settings import FROM_DATA
from isokern.experiments.stopping import IsOver, Mark, expected_seconds
from isokern.experiments.tables import comparison, datasets_in, having, mean, search_note, select, stopped_notes
from isokern.learners import IKOGDClassifier


class Stream(NamedTuple):
    """Shuffled rows and labels; the first ``n_initial`` are known before the stream begins."""

    X: Any
    y: NDArray[np.int64]
    n_initial: int

    @property
    def initial(self) -> tuple[Any, NDArray[np.int64]]:
        """The rows and labels of the initial set."""
        return self.X[: self.n_initial], self.y[: self.n_initial]

    @property
    def block_rows(self) -> int:
        """Rows per block: the paper's number, or fewer so that there are enough blocks for a curve."""
        return min(settings.BLOCK_ROWS, max(1, (len(self.y) - self.n_initial) // settings.MIN_BLOCKS))

    def blocks(self) -> Iterator[tuple[Any, Any]]:
        """Yield the blocks after the initial set."""
        return blocks(self.X[self.n_initial :], self.y[self.n_initial :], self.block_rows)


def shuffled_rows(cell: Cell, plan: Plan) -> Stream:
    """Return all rows of a cell's data set as a stream; the initial set is as large as the training part."""
    data = load_rows(cell, plan)
    X, y = joined([(data.X_train, data.y_train), (data.X_test, data.y_test)])
    order = np.random.default_rng(cell["seed"]).permutation(len(y))
    return Stream(X[order], y[order], len(data.y_train))


def load_stream(cell: Cell, plan: Plan) -> Stream:
    """Return the same with a smaller initial set at quick scale and for stand-ins, which have few other rows."""
    stream = shuffled_rows(cell, plan)
    if not plan.is_quick and cell["source"] == cell["dataset"]:
        return stream
    return stream._replace(n_initial=round(settings.INITIAL_SHARE * len(stream.y)))


def initial_note(records: Sequence[Record], plan: Plan) -> list[str]:
    """Return how large the initial set and the blocks are."""
    share = f"{settings.INITIAL_SHARE:.0%} of all rows"
    size = share if plan.is_quick else f"as large as the paper's training part, for stand-ins {share}"
    return [
        f"Training and test rows form one shuffled stream; the initial set is {size}; blocks have "
        f"{settings.BLOCK_ROWS:,} rows, or fewer so that there are at least {settings.MIN_BLOCKS}."
    ]


# -- online

ONLINE_METHODS = [name for name in METHODS if name != "AdaRaker"]  # the paper runs AdaRaker in the batch setting only


def measure_online(cell: Cell, plan: Plan) -> dict[str, Any]:
    """Choose psi on the initial set, train the first model, then predict and learn block by block."""
    clock, stream = Stopwatch(), load_stream(cell, plan)
    chosen, cv_seconds = choose(cell["method"], *stream.initial, plan, cell)
    learner, watch = METHODS[cell["method"]].make(cell["seed"], **chosen), Stopwatch()
    marks: list[Mark] = [(0, 0.0)]
    steps, has_ended = _follow(learner, stream, watch, marks, lambda: clock.has_passed(plan.time_limit))
    n_done = int(steps[-1][0]) if steps else 0
    return {
        **watch.seconds(),
        **cv_seconds,
        "accuracy": steps[-1][1] if has_ended else None,
        "curve": thinned([list(step[:3]) for step in steps]),
        "n_done": n_done,
        "stopped_at_row": None if has_ended else n_done,
        "expected_seconds": None if has_ended else expected_seconds(marks, len(stream.y)),
        "growth": growth([step[3] for step in steps]),
        "chosen": chosen.get("n_cells"),
        "n_support": getattr(learner, "n_support_", None),
        "n_initial": stream.n_initial,
        "n_stream": len(stream.y) - stream.n_initial,
        "block_rows": stream.block_rows,
    }


def _follow(
    learner: Any, stream: Stream, watch: Stopwatch, marks: list[Mark], is_over: IsOver
) -> tuple[list[tuple[float, float, float, float]], bool]:
    """Return rows, accuracy and seconds so far and seconds per row for each block, and whether time sufficed.

    ``marks`` are added also for the rows of the initial set.
    """
    steps: list[tuple[float, float, float, float]] = []
    if not _learn_initial(learner, stream, watch, marks, is_over):
        return steps, False
    run = Prequential(learner, protocol="blocks")
    for X, y in stream.blocks():
        if is_over():
            return steps, False
        before = watch.elapsed
        step = run.step(X, y)
        assert step.accuracy is not None  # it is None for regressors only
        steps.append((step.n_seen, step.accuracy, watch.elapsed, (watch.elapsed - before) / len(y)))
        marks.append((marks[-1][0] + len(y), watch.elapsed))
    return steps, True


def _learn_initial(learner: Any, stream: Stream, watch: Stopwatch, marks: list[Mark], is_over: IsOver) -> bool:
    """Train the first model, and return whether time sufficed.

    The Isolation Kernel's map needs the whole initial set at once; rivals learn it in blocks, so that they can stop.
    """
    if isinstance(learner, IKOGDClassifier):
        learner.fit(*stream.initial)
        marks.append((stream.n_initial, watch.elapsed))
        return True
    for X, y in blocks(*stream.initial, settings.BLOCK_ROWS):
        if marks[-1][0] and is_over():
            return False
        (learner.partial_fit if marks[-1][0] else learner.fit)(X, y)
        marks.append((marks[-1][0] + len(y), watch.elapsed))
    return True


def growth(seconds: list[float]) -> float | None:
    """Return the seconds per row in the last tenth of blocks over those in the first, or None without blocks.

    The fastest block of a tenth counts, because other work on the machine can only add time.
    """
    tenth = max(1, len(seconds) // 10)
    return min(seconds[-tenth:]) / min(seconds[:tenth]) if seconds else None


def thinned(points: list[list[float]]) -> list[list[float]]:
    """Return at most CURVE_POINTS evenly spaced points that include the last."""
    step = -(-len(points) // settings.CURVE_POINTS) or 1
    return points[::-1][::step][::-1]


def _draw_stream(panels: list[Any], runs: list[Record], title: str) -> None:
    _draw_curves(panels[0], runs, 1, f"Accuracy: {title}", "accuracy so far")
    _draw_curves(panels[1], runs, 2, f"Time: {title}", "CPU seconds so far")
    panels[1].set_yscale("log")
    lines = [panels[1].get_xlabel()]
    for run in filter(is_stopped, runs):
        where = f"at row {run['stopped_at_row']:,}" if run.get("curve") else "before the stream"
        lines.append(f"{run['method']}: stopped {where}")
    panels[1].set_xlabel("\n".join(lines))  # below the panel it hides no curve


def _draw_curves(panel: Any, runs: Sequence[Record], place: int, title: str, ylabel: str) -> None:
    for run in runs:
        # Points have no seconds if another processor measured them.
        points = [(point[0], point[place]) for point in run.get("curve", []) if place < len(point)]
        if not points:
            continue
        panel.plot(*zip(*points, strict=True), label=run["method"], **plotting.style(run["method"]))
        if run["stopped_at_row"] is not None:
            panel.plot(*points[-1], marker="X", ms=9, color=plotting.COLOURS[run["method"]])
    panel.set(title=title, xlabel="rows of the stream", ylabel=ylabel)
    panel.xaxis.set_major_formatter("{x:,.0f}")
    panel.locator_params(axis="x", nbins=5)
    plotting.plain(panel)


def _compare_growth(records: Sequence[Record]) -> dict[str, Outcome]:
    """Judge whether times per row are nearer to constant, or to the growth of the rows learned."""
    outcomes = {}
    for dataset in datasets_in(records):
        measured = having(select(records, dataset=dataset), "growth")
        ours, ogd = (mean(measured, "growth", method=name) for name in ("IK_i-OGD", "OGD"))
        if ours is not None and ogd is not None:
            rows = min(_rows_growth(run) for run in select(measured, method="OGD"))
            halfway = (1 + rows) / 2
            holds = ours <= min(settings.FLAT_RATIO, halfway) and ogd > halfway
            outcomes[dataset] = holds, f"{ours:.2f} times, OGD {ogd:.2f}, rows {rows:.2f}"
    return outcomes


def _rows_growth(run: Record) -> float:
    """Return the rows learned before the last tenth of a run over those before the first, which the initial set has."""
    return 1 + 0.9 * float(run["n_done"]) / run["n_initial"]


ONLINE = Experiment(
    name="online",
    title="Accuracy and time along the stream",
    cells=grid(settings.ONLINE_DATASETS, search=searches_all_rows, method=ONLINE_METHODS),
    measure=measure_online,
    table=comparison(
        settings.ONLINE_DATASETS,
        ONLINE_METHODS,
        {
            "accuracy at the end": "accuracy",
            "seconds, first model and stream": "seconds",
            "time per row, last tenth / first": "growth",
            "psi": "chosen",
            "rows of the stream done": "n_done",
        },
        even_if_stopped=("growth", "n_done"),
        notes=(search_note, initial_note, stopped_notes("n_stream")),
    ),
    claims=(
        not_less_accurate("IK_i-OGD", "NOGD", remark=" (capped trees)"),
        not_less_accurate("IK_i-OGD", f"NOGD{FROM_DATA}", remark=" (capped trees)"),
        not_less_accurate(
            "IK_i-OGD",
            "OGD",
            "IK_i-OGD is at least as accurate as OGD, except on epsilon",
            remark=" (capped trees)",
            datasets=tuple(name for name in settings.ONLINE_DATASETS if name != "epsilon"),
            where="on every other data set",
        ),
        Claim(
            "The time per block stays constant along the stream for IK-OGD, while OGD's grows with its support vectors",
            "time per row in the fastest block of the last tenth over that of the first: for IK-OGD (capped trees) at "
            f"most {settings.FLAT_RATIO} and nearer to 1 than to the growth of the rows learned until then, for OGD "
            "nearer to that growth",
            _compare_growth,
            is_of_cost=True,
        ),
    ),
    draw=lambda records: dataset_panels(select(records, seed=0), 2, _draw_stream),
    datasets=settings.ONLINE_DATASETS,
    notes=(
        "Each block is predicted, then learned. The map is drawn from the initial set, and NOGD's landmarks come from "
        "it. The paper shows this as a figure, without numbers.",
        "OGD and NOGD use the Laplacian kernel with lambda = ln(psi)/d, as in the paper, or lambda from the data.",
        "OGD's time per row grows with its support vectors, whose number grows about as the rows learned: little on "
        "covertype, whose stream has a quarter of the rows of its initial set.",
    ),
)
