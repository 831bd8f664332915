"""Online kernel learning with the Isolation Kernel."""

from isokern.feature_map import IsolationKernel
from isokern.learners import IKSVC, IKOGDClassifier, IKOGDRegressor

__all__ = ["IKSVC", "IKOGDClassifier", "IKOGDRegressor", "IsolationKernel"]
__version__ = "0.1.0.dev0"
