"""Online kernel learning with the Isolation Kernel."""

from isokern.feature_map import IsolationKernel
from isokern.learners import (
    IKSVC,
    AdaRakerClassifier,
    FOGDClassifier,
    IKOGDClassifier,
    IKOGDRegressor,
    NOGDClassifier,
    OGDClassifier,
)

__all__ = [
    "IKSVC",
    "AdaRakerClassifier",
    "FOGDClassifier",
    "IKOGDClassifier",
    "IKOGDRegressor",
    "IsolationKernel",
    "NOGDClassifier",
    "OGDClassifier",
]
__version__ = "0.1.0.dev0"
