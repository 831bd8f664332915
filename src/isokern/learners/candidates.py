"""List the candidates of the race, choose those that a learner's parameters leave, and set the stages of the race."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from sklearn.base import RegressorMixin

from isokern.checks import warn_user
from isokern.feature_map import IsolationKernel
from isokern.fitted_map import auto_n_cells
from isokern.learners.features import Scales
from isokern.learners.kernel_source import unwrapped
from isokern.learners.steps import Steps, is_open

_FEWEST_CELLS = 16  # that max_model_size may leave


class Candidate(NamedTuple):
    """Features, steps and loss of a learner."""

    scales: str  # "all", "every", "finest", "coarse", "lasting" or "" for none
    linear: bool
    schedule: str
    rate: float
    loss: str = ""  # "" for that of the learner's parameters

    @property
    def name(self) -> str:
        """Name for users."""
        features = " + ".join(filter(None, [self.scales and f"{self.scales} cells", "linear" * self.linear]))
        return ", ".join(filter(None, [features, f"{self.schedule} {self.rate:g}", self.loss]))

    def numbers(self, n_scales: int) -> Scales:
        """Return the numbers of its scales among those of a map."""
        return {
            # Every second one: a sixteenth of the points instead of a quarter serves as well, in half the time.
            "all": tuple(range((n_scales - 1) % 2, n_scales, 2)),
            "every": tuple(range(n_scales)),
            "finest": (n_scales - 1,),
            "coarse": (n_scales // 4,),
            "lasting": (1,),
            "recent": (2,),
            "": (),
        }[self.scales]


# All candidates of classifiers; the first wins ties. It suits classes that hardly overlap, where a margin loss is the
# most accurate. The others win where classes overlap; logistic loss gives them better probabilities.
CANDIDATES: tuple[Candidate, ...] = (
    Candidate("all", linear=False, schedule="adagrad", rate=2.0, loss="squared_hinge"),
    Candidate("coarse", linear=False, schedule="adagrad", rate=2.0, loss="logistic"),
    Candidate("all", linear=False, schedule="adagrad", rate=0.5, loss="logistic"),
    Candidate("all", linear=True, schedule="adagrad", rate=0.5, loss="logistic"),
    Candidate("", linear=True, schedule="adagrad", rate=0.5, loss="logistic"),
)
# All candidates of regressors. A quick learner wins the first pass, so its rates are closer to each other.
NUMBER_CANDIDATES: tuple[Candidate, ...] = (
    Candidate("all", linear=False, schedule="adagrad", rate=1.0),
    Candidate("all", linear=False, schedule="adagrad", rate=0.5),
    Candidate("all", linear=False, schedule="adagrad", rate=0.25),
    Candidate("coarse", linear=False, schedule="adagrad", rate=0.5),
    Candidate("all", linear=True, schedule="adagrad", rate=0.5),
    Candidate("", linear=True, schedule="adagrad", rate=0.5),
)
# (share of the first pass of fit, least number of rows, number of candidates that go on); errors count anew after each
# stage.
FIT_STAGES = ((1 / 64, 1000, 4), (1 / 32, 2000, 3), (1 / 8, 8000, 2), (1 / 2, 30_000, 1))
# (rows, number of candidates that go on) in a stream
STREAM_STAGES = ((4_000, 4), (16_000, 3), (64_000, 2))
FADE = 0.998  # of errors in a stream, per row
LINEAR_PASSES = 9  # of a linear winner for each pass after the first; drawing the map costs more


def candidates_of(learner: Any, fitted: IsolationKernel | None = None) -> list[Candidate]:
    """Return the candidates that a learner's parameters leave; none for a learner on one scale without a race.

    ``fitted`` is the kernel, if it is known already: your own partitionings tell their scales only when fitted.
    """
    kernel, has_scales = unwrapped(learner.kernel), learner.n_scales not in (1, "auto")
    kernel = fitted if not isinstance(learner.partitioning, str) else kernel
    if kernel is not None:
        has_scales = kernel.n_scales_ > 1 if hasattr(kernel, "map_") else kernel.n_scales != 1
    if not is_open(learner):
        if not has_scales and not has_linear_term(learner):
            return []
        steps = Steps.of(learner)
        return [Candidate("every" if has_scales else "finest", has_linear_term(learner), steps.schedule, steps.rate)]
    is_growing = fitted is not None and fitted.map_.is_growing
    chosen = NUMBER_CANDIDATES if isinstance(learner, RegressorMixin) else _with_losses(learner.loss, is_growing)
    if is_growing:
        chosen = tuple(c._replace(scales="finest" if c.scales == "all" else c.scales) for c in chosen)
    elif has_scales:
        chosen = tuple(c._replace(scales=c.scales and "every") for c in chosen if c.scales in ("all", ""))
    elif learner.n_scales == 1 or learner.n_cells != "auto":
        chosen = tuple(c._replace(scales=c.scales and "finest") for c in chosen if c.scales != "coarse")
    if has_linear_term(learner):
        chosen = tuple(c._replace(linear=True) for c in chosen)
    elif learner.linear != "auto":
        chosen = tuple(c for c in chosen if not c.linear)
    return list(dict.fromkeys(chosen))


def _with_losses(loss: str, is_growing: bool) -> tuple[Candidate, ...]:
    """Return the candidates of a classifier with a given loss, or "auto"."""
    if loss != "auto":
        return tuple(c._replace(loss="") for c in CANDIDATES)
    if is_growing:  # a stream may change, and cells follow sooner by a margin loss
        return tuple(c._replace(loss="squared_hinge") if c.scales else c for c in CANDIDATES)
    return CANDIDATES


def kernel_choice(learner: Any, n_rows: int, n_columns: int) -> dict[str, Any]:
    """Return the parameters of the kernel that a learner leaves open, for rows to draw it from and columns of scores.

    A model that would be larger than ``max_model_size`` gets fewer cells.
    """
    if learner.kernel is not None:
        return {}
    is_racing = is_open(learner) and learner.n_cells == "auto"
    is_own = not isinstance(learner.partitioning, str)
    n_scales = learner.n_scales if learner.n_scales != "auto" or is_racing or is_own else 1
    if learner.n_cells != "auto" or is_own:
        return {"n_scales": n_scales}
    # All scales have about half as many cells more than the finest. A weight and its sum of squares take eight bytes
    # in the race, sixteen elsewhere.
    wanted = min(n_rows, auto_n_cells(n_rows) * (2 if is_racing else 1))
    row_size = learner.n_partitionings * n_columns * (12 if is_racing else 16)
    n_cells, limit = wanted, learner.max_model_size
    while limit is not None and n_cells > _FEWEST_CELLS and n_cells * row_size > limit:
        n_cells //= 2
    if n_cells < wanted:
        warn_user(
            f"The model gets {n_cells} cells per partitioning instead of {wanted}, because the weights of {n_columns} "
            f"scores would exceed max_model_size={limit:,} bytes. Give a larger max_model_size, or n_cells.",
        )
    return {"n_scales": n_scales} | ({"n_cells": n_cells} if is_racing or n_cells < wanted else {})


def fit_stages(n: int, usual_weight: float = 1.0) -> list[tuple[int, int]]:
    """Return the stages of a race over n rows: (row at which it ends, number of candidates that go on).

    Where rows of large weight decide, stages need more rows, by their usual weight.
    """
    ends = [(max(int(share * n), math.ceil(least * usual_weight)), n_kept) for share, least, n_kept in FIT_STAGES]
    return [*((end, n_kept) for end, n_kept in ends if n_kept > 1 and end <= n / 2), (min(n, ends[-1][0]), 1)]


def grows(learner: Any) -> bool:
    """Return whether a map that a stream begins grows: trees whose number and size of cells are left open."""
    is_auto = learner.n_cells == learner.n_scales == "auto" and learner.n_initial is None
    return bool(learner.growth) and is_auto and learner.partitioning == "tree" and is_open(learner)


def has_linear_term(learner: Any) -> bool:
    """Return whether a learner's parameters ask for a linear term."""
    return learner.linear != "auto" and bool(learner.linear)
