"""Count the rows and columns of the data sets, and the features of kernels' feature maps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.preprocessing import PolynomialFeatures

from isokern import IsolationKernel
from isokern.data import load_dataset
from isokern.experiments import settings
from isokern.experiments.claims import Claim, Outcome
from isokern.experiments.experiment import Cell, Experiment, Plan, Record, Table, Verdict
from isokern.experiments.measuring import load_rows
from isokern.experiments.plan import grid
from isokern.experiments.tables import datasets_in, having, labels, select, stand_in_notes

# -- datasets

_COUNTS = {"n_train": "training rows", "n_test": "test rows", "n_features": "columns", "nonzero": "nonzero %"}


def measure_datasets(cell: Cell, plan: Plan) -> dict[str, Any]:
    """Read a data set and count its rows, columns and nonzero values."""
    data = load_dataset(cell["source"], plan.folder, download=False)
    (n_train, n_features), n_test = data.X_train.shape, data.X_test.shape[0]
    n_nonzero = sum(int(np.count_nonzero(X.data if sparse.issparse(X) else X)) for X in (data.X_train, data.X_test))
    share = n_nonzero / ((n_train + n_test) * n_features)
    return {"n_train": n_train, "n_test": n_test, "n_features": n_features, "nonzero": 100 * share}


def _datasets_table(records: Sequence[Record], plan: Plan) -> Table:
    rows = []
    for name, label in labels(plan, settings.DATASETS).items():
        (counted,) = select(records, dataset=name) or [{}]
        pairs = zip(map(counted.get, _COUNTS), settings.DATASETS_PUBLISHED[name], strict=True)
        rows.append((label, *(number for pair in pairs for number in pair)))
    columns = [title for name in _COUNTS.values() for title in (name, f"{name}, paper")]
    notes = stand_in_notes(plan, settings.DATASETS)
    return Table(("data set", *columns), rows, tuple(notes))


def _compare_with_paper(records: Sequence[Record]) -> dict[str, Outcome]:
    outcomes = {}
    for record in having(records, "n_train"):
        if record["source"] == record["dataset"]:
            ours, published = tuple(map(record.get, _COUNTS)), settings.DATASETS_PUBLISHED[record["dataset"]]
            last_digit = 10.0 ** -len(repr(published[-1]).partition(".")[2])
            is_equal = ours[:-1] == published[:-1] and abs(record["nonzero"] - published[-1]) < last_digit
            texts = (", ".join(f"{number:,.7g}" for number in numbers) for numbers in (ours, published))
            outcomes[record["dataset"]] = is_equal, "as published" if is_equal else " vs ".join(texts)
    return outcomes


def _judge_diversity(records: Sequence[Record]) -> Verdict:
    counted = having(records, "n_train")
    holds, found = None, f"two data sets are needed, {len(counted)} available"
    if len(counted) > 1:
        rows = [record["n_train"] + record["n_test"] for record in counted]
        columns = [record["n_features"] for record in counted]
        n_sparse = sum(record["nonzero"] < 1 for record in counted)
        holds = all(max(sizes) >= 10 * min(sizes) for sizes in (rows, columns)) and 0 < n_sparse < len(counted)
        found = (
            f"{min(rows):,} to {max(rows):,} rows, {min(columns):,} to {max(columns):,} columns, "
            f"{n_sparse} of {len(counted)} sparse"
        )
    return Verdict(
        "The data sets are diverse: small and large, with few and many columns, sparse and dense",
        "the largest numbers of rows and of columns are at least ten times the smallest, and some but not all data "
        "sets have less than 1 % nonzero values",
        holds,
        found,
    )


DATASETS = Experiment(
    name="datasets",
    title="Properties of the data sets",
    cells=grid(settings.DATASETS, n_seeds=1),  # counts do not depend on the seed
    measure=measure_datasets,
    table=_datasets_table,
    claims=(
        Claim(
            "The available files are those that the paper describes",
            "equal numbers of rows and columns, and a share of nonzero values that differs by less than one in the "
            "last published digit",
            _compare_with_paper,
            where="on every data set that is not a stand-in",
            otherwise="none of the paper's own files is available",
            is_papers=False,
        ),
        _judge_diversity,
    ),
    datasets=settings.DATASETS,
    notes=("Counted on all rows of the files at either scale.",),
    has_times=False,
)

# -- feature-map-size

_N_COMPARED = 100  # rows whose similarities are compared with dot products of their feature vectors
_EXACT = 1e-9  # the smallest difference that counts
_ALL_MAPS = "with trees and Voronoi cells, few and many cells"


def measure_feature_map_size(cell: Cell, plan: Plan) -> dict[str, Any]:
    """Map rows, and count all features and the nonzero ones of each row."""
    data = load_rows(cell, plan)
    psi = min(cell["psi"], len(data.y_train))
    X = data.X_test[: settings.FEATURE_MAP_ROWS].astype(np.float64)  # features have the precision of the rows
    kernel = IsolationKernel(cell["partitioning"], settings.N_PARTITIONINGS, psi, random_state=cell["seed"])
    mapped = kernel.fit(data.X_train).transform(X)
    n_nonzero = np.diff(mapped.indptr)
    products = (mapped[:_N_COMPARED] @ mapped[:_N_COMPARED].T).toarray()
    return {
        "n_features_in": X.shape[1],
        "n_polynomial": int(PolynomialFeatures(settings.POLYNOMIAL_DEGREE).fit(X[:1]).n_output_features_),
        "n_partitionings": settings.N_PARTITIONINGS,
        "n_cells": psi,
        "n_features": mapped.shape[1],
        "fewest_nonzero": int(n_nonzero.min()),
        "most_nonzero": int(n_nonzero.max()),
        "kernel_error": float(np.abs(products - kernel.similarity(X[:_N_COMPARED])).max()),
    }


def _feature_map_table(records: Sequence[Record], plan: Plan) -> Table:
    papers = settings.FEATURE_MAP_SIZE_PUBLISHED
    rows = []
    for name, label in labels(plan, settings.DATASETS).items():
        measured = having(select(records, dataset=name), "n_features")
        row = {
            "data set": label,
            "d": _one_or_range(measured, "n_features_in", "n_features_in"),
            "Gaussian": "infinite" if measured else None,
            "Gaussian, paper": papers["Gaussian"],
            f"Polynomial, h = {settings.POLYNOMIAL_DEGREE}": _one_or_range(measured, "n_polynomial", "n_polynomial"),
            "Polynomial, paper": papers["Polynomial"],
        }
        for psi in settings.FEATURE_MAP_CELLS:
            maps = select(measured, psi=psi)
            row[f"Isolation, psi = {psi:,}: features"] = _one_or_range(maps, "n_features", "n_features")
            row[f"psi = {psi:,}: nonzero in each row"] = _one_or_range(maps, "fewest_nonzero", "most_nonzero")
        rows.append(row | {"Isolation, paper": papers["Isolation"]})
    notes = stand_in_notes(plan, settings.DATASETS)
    if plan.is_quick:
        notes.append(f"Quick scale: maps are drawn from at most {settings.ROWS['quick'][0]:,} rows.")
    return Table(tuple(rows[0]), [tuple(row.values()) for row in rows], tuple(notes))


def _one_or_range(records: list[Record], low: str, high: str) -> int | str | None:
    """Return the number on which all maps and rows agree, or the range."""
    if not records:
        return None
    least, most = min(record[low] for record in records), max(record[high] for record in records)
    return least if least == most else f"{least:,} to {most:,}"


def _has_size(record: Record) -> bool:
    t = record["n_partitionings"]
    return record["n_features"] == t * record["n_cells"] and record["fewest_nonzero"] == record["most_nonzero"] == t


def _judge_maps(is_met: Callable[[Record], bool], records: Sequence[Record]) -> dict[str, Outcome]:
    measured, outcomes = having(records, "n_features"), {}
    for dataset in datasets_in(measured):
        maps = select(measured, dataset=dataset)
        failed = [f"{record['partitioning']}, psi = {record['psi']:,}" for record in maps if not is_met(record)]
        outcomes[dataset] = not failed, "; ".join(failed) or f"{len(maps)} maps"
    return outcomes


FEATURE_MAP_SIZE = Experiment(
    name="feature-map-size",
    title="Sizes of the feature maps of kernels",
    cells=grid(settings.DATASETS, n_seeds=1, partitioning=("tree", "voronoi"), psi=settings.FEATURE_MAP_CELLS),
    measure=measure_feature_map_size,
    table=_feature_map_table,
    claims=(
        Claim(
            "The Isolation Kernel's map has t psi features; t are nonzero in a row, for any number of columns",
            f"every row has both counts, {_ALL_MAPS}",
            partial(_judge_maps, _has_size),
        ),
        Claim(
            "The map is exact, not an approximation",
            f"dot products of the feature vectors of {_N_COMPARED} rows equal their similarities to within "
            f"{_EXACT:g}, {_ALL_MAPS}",
            partial(_judge_maps, lambda record: record["kernel_error"] < _EXACT),
        ),
    ),
    datasets=settings.DATASETS,
    notes=(
        f"Isolation Kernels with t = {settings.N_PARTITIONINGS}, trees and Voronoi cells, are drawn from training rows "
        f"and map {settings.FEATURE_MAP_ROWS:,} test rows. The feature map of a Gaussian kernel is infinite.",
    ),
    has_times=False,
)
