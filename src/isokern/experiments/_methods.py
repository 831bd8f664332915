"""The methods that are compared: how each is made for a value of its one parameter, and how that is chosen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from sklearn.model_selection import GridSearchCV, StratifiedKFold

from isokern.experiments import _settings_e2 as settings
from isokern.experiments._experiment import Plan
from isokern.experiments._measuring import Stopwatch
from isokern.learners import (
    AdaRakerClassifier,
    IKOGDClassifier,
    IKOGDClassifierCV,
    NOGDClassifier,
    OGDClassifier,
)

# The paper's learner: steps of eta, one pass over the rows in their order, the last iterate.
PAPERS_PASS: dict[str, Any] = {"schedule": "constant", "learning_rate": settings.ETA, "n_passes": 1, "shuffle": False}
RIVALS_PASS: dict[str, Any] = {"learning_rate": settings.ETA, "shuffle": False}


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
    "AdaRaker": Method(AdaRakerClassifier, RIVALS_PASS, "shrinkage"),
}


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
    ranges = {"n_cells": settings.CELLS, "shrinkage": settings.SHRINKAGES}[method.searched]
    candidates = ranges[plan.scale]
    if len(candidates) == 1:
        return {method.searched: candidates[0]}, {}
    n = min(settings.CV_ROWS[plan.scale], len(y))
    found = _search(method, candidates, seed).fit(X[:n], y[:n])
    return dict(found.best_params_), watch.seconds("cv_")


def _search(method: Method, candidates: tuple[Any, ...], seed: int) -> Any:
    """Return a search over candidates; both kinds take the same folds, and the first of equally good candidates."""
    folds = StratifiedKFold(settings.N_FOLDS)
    if method.learner is IKOGDClassifier:
        # As GridSearchCV would, but rows are mapped once for a fold.
        return IKOGDClassifierCV(**method.fixed, n_cells=candidates, cv=folds, random_state=seed)
    return GridSearchCV(method.make(seed), {method.searched: candidates}, cv=folds, refit=False)
