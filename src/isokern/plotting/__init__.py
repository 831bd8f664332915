"""Draw figures from numbers and models; they are objects of matplotlib, the extra ``plot``."""

from isokern.plotting.displays import DecisionRegionsDisplay, KernelContoursDisplay
from isokern.plotting.explanations import explanation_figure
from isokern.plotting.figures import (
    COLOURS,
    accuracy_along_stream,
    blocks_along_stream,
    cost_growth,
    new_figure,
    plain,
    shared_legend,
    style,
)

__all__ = [
    "COLOURS",
    "DecisionRegionsDisplay",
    "KernelContoursDisplay",
    "accuracy_along_stream",
    "blocks_along_stream",
    "cost_growth",
    "explanation_figure",
    "new_figure",
    "plain",
    "shared_legend",
    "style",
]
