"""Check parameters of estimators; an error names the parameter, the rule and the value."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from isokern.checks import is_integer, is_number, one_of, warn_user
from isokern.learners.targets import LARGEST


def check_choice(estimator: Any, name: str, choices: Iterable[str]) -> None:
    """Raise unless a parameter is one of these words."""
    value = getattr(estimator, name)
    if value not in tuple(choices):
        raise ValueError(f"{name} must be {one_of(choices)}; got {value!r}.")


def check_integer(estimator: Any, name: str, *, at_least: int) -> None:
    """Raise unless a parameter is an integer of at least this size."""
    value = getattr(estimator, name)
    if not is_integer(value, at_least=at_least):
        raise ValueError(f"{name} must be an integer of at least {at_least}; got {value!r}.")


def check_flag(estimator: Any, name: str, *, may_be_auto: bool = False) -> None:
    """Raise unless a parameter is True or False, or "auto" where that is allowed."""
    value = getattr(estimator, name)
    if not isinstance(value, bool | np.bool_) and not (may_be_auto and value == "auto"):
        rule = 'True, False or "auto"' if may_be_auto else "True or False"
        raise ValueError(f"{name} must be {rule}; got {value!r}.")


def check_non_negative(estimator: Any, name: str) -> None:
    """Raise unless a parameter is a finite number of at least 0."""
    value = getattr(estimator, name)
    if not (is_number(value) and value >= 0):
        raise ValueError(f"{name} must be a number of at least 0; got {value!r}.")


def check_quantiles(quantiles: Any) -> None:
    """Raise unless quantiles are one or several different numbers between 0 and 1."""
    several = [quantiles] if is_number(quantiles) else quantiles
    is_known = isinstance(several, list | tuple) and len(several) > 0
    is_known = is_known and all(is_number(quantile) and 0.0 < quantile < 1.0 for quantile in several)
    if not is_known or len(set(several)) < len(several):
        raise ValueError(f"quantiles must be one or several different numbers between 0 and 1; got {quantiles!r}.")


def check_n_initial(n_initial: Any) -> None:
    """Raise unless the size of the warm-up buffer is None or at least 2."""
    if n_initial is not None and not is_integer(n_initial, at_least=2):
        raise ValueError(f"n_initial must be None or an integer of at least 2; got {n_initial!r}.")


def check_class_weight(class_weight: Any) -> None:
    """Raise unless class weights are None, "balanced" or non-negative numbers by class."""
    if isinstance(class_weight, dict):
        is_known = all(is_number(weight) and 0 <= weight <= LARGEST for weight in class_weight.values())
    else:
        is_known = class_weight in (None, "balanced")
    if not is_known:
        raise ValueError(
            f'class_weight must be None, "balanced" or a dict of numbers from 0 to {LARGEST:g}; got {class_weight!r}.'
        )


def warn_of_size(n_bytes: int, limit: int | None) -> None:
    """Warn the caller of a learner's method that its weights exceed ``max_model_size``."""
    if limit is not None and n_bytes > limit:
        warn_user(
            f"The weights take more than max_model_size={limit:,} bytes; the map is drawn already, so there is no "
            "smaller model.",
        )
