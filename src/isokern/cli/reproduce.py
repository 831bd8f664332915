"""``isokern reproduce``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from isokern import experiments
from isokern.cli._options import Quiet, panel
from isokern.cli._show import errors, print_remark, results
from isokern.experiments import Result, runner
from isokern.experiments.experiment import Cell, is_stopped
from isokern.experiments.plan import is_used, make_plan
from isokern.experiments.report import OUTCOMES, write_report
from isokern.experiments.searches import searches_file
from isokern.experiments.worker import Worker

_files, _how_much = panel("Files"), panel("How much")
_STYLES = {True: "green", False: "red", None: "yellow"}

Name = Annotated[
    str, typer.Argument(help=f"all, or one of: {', '.join(experiments.NAMES)}.", metavar="NAME", show_default=False)
]
Data = Annotated[
    str | None,
    _files(help="Folder of the data sets. Default: $ISOKERN_DATA. Nothing is downloaded.", show_default=False),
]
Out = Annotated[str, _files(help="Folder for the results. Measurements that it already has are not repeated.")]
Fresh = Annotated[bool, _files("--fresh", help="Delete earlier measurements first.")]
ReportOnly = Annotated[bool, _files("--report-only", help="Measure nothing; write what earlier measurements give.")]
Scale = Annotated[str, _how_much(help="quick: samples of rows; full: the paper's sizes.")]
Datasets = Annotated[
    str | None, _how_much(help="Use only these data sets, by the paper's names, as a,b,c.", show_default=False)
]
Seeds = Annotated[
    int, _how_much(min=1, help="Number of runs; tables show their mean and range. One if the first takes 10 minutes.")
]
TimeLimit = Annotated[
    float | None,
    _how_much(help="CPU seconds per measurement. Default: 120 at quick scale, 3600 at full scale.", show_default=False),
]


def reproduce(
    name: Name,
    *,
    data: Data = None,
    out: Out = "reproduced",
    fresh: Fresh = False,
    report_only: ReportOnly = False,
    scale: Scale = "quick",
    datasets: Datasets = None,
    seeds: Seeds = 1,
    time_limit: TimeLimit = None,
    quiet: Quiet = False,
) -> None:
    """Reproduce the paper's tables and figures, and compare them with the published numbers.

    An interrupted run resumes. The whole paper takes many hours: isokern reproduce all --scale full --seeds 3

    Example: isokern reproduce all --data data --out results
    """
    if fresh and report_only:
        raise ValueError("--report-only needs the measurements that --fresh deletes; leave one of them out.")
    plan = make_plan(data, scale=scale, datasets=datasets, n_seeds=seeds, time_limit=time_limit)
    chosen = [experiments.find(one) for one in (experiments.NAMES if name == "all" else [name])]
    if name == "all":
        chosen = [experiment for experiment in chosen if is_used(experiment, plan)]
    if fresh:
        searches_file(Path(out)).unlink(missing_ok=True)
    done: list[Result] = []
    options = {"fresh": fresh, "only_report": report_only}
    try:
        with closing(Worker()) as worker:
            for experiment in chosen:
                left = [other.name for other in chosen[len(done) + 1 :]]
                with _progress(experiment.name, left, quiet=quiet) as show:
                    done.append(runner.run(experiment, plan, Path(out), show, **options, worker=worker))
                _print_result(done[-1])
                if name == "all":
                    write_report(done, plan, Path(out))  # after each experiment, for interrupted runs
    except KeyboardInterrupt:
        print_remark("stopped", f"measurements are kept in {out}; run the same command to resume.", "yellow")
        raise typer.Exit(130) from None
    results.print(Text(f"See {Path(out) / ('report.md' if name == 'all' else name)}"), soft_wrap=True)
    if any(experiment.draw for experiment in chosen) and find_spec("matplotlib") is None:
        results.print("For figures, pip install isokern[plot] and repeat the command", markup=False)


def _print_result(result: Result) -> None:
    results.print(Text(f"{result.name}: {result.title}", style="bold"), soft_wrap=True)
    for verdict in result.verdicts:
        outcome = (OUTCOMES[verdict.holds], _STYLES[verdict.holds])
        results.print(Text.assemble("  ", outcome, f": {verdict.claim} ({verdict.found})"), soft_wrap=True)
    if result.missing:
        results.print(Text(f"  Missing data sets: {', '.join(result.missing)}"), soft_wrap=True)
    if n_stopped := sum(map(is_stopped, result.records)):
        results.print(Text(f"  {n_stopped} of {len(result.records)} measurements were stopped; see the notes"))


@contextmanager
def _progress(name: str, left: list[str], *, quiet: bool) -> Iterator[runner.Progress]:
    """Show progress during the block; yield a function that shows the current measurement and what comes after it."""
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
