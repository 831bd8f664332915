"""How well a learner does: along a stream, each block predicted before it is learned, or on rows held out."""

from isokern.evaluation._holdout import holdout
from isokern.evaluation._prequential import Prequential, measure, prequential
from isokern.evaluation.one_by_one import OneByOne
from isokern.evaluation.records import HoldoutRecord, Record

__all__ = ["HoldoutRecord", "OneByOne", "Prequential", "Record", "holdout", "measure", "prequential"]
