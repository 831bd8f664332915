"""Turn Dask arrays and data frames into blocks of rows, and check what is known without computing them."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
from numpy.typing import NDArray

from isokern.frames import Columns, resolve


def as_rows(X: Any, fitted: Any = None) -> tuple[Any, NDArray[Any] | None]:
    """Return X as a Dask array with one block of columns, and a data frame's column names.

    The columns of a frame come in the order of a fitted estimator, if they have the same names.
    """
    names = None
    if is_frame(X):
        known = list(getattr(fitted, "feature_names_in_", []))
        if sorted(known) == sorted(map(str, X.columns)):
            X = X[known]
        if all(isinstance(name, str) for name in X.columns):
            names = np.array(list(X.columns), dtype=object)
        X = X.to_dask_array()
    if not isinstance(X, da.Array):
        raise TypeError(
            f"X must be a Dask array or a Dask data frame; got {type(X).__name__}. Use isokern.IKOGDClassifier for "
            "data in memory, or cut an array into blocks with dask.array.from_array."
        )
    if X.ndim != 2:
        raise ValueError(f"X must have 2 dimensions; got {X.ndim}.")
    return (X.rechunk({1: -1}) if len(X.chunks[1]) > 1 else X), names


def is_frame(X: Any) -> bool:
    """Return whether X is a Dask data frame."""
    return hasattr(X, "to_dask_array") and hasattr(X, "columns")


def resolved(features: Any, X: Any) -> Any:
    """Return ``categorical_features`` for the blocks of X, which have neither names nor the dtypes of a data frame."""
    if not is_frame(X):
        return features
    mask = resolve(features, Columns.of(X._meta_nonempty))  # noqa: SLF001
    return None if mask is None else mask.tolist()


def as_column(values: Any, X: Any, name: str) -> Any:
    """Return labels or weights as a Dask array with the blocks of X."""
    if hasattr(values, "to_dask_array"):
        values = values.to_dask_array()
    if not isinstance(values, da.Array) or values.ndim != 1:
        got = f"{type(values).__name__} of shape {getattr(values, 'shape', ())}"
        raise TypeError(f"{name} must be a Dask series or a Dask array of 1 dimension; got {got}.")
    if not np.isnan(X.shape[0]) and not np.isnan(values.shape[0]):
        if values.shape[0] != X.shape[0]:
            raise ValueError(f"{name} must be as long as X, {X.shape[0]}; got {values.shape[0]}.")
        return values.rechunk((X.chunks[0],))
    if values.numblocks[0] != X.numblocks[0]:
        raise ValueError(
            f"{name} must have {X.numblocks[0]} partitions like X, since lengths are unknown; got "
            f"{values.numblocks[0]}. Make lengths known with X.compute_chunk_sizes()."
        )
    return values


def blocks_of(collection: Any) -> list[Any]:
    """Return the blocks of a Dask array as tasks."""
    return list(collection.to_delayed().ravel())


def check_columns(X: Any, names: NDArray[Any] | None, fitted: Any) -> None:
    """Raise unless X has the columns that an estimator was fitted to."""
    if X.shape[1] != fitted.n_features_in_:
        raise ValueError(f"X must have {fitted.n_features_in_} columns, as in fit; got {X.shape[1]}.")
    known = getattr(fitted, "feature_names_in_", None)
    if names is not None and known is not None and list(names) != list(known):
        expected, got = next(pair for pair in zip(known, names, strict=True) if pair[0] != pair[1])
        raise ValueError(f'X must have the columns of fit in the same order; got "{got}" for "{expected}".')
