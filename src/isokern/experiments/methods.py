"""Define the online learners that experiments compare, and choose their parameter by cross-validation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from sklearn.model_selection import GridSearchCV, StratifiedKFold

from isokern.experiments import settings
from isokern.experiments.experiment import Cell, Plan
from isokern.experiments.searches import recall
from isokern.learners import (
    AdaptiveIKClassifier,
    AdaRakerClassifier,
    IKOGDClassifier,
    IKOGDClassifierCV,
    NOGDClassifier,
    OGDClassifier,
)

# The paper's learner: constant steps of size eta, one pass over the rows in their order.
RIVALS_PASS: dict[str, Any] = {"learning_rate": settings.LEARNING_RATE, "n_passes": 1, "shuffle": False}
PAPERS_PASS: dict[str, Any] = {"schedule": "constant", **RIVALS_PASS}


class Method(NamedTuple):
    """A learner, its fixed parameters, and the parameter that is searched, if any."""

    learner: Callable[..., Any]
    fixed: dict[str, Any]
    searched: str | None = None
    is_slow: bool = False  # whether the search uses few rows

    def make(self, seed: int, **parameters: Any) -> Any:
        """Return an unfitted learner."""
        return self.learner(**(self.fixed | parameters), random_state=seed)


def _isolation(partitioning: str, max_depth: str | None = None) -> Method:
    kernel = {"partitioning": partitioning, "n_partitionings": settings.N_PARTITIONINGS, "max_depth": max_depth}
    return Method(IKOGDClassifier, kernel | PAPERS_PASS, "n_cells")


_NYSTROM = {"n_landmarks": settings.N_LANDMARKS, "rank": settings.RANK, **RIVALS_PASS}
METHODS = {
    "OGD": Method(OGDClassifier, RIVALS_PASS, "n_cells", is_slow=True),
    f"OGD{settings.FROM_DATA}": Method(OGDClassifier, RIVALS_PASS),
    "IK_i-OGD": _isolation("tree", "log2"),
    "IK_i-OGD, uncapped": _isolation("tree"),
    "IK_a-OGD": _isolation("voronoi"),
    "NOGD": Method(NOGDClassifier, _NYSTROM, "n_cells"),
    f"NOGD{settings.FROM_DATA}": Method(NOGDClassifier, _NYSTROM),
    "AdaRaker": Method(
        AdaRakerClassifier, {"bandwidths": settings.ADARAKER_SIGMAS, **RIVALS_PASS}, "shrinkage", is_slow=True
    ),
}
# What a user of this library gets without a setting; not in the paper.
OURS = {"IKOGDClassifier()": Method(IKOGDClassifier, {}), "AdaptiveIKClassifier()": Method(AdaptiveIKClassifier, {})}
METHODS |= OURS


def choose(name: str, X: Any, y: Any, plan: Plan, cell: Cell) -> tuple[dict[str, Any], dict[str, float]]:
    """Return the parameter of a method, chosen by cross-validation on training rows, and the time it took.

    Both are empty if the method has no parameter; the time is empty if there is only one candidate, for psi on
    generated rows, and if another processor searched.
    """
    method = METHODS[name]
    if method.searched is None:
        return {}, {}
    if method.searched == "n_cells" and cell["dataset"] in settings.GENERATED:
        return {"n_cells": settings.GENERATED_CELLS}, {}
    ranges = {"n_cells": settings.N_CELLS_SEARCHED, "shrinkage": settings.ADARAKER_LAMBDAS_SEARCHED}
    candidates = ranges[method.searched][plan.scale]
    if len(candidates) == 1:
        return {method.searched: candidates[0]}, {}
    X, y = search_rows(X, y, plan, is_slow=method.is_slow)
    search = {"dataset": cell["dataset"], "seed": cell["seed"], "method": name, "candidates": candidates}
    found = recall(search, y, plan, lambda: {"best": _search(method, candidates, cell["seed"]).fit(X, y).best_params_})
    return found["best"], {key: found[key] for key in ("cv_seconds",) if key in found}


def search_rows(X: Any, y: Any, plan: Plan, *, is_slow: bool = False) -> tuple[Any, Any]:
    """Return the rows for cross-validation: the first of the shuffled training rows, or all."""
    rows = settings.SLOW_CROSS_VALIDATION_ROWS if is_slow else settings.CROSS_VALIDATION_ROWS
    n = rows[plan.scale]
    return X[:n], y[:n]


def searches_all_rows(cell: Cell) -> str | None:
    """Return the mark of cells whose parameter is searched on all training rows, or None."""
    method = METHODS[cell["method"]]
    is_searched = method.searched is not None and not method.is_slow and cell["dataset"] not in settings.GENERATED
    return "all rows" if is_searched else None


def _search(method: Method, candidates: tuple[Any, ...], seed: int) -> Any:
    """Return a search; both kinds use the same folds and take the first of equally good candidates."""
    folds = StratifiedKFold(settings.N_FOLDS)
    if method.learner is IKOGDClassifier:
        # Equivalent to GridSearchCV, but maps rows once per fold.
        return IKOGDClassifierCV(**method.fixed, n_cells=candidates, cv=folds, random_state=seed)
    return GridSearchCV(method.make(seed), {method.searched: candidates}, cv=folds, refit=False)
