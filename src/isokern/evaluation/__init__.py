"""Evaluate learners: along a stream, where each block is predicted before it is learned, or on held-out rows."""

from isokern.evaluation._holdout import holdout
from isokern.evaluation._prequential import Prequential, measure, prequential
from isokern.evaluation.one_by_one import OneByOne
from isokern.evaluation.records import HoldoutRecord, Record

__all__ = ["HoldoutRecord", "OneByOne", "Prequential", "Record", "holdout", "measure", "prequential"]
