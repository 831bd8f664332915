"""The map where arrays live: PyTorch's devices, and arrays of any Array API library."""

from isokern.devices._cells import cells_of_foreign, cells_of_table
from isokern.devices._torch import is_compiled_core, torch_device

__all__ = ["cells_of_foreign", "cells_of_table", "is_compiled_core", "torch_device"]
