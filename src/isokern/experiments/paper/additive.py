"""Kernel against feature map: the chi-squared kernel and the Isolation Kernel with LIBSVM and LIBLINEAR."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.kernel_approximation import AdditiveChi2Sampler
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler

from isokern.data.catalogue import Dataset
from isokern.experiments import settings
from isokern.experiments.datasets import cells_of
from isokern.experiments.experiment import Cell, Experiment, Plan, Record, Table, Verdict
from isokern.experiments.machines import (
    cells_kernel,
    for_libsvm,
    gram_notes,
    isolation_psi,
    libsvm_accuracy,
    linear_accuracy,
    load_machine_rows,
    map_rows,
    named_kernel,
    voronoi_kernel,
)
from isokern.experiments.measuring import Stopwatch
from isokern.experiments.methods import search_note
from isokern.experiments.showing import Measure, better_rivals, compare_accuracy, comparison, notes_on, tally


def cells(plan: Plan) -> list[Cell]:
    """List both machines on both kernels on every data set at hand."""
    return cells_of(plan, settings.DATASETS, method=list(_MEASURES))


def measure(cell: Cell, plan: Plan) -> dict[str, Any]:
    """Train and test one machine; the time is that of all, kernel or map included."""
    data = load_machine_rows(cell, plan)
    return {"n_train": len(data.y_train), "n_test": len(data.y_test)} | _MEASURES[cell["method"]](data, cell, plan)


def _kernel_isolation(data: Dataset, cell: Cell, plan: Plan) -> dict[str, Any]:
    psi = isolation_psi(cell["dataset"], plan, cell["seed"])
    watch = Stopwatch()
    # Drawn from all rows, so that kernel and map are the same.
    train, test, _ = map_rows(voronoi_kernel(psi, cell["seed"]), data)
    mapped = for_libsvm(data._replace(X_train=train, X_test=test))
    accuracy = libsvm_accuracy(cells_kernel, mapped)
    return {"psi": psi, "n_learned": len(mapped.y_train), "accuracy": accuracy, **watch.seconds()}


def _kernel_chi2(data: Dataset, cell: Cell, plan: Plan) -> dict[str, Any]:
    data = for_libsvm(non_negative(data))
    watch = Stopwatch()
    accuracy = libsvm_accuracy(named_kernel("chi2"), data)
    return {"n_learned": len(data.y_train), "accuracy": accuracy, **watch.seconds()}


def _map_chi2(data: Dataset, cell: Cell, plan: Plan) -> dict[str, Any]:
    sampler = AdditiveChi2Sampler(sample_steps=1)  # the paper's b = 0
    return _linear(sampler, non_negative(data), cell)


def _map_isolation(data: Dataset, cell: Cell, plan: Plan) -> dict[str, Any]:
    psi = isolation_psi(cell["dataset"], plan, cell["seed"])
    return {"psi": psi} | _linear(voronoi_kernel(psi, cell["seed"]), data, cell)


def _linear(feature_map: Any, data: Dataset, cell: Cell) -> dict[str, Any]:
    watch = Stopwatch()
    train, test = feature_map.fit_transform(data.X_train), feature_map.transform(data.X_test)
    accuracy = linear_accuracy(train, test, data, cell["seed"])
    return {"n_columns": int(train.shape[1]), "accuracy": accuracy, **watch.seconds()}


def non_negative(data: Dataset) -> Dataset:
    """Return a data set scaled to [0, 1] by its rows to learn from, test rows cut off at 0; zeros of CSR stay zeros."""
    scaler = (MaxAbsScaler if sparse.issparse(data.X_train) else MinMaxScaler)().fit(data.X_train)
    train, test = (_cut_at_zero(scaler.transform(X)) for X in (data.X_train, data.X_test))
    return data._replace(X_train=train, X_test=test)


def _cut_at_zero(X: Any) -> Any:
    return X.maximum(0) if sparse.issparse(X) else np.maximum(X, 0)


_MEASURES = {
    "LIBSVM, IK_a": _kernel_isolation,
    "LIBSVM, chi2": _kernel_chi2,
    "LIBLINEAR, chi2": _map_chi2,
    "LIBLINEAR, IK_a": _map_isolation,
}


def table(records: Sequence[Record], plan: Plan) -> Table:
    """Put ours and the published figures side by side, a line for each measure of each data set."""
    measures = (
        Measure("accuracy", "accuracy"),
        Measure("columns of the map", "n_columns"),
        Measure("seconds", "seconds"),
        Measure("psi", "psi"),
    )
    rivals = {name: name for name in _MEASURES if name.endswith("chi2")}
    notes = (
        *notes_on(plan, settings.DATASETS, settings.MACHINE_ROWS),
        search_note(plan),
        *gram_notes(records),
        *better_rivals(records, settings.ADDITIVE_PUBLISHED, rivals),
    )
    published = settings.ADDITIVE_PUBLISHED
    return comparison(records, plan, settings.DATASETS, _MEASURES, measures, published=published, notes=notes)


def verdicts(records: Sequence[Record]) -> list[Verdict]:
    """Judge whether maps keep the kernels' accuracy, and whether IK_a is ahead of chi2 on dense data."""
    rule = f"mean accuracy of LIBLINEAR not lower than that of LIBSVM by {settings.MAP_TOLERANCE} or more"
    dense = [record for record in records if record["dataset"] in settings.DENSE_DATASETS]
    return [
        tally(
            f"The map of {kernel} is as good as the kernel",
            f"{rule}, on every data set",
            compare_accuracy(records, f"LIBLINEAR, {kernel}", f"LIBSVM, {kernel}", settings.MAP_TOLERANCE),
            records,
        )
        for kernel in ("IK_a", "chi2")
    ] + [
        tally(
            "On dense data, IK_a is more accurate than chi2",
            f"mean accuracy of LIBLINEAR higher, on all that are at hand of {', '.join(settings.DENSE_DATASETS)}",
            compare_accuracy(dense, "LIBLINEAR, IK_a", "LIBLINEAR, chi2", tolerance=0.0),
            dense,
        )
    ]


EXPERIMENT = Experiment(
    name="additive",
    title="Kernel against feature map: chi-squared and Isolation Kernel",
    cells=cells,
    measure=measure,
    table=table,
    verdicts=verdicts,
    datasets=settings.DATASETS,
    notes=(
        "chi2 is the sum of 2xy/(x + y) over columns, on columns scaled to [0, 1] by the rows to learn from; its map "
        "is scikit-learn's AdditiveChi2Sampler with one sample, the paper's b = 0. IK_a is of Voronoi cells, t = 100.",
        "LIBSVM with C = 1; LIBLINEAR with squared hinge loss and C = 1. Seconds are those of kernel or map, training "
        "and testing together.",
        "Of the columns of IK_a's map, the psi cells of t partitionings, t of a row are not 0; the paper counts these.",
    ),
)
