"""Compare kernels with feature maps in support vector machines, and the CPU with GPUs: svm, additive and gpu."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from sklearn.kernel_approximation import AdditiveChi2Sampler

from isokern import IKOGDClassifier, IsolationKernel
from isokern.data import list_datasets
from isokern.data.catalogue import Dataset
from isokern.experiments import machines, settings
from isokern.experiments.claims import Claim, Outcome, by_means, not_less_accurate, times_faster
from isokern.experiments.experiment import Cell, Experiment, Plan, Record
from isokern.experiments.machines import Measurements, map_rows, train_liblinear, train_libsvm, voronoi_kernel
from isokern.experiments.measuring import Stopwatch, load_rows
from isokern.experiments.methods import PAPERS_PASS, choose
from isokern.experiments.plan import grid
from isokern.experiments.settings import FROM_DATA
from isokern.experiments.tables import comparison, having, mean, search_note, seconds_text, select
from isokern.kernels import gamma_from_data, gamma_from_psi

# -- svm and additive


def measure_svm(cell: Cell, plan: Plan) -> Measurements:
    """Choose psi, train and test one machine; ``seconds`` exclude the time of a map."""
    data = load_rows(cell, plan, settings.MACHINE_ROWS)
    return {"n_train": len(data.y_train), "n_test": len(data.y_test)} | _MACHINES[cell["method"]](data, cell, plan)


def measure_additive(cell: Cell, plan: Plan) -> Measurements:
    """Measure as :func:`measure_svm` does; ``seconds`` include the time of a map."""
    measured = measure_svm(cell, plan)
    return measured | {"seconds": measured["seconds"] + measured.get("map_seconds", 0.0)}


def _laplacian_of_psi(data: Dataset, cell: Cell, plan: Plan) -> Measurements:
    psi = machines.laplacian_psi(data, plan, cell["seed"])
    gamma = gamma_from_psi(psi, data.X_train.shape[1])
    return {"psi": psi, "lambda": gamma, **train_libsvm(machines.named_kernel("laplacian", gamma), data)}


def _laplacian_of_data(data: Dataset, cell: Cell, plan: Plan) -> Measurements:
    gamma = gamma_from_data("laplacian", data.X_train, np.random.RandomState(cell["seed"]))
    return {"lambda": gamma, **train_libsvm(machines.named_kernel("laplacian", gamma), data)}


def _chi2_kernel(data: Dataset, cell: Cell, plan: Plan) -> Measurements:
    return train_libsvm(machines.named_kernel("chi2"), machines.non_negative(data))


def _chi2_map(data: Dataset, cell: Cell, plan: Plan) -> Measurements:
    sampler, data = AdditiveChi2Sampler(sample_steps=1), machines.non_negative(data)  # the paper's b = 0
    C = machines.liblinear_cost(sampler.fit_transform(data.X_train), data.y_train, plan, cell["seed"])
    return {"C": C, **train_liblinear(sampler, data, cell["seed"], C)}


def _isolation(
    train: Callable[[IsolationKernel, Dataset, int, float], Measurements], data: Dataset, cell: Cell, plan: Plan
) -> Measurements:
    psi, C = machines.isolation_choice(cell, plan)
    return {"psi": psi, "C": C, **train(voronoi_kernel(psi, cell["seed"]), data, cell["seed"], C)}


def _libsvm_on_cells(kernel: IsolationKernel, data: Dataset, seed: int, C: float) -> Measurements:
    mapped, mapping = map_rows(kernel, data)  # the kernel is drawn from all rows, like the map
    return train_libsvm(machines.cells_kernel, mapped) | mapping | {"C": 1.0}


def _iksvc_on_cells(kernel: IsolationKernel, data: Dataset, seed: int, C: float) -> Measurements:
    mapped, mapping = map_rows(kernel, data)
    watch = Stopwatch()
    machine = machines.linear_machine(kernel, seed, C).fit_cells(mapped.X_train, data.y_train)
    return {"accuracy": machines.cells_accuracy(machine, mapped.X_test, data.y_test), **watch.seconds(), **mapping}


Machine = Callable[[Dataset, Cell, Plan], Measurements]
_SVM_MACHINES: dict[str, Machine] = {
    "SVM": _laplacian_of_psi,
    f"SVM{FROM_DATA}": _laplacian_of_data,
    "IK_a-SVM": partial(_isolation, _iksvc_on_cells),
    "IK_a-SVM by LIBLINEAR": partial(_isolation, train_liblinear),
}
_ADDITIVE_MACHINES: dict[str, Machine] = {
    "LIBSVM, IK_a": partial(_isolation, _libsvm_on_cells),
    "LIBSVM, chi2": _chi2_kernel,
    "LIBLINEAR, chi2": _chi2_map,
    "LIBLINEAR, IK_a": partial(_isolation, train_liblinear),
}
_MACHINES = _SVM_MACHINES | _ADDITIVE_MACHINES


def _search(cell: Cell) -> str | None:
    """Return the mark of cells whose psi is searched on all training rows, or whose C is searched."""
    name = cell["method"]
    return "all rows, C" if "IK_a" in name or name == "LIBLINEAR, chi2" else None


_machine_table = partial(comparison, settings.DATASETS, max_rows=settings.MACHINE_ROWS)


def _gram_note(records: Sequence[Record], plan: Plan) -> list[str]:
    note = f"LIBSVM learns from a sample of {settings.LIBSVM_ROWS:,} rows, whose Gram matrix takes 3.2 GB."
    return [note] if any(r["n_learned"] < r["n_train"] for r in having(records, "n_learned")) else []


_COST_NOTE = (
    "At full scale, C of LIBLINEAR's problem is chosen as that program's option -C does: by 5-fold cross-validation on "
    f"the mapped training rows, from powers of two, here {settings.COSTS_SEARCHED['full'][0]:g} to "
    f"{settings.COSTS_SEARCHED['full'][-1]:g}, after psi with C = 1. At quick scale C is 1. Times exclude this search."
)
_FASTER = f"seconds of SVM at least {settings.SVM_RATIO} times those of IK_a-SVM"
_judge_times = partial(times_faster, settings.SVM_RATIO)

SVM = Experiment(
    name="svm",
    title="SVM with the Laplacian kernel against IK_a-SVM",
    cells=grid(settings.DATASETS, search=_search, method=list(_SVM_MACHINES)),
    measure=measure_svm,
    table=_machine_table(
        _SVM_MACHINES,
        {"accuracy": "accuracy", "seconds": "seconds", "seconds of mapping": "map_seconds", "psi": "psi", "C": "C"},
        published=settings.SVM_PUBLISHED,
        rivals={"SVM": "SVM", f"SVM{FROM_DATA}": "SVM"},
        notes=(search_note, _gram_note),
    ),
    claims=(
        not_less_accurate(
            "IK_a-SVM",
            "SVM",
            "IK_a-SVM is more accurate than SVM on data with at least 2,000 columns",
            tolerance=0.0,
            datasets=settings.WIDE_DATASETS,
            where="on all of these",
        ),
        not_less_accurate(
            "IK_a-SVM",
            "SVM",
            "IK_a-SVM and SVM have comparable accuracy on data with fewer columns",
            tolerance=settings.COMPARABLE,
            datasets=settings.NARROW_DATASETS,
            where="on all of these",
        ),
        not_less_accurate("IK_a-SVM", f"SVM{FROM_DATA}"),
        Claim(
            "Once rows are mapped, IK_a-SVM is faster than SVM by at least an order of magnitude",
            f"{_FASTER}, for training and testing",
            by_means(_judge_times, ("SVM", "seconds"), ("IK_a-SVM", "seconds")),
        ),
        Claim(
            "IK_a-SVM remains faster by an order of magnitude if mapping on the CPU counts",
            f"{_FASTER}, for mapping, training and testing",
            by_means(_judge_times, ("SVM", "seconds"), ("IK_a-SVM", "seconds"), ("IK_a-SVM", "map_seconds")),
            is_papers=False,
        ),
    ),
    datasets=settings.DATASETS,
    notes=(
        "SVM is LIBSVM with C = 1. IK_a-SVM is LIBLINEAR's problem (squared hinge loss) on Voronoi cells with t = 100, "
        "solved on the cells by isokern's IKSVC. The last column is LIBLINEAR on the map as a sparse matrix.",
        _COST_NOTE,
        "The paper's lambda = ln(psi)/d makes the Laplacian kernel almost constant if there are many columns. A second "
        "SVM therefore uses one over the mean L1 distance of the rows.",
        "Seconds are those of training and testing, as in the paper: for SVM with the kernel matrix, for IK_a-SVM "
        "without mapping, which has its own line. The paper adds the GPU's time of mapping and still finds an order "
        "of magnitude; we test the same with the CPU's.",
    ),
)

ADDITIVE = Experiment(
    name="additive",
    title="Kernel against feature map: chi-squared and Isolation Kernel",
    cells=grid(settings.DATASETS, search=_search, method=list(_ADDITIVE_MACHINES)),
    measure=measure_additive,
    table=_machine_table(
        _ADDITIVE_MACHINES,
        {"accuracy": "accuracy", "columns of the map": "n_columns", "seconds": "seconds", "psi": "psi", "C": "C"},
        published=settings.ADDITIVE_PUBLISHED,
        rivals={name: name for name in ("LIBSVM, chi2", "LIBLINEAR, chi2")},
        notes=(search_note, _gram_note),
    ),
    claims=(
        *(
            not_less_accurate(
                f"LIBLINEAR, {kernel}",
                f"LIBSVM, {kernel}",
                f"The map of {kernel} is as accurate as the kernel",
                tolerance=settings.MAP_TOLERANCE,
                remark=" (LIBLINEAR vs LIBSVM)",
            )
            for kernel in ("IK_a", "chi2")
        ),
        not_less_accurate(
            "LIBLINEAR, IK_a",
            "LIBLINEAR, chi2",
            "On dense data, IK_a is more accurate than chi2",
            tolerance=0.0,
            remark=" (LIBLINEAR)",
            datasets=settings.DENSE_DATASETS,
            where=f"on all that are available of {', '.join(settings.DENSE_DATASETS)}",
        ),
    ),
    datasets=settings.DATASETS,
    notes=(
        "chi2 is the sum of 2xy/(x + y) over columns, which are scaled to [0, 1] by the training rows; its map is "
        "scikit-learn's AdditiveChi2Sampler with one sample, the paper's b = 0. IK_a has Voronoi cells, t = 100.",
        "LIBSVM with C = 1; LIBLINEAR with squared hinge loss. Seconds are those of kernel or map, training and "
        "testing together.",
        _COST_NOTE,
        "The map of IK_a has t psi columns, of which t are nonzero in each row; the paper counts these t.",
    ),
)

# -- gpu

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
    accuracy, seconds = machines.cells_accuracy(learner, mapped.X_test, data.y_test), watch.seconds()
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
