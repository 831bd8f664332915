"""The methods that are compared: how each is made for a value of its one parameter, and how that is chosen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from sklearn.model_selection import GridSearchCV, StratifiedKFold

from isokern.experiments import settings
from isokern.experiments.experiment import Plan
from isokern.experiments.measuring import Stopwatch
from isokern.learners import (
    AdaRakerClassifier,
    IKOGDClassifier,
    IKOGDClassifierCV,
    NOGDClassifier,
    OGDClassifier,
)

# The paper's learner: steps of eta, one pass over the rows in their order, the last iterate.
RIVALS_PASS: dict[str, Any] = {"learning_rate": settings.LEARNING_RATE, "n_passes": 1, "shuffle": False}
PAPERS_PASS: dict[str, Any] = {"schedule": "constant", **RIVALS_PASS}


class Method(NamedTuple):
    """A learner, its fixed parameters, and the parameter that is searched: None if there is none."""

    learner: Callable[..., Any]
    fixed: dict[str, Any]
    searched: str | None = None

    def make(self, seed: int, **parameters: Any) -> Any:
        """Return a learner that has learned nothing."""
        return self.learner(**(self.fixed | parameters), random_state=seed)


def _isolation(partitioning: str, max_depth: str | None = None) -> Method:
    kernel = {"partitioning": partitioning, "n_partitionings": settings.N_PARTITIONINGS, "max_depth": max_depth}
    return Method(IKOGDClassifier, kernel | PAPERS_PASS, "n_cells")


_NYSTROM = {"n_landmarks": settings.N_LANDMARKS, "rank": settings.RANK, **RIVALS_PASS}
FROM_DATA = ", lambda from data"
METHODS = {
    "OGD": Method(OGDClassifier, RIVALS_PASS, "n_cells"),
    f"OGD{FROM_DATA}": Method(OGDClassifier, RIVALS_PASS),
    "IK_i-OGD": _isolation("tree", "log2"),
    "IK_i-OGD, uncapped": _isolation("tree"),
    "IK_a-OGD": _isolation("voronoi"),
    "NOGD": Method(NOGDClassifier, _NYSTROM, "n_cells"),
    f"NOGD{FROM_DATA}": Method(NOGDClassifier, _NYSTROM),
    "AdaRaker": Method(AdaRakerClassifier, {"bandwidths": settings.ADARAKER_SIGMAS, **RIVALS_PASS}, "shrinkage"),
}
RIVALS = {name: name.removesuffix(FROM_DATA) for name in METHODS if not name.startswith("IK")}  # as published


def choose(name: str, X: Any, y: Any, plan: Plan, seed: int) -> tuple[dict[str, Any], dict[str, float]]:
    """Return a method's parameter as cross-validation on the first rows chooses it, and the time that this took.

    Parameters
    ----------
    name : str
        One of METHODS.
    X, y
        Training rows in random order, of which as many are taken as the settings say.
    plan : Plan
    seed : int

    Returns
    -------
    chosen : dict
        The parameter by name; empty if there is none to choose.
    seconds : dict
        ``cv_seconds`` and ``cv_cpu_seconds``; empty if there was nothing to choose from.
    """
    method, watch = METHODS[name], Stopwatch()
    if method.searched is None:
        return {}, {}
    ranges = {"n_cells": settings.N_CELLS_SEARCHED, "shrinkage": settings.ADARAKER_LAMBDAS_SEARCHED}
    candidates = ranges[method.searched][plan.scale]
    if len(candidates) == 1:
        return {method.searched: candidates[0]}, {}
    found = _search(method, candidates, seed).fit(*search_rows(X, y, plan))
    return dict(found.best_params_), watch.seconds("cv_")


def search_rows(X: Any, y: Any, plan: Plan) -> tuple[Any, Any]:
    """Return the rows for cross-validation: the first of training rows in random order."""
    n = settings.CROSS_VALIDATION_ROWS[plan.scale]
    return X[:n], y[:n]


def search_note(plan: Plan) -> str:
    """Return how psi is chosen."""
    n_rows = settings.CROSS_VALIDATION_ROWS[plan.scale]
    listed = ", ".join(map(str, settings.N_CELLS_SEARCHED[plan.scale]))
    return (
        f"psi was chosen by {settings.N_FOLDS}-fold cross-validation on at most {n_rows:,} rows to learn from, among "
        f"{listed} (cells: as far as folds have rows); this is not part of the times."
    )


def _search(method: Method, candidates: tuple[Any, ...], seed: int) -> Any:
    """Return a search over candidates; both kinds take the same folds, and the first of equally good candidates."""
    folds = StratifiedKFold(settings.N_FOLDS)
    if method.learner is IKOGDClassifier:
        # As GridSearchCV would, but rows are mapped once for a fold.
        return IKOGDClassifierCV(**method.fixed, n_cells=candidates, cv=folds, random_state=seed)
    return GridSearchCV(method.make(seed), {method.searched: candidates}, cv=folds, refit=False)
