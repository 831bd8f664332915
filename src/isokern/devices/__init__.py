"""Map and score rows where they are: on PyTorch devices, and in arrays of any Array API library."""

from isokern.devices.cells import cells_of_foreign, cells_of_table
from isokern.devices.pytorch import is_compiled_core, torch_device
from isokern.devices.scores import foreign_features, foreign_labels, foreign_scores, foreign_shares

__all__ = [
    "cells_of_foreign",
    "cells_of_table",
    "foreign_features",
    "foreign_labels",
    "foreign_scores",
    "foreign_shares",
    "is_compiled_core",
    "torch_device",
]
