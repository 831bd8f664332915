"""Provide the kernel of an estimator: made from its flat parameters, or given by the user."""

from __future__ import annotations

import inspect
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator

from isokern.engines import engine_of
from isokern.feature_map import IsolationKernel
from isokern.fitted_map import FittedMap
from isokern.learners.warm_up import BUFFERED_ROWS
from isokern.partitionings import is_tree
from isokern.parts import need

KERNEL_PARAMETERS = (
    "partitioning",
    "n_partitionings",
    "n_cells",
    "max_depth",
    "n_scales",
    "scale",
    "categorical_features",
    "column_weights",
    "device",
)
_WITHOUT_CHOICE = {"n_scales": 1, "column_weights": None}  # what "auto" means for a learner that chooses nothing
REFITTED = (
    "kernel must stay as it was when learning began; got one that was refitted. Refit the learner, or give it a kernel "
    "of its own."
)


class KernelSource(NamedTuple):
    """Source of the kernel of a learner that has ``kernel`` and the kernel's own parameters as parameters."""

    learner: Any

    @property
    def kernel(self) -> IsolationKernel | None:
        """Kernel given by the user, without scikit-learn's FrozenEstimator."""
        return unwrapped(self.learner.kernel)

    @property
    def fitted(self) -> IsolationKernel | None:
        """Kernel given by the user, if it is fitted."""
        kernel = self.kernel
        return kernel if kernel is not None and hasattr(kernel, "map_") else None

    @property
    def has_trees(self) -> bool:
        """Whether the kernel consists of isolation trees, which take categories and missing values."""
        return is_tree(getattr(self.kernel or self.learner, "partitioning", None))

    @property
    def n_initial(self) -> int:
        """Number of rows to buffer before the map is drawn."""
        if self.fitted is not None and getattr(self.learner, "linear", "auto") in (False, "auto"):
            return 0
        if self.learner.n_initial is not None:
            return int(self.learner.n_initial)
        n_cells = (self.kernel or self.learner).n_cells
        return BUFFERED_ROWS if isinstance(n_cells, str) else max(BUFFERED_ROWS, n_cells)

    @property
    def _flat(self) -> dict[str, Any]:
        """Parameters of the kernel that the learner has; those that are open mean a single scale, and no weights."""
        flat = {name: getattr(self.learner, name) for name in _defaults(self.learner.__class__)}
        is_open = {name for name in _WITHOUT_CHOICE if isinstance(flat.get(name), str) and flat[name] == "auto"}
        return flat | {name: _WITHOUT_CHOICE[name] for name in is_open}

    def unfitted(self, rng: np.random.RandomState, **chosen: Any) -> IsolationKernel:
        """Return an unfitted kernel; one made from flat parameters gets a seed drawn from ``rng``.

        ``chosen`` are values for parameters that the learner leaves open.
        """
        if self.kernel is not None:
            return clone(self.kernel)
        return IsolationKernel(**self._flat | chosen, n_jobs=self.learner.n_jobs, random_state=draw_seed(rng))

    def fit(self, table: Any, rng: np.random.RandomState, **chosen: Any) -> IsolationKernel:
        """Return a fitted kernel: the user's own as is, or one fitted to the table; ``chosen`` as in ``unfitted``."""
        if self.fitted is not None:
            d = self.learner.n_features_in_
            if self.fitted.n_features_in_ != d:
                raise ValueError(f"X must have the {self.fitted.n_features_in_} columns of kernel; got {d}.")
            return self.fitted
        kernel = self.unfitted(rng, **chosen)
        kernel.check_parameters()
        kernel.fit_rows(table, self.learner.is_categorical_)
        if hasattr(self.learner, "feature_names_in_"):
            kernel.feature_names_in_ = self.learner.feature_names_in_
        return kernel

    def for_cells(self) -> IsolationKernel:
        """Return the kernel that cells come from: the learner's, or a fitted one given by the user."""
        kernel = getattr(self.learner, "kernel_", None) or self.fitted
        if kernel is None:
            raise NotFittedError(
                f"{type(self.learner).__name__} must know the map of the cells; give a fitted kernel, or call fit or "
                "partial_fit first."
            )
        return kernel

    def check(self) -> None:
        """Raise ValueError if the kernel or its parameters are invalid."""
        kernel = self.kernel
        if kernel is None:
            IsolationKernel(**self._flat).check_parameters()
            return
        if not isinstance(kernel, IsolationKernel):
            raise ValueError(f"kernel must be an IsolationKernel or None; got {kernel!r}.")
        for name, default in _defaults(self.learner.__class__).items():
            value = getattr(self.learner, name)
            if value is not default and not np.array_equal(value, default):
                raise ValueError(f"{name} must not be given along with kernel, which has its own; got {value!r}.")


@cache  # because inspecting a signature takes longer than learning a row
def _defaults(learner: Any) -> dict[str, Any]:
    """Return the defaults of the kernel's parameters."""
    parameters = inspect.signature(learner).parameters
    return {name: parameters[name].default for name in KERNEL_PARAMETERS if name in parameters}


def take_columns(learner: Any, kernel: IsolationKernel) -> None:
    """Give a learner the columns of a fitted kernel, as if it had read rows itself."""
    for name in ("n_features_in_", "is_categorical_", "feature_names_in_"):
        if hasattr(kernel, name):
            setattr(learner, name, getattr(kernel, name))


def draw_seed(rng: np.random.RandomState) -> int:
    """Return a seed drawn from a generator."""
    return int(rng.randint(np.iinfo(np.int32).max))


def unwrapped(kernel: Any) -> Any:
    """Return a kernel without scikit-learn's FrozenEstimator."""
    return kernel.estimator if isinstance(kernel, FrozenEstimator) else kernel


def read_cells(kernel: IsolationKernel, cells: Any) -> Any:
    """Return cells to learn from, on the host; raise ValueError if there are none or they cannot be the kernel's."""
    known = kernel.map_.check_cells(engine_of(cells).to_host(cells))
    if not len(known):
        raise ValueError("cells must have at least 1 row; got 0.")
    return known


def check_same_map(fitted: FittedMap, starts: Any) -> None:
    """Raise ValueError if the kernel, which the user may hold too, has been refitted to other cells."""
    if fitted.starts is not starts and not np.array_equal(fitted.starts, starts):
        raise ValueError(REFITTED)


def share_starts(kernel: Any, model: Any) -> None:
    """Let a loaded model share the array of its kernel; raise ValueError unless they have the same cells."""
    need(isinstance(kernel, IsolationKernel), "kernel_ must be an IsolationKernel")
    need(np.array_equal(model.starts, kernel.map_.starts), "the model must have the cells of kernel_")
    model.starts = kernel.map_.starts
