"""How OGD and NOGD come by their kernel: by name and parameters, of which gamma may be learned from rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from isokern.kernels import NON_NEGATIVE, NamedKernel, OwnKernel, gamma_from_data, gamma_from_psi

_UNIT_KERNELS = ("laplacian", "gaussian")


def needs_rows(learner: Any) -> bool:
    """Return whether gamma has to be learned from rows."""
    return isinstance(learner.kernel, str) and learner.n_cells is None and learner.gamma == "data"


def choose_kernel(
    learner: Any, table: Any, rng: np.random.RandomState, *, normalised: bool = False
) -> NamedKernel | OwnKernel:
    """Return the kernel that a learner's parameters mean for rows; the learner gets its ``gamma_``."""
    if not isinstance(learner.kernel, str):
        return OwnKernel(learner.kernel)
    if learner.n_cells is not None:
        learner.gamma_ = gamma_from_psi(learner.n_cells, learner.n_features_in_)
    elif learner.gamma == "data":
        learner.gamma_ = gamma_from_data(learner.kernel, table, rng)
    else:
        learner.gamma_ = float(learner.gamma)
    is_normalised = normalised and learner.kernel not in _UNIT_KERNELS
    return NamedKernel(learner.kernel, learner.gamma_, float(learner.coef0), int(learner.degree), is_normalised)


def check_defined(learner: Any, rows: Any) -> Any:
    """Return rows, scaled already; raise if a learner's kernel is not defined for them."""
    values = rows.data if sparse.issparse(rows) else rows
    if learner.kernel in NON_NEGATIVE and values.size and values.min() < 0:
        where = "" if learner.scale is None else " after scaling"
        cure = 'Give scale="minmax"' if learner.scale != "minmax" else "Clip it to the range that scale has learned"
        raise ValueError(f'X must not be negative for kernel="{learner.kernel}"; got {values.min():g}{where}. {cure}.')
    return rows
