"""Make arrays of other libraries for tests: array-api-strict always, PyTorch and JAX where they are installed."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest


def _lacks(package):
    return importlib.util.find_spec(package) is None


needs_torch = pytest.mark.skipif(_lacks("torch"), reason="PyTorch is not installed; make test-gpu installs it")
needs_jax = pytest.mark.skipif(_lacks("jax"), reason="JAX is not installed; its arrays are tested where it is")
LIBRARIES = ["array-api-strict", pytest.param("torch", marks=needs_torch)]


def array_of(library, values):
    """Return values as an array of a library."""
    if library == "torch":
        import torch

        return torch.from_numpy(np.array(values))
    if library == "jax":
        import jax

        return jax.numpy.asarray(values)
    import array_api_strict

    return array_api_strict.asarray(values)


def csr_tensor(table):
    """Return a dense array as a CSR tensor."""
    import torch
    from scipy import sparse

    from isokern.devices import operations

    csr = sparse.csr_array(table)
    parts = (torch.from_numpy(part) for part in (csr.indptr, csr.indices, csr.data))
    return operations.csr_tensor(*parts, n_columns=csr.shape[1])


def to_numpy(array):
    """Return an array's values."""
    return np.asarray(array.to_dense() if hasattr(array, "to_dense") else array)


def assert_same_cells(kernel, rows, library):
    """Check that rows of another library fall into the same cells as NumPy rows, and return those cells."""
    cells = kernel.apply(array_of(library, rows))
    np.testing.assert_array_equal(to_numpy(cells), kernel.apply(rows))
    return cells
