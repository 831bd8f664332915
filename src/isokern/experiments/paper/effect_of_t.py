"""Accuracy and time against t for IK-OGD, and against the number of landmarks b for NOGD."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from isokern import plotting
from isokern.evaluation import holdout
from isokern.experiments import settings
from isokern.experiments.datasets import cells_of, load_rows
from isokern.experiments.experiment import Cell, Experiment, Plan, Record, Table, Verdict
from isokern.experiments.measuring import Stopwatch
from isokern.experiments.methods import FROM_DATA, METHODS
from isokern.experiments.showing import (
    Outcome,
    datasets_in,
    having,
    label,
    labels,
    mean,
    notes_on,
    select,
    shown,
    tally,
)
from isokern.experiments.tables import accuracy_text

_SIZE_OF = {
    "IK_i-OGD": "n_partitionings",
    "IK_i-OGD, uncapped": "n_partitionings",
    "NOGD": "n_landmarks",
    f"NOGD{FROM_DATA}": "n_landmarks",
}


def cells(plan: Plan) -> list[Cell]:
    """List every size of every method on every data set at hand, small sizes first."""
    sizes = settings.EFFECT_OF_T_SIZES[plan.scale]
    return cells_of(plan, settings.EFFECT_OF_T_DATASETS, method=list(_SIZE_OF), size=sizes)


def measure(cell: Cell, plan: Plan) -> dict[str, Any]:
    """Train with t partitionings or b landmarks, and test."""
    data, method = load_rows(cell["dataset"], plan, cell["seed"]), METHODS[cell["method"]]
    parameters = {_SIZE_OF[cell["method"]]: cell["size"]}
    if method.searched is not None:
        parameters[method.searched] = settings.EFFECT_OF_T_CELLS
    learner, watch = method.make(cell["seed"], **parameters), Stopwatch()
    tested = holdout(learner, (data.X_train, data.y_train), (data.X_test, data.y_test))
    return {**watch.seconds(), "accuracy": tested.accuracy, "n_train": tested.n_train, "n_test": tested.n_test}


def table(records: Sequence[Record], plan: Plan) -> Table:
    """Return accuracy and seconds, a line for each data set and size."""
    measures = ("accuracy", "seconds")
    columns = ("data set", "t or b", *(f"{name}: {what}" for name in _SIZE_OF for what in measures))
    rows: list[tuple[Any, ...]] = []
    for dataset, name in labels(plan, settings.EFFECT_OF_T_DATASETS).items():
        found = select(records, dataset=dataset)
        for size in _sizes(found):
            of_method = [select(found, size=size, method=method) for method in _SIZE_OF]
            rows.append((name, size, *(shown(cell, what, plan) for cell in of_method for what in measures)))
        if not found:
            rows.append((name, *[None] * (len(columns) - 1)))
    return Table(columns, rows, tuple(notes_on(plan, settings.EFFECT_OF_T_DATASETS)))


def _sizes(records: Sequence[Record]) -> list[int]:
    return sorted({record["size"] for record in records})


def verdicts(records: Sequence[Record]) -> list[Verdict]:
    """Judge what more partitionings give and cost, and what more landmarks give."""
    return [
        tally(
            "More partitionings make IK-OGD more accurate",
            "mean accuracy (capped trees) higher at the largest t than at the smallest, on every data set",
            _outcomes(records, ("IK_i-OGD",), _judge_gain),
            records,
        ),
        tally(
            "NOGD with as many landmarks stays less accurate",
            "mean accuracy of NOGD at the largest b lower than that of IK-OGD (capped trees) at the largest t, on "
            "every data set",
            _outcomes(records, ("NOGD", "IK_i-OGD"), _judge_gap),
            records,
        ),
        tally(
            "IK-OGD's time grows less than linearly with t",
            "seconds (capped trees) as a power of t, from the smallest to the largest: below 1, on every data set",
            _outcomes(records, ("IK_i-OGD",), _judge_power),
            records,
        ),
    ]


def _judge_gain(ours: Sequence[Record]) -> Outcome | None:
    ends = _ends(ours, "accuracy")
    return None if ends is None else (ends[1] > ends[0], ", then ".join(map(accuracy_text, ends)))


def _judge_gap(nogd: Sequence[Record], ours: Sequence[Record]) -> Outcome | None:
    theirs, mine = _ends(nogd, "accuracy"), _ends(ours, "accuracy")
    if theirs is None or mine is None:
        return None
    return theirs[1] < mine[1], f"{accuracy_text(theirs[1])} against {accuracy_text(mine[1])}"


def _judge_power(ours: Sequence[Record]) -> Outcome | None:
    ends = _ends(ours, "seconds")
    if ends is None or not all(ends):
        return None
    sizes = _sizes(having(ours, "seconds"))
    power = math.log(ends[1] / ends[0]) / math.log(sizes[-1] / sizes[0])
    return power < 1, f"t^{power:.2f}"


def _ends(records: Sequence[Record], key: str) -> tuple[float, float] | None:
    """Return what was measured at the smallest and at the largest size that came to an end."""
    measured = having(records, key)
    sizes = _sizes(measured)
    if len(sizes) < 2:
        return None
    first, last = (mean(measured, key, size=size) for size in (sizes[0], sizes[-1]))
    return None if first is None or last is None else (first, last)


def _outcomes(records: Sequence[Record], methods: tuple[str, ...], judge: Any) -> dict[str, Outcome]:
    found = {
        dataset: judge(*(select(records, dataset=dataset, method=name) for name in methods))
        for dataset in datasets_in(records)
    }
    return {dataset: outcome for dataset, outcome in found.items() if outcome is not None}


def draw(records: Sequence[Record]) -> Any:
    """Draw accuracy and time against the size, two panels for each data set."""
    measured = having(records, "accuracy")
    datasets = datasets_in(measured)
    n_lines = max(1, len(datasets))
    figure, panels = plotting.new_figure(2 * n_lines, n_lines)
    for k, dataset in enumerate(datasets):
        found = select(measured, dataset=dataset)
        title = label(dataset, found[0]["source"])
        _draw_curves(panels[2 * k], found, "accuracy", f"Accuracy: {title}")
        _draw_curves(panels[2 * k + 1], found, "seconds", f"Time: {title}")
        panels[2 * k + 1].set_yscale("log")
    plotting.shared_legend(figure, panels)
    return figure


def _draw_curves(panel: Any, records: Sequence[Record], key: str, title: str) -> None:
    for name in _SIZE_OF:
        of_method = select(records, method=name)
        points = [(size, mean(of_method, key, size=size)) for size in _sizes(of_method)]
        if points:
            panel.plot(*zip(*points, strict=True), label=name, marker="o", ms=4, **plotting.style(name))
    sizes = _sizes(records)
    panel.set(title=title, xlabel="t (IK-OGD) or b (NOGD)", xscale="log", ylabel=key)
    panel.set_xticks(sizes, [f"{size:,}" for size in sizes])
    panel.set_xticks([], minor=True)
    plotting.plain(panel)


EXPERIMENT = Experiment(
    name="effect-of-t",
    title="More partitionings, more landmarks",
    cells=cells,
    measure=measure,
    table=table,
    verdicts=verdicts,
    draw=draw,
    datasets=settings.EFFECT_OF_T_DATASETS,
    notes=(
        f"psi = {settings.EFFECT_OF_T_CELLS} for all but the column with lambda from the data; NOGD's rank is "
        f"{settings.RANK} b. Trained once, tested once.",
        "The paper has epsilon and smallNORB here, and shows them in a figure; mnist and covertype are run beside "
        "them, or in their place where they are not at hand.",
    ),
)
