"""One page on all experiments: what bears the paper out, what does not, and the numbers."""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Iterator, Sequence
from pathlib import Path

import joblib

import isokern
from isokern.experiments.datasets import at_hand
from isokern.experiments.experiment import Plan
from isokern.experiments.page import Block, Grid, Heading, Link, Mark, Paragraph, html_page, markdown_page
from isokern.experiments.result import Result, outcome, section
from isokern.experiments.settings import DATASETS, N_THREADS, ROWS
from isokern.files import replacing

TITLE = "The paper, measured again"


def write_report(results: Sequence[Result], plan: Plan, out: Path) -> None:
    """Write report.html, which needs no other file, and report.md, beside the results' folders."""
    blocks = list(_page(results, plan, out))
    for name, text in (("report.html", html_page(blocks, TITLE)), ("report.md", markdown_page(blocks))):
        with replacing(out / name) as file:
            file.write(text.encode())


def _page(results: Sequence[Result], plan: Plan, out: Path) -> Iterator[Block]:
    yield Heading(TITLE, level=1)
    yield Paragraph(_counted(results))
    yield Grid(("experiment", "claim", "verdict", "numbers"), [row for result in results for row in _summary(result)])
    yield Heading("What it was measured on")
    yield Grid(("data set", "at hand"), [(name, text) for name, text in _data(plan)])
    yield Grid(("", ""), list(_circumstances(plan)))
    for result in results:
        yield from section(result, out / result.name, f"{result.name}/")


def _counted(results: Sequence[Result]) -> str:
    holds = [verdict.holds for result in results for verdict in result.verdicts]
    return (
        f"Claims of the paper that our numbers bear out: {holds.count(True)}; that they do not: {holds.count(False)}; "
        f"without anything to judge by: {holds.count(None)}. The rule for each stands with its table."
    )


def _summary(result: Result) -> Iterator[tuple[Link | str, str, Mark, str]]:
    for number, verdict in enumerate(result.verdicts):
        name = "" if number else Link(result.name, result.name)
        yield name, verdict.claim, Mark(outcome(verdict), verdict.holds), verdict.found


def _data(plan: Plan) -> Iterator[tuple[str, str]]:
    for name, source in at_hand(plan, DATASETS).items():
        yield name, "missing" if source is None else "yes" if source == name else f"no; {source} stands in for it"


def _circumstances(plan: Plan) -> Iterator[tuple[str, str]]:
    n_train, n_test = ROWS["quick"]
    rows = f": at most {n_train:,} training and {n_test:,} test rows, fewer where it says so"
    yield "scale", plan.scale + (rows if plan.is_quick else ": the paper's sizes, as far as the time limit allows")
    yield "seeds", str(plan.n_seeds)
    yield "time limit", f"{plan.time_limit:g} s for each measurement; those kept from earlier runs may have had another"
    yield "command", command(plan)
    yield "versions", ", ".join(_versions())
    yield "machine", f"{_processor()}, {joblib.cpu_count()} cores; measured with {N_THREADS} threads"


def command(plan: Plan) -> str:
    """Return the command that does the same, but for the folders."""
    names = "" if plan.datasets is None else f" --datasets {','.join(plan.datasets)}"
    return f"isokern reproduce all --scale {plan.scale} --seeds {plan.n_seeds} --time-limit {plan.time_limit:g}{names}"


def _versions() -> Iterator[str]:
    yield f"isokern {isokern.__version__}"
    yield f"Python {platform.python_version()}"
    for package in ("numpy", "scipy", "scikit-learn"):
        yield f"{package} {importlib.metadata.version(package)}"


def _processor() -> str:
    """Return the name of the processor, or of its kind where the system does not tell more."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.machine()
