"""Online kernel learning with the Isolation Kernel."""

from isokern.feature_map import IsolationKernel
from isokern.learners import (
    IKSVC,
    AdaRakerClassifier,
    FOGDClassifier,
    IKOGDClassifier,
    IKOGDClassifierCV,
    IKOGDRegressor,
    NOGDClassifier,
    OGDClassifier,
)
from isokern.merging import merge
from isokern.persistence import load, save

__all__ = [
    "IKSVC",
    "AdaRakerClassifier",
    "FOGDClassifier",
    "IKOGDClassifier",
    "IKOGDClassifierCV",
    "IKOGDRegressor",
    "IsolationKernel",
    "NOGDClassifier",
    "OGDClassifier",
    "load",
    "merge",
    "save",
]
__version__ = "0.1.0.dev0"
