"""Learners on the Isolation Kernel's feature map."""

from isokern.learners.classifier import IKOGDClassifier
from isokern.learners.regressor import IKOGDRegressor
from isokern.learners.svc import IKSVC

__all__ = ["IKSVC", "IKOGDClassifier", "IKOGDRegressor"]
