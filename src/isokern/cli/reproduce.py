"""``isokern reproduce``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from isokern import experiments
from isokern.cli._options import Quiet, panel
from isokern.cli._show import errors, print_remark, results
from isokern.experiments import Experiment, Plan, Result
from isokern.experiments.experiment import Cell, is_stopped
from isokern.experiments.plan import check_use, is_used, make_plan
from isokern.experiments.report import write_report
from isokern.experiments.result import conclude, outcome, write
from isokern.experiments.runner import run

_files, _how_much = panel("Files"), panel("How much")
_STYLES = {True: "green", False: "red", None: "yellow"}

Name = Annotated[
    str, typer.Argument(help=f"all, or one of: {', '.join(experiments.NAMES)}.", metavar="NAME", show_default=False)
]
Data = Annotated[
    str | None,
    _files(
        help="The folder with the data sets; else ISOKERN_DATA names it. Nothing is downloaded.", show_default=False
    ),
]
Out = Annotated[str, _files(help="Where to write; what was measured there before is not measured again.")]
Fresh = Annotated[bool, _files("--fresh", help="Forget what was measured there before.")]
Scale = Annotated[str, _how_much(help="quick: samples of rows; full: the paper's sizes.")]
Datasets = Annotated[str | None, _how_much(help="Only these, by the paper's names, as a,b,c.", show_default=False)]
Seeds = Annotated[int, _how_much(min=1, help="How often to measure; tables show mean and spread.")]
TimeLimit = Annotated[
    float | None,
    _how_much(help="Seconds that one cell may take: 120 at quick scale, else 3600, unless given.", show_default=False),
]


def reproduce(
    name: Name,
    *,
    data: Data = None,
    out: Out = "reproduced",
    fresh: Fresh = False,
    scale: Scale = "quick",
    datasets: Datasets = None,
    seeds: Seeds = 1,
    time_limit: TimeLimit = None,
    quiet: Quiet = False,
) -> None:
    """Measure the paper's tables and figures again, and put ours beside the published numbers.

    Example: isokern reproduce all --data data --out results
    """
    plan = make_plan(data, scale=scale, datasets=datasets, n_seeds=seeds, time_limit=time_limit)
    chosen, folder = _chosen(name, plan), Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    done: list[Result] = []
    try:
        for experiment in chosen:
            left = [other.name for other in chosen[len(done) + 1 :]]
            with _progress(experiment.name, left, quiet=quiet) as show:
                records = run(experiment, plan, folder, show, fresh=fresh)
            done.append(conclude(experiment, records, plan))
            write(done[-1], folder)
            _print_result(done[-1])
            if name == "all":
                write_report(done, plan, folder)  # each time, lest an interrupted run has none
    except KeyboardInterrupt:
        print_remark("stopped", f"what was measured is in {out}; the same command goes on from there.", "yellow")
        raise typer.Exit(130) from None
    _print_end(name, out, chosen)


def _chosen(name: str, plan: Plan) -> list[Experiment]:
    """Return the experiments asked for; of all, those that have to do with the data sets asked for."""
    if name == "all":
        return [found for found in map(experiments.find, experiments.NAMES) if is_used(found, plan)]
    experiment = experiments.find(name)
    check_use(experiment, plan)
    return [experiment]


def _print_result(result: Result) -> None:
    results.print(Text(f"{result.name}: {result.title}", style="bold"), soft_wrap=True)
    for verdict in result.verdicts:
        said = Text.assemble("  ", (outcome(verdict), _STYLES[verdict.holds]), f": {verdict.claim} ({verdict.found})")
        results.print(said, soft_wrap=True)
    if result.missing:
        results.print(Text(f"  Not at hand: {', '.join(result.missing)}"), soft_wrap=True)
    if n_stopped := sum(map(is_stopped, result.records)):
        results.print(Text(f"  {n_stopped} of {len(result.records)} measurements were stopped; the notes say why"))


@contextmanager
def _progress(name: str, left: list[str], *, quiet: bool) -> Iterator[Callable[[int, int, Cell | None], None]]:
    """Give a function that shows which cell of an experiment is begun, and what is left."""
    columns = (
        SpinnerColumn(),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}", markup=False),
    )
    after = f"; then {', '.join(left)}" if left else ""
    with Progress(*columns, console=errors, transient=True, disable=quiet or not errors.is_terminal) as progress:
        task = progress.add_task(name, total=None)

        def show(n_done: int, n_cells: int, cell: Cell | None) -> None:
            now = ", ".join(str(value) for value in (cell or {}).values())
            progress.update(task, completed=n_done, total=n_cells, description=f"{name}: {now}{after}")

        yield show


def _print_end(name: str, out: str, chosen: list[Experiment]) -> None:
    where = Path(out) / ("report.html" if name == "all" else name)
    results.print(Text(f"See {where}"), soft_wrap=True)
    if any(experiment.draw for experiment in chosen):
        try:
            import matplotlib  # noqa: F401
        except ImportError:
            results.print(
                "There are no figures: they need pip install isokern[plot]; then run this again", markup=False
            )
