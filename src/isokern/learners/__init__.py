"""Provide the learners on the Isolation Kernel's feature map and the rivals that they are compared with."""

from isokern.learners.adaptive import AdaptiveIKClassifier, AdaptiveIKRegressor
from isokern.learners.adaraker import AdaRakerClassifier
from isokern.learners.classifier import IKOGDClassifier
from isokern.learners.fogd import FOGDClassifier
from isokern.learners.nogd import NOGDClassifier
from isokern.learners.number_search import IKOGDRegressorCV
from isokern.learners.ogd import OGDClassifier
from isokern.learners.regressor import IKOGDRegressor
from isokern.learners.search import IKOGDClassifierCV
from isokern.learners.svc import IKSVC

__all__ = [
    "IKSVC",
    "AdaRakerClassifier",
    "AdaptiveIKClassifier",
    "AdaptiveIKRegressor",
    "FOGDClassifier",
    "IKOGDClassifier",
    "IKOGDClassifierCV",
    "IKOGDRegressor",
    "IKOGDRegressorCV",
    "NOGDClassifier",
    "OGDClassifier",
]
