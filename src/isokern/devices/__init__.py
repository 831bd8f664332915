"""Map and score rows where they are: on PyTorch devices, and in arrays of any Array API library."""

from isokern.devices.pytorch import is_compiled_core, torch_device

__all__ = ["is_compiled_core", "torch_device"]
