"""Run an experiment: measure its cells, judge the records and write the result."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from isokern.checks import one_of
from isokern.experiments.clocks import of_one_machine
from isokern.experiments.experiment import Cell, Experiment, Plan, Record, Result, is_out_of_time
from isokern.experiments.plan import available, is_used
from isokern.experiments.records import Records
from isokern.experiments.report import write
from isokern.experiments.searches import searches_file
from isokern.experiments.settings import SEEDS_SECONDS
from isokern.experiments.worker import StoppedError, Worker

# Called with the number of finished cells, the number of all cells, and the next cell or, at the end, None.
Progress = Callable[[int, int, Cell | None], object]


def run(
    experiment: Experiment,
    plan: Plan,
    out: Path | None = None,
    on_progress: Progress = lambda n_done, n_cells, cell: None,
    *,
    fresh: bool = False,
    only_report: bool = False,
    worker: Worker | None = None,
) -> Result:
    """Run an experiment, write its files to ``<out>/<name>`` unless ``out`` is None, and return the result.

    The file ``records.jsonl`` there keeps the records; ``fresh`` deletes it first. A cell with a record is not measured
    again unless it was stopped; after a timeout, only with a larger time limit. Seeds after the first are left out if
    the first took long. With ``only_report``, nothing is measured. All experiments of ``out`` share their searches. A
    ``worker`` that several experiments share reads samples of the data once.
    """
    if not is_used(experiment, plan):
        known, got = one_of(experiment.datasets), ", ".join(plan.datasets or ())
        raise ValueError(f"datasets must include one of {experiment.name}'s: {known}; got {got}.")
    plan = replace(plan, searches=None if out is None else searches_file(out))
    kept = Records(None if out is None else out / experiment.name / "records.jsonl", plan, fresh=fresh)
    cells, measured, n_open = experiment.cells(plan), [], 0
    with nullcontext(worker) if worker else closing(Worker()) as measuring:
        for n_done, cell in enumerate(cells):
            on_progress(n_done, len(cells), cell)
            if cell.get("seed") and _takes_long(kept.latest(cell | {"seed": 0})):
                continue
            if not only_report and kept.find(cell) is None:
                kept.add(cell, _measure(measuring, experiment, cell, plan))
            runs = kept.runs(cell)
            measured += [(cell, runs)] if runs else []
            n_open += not runs
    on_progress(len(cells), len(cells), None)
    records, machines, n_untimed = of_one_machine(measured)
    result = replace(conclude(experiment, records, plan), n_open=n_open)
    if experiment.has_times:
        result = replace(result, machines=machines, n_untimed=n_untimed)
    if out is not None:
        write(result, out)
    return result


def _takes_long(first_seed: Record | None) -> bool:
    """Return whether a cell is too expensive for more than one seed."""
    return first_seed is not None and (
        is_out_of_time(first_seed) or first_seed.get("cell_seconds", 0.0) > SEEDS_SECONDS
    )


def _measure(worker: Worker, experiment: Experiment, cell: Cell, plan: Plan) -> dict[str, Any]:
    try:
        return worker.measure(experiment.measure, cell, plan)
    except StoppedError as reason:
        return {"stopped": str(reason)}


def conclude(experiment: Experiment, records: list[Record], plan: Plan) -> Result:
    """Return the result that records give."""
    sources = available(plan, experiment.datasets)
    return Result(
        name=experiment.name,
        title=experiment.title,
        records=records,
        table=experiment.table(records, plan),
        verdicts=experiment.verdicts(records),
        figure=_draw(experiment, records),
        missing=tuple(name for name, source in sources.items() if source is None),
        notes=experiment.notes,
    )


def _draw(experiment: Experiment, records: list[Record]) -> Any:
    if experiment.draw is None or all("stopped" in record for record in records):
        return None
    try:
        return experiment.draw(records)
    except ImportError:  # tables do not need matplotlib
        return None
