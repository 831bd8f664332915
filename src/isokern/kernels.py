"""Compute the classic kernels (Laplacian, Gaussian, polynomial, chi2, intersection) and kernels given as functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from isokern import _core
from isokern.checks import is_integer, is_number, one_of
from isokern.parts import Part, need
from isokern.rows import CoreRows, as_scipy, n_rows

KERNELS = ("laplacian", "gaussian", "polynomial", "chi2", "intersection")
NON_NEGATIVE = ("chi2", "intersection")  # defined for X of at least 0
_UNIT = ("laplacian", "gaussian")  # with k(x, x) = 1
_N_PAIRS = 1000
_LARGEST_DEGREE = 100


@dataclass(eq=False)
class NamedKernel(Part):
    """Kernel that the compiled core computes.

    ``laplacian``: exp(-gamma |x - z|_1); ``gaussian``: exp(-gamma |x - z|^2); ``polynomial``: (gamma x.z +
    coef0)^degree; ``chi2``: sum of 2 x z / (x + z); ``intersection``: sum of min(x, z). If ``normalised``, the last
    three are divided by sqrt(k(x, x) k(z, z)).
    """

    name: str
    gamma: float
    coef0: float
    degree: int
    normalised: bool

    @property
    def spec(self) -> _core.KernelSpec:
        """Kernel and parameters in the core's form."""
        return _core.KernelSpec(self.name, self.gamma, self.coef0, self.degree, self.normalised)

    def matrix(self, rows: CoreRows, points: CoreRows, threads: int) -> NDArray[np.float64]:
        """Return k(row, point) for all pairs, (n, m)."""
        values = np.empty((n_rows(rows), n_rows(points)))
        _core.kernel_matrix(self.spec, rows, points, values, threads)
        return values

    def check(self) -> None:
        """Raise ValueError if the name or a parameter is invalid."""
        need(isinstance(self.name, str), "name must be a string")
        check_kernel(self.name, self.gamma, None, self.coef0, self.degree)


class CustomKernel:
    """Kernel given as a function k(X, Z) that returns the matrix of all pairs."""

    def __init__(self, function: Callable[[Any, Any], Any]) -> None:
        self.function = function

    def matrix(self, rows: CoreRows, points: CoreRows, threads: int) -> NDArray[np.float64]:
        """Return k(row, point) for all pairs, (n, m)."""
        values = self.function(as_scipy(rows), as_scipy(points))
        values = np.asarray(values.toarray() if sparse.issparse(values) else values, dtype=np.float64)
        shape = (n_rows(rows), n_rows(points))
        if values.shape != shape:
            raise ValueError(f"kernel must return values of shape {shape}; got {values.shape}.")
        if not np.isfinite(values).all():
            raise ValueError("kernel must return finite values; got NaN or infinity.")
        return values


def check_kernel(kernel: Any, gamma: Any, n_cells: Any, coef0: Any, degree: Any) -> None:
    """Raise ValueError if the kernel or one of its parameters is invalid."""
    if isinstance(kernel, str) and kernel not in KERNELS:
        raise ValueError(f"kernel must be {one_of(KERNELS)}, an IsolationKernel or a function; got {kernel!r}.")
    if not isinstance(kernel, str) and not callable(kernel):
        raise ValueError(f"kernel must be a name, an IsolationKernel or a function; got {kernel!r}.")
    check_gamma(gamma)
    if n_cells is not None and not (is_integer(n_cells, at_least=2) and kernel == "laplacian" and gamma == "data"):
        raise ValueError(
            f'n_cells must be None, or at least 2 with kernel="laplacian" and gamma="data"; got {n_cells!r}.'
        )
    if not is_number(coef0) or coef0 < 0:
        raise ValueError(f"coef0 must be a number of at least 0; got {coef0!r}.")
    if not is_integer(degree, at_least=1) or degree > _LARGEST_DEGREE:
        raise ValueError(f"degree must be an integer from 1 to {_LARGEST_DEGREE}; got {degree!r}.")


def check_gamma(gamma: Any) -> None:
    """Raise ValueError unless gamma is "data" or a positive number."""
    if gamma != "data" and not (is_number(gamma) and gamma > 0):
        raise ValueError(f'gamma must be "data" or a positive number; got {gamma!r}.')


def gamma_from_psi(n_cells: int, n_columns: int) -> float:
    """Return ln(psi) / d, the gamma of the Laplacian kernel that the paper compares with psi cells."""
    return math.log(n_cells) / n_columns


def gamma_from_data(kernel: str, table: Any, rng: np.random.RandomState) -> float:
    """Return one over the mean distance of random pairs of rows: L1 for the Laplacian, squared for the Gaussian kernel.

    For the polynomial kernel it is one over the mean squared norm, for the others 1.
    """
    pairs = rng.randint(table.shape[0], size=(2, _N_PAIRS))
    first, second = table[pairs[0]], table[pairs[1]]
    with np.errstate(over="ignore", under="ignore"):
        difference = first.astype(np.float64) - second.astype(np.float64)
        if kernel == "laplacian":
            mean = float(abs(difference).sum()) / _N_PAIRS
        elif kernel == "gaussian":
            mean = _squares(difference) / _N_PAIRS
        elif kernel == "polynomial":
            mean = _squares(first.astype(np.float64)) / _N_PAIRS
        else:
            return 1.0
    # Squares may overflow or underflow, so the mean is clipped before the division.
    return float(1.0 / np.clip(mean, 1e-300, 1e300)) if mean != 0 else 1.0


def _squares(table: Any) -> float:
    return float((table.multiply(table) if sparse.issparse(table) else table * table).sum())


# -- kernels of estimators, from their parameters


def needs_rows(learner: Any) -> bool:
    """Return whether gamma has to be learned from rows."""
    return isinstance(learner.kernel, str) and learner.n_cells is None and learner.gamma == "data"


def choose_kernel(
    learner: Any, table: Any, rng: np.random.RandomState, *, normalised: bool = False
) -> NamedKernel | CustomKernel:
    """Return the kernel of a learner and, for a named one, set the learner's ``gamma_``."""
    if not isinstance(learner.kernel, str):
        return CustomKernel(learner.kernel)
    if learner.n_cells is not None:
        learner.gamma_ = gamma_from_psi(learner.n_cells, learner.n_features_in_)
    elif learner.gamma == "data":
        learner.gamma_ = gamma_from_data(learner.kernel, table, rng)
    else:
        learner.gamma_ = float(learner.gamma)
    is_normalised = normalised and learner.kernel not in _UNIT
    return NamedKernel(learner.kernel, learner.gamma_, float(learner.coef0), int(learner.degree), is_normalised)


def check_defined(learner: Any, rows: Any) -> Any:
    """Return scaled rows; raise ValueError if the learner's kernel is not defined for negative values."""
    values = rows.data if sparse.issparse(rows) else rows
    if learner.kernel in NON_NEGATIVE and values.size and values.min() < 0:
        where = "" if learner.scale is None else " after scaling"
        cure = 'Set scale="minmax"' if learner.scale != "minmax" else "Clip it to the range that scale has learned"
        raise ValueError(f'X must not be negative for kernel="{learner.kernel}"; got {values.min():g}{where}. {cure}.')
    return rows
