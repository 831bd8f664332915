"""Running an experiment: its cells one by one, each measured once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from isokern.experiments.experiment import Cell, Experiment, Plan, Record
from isokern.experiments.records import Records
from isokern.experiments.worker import StoppedError, Worker

Progress = Callable[[int, int, Cell | None], object]  # cells done, cells in all, the one that is begun


def _show_nothing(n_done: int, n_cells: int, cell: Cell | None) -> None:
    pass


def run(
    experiment: Experiment,
    plan: Plan,
    out: Path | None = None,
    on_progress: Progress = _show_nothing,
    *,
    fresh: bool = False,
) -> list[Record]:
    """Measure the cells of an experiment, and return their records in the order of the cells.

    A cell that came to no end, because of the time limit, an error or a lack of memory, has a record that says why.

    Parameters
    ----------
    experiment : Experiment
    plan : Plan
    out : Path or None, default=None
        Records are kept in ``<out>/<name>/records.jsonl`` as they come, and a cell that has one there is not measured
        again, unless it came to no end: then it is, after the time limit only with a larger one.
    on_progress : callable, optional
        Called with the number of cells done, of all cells, and the one that begins, or None at the end.
    fresh : bool, default=False
        Whether to forget the records that are there.
    """
    kept = Records(None if out is None else out / experiment.name / "records.jsonl", plan, fresh=fresh)
    cells = experiment.cells(plan)
    records = []
    with Worker() as worker:
        for n_done, cell in enumerate(cells):
            on_progress(n_done, len(cells), cell)
            records.append(kept.find(cell) or kept.add(cell, _measured(worker, experiment, cell, plan)))
    on_progress(len(cells), len(cells), None)
    return records


def _measured(worker: Worker, experiment: Experiment, cell: Cell, plan: Plan) -> dict[str, Any]:
    try:
        return worker.measure(experiment.measure, cell, plan)
    except StoppedError as why:
        return {"stopped": str(why)}
