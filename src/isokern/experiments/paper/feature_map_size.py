"""How many features the maps of kernels have, counted on maps of real rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.preprocessing import PolynomialFeatures

from isokern import IsolationKernel
from isokern.experiments import settings
from isokern.experiments.datasets import cells_of, load_rows
from isokern.experiments.experiment import Cell, Experiment, Plan, Record, Table, Verdict
from isokern.experiments.measuring import Stopwatch
from isokern.experiments.showing import Outcome, datasets_in, having, labels, select, stand_in_notes, tally

_PARTITIONINGS = ("tree", "voronoi")
_PAIRS = 100  # rows whose similarities are compared with products of their maps
_EXACT = 1e-9  # and by less than what they may differ


def cells(plan: Plan) -> list[Cell]:
    """List the data sets at hand, with trees and Voronoi cells, few and many."""
    once = replace(plan, n_seeds=1)  # counts do not differ from seed to seed
    return cells_of(once, settings.DATASETS, partitioning=_PARTITIONINGS, psi=settings.FEATURE_MAP_CELLS)


def measure(cell: Cell, plan: Plan) -> dict[str, Any]:
    """Map rows, and count features: all there are, and those of each row that are not 0."""
    data = load_rows(cell["dataset"], plan, cell["seed"])
    psi = min(cell["psi"], len(data.y_train))
    X = data.X_test[: settings.FEATURE_MAP_ROWS]
    kernel = IsolationKernel(cell["partitioning"], settings.N_PARTITIONINGS, psi, random_state=cell["seed"])
    watch = Stopwatch()
    mapped = kernel.fit(data.X_train).transform(X)
    seconds = watch.seconds()
    n_nonzero = np.diff(mapped.indptr)
    products = (mapped[:_PAIRS] @ mapped[:_PAIRS].T).toarray()
    return {
        **seconds,
        "n_features_in": X.shape[1],
        "n_polynomial": int(PolynomialFeatures(settings.POLYNOMIAL_DEGREE).fit(X[:1]).n_output_features_),
        "n_partitionings": settings.N_PARTITIONINGS,
        "n_cells": psi,
        "n_features": mapped.shape[1],
        "fewest_nonzero": int(n_nonzero.min()),
        "most_nonzero": int(n_nonzero.max()),
        "kernel_error": float(np.abs(products - kernel.similarity(X[:_PAIRS])).max()),
    }


def table(records: Sequence[Record], plan: Plan) -> Table:
    """Put the sizes of maps beside the published formulas."""
    named = labels(plan, settings.DATASETS)
    rows = [_row(label, having(select(records, dataset=name), "n_features")) for name, label in named.items()]
    columns = ["data set", "d", "Gaussian", "Gaussian, paper", f"Polynomial, h = {settings.POLYNOMIAL_DEGREE}"]
    columns += ["Polynomial, paper"]
    for psi in settings.FEATURE_MAP_CELLS:
        columns += [f"Isolation, psi = {psi:,}: features", f"psi = {psi:,}: nonzero in each row"]
    notes = stand_in_notes(plan, settings.DATASETS)
    if plan.is_quick:
        notes.append(f"Quick scale: maps are drawn from at most {settings.ROWS['quick'][0]:,} rows.")
    return Table((*columns, "Isolation, paper"), rows, tuple(notes))


def _row(label: str, measured: list[Record]) -> tuple[Any, ...]:
    first = measured[0] if measured else {}
    published = settings.FEATURE_MAP_SIZE_PUBLISHED
    infinite = published["Gaussian"] if measured else None
    row = [label, first.get("n_features_in"), infinite, published["Gaussian"], first.get("n_polynomial")]
    row += [published["Polynomial"]]
    for psi in settings.FEATURE_MAP_CELLS:
        of_psi = select(measured, psi=psi)
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
    maps = "of trees and of Voronoi cells, few and many, on every data set"
    return [
        tally(
            "The Isolation Kernel's map has t psi features, t of them nonzero in a row for any number of columns",
            f"every row meets both counts, with maps {maps}",
            _outcomes(records, _is_of_size),
            records,
        ),
        tally(
            "The map is exact, not an approximation",
            f"products of the maps of {_PAIRS} rows are their similarities, to less than {_EXACT:g}, with maps {maps}",
            _outcomes(records, lambda record: record["kernel_error"] < _EXACT),
            records,
        ),
    ]


def _is_of_size(record: Record) -> bool:
    t = record["n_partitionings"]
    return record["n_features"] == t * record["n_cells"] and record["fewest_nonzero"] == record["most_nonzero"] == t


def _outcomes(records: Sequence[Record], is_met: Callable[[Record], bool]) -> dict[str, Outcome]:
    measured, outcomes = having(records, "n_features"), {}
    for dataset in datasets_in(measured):
        maps = select(measured, dataset=dataset)
        failed = [f"{record['partitioning']}, psi = {record['psi']:,}" for record in maps if not is_met(record)]
        outcomes[dataset] = not failed, "; ".join(failed) or f"{len(maps)} maps"
    return outcomes


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
