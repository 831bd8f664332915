"""List where the Isolation Kernel is less accurate here than published, and the causes that the records tell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from isokern.data import list_datasets
from isokern.experiments import settings
from isokern.experiments.accuracies import Accuracy, accuracy_of
from isokern.experiments.experiment import Plan, Record
from isokern.experiments.tables import having, select

PUBLISHED = {
    "batch": settings.BATCH_PUBLISHED,
    "svm": settings.SVM_PUBLISHED,
    "additive": settings.ADDITIVE_PUBLISHED,
}


class Shortfall(NamedTuple):
    """A cell whose accuracy is below the published one by more than the tolerance."""

    dataset: str
    method: str
    accuracy: Accuracy
    published: float
    causes: str


def shortfalls(name: str, records: Sequence[Record], plan: Plan) -> tuple[list[Shortfall], int]:
    """Return the shortfalls of an experiment's Isolation Kernels, and the number of cells that were compared."""
    found, n_compared = [], 0
    for method, numbers in PUBLISHED.get(name, {}).items():
        for dataset, published in numbers["accuracy"].items():
            runs = having(select(records, dataset=dataset, method=method), "accuracy")
            accuracy = accuracy_of(runs)
            if "IK" not in method or accuracy is None or not isinstance(published, float):
                continue
            n_compared += 1
            # Rounded, so that a difference of exactly the tolerance does not depend on the last bit.
            if round(accuracy.value - published, 9) < -settings.TOLERANCE:
                causes = [*_rows(runs, accuracy), *_chance(accuracy, published), *_choices(runs, published, plan)]
                found.append(Shortfall(dataset, method, accuracy, published, "; ".join(causes) or "not known"))
    return found, n_compared


def _rows(runs: Sequence[Record], accuracy: Accuracy) -> Iterator[str]:
    """Yield whether the rows are other or fewer than the paper's."""
    run = runs[0]
    if run["source"] != run["dataset"]:
        yield f"another file, {run['source']}"
    elif run["n_train"] < (n := next(info.n_train for info in list_datasets() if info.name == run["dataset"])):
        yield f"learned {run['n_train']:,} of {n:,} training rows"
    if accuracy.n_learned:
        yield f"LIBSVM learned {accuracy.n_learned:,} of {run['n_train']:,} rows"


def _chance(accuracy: Accuracy, published: float) -> Iterator[str]:
    """Yield whether chance may explain what rounding does not, because it is within standard errors."""
    if published - settings.TOLERANCE - accuracy.value <= settings.N_STANDARD_ERRORS * accuracy.standard_error:
        yield f"chance: beyond rounding, it is within {settings.N_STANDARD_ERRORS} standard errors"


def _choices(runs: Sequence[Record], published: float, plan: Plan) -> Iterator[str]:
    """Yield what other seeds or another psi might change."""
    n_reached = sum(run["accuracy"] >= published - settings.TOLERANCE for run in runs)
    if len(runs) == 1:
        yield "one seed"
    elif n_reached:
        yield f"{n_reached} of {len(runs)} seeds reach it"
    sizes = {run[key] for key in ("chosen", "psi") for run in having(runs, key)}
    if (largest := settings.N_CELLS_SEARCHED[plan.scale][-1]) in sizes:
        yield f"psi is the largest of the search, {largest:,}"
    if sizes and not str(runs[0].get("search", "")).startswith("all rows"):
        yield "psi was chosen on a sample of the training rows"
