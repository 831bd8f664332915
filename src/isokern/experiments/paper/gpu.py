"""The time of mapping by Voronoi cells on the CPU and, where there is one, on a graphics card."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from functools import cache
from typing import Any

from isokern import IKOGDClassifier
from isokern.data import list_datasets
from isokern.experiments import settings
from isokern.experiments.datasets import cells_of, load_rows
from isokern.experiments.experiment import Cell, Experiment, Plan, Record, Table, Verdict
from isokern.experiments.machines import cells_accuracy, map_rows, voronoi_kernel
from isokern.experiments.measuring import Stopwatch
from isokern.experiments.methods import PAPERS_PASS, choose, search_note
from isokern.experiments.showing import Measure, Outcome, comparison, datasets_in, mean, notes_on, select, tally
from isokern.experiments.tables import seconds_text

_DEVICES = {"CPU": "cpu", "GPU": "cuda"}  # as ``IsolationKernel(device=...)`` has them


def has_gpu() -> bool:
    """Return whether there is a graphics card that PyTorch can use here."""
    try:
        torch = importlib.import_module("torch")
    except ImportError:
        return False
    return bool(torch.cuda.is_available())


def cells(plan: Plan) -> list[Cell]:
    """List the devices on every data set at hand."""
    return cells_of(plan, settings.DATASETS, method=list(_DEVICES) if has_gpu() else ["CPU"])


def measure(cell: Cell, plan: Plan) -> dict[str, Any]:
    """Map the rows to learn from and those to test on, then run IK_a-OGD, as the paper's times do."""
    data = load_rows(cell["dataset"], plan, cell["seed"])
    psi = _psi(cell["dataset"], plan, cell["seed"])
    kernel = voronoi_kernel(psi, cell["seed"], _DEVICES[cell["method"]])
    watch = Stopwatch()
    train, test, mapping = map_rows(kernel, data)
    learner = IKOGDClassifier(kernel=kernel, **PAPERS_PASS).partial_fit_cells(train, data.y_train)
    accuracy, seconds = cells_accuracy(learner, test, data.y_test), watch.seconds()
    return {
        **seconds,
        **mapping,
        "share": mapping["map_seconds"] / seconds["seconds"],
        "accuracy": accuracy,
        "psi": psi,
        "n_train": len(data.y_train),
        "n_test": len(data.y_test),
    }


@cache  # both devices ask for it
def _psi(dataset: str, plan: Plan, seed: int) -> int:
    """Return the psi with which IK_a-OGD does best in cross-validation."""
    data = load_rows(dataset, plan, seed)
    chosen, _ = choose("IK_a-OGD", data.X_train, data.y_train, plan, seed)
    return chosen["n_cells"]


def table(records: Sequence[Record], plan: Plan) -> Table:
    """Put ours and the published figures side by side, a line for each measure of each data set."""
    measures = (
        Measure("seconds", "seconds"),
        Measure("share of mapping in the time", "share"),
        Measure("accuracy", "accuracy"),
        Measure("psi", "psi"),
    )
    no_gpu = "There is no GPU here that PyTorch can use, so that its column stays empty."
    notes = [*notes_on(plan, settings.DATASETS), search_note(plan), *[no_gpu] * (not select(records, method="GPU"))]
    published = settings.GPU_PUBLISHED
    return comparison(records, plan, settings.DATASETS, _DEVICES, measures, published=published, notes=notes)


def verdicts(records: Sequence[Record]) -> list[Verdict]:
    """Judge the speed-up by a graphics card, and our CPU against the paper's cards."""
    return [
        tally(
            "Mapping on a GPU is much faster than on a CPU",
            f"seconds of the CPU at least {settings.GPU_RATIO} times those of the GPU, on every data set",
            _sped_up(records),
            records,
            "no GPU here",
        ),
        tally(
            "Voronoi cells need no GPU: isokern's CPU code is as fast as the paper's GPUs",
            "our CPU seconds at most the paper's GPU seconds, on every data set whose official files are at hand, all "
            "of their rows",
            _within_papers_gpu(records),
            records,
            "no official file with all of its rows",
        ),
    ]


def _sped_up(records: Sequence[Record]) -> dict[str, Outcome]:
    outcomes = {}
    for dataset in datasets_in(records):
        cpu, gpu = (mean(records, "seconds", dataset=dataset, method=device) for device in _DEVICES)
        if cpu is not None and gpu is not None:
            numbers = f"{seconds_text(gpu)} s against {seconds_text(cpu)} s"
            outcomes[dataset] = cpu >= settings.GPU_RATIO * gpu, numbers
    return outcomes


def _within_papers_gpu(records: Sequence[Record]) -> dict[str, Outcome]:
    outcomes = {}
    for info in list_datasets():
        of_all_rows = {"source": info.name, "n_train": info.n_train, "n_test": info.n_test}
        ours = mean(records, "seconds", dataset=info.name, method="CPU", **of_all_rows)
        theirs = settings.GPU_PUBLISHED["GPU"]["seconds"][info.name]
        if ours is not None:
            outcomes[info.name] = ours <= theirs, f"{seconds_text(ours)} s against {theirs} s"
    return outcomes


EXPERIMENT = Experiment(
    name="gpu",
    title="Mapping by Voronoi cells on the CPU and on the GPU",
    cells=cells,
    measure=measure,
    table=table,
    verdicts=verdicts,
    datasets=settings.DATASETS,
    notes=(
        "Seconds are those of IK_a-OGD: mapping the rows to learn from and to test on, learning and testing.",
        "The paper's CPU figures are those of a program that searches all points of every partitioning; isokern finds "
        "the same cells by one search of all of them.",
        "The paper does not say which psi its times belong to; a smaller one takes less.",
    ),
)
