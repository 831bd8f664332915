"""Recognise arrays of other libraries, such as PyTorch tensors, find their device, and copy them to the host."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import get_tags
from sklearn.utils.validation import _check_feature_names, _check_n_features


class ForeignRows(NamedTuple):
    """Rows of another library's array, validated except for NaN, and their column names."""

    X: Any
    names: NDArray[Any] | None
    allow_nan: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of rows and columns."""
        return tuple(self.X.shape)


def is_foreign(X: Any) -> bool:
    """Return whether X is an array of another library, such as a PyTorch tensor, on any device."""
    if isinstance(X, np.ndarray | np.generic) or sparse.issparse(X):
        return False
    # __array_namespace__ is missing in some versions of CuPy and in all of PyTorch.
    return hasattr(X, "__array_namespace__") or is_tensor(X) or type(X).__module__.partition(".")[0] == "cupy"


def is_tensor(X: Any) -> bool:
    """Return whether X is a PyTorch tensor, without importing PyTorch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(X, torch.Tensor)


def is_csr(X: Any) -> bool:
    """Return whether X is a CSR tensor of PyTorch; raise on other sparse layouts."""
    if not is_tensor(X) or str(X.layout) == "torch.strided":
        return False
    if str(X.layout) != "torch.sparse_csr":
        raise ValueError(f"X must be dense or CSR; got {X.layout}. Call X.to_sparse_csr() first.")
    return True


def namespace(X: Any) -> Any:
    """Return an array's library as an Array API namespace."""
    return _array_api_compat().array_namespace(X)


def device_of(X: Any) -> Any:
    """Return an array's device."""
    return _array_api_compat().device(X)


def is_jax(xp: Any) -> bool:
    """Return whether a namespace is JAX's."""
    return xp.__name__.startswith("jax")


def has_float64(xp: Any, device: Any) -> bool:
    """Return whether a device supports float64; Apple's GPUs do not, and JAX only if enabled."""
    if is_jax(xp):
        import jax

        return bool(jax.config.jax_enable_x64)
    try:
        return bool(xp.zeros(1, dtype=xp.float64, device=device).dtype == xp.float64)
    except (TypeError, RuntimeError):
        return False


def like(values: Any, X: Any) -> Any:
    """Copy NumPy values to X's library and device, as float32 if it has no float64."""
    xp, device = namespace(X), device_of(X)
    if values.dtype == np.float64 and not has_float64(xp, device):
        values = values.astype(np.float32)
    return xp.asarray(np.require(values, requirements=["C", "W"]), device=device)


def to_host(X: Any) -> Any:
    """Copy another library's array to a NumPy array, or a CSR tensor to a SciPy array."""
    if is_csr(X):
        parts = (to_host(part) for part in (X.values(), X.col_indices(), X.crow_indices()))
        return sparse.csr_array(tuple(parts), shape=tuple(X.shape))
    if is_tensor(X):
        tensor = X.detach().cpu()
        return (tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor).numpy()  # NumPy has no bfloat16
    if hasattr(X, "get"):  # CuPy
        return X.get()
    try:
        return np.asarray(X)
    except (RuntimeError, TypeError):
        return np.from_dlpack(X, device="cpu")


def read_foreign(estimator: Any, X: Any) -> ForeignRows:
    """Validate X as rows for a fitted estimator, without copying it."""
    check_detached(X)
    if X.ndim != 2:
        raise ValueError(f"X must have 2 dimensions; got {X.ndim}.")
    if X.shape[0] == 0:
        raise ValueError("X must have at least 1 row; got 0.")
    if namespace(X).isdtype(X.dtype, "complex floating"):
        raise ValueError(f"X must be of real numbers; got {X.dtype}.")
    _check_feature_names(estimator, X, reset=False)
    _check_n_features(estimator, X, reset=False)
    if getattr(estimator, "is_categorical_", None) is not None:
        raise ValueError("X must be a data frame or an array of NumPy, since it has categories; got " + _place(X) + ".")
    return ForeignRows(X, getattr(estimator, "feature_names_in_", None), get_tags(estimator).input_tags.allow_nan)


def check_detached(X: Any) -> None:
    """Raise if X is a tensor that requires grad."""
    if getattr(X, "requires_grad", False):
        raise ValueError(
            "X must not require grad, since cells have no gradient; got a tensor that does. Pass X.detach() instead."
        )


def check_same_place(X: Any, Y: Any) -> None:
    """Raise unless two arrays have the same library and device."""
    if not (is_foreign(X) and is_foreign(Y) and namespace(X) is namespace(Y) and device_of(X) == device_of(Y)):
        raise ValueError(
            f"Y must have the library and the device of X, {_place(X)}; got {_place(Y)}. Move one of them first."
        )


def _place(X: Any) -> str:
    library = type(X).__module__.partition(".")[0]
    return f"{library} on {device_of(X)}" if is_foreign(X) else library


def _array_api_compat() -> ModuleType:
    try:
        import array_api_compat
    except ImportError as error:
        raise ImportError("arrays of other libraries need a package: pip install isokern[gpu]") from error
    return array_api_compat
