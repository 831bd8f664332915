"""Measure the paper's tables and figures again, with one function for each.

``isokern.experiments.batch("data", "results")`` does what ``isokern reproduce batch --data data --out results`` does.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path

from isokern.checks import one_of
from isokern.data.catalogue import did_you_mean
from isokern.experiments.experiment import Experiment, Plan, Result, Table, Verdict
from isokern.experiments.plan import make_plan
from isokern.experiments.runner import run

# By name, in the order of the paper: the module in ``paper``, and the first line of the function's docstring.
_EXPERIMENTS = {
    "feature-map-size": ("sizes", "Measure how large the feature maps of kernels are."),
    "kernel-shape": ("shapes", "Draw the Laplacian and the Isolation Kernel around a point of uniform data."),
    "contours": ("contours", "Draw contours of the Isolation Kernel, with trees and Voronoi cells, on real data."),
    "datasets": ("sizes", "Measure the properties of the data sets."),
    "online": ("streams", "Follow accuracy and time of OGD, NOGD and IK-OGD along streams."),
    "primal-dual": ("forms", "Compare the time of IK-OGD with that of its dual form."),
    "dot-product": ("forms", "Compare the time of IK-OGD with that of a naive dot product as psi grows."),
    "batch": ("batch", "Compare accuracy and time of all methods, trained once and tested once."),
    "effect-of-t": ("batch", "Follow accuracy and time as the number of partitionings or landmarks grows."),
    "gpu": ("gpu", "Compare the time of mapping on the CPU and on a GPU."),
    "svm": ("machines", "Compare LIBSVM on the Laplacian kernel with a linear machine on the Isolation Kernel's map."),
    "additive": ("machines", "Compare the chi-squared kernel and the Isolation Kernel, and the maps of both."),
}
NAMES = tuple(_EXPERIMENTS)

_DOCSTRING = """{sentence}

    Parameters
    ----------
    data : str or path, default=None
        The folder with the data sets. None means the folder in the environment variable ISOKERN_DATA, then the cache.
        Nothing is downloaded.
    out : str or path, default=None
        The folder to write to: the table (CSV and Markdown), the figure (PNG) and the records go into a subfolder with
        the experiment's name. A cell with a record there is not measured again. None writes nothing.
    scale : {{"quick", "full"}}, default="quick"
        Samples of rows, for minutes on two cores, or the paper's sizes.
    datasets : list of str, default=None
        The data sets to use, by the paper's names; None means all of the experiment's that are available.
    n_seeds : int, default=1
        The number of runs, with seeds 0, 1, ...; the table shows the mean and the range.
    time_limit : float, default=None
        CPU seconds after which a measurement is stopped; None means 120 at quick scale, else 3600.

    Returns
    -------
    Result
        With ``records``, ``table``, ``verdicts``, ``figure`` and ``missing``.

    Examples
    --------
    >>> from isokern import experiments
    >>> result = experiments.{name}("data", "results", datasets=["a9a"])  # doctest: +SKIP
    """


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
        raise ValueError(f'name must be one of {one_of(NAMES)}; got "{name}".{did_you_mean(name, NAMES)}')
    module = import_module(f"{__name__}.paper.{_EXPERIMENTS[name][0]}")
    return getattr(module, name.replace("-", "_").upper())


def _function(name: str) -> Callable[..., Result]:
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
        return run(find(name), plan, None if out is None else Path(out))

    experiment.__name__ = experiment.__qualname__ = name.replace("-", "_")
    experiment.__doc__ = _DOCSTRING.format(sentence=_EXPERIMENTS[name][1], name=experiment.__name__)
    return experiment


feature_map_size = _function("feature-map-size")
kernel_shape = _function("kernel-shape")
contours = _function("contours")
datasets = _function("datasets")
online = _function("online")
primal_dual = _function("primal-dual")
dot_product = _function("dot-product")
batch = _function("batch")
effect_of_t = _function("effect-of-t")
gpu = _function("gpu")
svm = _function("svm")
additive = _function("additive")

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
