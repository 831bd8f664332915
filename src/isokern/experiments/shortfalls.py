"""List where the Isolation Kernel is less accurate here than published, and what the records tell about the reason."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from isokern.data import list_datasets
from isokern.experiments import settings
from isokern.experiments.experiment import Plan, Record
from isokern.experiments.tables import accuracy_text, having, mean, select, with_range

PUBLISHED = {
    "batch": settings.BATCH_PUBLISHED,
    "svm": settings.SVM_PUBLISHED,
    "additive": settings.ADDITIVE_PUBLISHED,
}
_BESIDE = {"IK_i-OGD": ("IK_i-OGD, uncapped", "IKOGDClassifier()"), "IK_a-OGD": ("IKOGDClassifier()",)}


class Shortfall(NamedTuple):
    """A cell whose accuracy is below the published one by more than the tolerance."""

    dataset: str
    method: str
    accuracy: str
    published: float
    reasons: str


def shortfalls(name: str, records: Sequence[Record], plan: Plan) -> tuple[list[Shortfall], int]:
    """Return the shortfalls of an experiment's Isolation Kernels, and the number of cells that were compared."""
    found, n_compared = [], 0
    for method, numbers in PUBLISHED.get(name, {}).items():
        for dataset, published in numbers["accuracy"].items():
            runs = having(select(records, dataset=dataset, method=method), "accuracy")
            if "IK" not in method or not runs or not isinstance(published, float):
                continue
            n_compared += 1
            # Rounded, so that a difference of exactly the tolerance does not depend on the last bit.
            if round((mean(runs, "accuracy") or 0.0) - published, 9) < -settings.TOLERANCE:
                shown = with_range(runs, "accuracy")
                accuracy = shown if isinstance(shown, str) else accuracy_text(shown)
                reasons = "; ".join(_reasons(runs, published, records, plan))
                found.append(Shortfall(dataset, method, accuracy, published, reasons))
    return found, n_compared


def _reasons(runs: Sequence[Record], published: float, records: Sequence[Record], plan: Plan) -> Iterator[str]:
    """Yield what may explain lower accuracies: other files, fewer rows, psi, seeds and the cap of trees."""
    run = runs[0]
    if run["source"] != run["dataset"]:
        yield f"other file: {run['source']}"
    elif run["n_train"] < (n := next(info.n_train for info in list_datasets() if info.name == run["dataset"])):
        yield f"sample: {run['n_train']:,} of {n:,} training rows"
    if (n_learned := run.get("n_learned", run["n_train"])) < run["n_train"]:
        yield f"LIBSVM learned {n_learned:,} of {run['n_train']:,} rows"
    if psi := sorted({one[key] for key in ("chosen", "psi") for one in having(runs, key)}):
        candidates = settings.N_CELLS_SEARCHED[plan.scale]
        at_end = f", the largest of the search ({candidates[-1]:,})" if candidates[-1] in psi else ""
        rows = "all rows" if str(run.get("search", "")).startswith("all rows") else "a sample"
        yield f"psi {' and '.join(f'{one:,}' for one in psi)}, chosen on {rows}{at_end}"
    reached = [one for one in runs if one["accuracy"] >= published - settings.TOLERANCE]
    yield f"{len(runs)} seed{'s' if len(runs) > 1 else ''}" + (f", {len(reached)} of them reach it" if reached else "")
    if run["method"] == "IK_i-OGD":
        yield "trees capped at depth log2(psi)"
    for other in _BESIDE.get(run["method"], ()):
        accuracy = mean(records, "accuracy", dataset=run["dataset"], method=other)
        if accuracy is not None:
            yield f"{other}: {accuracy_text(accuracy)}"
