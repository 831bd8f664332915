"""Dask collections as blocks of rows, and what is known of them without looking inside."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
from numpy.typing import NDArray


def as_rows(X: Any) -> tuple[Any, NDArray[Any] | None]:
    """Return rows as a Dask array of one block across all columns, and the names of a data frame's columns."""
    names = None
    if hasattr(X, "to_dask_array") and hasattr(X, "columns"):
        if all(isinstance(name, str) for name in X.columns):
            names = np.array(list(X.columns), dtype=object)
        X = X.to_dask_array()
    if not isinstance(X, da.Array):
        raise TypeError(
            f"X must be a Dask array or a Dask data frame; got {type(X).__name__}. For rows of one machine there is "
            "isokern.IKOGDClassifier; dask.array.from_array cuts an array into blocks."
        )
    if X.ndim != 2:
        raise ValueError(f"X must have 2 dimensions; got {X.ndim}.")
    return (X.rechunk({1: -1}) if len(X.chunks[1]) > 1 else X), names


def as_column(values: Any, X: Any, name: str) -> Any:
    """Return labels or weights as a Dask array whose blocks are those of the rows of X, so far as is known."""
    if hasattr(values, "to_dask_array"):
        values = values.to_dask_array()
    if not isinstance(values, da.Array) or values.ndim != 1:
        shape = getattr(values, "shape", ())
        raise TypeError(
            f"{name} must be a Dask series or a Dask array of 1 dimension; got {type(values).__name__} of shape "
            f"{shape}."
        )
    if not np.isnan(X.shape[0]) and not np.isnan(values.shape[0]):
        if values.shape[0] != X.shape[0]:
            raise ValueError(f"{name} must be as long as X, {X.shape[0]}; got {values.shape[0]}.")
        return values.rechunk((X.chunks[0],))
    if values.numblocks[0] != X.numblocks[0]:
        raise ValueError(
            f"{name} must have the {X.numblocks[0]} partitions of X, whose lengths are unknown; got "
            f"{values.numblocks[0]}. Make lengths known with X.compute_chunk_sizes()."
        )
    return values


def blocks_of(collection: Any) -> list[Any]:
    """Return the blocks of a Dask array, as tasks."""
    return list(collection.to_delayed().ravel())


def check_columns(X: Any, names: NDArray[Any] | None, fitted: Any) -> None:
    """Raise unless rows have the columns that an estimator was fitted to."""
    if X.shape[1] != fitted.n_features_in_:
        raise ValueError(f"X must have the {fitted.n_features_in_} columns that were fitted; got {X.shape[1]}.")
    known = getattr(fitted, "feature_names_in_", None)
    if names is not None and known is not None and list(names) != list(known):
        other = next(pair for pair in zip(known, names, strict=True) if pair[0] != pair[1])
        raise ValueError(
            f'X must have the columns that were fitted, in their order; got "{other[1]}" for "{other[0]}".'
        )
