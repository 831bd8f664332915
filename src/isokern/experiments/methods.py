"""Define the online learners that experiments compare, and choose their parameter by cross-validation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from sklearn.model_selection import GridSearchCV, StratifiedKFold

from isokern.experiments import settings
from isokern.experiments.experiment import Plan
from isokern.experiments.measuring import Stopwatch
from isokern.learners import AdaRakerClassifier, IKOGDClassifier, IKOGDClassifierCV, NOGDClassifier, OGDClassifier

# The paper's learner: constant steps of size eta, one pass over the rows in their order.
RIVALS_PASS: dict[str, Any] = {"learning_rate": settings.LEARNING_RATE, "n_passes": 1, "shuffle": False}
PAPERS_PASS: dict[str, Any] = {"schedule": "constant", **RIVALS_PASS}


class Method(NamedTuple):
    """A learner, its fixed parameters, and the parameter that is searched, if any."""

    learner: Callable[..., Any]
    fixed: dict[str, Any]
    searched: str | None = None

    def make(self, seed: int, **parameters: Any) -> Any:
        """Return an unfitted learner."""
        return self.learner(**(self.fixed | parameters), random_state=seed)


def _isolation(partitioning: str, max_depth: str | None = None) -> Method:
    kernel = {"partitioning": partitioning, "n_partitionings": settings.N_PARTITIONINGS, "max_depth": max_depth}
    return Method(IKOGDClassifier, kernel | PAPERS_PASS, "n_cells")


_NYSTROM = {"n_landmarks": settings.N_LANDMARKS, "rank": settings.RANK, **RIVALS_PASS}
METHODS = {
    "OGD": Method(OGDClassifier, RIVALS_PASS, "n_cells"),
    f"OGD{settings.FROM_DATA}": Method(OGDClassifier, RIVALS_PASS),
    "IK_i-OGD": _isolation("tree", "log2"),
    "IK_i-OGD, uncapped": _isolation("tree"),
    "IK_a-OGD": _isolation("voronoi"),
    "NOGD": Method(NOGDClassifier, _NYSTROM, "n_cells"),
    f"NOGD{settings.FROM_DATA}": Method(NOGDClassifier, _NYSTROM),
    "AdaRaker": Method(AdaRakerClassifier, {"bandwidths": settings.ADARAKER_SIGMAS, **RIVALS_PASS}, "shrinkage"),
}


def choose(name: str, X: Any, y: Any, plan: Plan, seed: int) -> tuple[dict[str, Any], dict[str, float]]:
    """Return the parameter of a method, chosen by cross-validation on the first training rows, and the time it took.

    Both are empty if the method has no parameter; the time is empty if there is only one candidate.
    """
    method, watch = METHODS[name], Stopwatch()
    if method.searched is None:
        return {}, {}
    ranges = {"n_cells": settings.N_CELLS_SEARCHED, "shrinkage": settings.ADARAKER_LAMBDAS_SEARCHED}
    candidates = ranges[method.searched][plan.scale]
    if len(candidates) == 1:
        return {method.searched: candidates[0]}, {}
    search = _search(method, candidates, seed).fit(*search_rows(X, y, plan))
    return dict(search.best_params_), watch.seconds("cv_")


def search_rows(X: Any, y: Any, plan: Plan) -> tuple[Any, Any]:
    """Return the rows for cross-validation: the first of the shuffled training rows."""
    n = settings.CROSS_VALIDATION_ROWS[plan.scale]
    return X[:n], y[:n]


def _search(method: Method, candidates: tuple[Any, ...], seed: int) -> Any:
    """Return a search; both kinds use the same folds and take the first of equally good candidates."""
    folds = StratifiedKFold(settings.N_FOLDS)
    if method.learner is IKOGDClassifier:
        # Equivalent to GridSearchCV, but maps rows once per fold.
        return IKOGDClassifierCV(**method.fixed, n_cells=candidates, cv=folds, random_state=seed)
    return GridSearchCV(method.make(seed), {method.searched: candidates}, cv=folds, refit=False)
