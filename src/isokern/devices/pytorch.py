"""Find PyTorch devices by name, and copy blocks to them and back."""

from __future__ import annotations

import re
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

_NAME = re.compile(r"(torch:cpu|(cuda|xpu|mps)(:\d+)?)")


def is_compiled_core(name: object) -> bool:
    """Return whether a device name means the compiled core instead of PyTorch."""
    return name is None or name == "cpu"


def torch_device(name: object) -> Any:
    """Return the PyTorch device with a name; raise if it is not available."""
    if not (isinstance(name, str) and _NAME.fullmatch(name)):
        raise ValueError(
            'device must be None, "cpu" or a PyTorch device: "cuda", "cuda:1", "mps", "xpu" or "torch:cpu"; '
            f"got {name!r}."
        )
    torch = import_torch()
    try:
        device = torch.device(name.removeprefix("torch:"))
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).strip().splitlines()[0]
        raise ValueError(
            f'device must be available to PyTorch; got {name!r}: {reason} Use device="cpu" here.'
        ) from error
    return device


def import_torch() -> ModuleType:
    """Import PyTorch; if it is missing, say how to install it."""
    try:
        import torch
    except ImportError as error:
        raise ImportError("devices need a package: pip install isokern[gpu]") from error
    return torch


def link_to(device: Any) -> Link:
    """Return the link that copies blocks to a device and back."""
    return CudaLink(device) if device.type == "cuda" else Link(device)


class Link:
    """Copy arrays to a device and back, synchronously."""

    def __init__(self, device: Any) -> None:
        self.device = device
        self._torch = import_torch()

    def send(self, array: NDArray[Any]) -> Any:
        """Return a copy of an array on the device; PyTorch's CPU device shares the memory instead."""
        return self._host_tensor(array).to(self.device)

    def fetch(self, tensor: Any) -> Callable[[], NDArray[Any]]:
        """Return a function that returns a tensor's values on the host."""
        return lambda: tensor.cpu().numpy()

    def _host_tensor(self, array: NDArray[Any]) -> Any:
        return self._torch.from_numpy(np.require(array, requirements=["C", "W"]))


class CudaLink(Link):
    """Copy asynchronously: pinned memory and a separate stream overlap copies with computation."""

    def __init__(self, device: Any) -> None:
        super().__init__(device)
        self._copying = self._torch.cuda.Stream(device)

    def send(self, array: NDArray[Any]) -> Any:
        """Start a copy; later work on the device waits for it, the host does not."""
        pinned = self._host_tensor(array).pin_memory()
        with self._torch.cuda.stream(self._copying):
            moved = pinned.to(self.device, non_blocking=True)
        computing = self._torch.cuda.current_stream(self.device)
        computing.wait_stream(self._copying)
        moved.record_stream(computing)  # else the allocator may reuse the memory before it has been read
        return moved

    def fetch(self, tensor: Any) -> Callable[[], NDArray[Any]]:
        """Start to copy back; the returned function waits for the end of the copy."""
        pinned = self._torch.empty(tensor.shape, dtype=tensor.dtype, device="cpu", pin_memory=True)
        pinned.copy_(tensor, non_blocking=True)
        done = self._torch.cuda.Event()
        done.record(self._torch.cuda.current_stream(self.device))

        def wait() -> NDArray[Any]:
            done.synchronize()
            return pinned.numpy()

        return wait
