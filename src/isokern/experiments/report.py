"""Write results as CSV, Markdown and PNG, and the report on all experiments."""

from __future__ import annotations

import importlib.metadata
import platform
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import isokern
from isokern.experiments.experiment import Plan, Result, Verdict
from isokern.experiments.figures import summary
from isokern.experiments.plan import available
from isokern.experiments.settings import BATCH_DATASETS, GENERATED, ROWS, TOLERANCE
from isokern.experiments.shortfalls import shortfalls
from isokern.experiments.tables import accuracy_text, as_csv, as_texts, having
from isokern.files import replacing

_DPI = 150
_PLACES = {  # the table or figure of the paper that an experiment repeats
    "feature-map-size": "Table 1",
    "kernel-shape": "Figure 1",
    "contours": "Figure 2",
    "datasets": "Table 4",
    "online": "Figure 3",
    "primal-dual": "the text below Figure 3",
    "dot-product": "Figure 4",
    "batch": "Table 5",
    "effect-of-t": "Figure 5",
    "gpu": "Table 6",
    "svm": "Table 7",
    "additive": "Table 8",
}
OUTCOMES = {True: "Confirmed", False: "Not confirmed", None: "Not judged"}


def write(result: Result, out: Path) -> None:
    """Write the table as CSV, the result as Markdown and the figure as PNG to a folder with the result's name."""
    folder = out / result.name
    folder.mkdir(parents=True, exist_ok=True)
    _write_figure(result.figure, folder / f"{result.name}.png")
    _write_text(folder / f"{result.name}.csv", as_csv(result.table))
    _write_text(folder / f"{result.name}.md", _page(_section(result, "")))


def write_report(results: Sequence[Result], plan: Plan, out: Path) -> None:
    """Write report.md beside the folders of the results: all verdicts, then each result; and summary.png for batch."""
    has_summary = _write_summary(results, out / "summary.png")
    _write_text(out / "report.md", _page(_report(results, plan, has_summary)))


def _write_summary(results: Sequence[Result], path: Path) -> bool:
    """Draw the summary if accuracies were measured and matplotlib is installed; return whether it was drawn."""
    measured = [record for result in results if result.name == "batch" for record in having(result.records, "accuracy")]
    try:
        figure = summary(measured) if measured else None
    except ImportError:
        figure = None
    _write_figure(figure, path)
    return figure is not None


def _write_figure(figure: Any, path: Path) -> None:
    """Write a figure, or delete that of an earlier run."""
    if figure is None:
        path.unlink(missing_ok=True)
        return
    with replacing(path) as file:
        figure.savefig(file, format="png", dpi=_DPI)


def _write_text(path: Path, text: str) -> None:
    with replacing(path) as file:
        file.write(text.encode())


def _page(blocks: Iterable[str]) -> str:
    return "\n\n".join(blocks) + "\n"


def _report(results: Sequence[Result], plan: Plan, has_summary: bool) -> Iterator[str]:
    yield "# The paper's tables and figures, measured again"
    if has_summary:
        yield "![Accuracy against time, all methods on all data sets](summary.png)"
    yield "## Claims of the paper"
    yield (
        f"{_counts(results, is_papers=True)} A claim is confirmed if its rule holds on every data set that was "
        "measured. The rule is in the claim's section; its threshold is ours where the paper states none. A difference "
        "of accuracies counts only if chance hardly explains it: the standard error of an accuracy p on n test rows is "
        "sqrt(p (1 - p) / n), that of a difference the root of the sum of both squares."
    )
    yield _claims(results, is_papers=True)
    yield "## Further claims"
    yield (
        f"{_counts(results, is_papers=False)} The paper does not make these. They compare with rivals that set lambda "
        "from the data, count what the paper leaves out, or check the files."
    )
    yield _claims(results, is_papers=False)
    yield from _below_published(results, plan)
    yield "## Data and machine"
    yield markdown_table(("data set", "available", "times from"), _data(results, plan))
    yield markdown_table(("", ""), _circumstances(plan))
    for result in results:
        yield from _section(result, f"{result.name}/")


def _counts(results: Sequence[Result], *, is_papers: bool) -> str:
    holds = [verdict.holds for result in results for verdict in result.verdicts if verdict.is_papers == is_papers]
    numbers = f"{holds.count(True)} confirmed, {holds.count(False)} not confirmed"
    return f"{numbers}, {holds.count(None)} not judged." if None in holds else f"{numbers}."


def _claims(results: Sequence[Result], *, is_papers: bool) -> str:
    rows = [
        (
            f"[{result.name}](#{result.name})",
            _PLACES.get(result.name, ""),
            _escape(verdict.claim),
            _outcome(verdict),
            _escape(_found(verdict)),
        )
        for result in results
        for verdict in result.verdicts
        if verdict.is_papers == is_papers
    ]
    return markdown_table(("experiment", "in the paper", "claim", "verdict", "numbers"), rows)


