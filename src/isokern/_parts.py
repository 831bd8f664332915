"""The classes whose objects a file of models may hold, and how each becomes a state and a state an object.

The list is closed: a file names a class, and what happens then is written here, not there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.frozen import FrozenEstimator

from isokern import _core, _soundness, learners
from isokern.feature_map import IsolationKernel
from isokern.kernels import NamedKernel
from isokern.learners.adaraker import AdaRakerModel
from isokern.learners.budgets import BUDGETS, Budget
from isokern.learners.calibration import ScoreWindow
from isokern.learners.duals import BudgetedDual, Counts, KernelDual
from isokern.learners.fogd import FourierModel
from isokern.learners.linear import LinearModel
from isokern.learners.nogd import NystromModel
from isokern.learners.svc import IKSVC
from isokern.learners.warm_up import HeldRows, OnlineLearner
from isokern.learners.weights import CellWeights, SupportVectors
from isokern.partitionings import IsolationTrees, VoronoiCells
from isokern.rows import CsrRows
from isokern.scaling import Scaling

State = dict[str, Any]

ESTIMATORS: tuple[type, ...] = (IsolationKernel, *(getattr(learners, name) for name in learners.__all__))


class Part(NamedTuple):
    """How objects of a class become a state, a dict by name, and a state an object."""

    cls: type
    take: Callable[[Any], State]
    make: Callable[[State], Any]
    check: Callable[[Any], None]


def _part(
    cls: type,
    check: Callable[[Any], None] = lambda _: None,
    take: Callable[[Any], State] = lambda value: dict(vars(value)),
    make: Callable[[State], Any] | None = None,
) -> Part:
    return Part(cls, take, make or (lambda state: _restored(cls, state)), check)


def _restored(cls: type, state: State) -> Any:
    """Return an object of such attributes, none of which hides a method."""
    for name in state:
        found = getattr(cls, name, None)
        if callable(found) or isinstance(found, property):
            raise ValueError(f"{cls.__name__} must not have an attribute {name}.")
    value: Any = object.__new__(cls)
    vars(value).update(state)
    return value


_ESTIMATOR_CHECKS: dict[type, Callable[[Any], None]] = {
    OnlineLearner: _soundness.check_learner,
    IsolationKernel: _soundness.check_isolation_kernel,
    IKSVC: _soundness.check_svc,
}


def _estimator_part(cls: type) -> Part:
    for base, check in _ESTIMATOR_CHECKS.items():
        if issubclass(cls, base):
            return _part(cls, check)
    return _part(cls)


def _make_voronoi(state: State) -> VoronoiCells:
    _soundness.check_points(state["points"], state["samples"].nbytes)
    return VoronoiCells(**state)


def _make_dual(state: State) -> KernelDual:
    _soundness.check_dual_state(state)
    model = KernelDual.__new__(KernelDual)
    model.__setstate__(state)
    return model


_BIT_GENERATORS = {name: getattr(np.random, name) for name in ("MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64")}


def _make_bit_generator(state: State) -> Any:
    # NumPy does not check where in their numbers MT19937 and Philox stand.
    if not (0 <= state["state"].get("pos", 0) <= 624 and 0 <= state.get("buffer_pos", 0) <= 4):
        raise ValueError("the place of a bit generator must be within its numbers.")
    generator = _BIT_GENERATORS[state["bit_generator"]](0)
    generator.state = {key: value for key, value in state.items() if key not in ("has_gauss", "gauss")}
    return generator


def _make_random_state(state: State) -> np.random.RandomState:
    random_state = np.random.RandomState(_make_bit_generator(state))
    random_state.set_state(state)
    return random_state


_BUDGETS: tuple[type, ...] = (Budget, *BUDGETS.values())

PARTS: dict[str, Part] = {
    part.cls.__name__: part
    for part in (
        *map(_estimator_part, ESTIMATORS),
        _part(FrozenEstimator),
        _part(
            IsolationTrees,
            _soundness.check_trees,
            take=lambda trees: {"n_columns": trees.n_columns, "n_cells": trees.n_cells, "arrays": trees.arrays},
            make=lambda state: IsolationTrees(**state),
        ),
        _part(VoronoiCells, take=lambda v: {"points": v.points, "samples": v.samples}, make=_make_voronoi),
        _part(CsrRows, take=lambda rows: rows._asdict(), make=lambda state: CsrRows(**state)),
        _part(Scaling, _soundness.check_scaling),
        _part(NamedKernel, _soundness.check_named_kernel),
        _part(CellWeights, _soundness.check_coefficients),
        _part(SupportVectors, _soundness.check_coefficients),
        _part(LinearModel, _soundness.check_linear),
        _part(FourierModel, _soundness.check_fourier),
        _part(NystromModel, _soundness.check_nystrom),
        _part(KernelDual, take=lambda model: model.__getstate__(), make=_make_dual),
        _part(BudgetedDual, _soundness.check_budgeted),
        *map(_part, _BUDGETS),
        _part(AdaRakerModel, _soundness.check_adaraker),
        _part(ScoreWindow, _soundness.check_window),
        _part(HeldRows, _soundness.check_held_rows),
        _part(Counts, _soundness.check_counts),
        _part(
            _core.Clock,
            take=lambda clock: {name: getattr(clock, name) for name in ("rounds", "n_support", "scale", "scale_sum")},
            make=lambda state: _core.Clock(**state),
        ),
        _part(np.random.RandomState, take=lambda random: random.get_state(legacy=False), make=_make_random_state),
        _part(
            np.random.Generator,
            take=lambda generator: generator.bit_generator.state,
            make=lambda state: np.random.Generator(_make_bit_generator(state)),
        ),
    )
}
