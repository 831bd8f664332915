"""Online kernel learning with the Isolation Kernel."""

from isokern.feature_map import IsolationKernel

__all__ = ["IsolationKernel"]
__version__ = "0.1.0.dev0"
