"""What all learners share: a kernel made from flat parameters, or a ready one."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from isokern.arrays import is_foreign, to_host
from isokern.devices import foreign_labels
from isokern.feature_map import IsolationKernel
from isokern.rows import RowsEstimator, check_rows

KERNEL_PARAMETERS = ("partitioning", "n_partitionings", "n_cells", "max_depth", "scale", "device")


class MappedEstimator(RowsEstimator):
    """An estimator that maps rows to cells. Subclasses list the kernel's parameters in their own ``__init__``."""

    kernel_: IsolationKernel

    def _given_kernel(self) -> IsolationKernel | None:
        """Return the kernel that the user made, if it is fitted and so to be used as it is."""
        kernel = self._unwrapped_kernel()
        return kernel if kernel is not None and hasattr(kernel, "n_cells_") else None

    def _fit_kernel(self, X: Any, rng: np.random.RandomState) -> IsolationKernel:
        """Return a fitted kernel: the user's own as it is, or one fitted to X."""
        given = self._given_kernel()
        if given is not None:
            if given.n_features_in_ != self.n_features_in_:
                raise ValueError(
                    f"X must have the {given.n_features_in_} columns of kernel; got {self.n_features_in_}."
                )
            return given
        kernel = (self._flat_kernel(rng) if self.kernel is None else clone(self._unwrapped_kernel())).fit(X)
        if hasattr(self, "feature_names_in_"):  # which X has lost if it is rows of a stream that were held back
            kernel.feature_names_in_ = self.feature_names_in_
        return kernel

    def _flat_kernel(self, rng: np.random.RandomState) -> IsolationKernel:
        """Return an unfitted kernel made from the flat parameters, its seed drawn from ``rng``."""
        flat = {name: getattr(self, name) for name in KERNEL_PARAMETERS}
        return IsolationKernel(**flat, n_jobs=self.n_jobs, random_state=draw_seed(rng))

    def _unwrapped_kernel(self) -> IsolationKernel | None:
        return unwrapped(self.kernel)

    def _check_kernel_parameters(self) -> None:
        kernel = self._unwrapped_kernel()
        if kernel is None:
            flat = {name: getattr(self, name) for name in KERNEL_PARAMETERS}
            return IsolationKernel(**flat)._check_parameters()
        if not isinstance(kernel, IsolationKernel):
            raise ValueError(f"kernel must be an IsolationKernel or None; got {kernel!r}.")
        defaults = inspect.signature(type(self)).parameters
        for name in KERNEL_PARAMETERS:
            value = getattr(self, name)
            if value is not defaults[name].default and value != defaults[name].default:
                raise ValueError(f"{name} must not be given along with kernel, which has its own; got {value!r}.")
        return None

    def _map(self, X: Any) -> NDArray[Any]:
        """Return the cells of rows, which must be like those that were fitted."""
        if is_foreign(X):
            return self.kernel_._apply_foreign(X)
        if type(X) is np.ndarray and not hasattr(self, "feature_names_in_"):
            cells = self.kernel_._apply_few(X)
            if cells is not None:
                return cells
        return self.kernel_._apply(check_rows(self, X, reset=False))


def draw_seed(rng: np.random.RandomState) -> int:
    """Return a seed drawn from a generator."""
    return int(rng.randint(np.iinfo(np.int32).max))


def unwrapped(kernel: Any) -> Any:
    """Return a kernel without scikit-learn's frozen wrapping."""
    return kernel.estimator if isinstance(kernel, FrozenEstimator) else kernel


def labels_of(scores: NDArray[np.float64], classes: NDArray[Any]) -> NDArray[Any]:
    """Return the class of the largest score; one column of scores speaks for the second class where positive."""
    if is_foreign(scores) and classes.dtype.kind in "buif":
        return foreign_labels(scores, classes)
    scores = to_host(scores) if is_foreign(scores) else scores
    return classes[scores.argmax(axis=1) if scores.ndim == 2 else (scores > 0).astype(np.intp)]
