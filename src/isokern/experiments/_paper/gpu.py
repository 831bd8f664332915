"""The time of mapping by Voronoi cells on the CPU and, where there is one, on a graphics card."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from functools import cache
from typing import Any

from isokern import IKOGDClassifier, IKOGDClassifierCV, IsolationKernel
from isokern.data import list_datasets
from isokern.experiments import _settings_e3 as settings
from isokern.experiments._datasets import load_rows
from isokern.experiments._experiment import Cell, Experiment, Plan, Record, Table, Verdict
from isokern.experiments._machines import candidate_cells, cells_accuracy, map_rows, psi_note, search_rows
from isokern.experiments._outcomes import (
    PAPERS_DATASETS,
    Timer,
    chosen,
    ended,
    grid_of,
    judged,
    mean_of,
    notes_on,
    row_names,
    shown,
    shown_seconds,
    sizes_of,
)


def gpu_devices() -> list[str]:
    """Return the graphics cards that PyTorch can use here, by the names that ``IsolationKernel(device=...)`` takes."""
    try:
        torch = importlib.import_module("torch")
    except ImportError:
        return []
    return ["cuda"] if torch.cuda.is_available() else []


def cells(plan: Plan) -> list[Cell]:
    """List the devices on each data set."""
    return grid_of(plan, ("cpu", *gpu_devices()))


def measure(cell: Cell, plan: Plan) -> dict[str, Any]:
    """Map the rows to learn from and those to test on, then run IK_a-OGD, as the paper's times do."""
    data = load_rows(cell["dataset"], plan, cell["seed"])
    psi = _ogd_psi(cell["dataset"], plan, cell["seed"])
    kernel = IsolationKernel("voronoi", settings.N_PARTITIONINGS, psi, device=cell["method"], random_state=cell["seed"])
    mapping, train, test = map_rows(kernel, data)
    with Timer() as timer:
        learner = IKOGDClassifier(kernel=kernel, **settings.PAPERS_OGD)
        accuracy = cells_accuracy(learner.partial_fit_cells(train, data.y_train), test, data.y_test)
    return sizes_of(data) | {
        "psi": psi,
        "map_seconds": mapping.seconds,
        "seconds": mapping.seconds + timer.seconds,
        "cpu_seconds": mapping.cpu_seconds + timer.cpu_seconds,
        "accuracy": accuracy,
    }


@cache  # all devices ask for it
def _ogd_psi(dataset: str, plan: Plan, seed: int) -> int:
    """Return the psi with which IK_a-OGD does best in cross-validation."""
    X, y = search_rows(load_rows(dataset, plan, seed), plan)
    search = IKOGDClassifierCV(
        "voronoi",
        settings.N_PARTITIONINGS,
        candidate_cells(plan),
        cv=settings.N_FOLDS,
        random_state=seed,
        **settings.PAPERS_OGD,
    )
    return int(search.fit(X, y).best_params_["n_cells"])


def table(records: Sequence[Record], plan: Plan) -> Table:
    """Lay out seconds, ours beside the published ones."""
    rows = []
    for name, row_name in row_names(plan).items():
        cpu = chosen(records, dataset=name, method="cpu")
        gpu = [record for record in chosen(records, dataset=name) if record["method"] != "cpu"]
        shares = [mean_of(cpu, part) for part in ("map_seconds", "seconds")]
        share = None if None in shares else round(shares[0] / shares[1], 3)  # type: ignore[operator]
        published = [settings.GPU_PUBLISHED[device][name] for device in ("CPU", "GPU")]
        seconds = (shown_seconds(cpu, plan), published[0], shown_seconds(gpu, plan), published[1])
        rows.append((row_name, *seconds, share, shown(cpu, "psi"), shown(cpu, "accuracy")))
    columns = ("data set", "CPU", "CPU, paper", "GPU", "GPU, paper", "mapping's share of CPU", "psi", "accuracy")
    return Table(columns, rows, notes_on(records, plan) + _notes(records, plan))


def _notes(records: Sequence[Record], plan: Plan) -> tuple[str, ...]:
    has_gpu = any(record["method"] != "cpu" for record in records)
    return (
        psi_note(plan),
        "Seconds are those of IK_a-OGD: mapping the rows to learn from and to test on, learning and testing.",
        *(() if has_gpu else ("There is no GPU here that PyTorch can use, so that the column stays empty.",)),
    )


def verdicts(records: Sequence[Record]) -> list[Verdict]:
    """Judge the speed-up by a graphics card, and our CPU against the paper's cards."""
    return [
        judged(
            "Mapping on a GPU is much faster than on a CPU.",
            "the GPU takes at most half of the CPU's seconds on every data set",
            _sped_up(records),
            records,
            "no GPU here",
        ),
        judged(
            "Voronoi cells need no GPU: isokern's CPU code is as fast as the paper's GPUs.",
            "our CPU seconds are at most the paper's GPU seconds on every data set whose official files are at hand, "
            "all of their rows",
            _within_papers_gpu(records),
            records,
        ),
    ]


def _sped_up(records: Sequence[Record]) -> dict[str, tuple[bool, str]]:
    outcomes = {}
    for name in PAPERS_DATASETS:
        done = ended(chosen(records, dataset=name))
        cpu = mean_of(done, "seconds", method="cpu")
        gpu = mean_of([record for record in done if record["method"] != "cpu"], "seconds")
        if cpu is not None and gpu is not None:
            outcomes[name] = gpu <= cpu / 2, f"{gpu:.1f} s against {cpu:.1f} s"
    return outcomes


def _within_papers_gpu(records: Sequence[Record]) -> dict[str, tuple[bool, str]]:
    outcomes = {}
    for info in list_datasets():
        of_all_rows = [
            record
            for record in chosen(records, dataset=info.name, data=info.name, method="cpu")
            if (record["n_train"], record["n_test"]) == (info.n_train, info.n_test)
        ]
        ours, theirs = mean_of(of_all_rows, "seconds"), settings.GPU_PUBLISHED["GPU"][info.name]
        if ours is not None:
            outcomes[info.name] = ours <= theirs, f"{ours:.1f} s against {theirs} s"
    return outcomes


EXPERIMENT = Experiment(
    name="gpu",
    title="Mapping by Voronoi cells on the CPU and on the GPU",
    cells=cells,
    measure=measure,
    table=table,
    verdicts=verdicts,
    datasets=PAPERS_DATASETS,
    notes=(
        "The paper's CPU figures are those of a program that searches all points of every partitioning; isokern finds "
        "the same cells by one search of all of them.",
        "The paper does not say which psi its times belong to; a smaller one takes less.",
    ),
)
