"""How many rows and columns the data sets have, and how many of their values are not 0."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from isokern.experiments import settings
from isokern.experiments.datasets import cells_of, load_whole
from isokern.experiments.experiment import Cell, Experiment, Plan, Record, Table, Verdict
from isokern.experiments.measuring import Stopwatch
from isokern.experiments.showing import Outcome, having, labels, stand_in_notes, tally

_MEASURED = ("n_train", "n_test", "n_features", "nonzero")
_COLUMNS = ("training rows", "test rows", "columns", "nonzero %")


def cells(plan: Plan) -> list[Cell]:
    """List the data sets at hand."""
    return cells_of(replace(plan, n_seeds=1), settings.DATASETS)  # counts do not differ from seed to seed


def measure(cell: Cell, plan: Plan) -> dict[str, Any]:
    """Read a data set, and count."""
    watch = Stopwatch()
    data = load_whole(cell["dataset"], plan)
    seconds = watch.seconds()
    (n_train, n_features), n_test = data.X_train.shape, data.X_test.shape[0]
    n_nonzero = sum(_count_nonzero(X) for X in (data.X_train, data.X_test))
    return {
        **seconds,
        "n_train": n_train,
        "n_test": n_test,
        "n_features": n_features,
        "nonzero": 100 * n_nonzero / ((n_train + n_test) * n_features),
    }


def _count_nonzero(X: Any) -> int:
    return int(np.count_nonzero(X.data if sparse.issparse(X) else X))


def table(records: Sequence[Record], plan: Plan) -> Table:
    """Put counted and published numbers side by side."""
    counted = {record["dataset"]: record for record in records}
    rows = []
    for name, label in labels(plan, settings.DATASETS).items():
        ours = [counted.get(name, {}).get(key) for key in _MEASURED]
        pairs = zip(ours, settings.DATASETS_PUBLISHED[name], strict=True)
        seconds = counted.get(name, {}).get("seconds")
        rows.append((label, *(number for pair in pairs for number in pair), seconds))
    columns = [title for column in _COLUMNS for title in (column, f"{column}, paper")]
    notes = stand_in_notes(plan, settings.DATASETS)
    return Table(("data set", *columns, "reading, seconds"), rows, tuple(notes))


def verdicts(records: Sequence[Record]) -> list[Verdict]:
    """Judge whether the files are the paper's, and whether they are as diverse as it wants them."""
    counted = having(records, "n_train")
    officials = [record for record in counted if record["source"] == record["dataset"]]
    return [
        tally(
            "The files at hand are those that the paper describes",
            "rows and columns equal, and the share of nonzero values to within one in the last published digit, on "
            "every data set that is no stand-in",
            {record["dataset"]: _compare(record) for record in officials},
            records,
            "none of the paper's own files is at hand",
        ),
        _diverse(counted),
    ]


def _compare(record: Record) -> Outcome:
    published, ours = settings.DATASETS_PUBLISHED[record["dataset"]], tuple(record[key] for key in _MEASURED)
    last_digit = 10.0 ** -len(repr(published[-1]).partition(".")[2])
    if ours[:-1] == published[:-1] and abs(ours[-1] - published[-1]) < last_digit:
        return True, "as published"
    said = (", ".join(f"{number:,.7g}" for number in numbers) for numbers in (ours, published))
    return False, " against ".join(said)


def _diverse(counted: list[Record]) -> Verdict:
    claim = "The data sets are diverse: small and large, of few and of many columns, sparse and dense"
    rule = (
        "of those at hand, the most rows and the most columns are at least ten times the least, and some, but not all, "
        "have less than 1 % of nonzero values"
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
