"""The paper's tables and figures, measured again: one function each.

``isokern.experiments.batch("data", "results")`` does what ``isokern reproduce batch --data data --out results`` does.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Protocol

from isokern.checks import one_of
from isokern.experiments.experiment import Experiment, Plan, Table, Verdict
from isokern.experiments.plan import check_use, make_plan, nearest
from isokern.experiments.result import Result, conclude, write
from isokern.experiments.runner import run

# In the order of the paper. The module of each is in ``_paper``, apart from the functions, which have its name.
NAMES = (
    "feature-map-size",
    "kernel-shape",
    "contours",
    "datasets",
    "online",
    "primal-dual",
    "dot-product",
    "batch",
    "effect-of-t",
    "gpu",
    "svm",
    "additive",
)

_PARAMETERS = """

    Parameters
    ----------
    data : str or path, default=None
        The folder with the data sets. None means the one that the environment variable ISOKERN_DATA names, then the
        cache. Nothing is downloaded.
    out : str or path, default=None
        Where to write the table (CSV and Markdown), the figure (PNG and PDF) and the records, in a folder of the
        experiment's name. A cell that has a record there is not measured again. None writes nothing.
    scale : {{"quick", "full"}}, default="quick"
        Samples of rows, for minutes on two cores, or the paper's sizes.
    datasets : list of str, default=None
        The data sets to use, by the paper's names; None means all of the experiment's that are at hand.
    n_seeds : int, default=1
        How often to measure, with seeds 0, 1, ...; the table shows the mean and the spread.
    time_limit : float, default=None
        Seconds that one cell may take before it is stopped; None means two minutes at quick scale, else an hour.

    Returns
    -------
    Result
        With ``records``, ``table``, ``verdicts``, ``figure`` and ``missing``.

    Examples
    --------
    >>> from isokern import experiments
    >>> result = experiments.{function}("data", "results", datasets=["a9a"])  # doctest: +SKIP
    """


class Function(Protocol):
    """An experiment to be called."""

    def __call__(
        self,
        data: str | os.PathLike[str] | None = None,
        out: str | os.PathLike[str] | None = None,
        *,
        scale: str = "quick",
        datasets: Iterable[str] | None = None,
        n_seeds: int = 1,
        time_limit: float | None = None,
    ) -> Result:
        """Run it."""


def find(name: str) -> Experiment:
    """Return an experiment by its name.

    Examples
    --------
    >>> from isokern.experiments import find
    >>> find("datasets").title
    'Properties of the data sets'
    >>> find("bach")
    Traceback (most recent call last):
    ValueError: name must be one of ...; got "bach". Did you mean "batch"?
    """
    if name not in NAMES:
        raise ValueError(f'name must be one of {one_of(NAMES)}; got "{name}".{nearest(name, NAMES)}')
    return import_module(f"{__name__}.paper.{name.replace('-', '_')}").EXPERIMENT


def _function(name: str, sentence: str) -> Function:
    def experiment(
        data: str | os.PathLike[str] | None = None,
        out: str | os.PathLike[str] | None = None,
        *,
        scale: str = "quick",
        datasets: Iterable[str] | None = None,
        n_seeds: int = 1,
        time_limit: float | None = None,
    ) -> Result:
        plan = make_plan(data, scale=scale, datasets=datasets, n_seeds=n_seeds, time_limit=time_limit)
        found, folder = find(name), None if out is None else Path(out)
        check_use(found, plan)
        result = conclude(found, run(found, plan, folder), plan)
        if folder is not None:
            write(result, folder)
        return result

    experiment.__name__ = experiment.__qualname__ = name.replace("-", "_")
    experiment.__doc__ = sentence + _PARAMETERS.format(function=experiment.__name__)
    return experiment


feature_map_size = _function("feature-map-size", "Measure how large the feature maps of kernels are.")
kernel_shape = _function("kernel-shape", "Draw the Laplacian and the Isolation Kernel around a point of uniform data.")
contours = _function("contours", "Draw contours of the Isolation Kernel, of trees and of Voronoi cells, on real data.")
datasets = _function("datasets", "Measure the properties of the data sets.")
online = _function("online", "Lead OGD, NOGD and IK-OGD along streams, and follow accuracy and time.")
primal_dual = _function("primal-dual", "Compare the time of IK-OGD with that of its dual form.")
dot_product = _function("dot-product", "Compare the time of IK-OGD with that of all products, for more and more cells.")
batch = _function("batch", "Compare accuracy and time of all methods, trained once and tested once.")
effect_of_t = _function("effect-of-t", "Follow accuracy and time for more and more partitionings, or landmarks.")
gpu = _function("gpu", "Compare the time of mapping on the CPU and on a GPU.")
svm = _function("svm", "Compare LIBSVM and its Laplacian kernel with a linear machine on the Isolation Kernel's map.")
additive = _function("additive", "Compare the chi-squared kernel and the Isolation Kernel, and the maps of both.")

__all__ = [
    "NAMES",
    "Experiment",
    "Plan",
    "Result",
    "Table",
    "Verdict",
    "additive",
    "batch",
    "contours",
    "datasets",
    "dot_product",
    "effect_of_t",
    "feature_map_size",
    "find",
    "gpu",
    "kernel_shape",
    "online",
    "primal_dual",
    "svm",
]
