"""Scale columns by parameters that are fitted with the feature map and fixed afterwards."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

from isokern import _core
from isokern.checks import one_of
from isokern.parts import Part, need, need_array
from isokern.rows import CoreRows, CsrRows, as_scipy, row_blocks

_LARGEST = np.finfo(np.float64).max

# name -> (scikit-learn's scaler, its statistic that is NaN for columns without values, what it subtracts, its divisor)
SCALERS: dict[str, tuple[Any, str, Any, Any]] = {
    "minmax": (MinMaxScaler, "data_min_", lambda scaler: scaler.data_min_, lambda scaler: 1.0 / scaler.scale_),
    "standard": (StandardScaler, "mean_", lambda scaler: scaler.mean_, lambda scaler: scaler.scale_),
    "maxabs": (MaxAbsScaler, "max_abs_", lambda scaler: np.zeros_like(scaler.scale_), lambda scaler: scaler.scale_),
}


@dataclass(eq=False)
class Scaling(Part):
    """Scale each column by (x - offset) / divisor, in float64."""

    offset: NDArray[np.float64]
    divisor: NDArray[np.float64]

    @classmethod
    def learn(cls, scale: str | None, table: Any, is_categorical: NDArray[np.bool_] | None = None) -> Scaling | None:
        """Fit the scaling of that name to a table; None means no scaling."""
        return None if scale is None else cls.of(scale, fitted_scaler(scale, table), is_categorical)

    @classmethod
    def of(cls, scale: str, scaler: Any, is_categorical: NDArray[np.bool_] | None = None) -> Scaling:
        """Return the scaling of a fitted scikit-learn scaler; it leaves categories and columns without values alone."""
        _, statistic, offset, divisor = SCALERS[scale]
        is_kept = np.isnan(getattr(scaler, statistic))
        if is_categorical is not None:
            is_kept |= is_categorical
        scaling = cls(np.where(is_kept, 0.0, offset(scaler)), np.where(is_kept, 1.0, divisor(scaler)))
        _checked(scaling.divisor - scaling.offset)
        return scaling

    def apply(self, rows: CoreRows) -> CoreRows:
        """Return scaled rows."""
        if isinstance(rows, CsrRows) and self.offset.any():
            raise ValueError("X must be dense: the scaling was fitted to dense rows and shifts zeros; got sparse X.")
        with np.errstate(over="ignore", invalid="ignore"):
            if isinstance(rows, CsrRows):
                return rows._replace(values=_checked(rows.values.astype(np.float64) / self.divisor[rows.columns]))
            return _checked((rows.astype(np.float64) - self.offset) / self.divisor, allow_nan=True)

    def thresholds(self, columns: NDArray[np.int32], splits: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return, for splits of scaled columns, the smallest numbers that scaling does not take below them.

        Scaling never changes the order of two numbers, so bisection finds them: x is below its threshold if and only if
        scaled x is below the split. Infinite splits, which part missing values from others, stay.
        """
        need((self.divisor > 0).all(), "divisor must be positive")
        offset, divisor = self.offset[columns], self.divisor[columns]
        low, high = (np.full(len(splits), _ordered(np.array(end))) for end in (-_LARGEST, _LARGEST))
        with np.errstate(over="ignore"):
            while (low < high).any():
                middle = (low >> 1) + (high >> 1) + (low & high & 1)  # their mean, rounded down
                is_below = (_ordered(middle).view(np.float64) - offset) / divisor < splits
                low, high = np.where(is_below, middle + 1, low), np.where(is_below, high, middle)
        return np.where(np.isinf(splits), splits, _ordered(low).view(np.float64))

    def apply_table(self, table: Any) -> Any:
        """Return a scaled table."""
        blocks = [as_scipy(self.apply(rows)) for _, rows in row_blocks(table)]
        return sparse.vstack(blocks, format="csr") if sparse.issparse(table) else np.concatenate(blocks)

    def check(self) -> None:
        """Raise unless offsets and divisors are vectors of the same length."""
        need_array(self.offset, np.float64, 1, "offset")
        need_array(self.divisor, np.float64, 1, "divisor")
        need(self.offset.shape == self.divisor.shape, "offset and divisor must have the same length")


def _ordered(numbers: NDArray[Any]) -> NDArray[np.int64]:
    """Return float64 numbers as integers of the same order, or such integers as the bits of the numbers."""
    bits = numbers.view(np.int64)
    return bits ^ ((bits >> 63) & np.iinfo(np.int64).max)


def fitted_scaler(scale: str, table: Any, prepared: Callable[[Any], Any] = as_scipy) -> Any:
    """Fit scikit-learn's scaler of that name to a table, block by block; ``prepared`` returns what counts of rows."""
    scaler = SCALERS[scale][0]()
    for _, rows in row_blocks(table):
        if isinstance(rows, CsrRows) and scale != "maxabs":
            raise ValueError(f'scale must be None or "maxabs" for sparse X, which must keep its zeros; got {scale!r}.')
        with _without_warnings():
            scaler.partial_fit(prepared(rows))
    return scaler


def joined_scaler(scale: str, scalers: Iterable[Any]) -> Any:
    """Merge scalers that were fitted to different rows."""
    with _without_warnings():
        return SCALERS[scale][0]().fit(_STAND_INS[scale](list(scalers)))


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Suppress NumPy's warnings about columns without values."""
    with np.errstate(invalid="ignore"), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "All-NaN", RuntimeWarning)
        yield


def _mean_and_spread(scalers: Sequence[Any]) -> NDArray[np.float64]:
    """Return two rows that have the mean and variance of all rows that scalers were fitted to."""
    counts = np.stack([np.broadcast_to(scaler.n_samples_seen_, scaler.mean_.shape) for scaler in scalers])
    means, variances = (np.stack([np.nan_to_num(getattr(s, name)) for s in scalers]) for name in ("mean_", "var_"))
    shares = counts / counts.sum(axis=0)  # NaN in a column without values
    mean = (shares * means).sum(axis=0)
    spread = np.sqrt((shares * (variances + (means - mean) ** 2)).sum(axis=0))
    return mean + np.outer([-1.0, 1.0], spread)


# A few rows to which fitting a scaler gives the statistics of the fitted ones.
_STAND_INS: dict[str, Callable[[Sequence[Any]], NDArray[Any]]] = {
    "minmax": lambda scalers: np.vstack([[scaler.data_min_, scaler.data_max_] for scaler in scalers]),
    "standard": _mean_and_spread,
    "maxabs": lambda scalers: np.stack([scaler.max_abs_ for scaler in scalers]),
}


def check_scale(scale: object) -> None:
    """Raise unless ``scale`` is None or the name of a scaling."""
    if scale is not None and not (isinstance(scale, str) and scale in SCALERS):
        raise ValueError(f"scale must be None, {one_of(SCALERS)}; got {scale!r}.")


def _checked(values: NDArray[np.float64], *, allow_nan: bool = False) -> NDArray[np.float64]:
    if _core.find_nonfinite(values.reshape(-1), allow_nan) >= 0:
        raise ValueError("scale must leave X finite, but scaled values overflow; use scale=None.")
    return values
