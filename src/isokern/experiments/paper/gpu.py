"""Compare the time of mapping by Voronoi cells on the CPU with that on GPUs."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from functools import partial

from isokern import IKOGDClassifier
from isokern.data import list_datasets
from isokern.experiments import settings
from isokern.experiments.claims import Claim, Outcome, by_means, times_faster
from isokern.experiments.experiment import Cell, Experiment, Plan, Record
from isokern.experiments.machines import Measurements, cells_accuracy, map_rows, voronoi_kernel
from isokern.experiments.measuring import Stopwatch, load_rows
from isokern.experiments.methods import PAPERS_PASS, choose
from isokern.experiments.plan import grid
from isokern.experiments.tables import comparison, mean, search_note, seconds_text, select

_DEVICES = {"CPU": "cpu", "GPU": "cuda"}  # the values of ``IsolationKernel(device=...)``


def has_gpu() -> bool:
    """Return whether PyTorch can use a GPU here."""
    try:
        return bool(importlib.import_module("torch").cuda.is_available())
    except ImportError:
        return False


def _gpu_cells(plan: Plan) -> list[Cell]:
    methods = list(_DEVICES) if has_gpu() else ["CPU"]
    return grid(settings.DATASETS, search=lambda cell: "all rows", method=methods)(plan)


def measure_gpu(cell: Cell, plan: Plan) -> Measurements:
    """Map training and test rows, then run IK_a-OGD; the paper's times include both."""
    data = load_rows(cell, plan)
    chosen, _ = choose("IK_a-OGD", data.X_train, data.y_train, plan, cell)
    psi = chosen["n_cells"]
    kernel = voronoi_kernel(psi, cell["seed"], _DEVICES[cell["method"]])
    watch = Stopwatch()
    mapped, mapping = map_rows(kernel, data)
    learner = IKOGDClassifier(kernel=kernel, **PAPERS_PASS).partial_fit_cells(mapped.X_train, data.y_train)
    accuracy, seconds = cells_accuracy(learner, mapped.X_test, data.y_test), watch.seconds()
    return {
        **seconds,
        **mapping,
        "share": mapping["map_seconds"] / seconds["seconds"],
        "accuracy": accuracy,
        "psi": psi,
        "n_train": len(data.y_train),
        "n_test": len(data.y_test),
    }


def _no_gpu_note(records: Sequence[Record], plan: Plan) -> list[str]:
    return [] if select(records, method="GPU") else ["PyTorch finds no GPU here, so that column is empty."]


def _compare_with_papers_gpu(records: Sequence[Record]) -> dict[str, Outcome]:
    outcomes = {}
    for info in list_datasets():
        of_all_rows = {"source": info.name, "n_train": info.n_train, "n_test": info.n_test}
        ours = mean(records, "seconds", dataset=info.name, method="CPU", **of_all_rows)
        theirs = settings.GPU_PUBLISHED["GPU"]["seconds"][info.name]
        if ours is not None:
            outcomes[info.name] = ours <= theirs, f"{seconds_text(ours)} s vs {theirs} s"
    return outcomes


GPU = Experiment(
    name="gpu",
    title="Mapping by Voronoi cells on the CPU and on the GPU",
    cells=_gpu_cells,
    measure=measure_gpu,
    table=comparison(
        settings.DATASETS,
        _DEVICES,
        {"seconds": "seconds", "share of mapping in the time": "share", "accuracy": "accuracy", "psi": "psi"},
        published=settings.GPU_PUBLISHED,
        notes=(search_note, _no_gpu_note),
    ),
    claims=(
        Claim(
            "Mapping is much faster on a GPU than on a CPU",
            f"seconds of the CPU at least {settings.GPU_RATIO} times those of the GPU",
            by_means(partial(times_faster, settings.GPU_RATIO), ("CPU", "seconds"), ("GPU", "seconds")),
            otherwise="no GPU here",
        ),
        Claim(
            "Voronoi cells need no GPU: isokern in one thread of a CPU is as fast as the paper's GPUs",
            "our CPU seconds at most the paper's GPU seconds",
            _compare_with_papers_gpu,
            where="on every data set with all rows of the official files",
            otherwise="no official file with all rows",
            is_papers=False,
        ),
    ),
    datasets=settings.DATASETS,
    notes=(
        "Seconds are those of IK_a-OGD: mapping training and test rows, learning and testing.",
        "The program behind the paper's CPU times searches the points of each partitioning; isokern finds the same "
        "cells by one search over the points of all.",
        "The paper does not give the psi of its times; a smaller psi takes less time.",
    ),
)
