"""How many rows and columns the data sets have, and how many of their values are not 0."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from isokern.experiments import settings
from isokern.experiments._datasets import at_hand, load_whole, row_label, stand_in_notes
from isokern.experiments._experiment import Cell, Experiment, Plan, Record, Table, Verdict

_MEASURED = ("n_train", "n_test", "n_features", "nonzero")
_COLUMNS = ("training rows", "test rows", "columns", "nonzero %")


def cells(plan: Plan) -> list[Cell]:
    """List the data sets at hand."""
    return [{"dataset": name} for name, source in at_hand(plan, settings.DATASETS).items() if source]


def measure(cell: Cell, plan: Plan) -> dict[str, Any]:
    """Read a data set, and count."""
    elapsed, cpu = time.perf_counter(), time.process_time()
    data = load_whole(cell["dataset"], plan)
    seconds = {"seconds": time.perf_counter() - elapsed, "cpu_seconds": time.process_time() - cpu}
    (n_train, n_features), n_test = data.X_train.shape, data.X_test.shape[0]
    n_nonzero = sum(_count_nonzero(X) for X in (data.X_train, data.X_test))
    return {
        "source": data.name,
        "n_train": n_train,
        "n_test": n_test,
        "n_features": n_features,
        "nonzero": 100 * n_nonzero / ((n_train + n_test) * n_features),
        **seconds,
    }


def _count_nonzero(X: Any) -> int:
    return int(np.count_nonzero(X.data if sparse.issparse(X) else X))


def table(records: Sequence[Record], plan: Plan) -> Table:
    """Put counted and published numbers side by side."""
    found, counted = at_hand(plan, settings.DATASETS), {record["dataset"]: record for record in records}
    rows = []
    for name, source in found.items():
        ours = [counted.get(name, {}).get(key) for key in _MEASURED]
        pairs = zip(ours, settings.DATASETS_PUBLISHED[name], strict=True)
        seconds = counted.get(name, {}).get("seconds")
        rows.append((row_label(name, source), *(number for pair in pairs for number in pair), seconds))
    columns = [title for column in _COLUMNS for title in (column, f"{column}, paper")]
    return Table(("data set", *columns, "reading, seconds"), rows, tuple(stand_in_notes(found)))


def verdicts(records: Sequence[Record]) -> list[Verdict]:
    """Judge whether the files are the paper's, and whether they are as diverse as it wants them."""
    counted = [record for record in records if "stopped" not in record]
    return [_same(counted), _diverse(counted)]


def _same(counted: list[Record]) -> Verdict:
    claim = "The files at hand are those that the paper describes."
    rule = (
        "Rows and columns are equal, and the share of nonzero values is, to within one in the last published digit; "
        "stand-ins do not count."
    )
    officials = [record for record in counted if record["source"] == record["dataset"]]
    if not officials:
        return Verdict(claim, rule, None, "none of the paper's own files is at hand")
    different = [text for record in officials for text in _differences(record)]
    found = f"on {len(officials) - len(different)} of {len(officials)} data sets"
    return Verdict(claim, rule, not different, "; ".join([found, *(f"not on {text}" for text in different)]))


def _differences(record: Record) -> list[str]:
    """Return in words what is not as published, one text at most."""
    published, ours = settings.DATASETS_PUBLISHED[record["dataset"]], tuple(record[key] for key in _MEASURED)
    last_digit = 10.0 ** -len(repr(published[-1]).partition(".")[2])
    if ours[:-1] == published[:-1] and abs(ours[-1] - published[-1]) < last_digit:
        return []
    said = (", ".join(f"{number:,.7g}" for number in numbers) for numbers in (ours, published))
    return [f"{record['dataset']} ({' against '.join(said)})"]


def _diverse(counted: list[Record]) -> Verdict:
    claim = "The data sets are diverse: small and large, of few and of many columns, sparse and dense."
    rule = (
        "Of those at hand, the most rows and the most columns are at least ten times the least, and some, but not all, "
        "have less than 1 % of nonzero values."
    )
    if len(counted) < 2:
        return Verdict(claim, rule, None, f"{len(counted)} at hand, two are needed")
    rows = [record["n_train"] + record["n_test"] for record in counted]
    columns = [record["n_features"] for record in counted]
    n_sparse = sum(record["nonzero"] < 1 for record in counted)
    holds = all(max(sizes) >= 10 * min(sizes) for sizes in (rows, columns)) and 0 < n_sparse < len(counted)
    found = (
        f"{min(rows):,} to {max(rows):,} rows, {min(columns):,} to {max(columns):,} columns, "
        f"{n_sparse} of {len(counted)} sparse"
    )
    return Verdict(claim, rule, holds, found)


EXPERIMENT = Experiment(
    name="datasets",
    title="Properties of the data sets",
    cells=cells,
    measure=measure,
    table=table,
    verdicts=verdicts,
    datasets=settings.DATASETS,
    notes=("Counted from the files, all of their rows at either scale. Reading includes unpacking.",),
)
