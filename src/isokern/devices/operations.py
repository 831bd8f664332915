"""Provide operations that the Array API standard lacks, or that PyTorch runs faster, for all libraries."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from isokern.arrays import is_jax
from isokern.devices.pytorch import import_torch

_BUDGET = 2**28  # bytes of a block, if the device's free memory is not known
_MESSAGES = ("out of memory", "can't allocate memory", "resource_exhausted", "alloc_failed")


def is_torch(xp: Any) -> bool:
    """Return whether a namespace is PyTorch's."""
    return xp.__name__.endswith(".torch")


def on_host(xp: Any, device: Any) -> bool:
    """Return whether a device is the CPU."""
    if is_torch(xp):
        return bool(device.type == "cpu")
    return bool(device.platform == "cpu") if is_jax(xp) else "cupy" not in xp.__name__


def memory_budget(xp: Any, device: Any) -> int:
    """Return how many bytes a block may take: half of a GPU's free memory, else a constant."""
    if is_torch(xp) and device.type in ("cuda", "xpu"):
        free, _ = getattr(import_torch(), device.type).mem_get_info(device)
        return int(free) // 2
    if is_torch(xp) and device.type == "mps":
        mps = import_torch().mps
        return int(mps.recommended_max_memory() - mps.driver_allocated_memory()) // 2
    return _BUDGET


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error means that a device is out of memory."""
    text = str(error).lower()
    return isinstance(error, MemoryError) or any(message in text for message in _MESSAGES)


@contextmanager
def full_precision(xp: Any, device: Any) -> Iterator[None]:
    """Turn off TF32, bfloat16 and autocast for float32 matrix products."""
    if is_torch(xp):
        torch = import_torch()
        before = torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision("highest")
        try:
            with torch.autocast(device.type, enabled=False):
                yield
        finally:
            torch.set_float32_matmul_precision(before)
    elif is_jax(xp):
        import jax

        with jax.default_matmul_precision("highest"):
            yield
    else:
        yield


def check_products(xp: Any, device: Any) -> None:
    """Raise if a device still multiplies float32 matrices in lower precision."""
    n, value = 64, 1.0 + 2.0**-12
    factors = xp.full((n, n), value, dtype=xp.float32, device=device)
    error = abs(float((factors @ factors)[0, 0]) - n * value**2)
    if not error <= 2 * n * (n + 32) * 2.0**-24:
        raise ValueError(
            f"device must multiply float32 matrices in full precision; {device} was off by {error:.1e}. Disable "
            'lower-precision products, or use device="cpu".'
        )


def multiply_add(xp: Any, rows: Any, factors: Any, offsets: Any) -> Any:
    """Return rows @ factors + offsets."""
    return xp.addmm(offsets, rows, factors) if is_torch(xp) else rows @ factors + offsets


def smallest_two(xp: Any, values: Any) -> tuple[Any, Any, Any]:
    """Return the minimum along the last axis, its first position, and the minimum of the others.

    ``values`` may be overwritten.
    """
    if is_torch(xp):
        smallest, position = import_torch().min(values, dim=-1)
        values.scatter_(-1, position.unsqueeze(-1), float("inf"))
        return smallest, position, values.amin(dim=-1)
    position = xp.argmin(values, axis=-1)
    numbers = xp.arange(values.shape[-1], dtype=position.dtype, device=values.device)
    infinity = xp.asarray(float("inf"), dtype=values.dtype, device=values.device)
    others = xp.where(numbers == xp.expand_dims(position, axis=-1), infinity, values)
    return xp.min(values, axis=-1), position, xp.min(others, axis=-1)


def dense_of_csr(parts: tuple[Any, Any, Any], n_columns: int, numbers: Any | None) -> Any:
    """Return CSR tensors (values, columns, starts) as a dense tensor.

    With ``numbers``, column j goes to numbers[j]. Columns that nobody reads share the last one and overwrite each
    other.
    """
    values, columns, starts = parts
    torch = import_torch()
    n_rows = starts.shape[0] - 1
    rows = torch.repeat_interleave(
        torch.arange(n_rows, device=values.device), torch.diff(starts), output_size=values.shape[0]
    )
    columns = columns.long() if numbers is None else numbers[columns.long()]
    table = torch.zeros((n_rows, n_columns), dtype=values.dtype, device=values.device)
    return table.index_put_((rows, columns), values)


def csr_tensor(starts: Any, columns: Any, values: Any, *, n_columns: int) -> Any:
    """Return a CSR tensor, without PyTorch's warning that they are in beta."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        return import_torch().sparse_csr_tensor(
            starts, columns, values, size=(len(starts) - 1, n_columns), check_invariants=False
        )