def _below_published(results: Sequence[Result], plan: Plan) -> Iterator[str]:
    """Yield the accuracies of Isolation Kernels that are lower than the published ones, with the causes."""
    n_compared, rows = 0, []
    for result in results:
        found, n = shortfalls(result.name, result.records, plan)
        n_compared += n
        for one in found:
            error = accuracy_text(one.accuracy.standard_error)
            here, published = f"{accuracy_text(one.accuracy.value)} ± {error}", accuracy_text(one.published, 2)
            names = map(_escape, (one.dataset, one.method))
            rows.append((f"[{result.name}](#{result.name})", *names, here, published, _escape(one.causes)))
    if n_compared:
        yield "## Isolation Kernel below the published accuracy"
        yield (
            f"{len(rows)} of {n_compared} accuracies are lower than the published ones by more than {TOLERANCE}; up to "
            "there, rounding explains it. The standard error of the test set follows ±. The last column has possible "
            "causes, as far as the records tell: rows, chance, seeds and psi."
        )
    if rows:
        yield markdown_table(("experiment", "data set", "method", "here", "paper", "possible causes"), rows)


def _section(result: Result, link: str) -> Iterator[str]:
    """Yield the blocks on a result; ``link`` leads from the page to the folder with the picture."""
    yield f'<a id="{result.name}"></a>'
    yield f"## {_escape(result.title)}"
    judged = [(_outcome(v), _escape(v.claim), _escape(v.rule), _escape(_found(v))) for v in result.verdicts]
    yield markdown_table(("verdict", "claim", "rule", "numbers"), judged)
    if result.table.rows:
        columns = zip(*result.table.rows, strict=True)
        are_numbers = [any(isinstance(value, int | float) for value in column) for column in columns]
        texts = [list(map(_escape, row)) for row in (result.table.columns, *as_texts(result.table))]
        yield markdown_table(texts[0], texts[1:], are_numbers)
    if result.figure is not None:
        yield f"![{_escape(result.title)}]({link}{result.name}.png)"
    if notes := [*_state(result), *result.table.notes, *result.notes, *_stopped(result)]:
        yield "\n".join(f"- {_escape(note.rstrip('.'))}." for note in notes)


def _state(result: Result) -> Iterator[str]:
    """Yield how many measurements are missing, and where times come from."""
    if result.n_open:
        yield f"Measurements still to be made: {result.n_open:,}. The same command makes them"
    if result.machines:
        names: dict[str, list[str]] = defaultdict(list)
        for dataset, machine in result.machines:
            names[machine or "not recorded"].append(dataset)
        groups = (f"{', '.join(datasets)}: {machine}" for machine, datasets in names.items())
        yield f"Times of a data set come from one CPU. {'; '.join(groups)}"
    if result.n_untimed:
        yield f"Cells whose times are left out, because only another CPU measured them: {result.n_untimed:,}"


def markdown_table(
    columns: Sequence[str], rows: Iterable[Sequence[str]], are_numbers: Sequence[bool] | None = None
) -> str:
    """Return cells in Markdown as a table; columns of numbers are aligned right."""
    rules = ["---:" if is_right else "---" for is_right in are_numbers or [False] * len(columns)]
    return "\n".join(f"| {' | '.join(line)} |" for line in (columns, rules, *rows))


def _escape(text: str) -> str:
    """Return text in which Markdown sees no markup."""
    return re.sub(r"([\\|_*<])", r"\\\1", text)


def _outcome(verdict: Verdict) -> str:
    text = OUTCOMES[verdict.holds]
    return text if verdict.holds is None else f"**{text}**"


def _found(verdict: Verdict) -> str:
    return f"{verdict.found}. {verdict.why}" if verdict.why else verdict.found


def _stopped(result: Result) -> Iterator[str]:
    """Yield a line for each measurement that was stopped."""
    for record in result.records:
        if "stopped" in record:
            hidden = {"stopped", "time_limit", "seed", "source", "search"}
            values = (str(value) for name, value in record.items() if name not in hidden)
            yield f"Stopped: {', '.join(values)} (seed {record.get('seed', 0)}): {record['stopped']}"


def _data(results: Sequence[Result], plan: Plan) -> Iterator[tuple[str, str, str]]:
    """Yield for each data set whether it is available, and the processors of its times with the experiments."""
    for name, source in available(plan, BATCH_DATASETS).items():
        there = "generated" if name in GENERATED else "yes" if source == name else f"no; {source} stands in"
        users: dict[str, list[str]] = defaultdict(list)
        for result in results:
            for _, machine in filter(lambda pair: pair[0] == name, result.machines):
                users[machine or "not recorded"].append(result.name)
        machines = "; ".join(f"{machine}: {', '.join(names)}" for machine, names in users.items())
        yield name, "no" if source is None else there, _escape(machines)


def _circumstances(plan: Plan) -> Iterator[tuple[str, str]]:
    n_train, n_test = ROWS["quick"]
    rows = f": at most {n_train:,} training and {n_test:,} test rows, fewer where noted"
    names = "" if plan.datasets is None else f" --datasets {','.join(plan.datasets)}"
    options = f"--scale {plan.scale} --seeds {plan.n_seeds} --time-limit {plan.time_limit:g}{names}"
    packages = [f"{package} {importlib.metadata.version(package)}" for package in ("numpy", "scipy", "scikit-learn")]
    versions = [f"isokern {isokern.__version__}", f"Python {platform.python_version()}", *packages]
    yield "scale", plan.scale + (rows if plan.is_quick else ": the paper's sizes, as far as the time limit allows")
    yield "seeds", str(plan.n_seeds)
    yield "time limit", f"{plan.time_limit:g} s per measurement; measurements of earlier runs may have had another"
    yield "command", f"isokern reproduce all {options}"
    yield "versions", ", ".join(versions)
    yield "CPU", "that of each data set's times is in the table above; each measurement runs in one thread"
