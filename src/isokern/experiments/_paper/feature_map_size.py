"""How many features the maps of kernels have, counted on maps of real rows."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.preprocessing import PolynomialFeatures

from isokern import IsolationKernel
from isokern.experiments import settings
from isokern.experiments._datasets import QUICK_TRAIN, at_hand, load_rows, row_label, stand_in_notes
from isokern.experiments._experiment import Cell, Experiment, Plan, Record, Table, Verdict

_PARTITIONINGS = ("tree", "voronoi")
_PAIRS = 100  # rows whose similarities are compared with products of their maps


def cells(plan: Plan) -> list[Cell]:
    """List the data sets at hand, with trees and Voronoi cells, few and many."""
    return [
        {"dataset": name, "partitioning": partitioning, "psi": psi}
        for name, source in at_hand(plan, settings.DATASETS).items()
        if source
        for partitioning in _PARTITIONINGS
        for psi in settings.FEATURE_MAP_CELLS
    ]


def measure(cell: Cell, plan: Plan) -> dict[str, Any]:
    """Map rows, and count features: all there are, and those of each row that are not 0."""
    data = load_rows(cell["dataset"], plan, seed=0)
    psi = min(cell["psi"], len(data.y_train))
    X = data.X_test[: settings.FEATURE_MAP_ROWS]
    kernel = IsolationKernel(cell["partitioning"], settings.N_PARTITIONINGS, psi, random_state=0)
    elapsed, cpu = time.perf_counter(), time.process_time()
    mapped = kernel.fit(data.X_train).transform(X)
    seconds = {"seconds": time.perf_counter() - elapsed, "cpu_seconds": time.process_time() - cpu}
    n_nonzero = np.diff(mapped.indptr)
    products = (mapped[:_PAIRS] @ mapped[:_PAIRS].T).toarray()
    return {
        "n_features_in": X.shape[1],
        "n_polynomial": int(PolynomialFeatures(settings.POLYNOMIAL_DEGREE).fit(X[:1]).n_output_features_),
        "n_partitionings": settings.N_PARTITIONINGS,
        "n_cells": psi,
        "n_features": mapped.shape[1],
        "fewest_nonzero": int(n_nonzero.min()),
        "most_nonzero": int(n_nonzero.max()),
        "kernel_error": float(np.abs(products - kernel.similarity(X[:_PAIRS])).max()),
        **seconds,
    }


def table(records: Sequence[Record], plan: Plan) -> Table:
    """Put the sizes of maps beside the published formulas."""
    found = at_hand(plan, settings.DATASETS)
    rows = [
        _row(row_label(name, source), [r for r in records if r["dataset"] == name]) for name, source in found.items()
    ]
    columns = ["data set", "d", "Gaussian", "Gaussian, paper", f"Polynomial, h = {settings.POLYNOMIAL_DEGREE}"]
    columns += ["Polynomial, paper"]
    for psi in settings.FEATURE_MAP_CELLS:
        columns += [f"Isolation, psi = {psi:,}: features", f"psi = {psi:,}: nonzero in each row"]
    notes = stand_in_notes(found) + [f"Quick scale: maps are drawn from at most {QUICK_TRAIN:,} rows."] * plan.is_quick
    return Table((*columns, "Isolation, paper"), rows, tuple(notes))


def _row(label: str, records: list[Record]) -> tuple[Any, ...]:
    measured = [record for record in records if "stopped" not in record]
    first = measured[0] if measured else {}
    published = settings.FEATURE_MAP_SIZE_PUBLISHED
    infinite = published["Gaussian"] if measured else None
    row = [label, first.get("n_features_in"), infinite, published["Gaussian"], first.get("n_polynomial")]
    row += [published["Polynomial"]]
    for psi in settings.FEATURE_MAP_CELLS:
        of_psi = [record for record in measured if record["psi"] == psi]
        row += [_one_or_range(of_psi, "n_features", "n_features")]
        row += [_one_or_range(of_psi, "fewest_nonzero", "most_nonzero")]
    return (*row, published["Isolation"])


def _one_or_range(records: list[Record], low: str, high: str) -> int | str | None:
    """Return a number on which trees and Voronoi cells, and all rows, agree, or from where to where it goes."""
    if not records:
        return None
    least, most = min(record[low] for record in records), max(record[high] for record in records)
    return least if least == most else f"{least:,} to {most:,}"


def verdicts(records: Sequence[Record]) -> list[Verdict]:
    """Judge the size of the Isolation Kernel's map, and whether it is exact."""
    measured = [record for record in records if "stopped" not in record]
    return [
        _judged(
            "The Isolation Kernel's map has t psi features, t of them nonzero in a row for any number of columns.",
            "On every data set, for trees and Voronoi cells, few and many, both counts are met by every row.",
            {_name(record): _is_of_size(record) for record in measured},
        ),
        _judged(
            "The map is exact, not an approximation.",
            f"On every data set, products of the maps of {_PAIRS} rows are their similarities, to less than 1e-9.",
            {_name(record): record["kernel_error"] < 1e-9 for record in measured},
        ),
    ]


def _is_of_size(record: Record) -> bool:
    t = record["n_partitionings"]
    return record["n_features"] == t * record["n_cells"] and record["fewest_nonzero"] == record["most_nonzero"] == t


def _name(record: Record) -> str:
    return f"{record['dataset']} ({record['partitioning']}, psi = {record['psi']})"


def _judged(claim: str, rule: str, outcomes: dict[str, bool]) -> Verdict:
    if not outcomes:
        return Verdict(claim, rule, None, "nothing was measured")
    failed = [name for name, holds in outcomes.items() if not holds]
    found = f"on {len(outcomes) - len(failed)} of {len(outcomes)} maps"
    return Verdict(claim, rule, not failed, found + (f"; not on {', '.join(failed)}" if failed else ""))


EXPERIMENT = Experiment(
    name="feature-map-size",
    title="Sizes of the feature maps of kernels",
    cells=cells,
    measure=measure,
    table=table,
    verdicts=verdicts,
    datasets=settings.DATASETS,
    notes=(
        f"Isolation Kernels with t = {settings.N_PARTITIONINGS}, of trees and of Voronoi cells, drawn from training "
        f"rows; {settings.FEATURE_MAP_ROWS:,} test rows were mapped. A Gaussian kernel has no finite map to count.",
    ),
)
