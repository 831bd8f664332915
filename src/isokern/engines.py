"""Dispatch mapping and scoring by the type of input: the compiled core, or the library that owns an array.

``engine_of`` is the only place that looks at the type. Estimators call it once per call and leave everything that
depends on the type to the engine.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from isokern import _core
from isokern.arrays import ForeignRows, check_same_place, is_foreign, like, namespace, read_foreign, to_host
from isokern.checks import n_threads
from isokern.devices import is_compiled_core
from isokern.devices.cells import cells_of_foreign, cells_of_table
from isokern.devices.operations import is_torch
from isokern.devices.scores import csr_features, dense_features, foreign_labels, foreign_scores, foreign_shares
from isokern.fitted_map import FittedMap
from isokern.rows import check_finite, csr_class, read_rows

_FEW_ROWS = 64  # up to here, neither threads nor a device pay off
_SHARES_AT_ONCE = 256  # rows per call of the core


class CompiledCore:
    """Engine for NumPy arrays, SciPy matrices, data frames and lists."""

    def read(self, estimator: Any, X: Any) -> Any:
        """Validate X as a table of rows for a fitted estimator."""
        return read_rows(estimator, X, reset=False)

    def apply(self, fitted: FittedMap, table: Any, *, device: str | None, n_jobs: int | None) -> NDArray[Any]:
        """Return the cells of a table's rows, (n, t * n_scales), by the compiled core or a PyTorch device."""
        if table.shape[0] <= _FEW_ROWS:
            return fitted.apply(table, 1)
        threads = n_threads(n_jobs)
        if not is_compiled_core(device):
            cells = cells_of_table(table, fitted, str(device), threads)
            if cells is not None:
                return cells
        return fitted.apply(table, threads)

    def check_cells(self, fitted: FittedMap, cells: Any) -> NDArray[Any]:
        """Return cells in the form of ``apply``; raise if they are out of range."""
        return fitted.check_cells(cells)

    def is_single(self, table: Any) -> bool:
        """Return whether rows are float32."""
        return bool(table.dtype == np.float32)

    def features(self, cells: NDArray[Any], fitted: FittedMap, *, single: bool, sparse_output: bool) -> Any:
        """Return the one-hot encoding of cells, with the weights of their scales over sqrt(t) as values."""
        (n, n_stored), width = cells.shape, fitted.width
        values = fitted.feature_values.astype(np.float32 if single else np.float64)
        columns = (cells + fitted.starts[:-1]).astype(np.int32)
        if not sparse_output:
            features = np.zeros((n, width), dtype=values.dtype)
            np.put_along_axis(features, columns, values[None], axis=1)
            return features
        starts = np.arange(0, n * n_stored + 1, n_stored, dtype=np.int32)
        return csr_class()((np.tile(values, n), columns.ravel(), starts), shape=(n, width))

    def shares(
        self, first: NDArray[Any], second: NDArray[Any], fitted: FittedMap, *, single: bool, n_jobs: int | None
    ) -> NDArray[Any]:
        """Return, for each row of ``first`` and each of ``second``, the fraction of equal cells, weighted by scale."""
        shares: NDArray[Any] = np.empty((len(first), len(second)), dtype=np.float32 if single else np.float64)
        weights, others = fitted.scale_weights**2, _scale_by_scale(second, fitted.n_scales)
        for begin in range(0, len(first), _SHARES_AT_ONCE):
            part = slice(begin, begin + _SHARES_AT_ONCE)
            some = _scale_by_scale(first[part], fitted.n_scales)
            _core.match_cells(some, others, shares[part], n_threads(n_jobs), weights)
        return shares

    def scores(self, cells: NDArray[Any], model: Any, n_jobs: int | None, copies: Any = None) -> NDArray[np.float64]:
        """Return a model's scores of cells, (n, n_columns), and make ``copies`` of arrays that are learned with it."""
        return model.score(cells, n_threads(n_jobs), copies)

    def labels(self, scores: NDArray[np.float64], classes: NDArray[Any]) -> NDArray[Any]:
        """Return the class with the largest score; a single column of scores is positive for the second class."""
        return classes[scores.argmax(axis=1) if scores.ndim == 2 else (scores > 0).astype(np.intp)]

    def to_host(self, values: Any) -> Any:
        """Return an array of this engine as a NumPy array."""
        return values

    def to_library(self, values: NDArray[Any], X: Any) -> Any:
        """Return a NumPy array as an array of X's library."""
        return values

    def check_with(self, X: Any, Y: Any) -> None:
        """Raise unless Y is for the same engine as X."""
        if is_foreign(Y):
            check_same_place(X, Y)


class OtherLibrary:
    """Engine for arrays of other libraries, such as tensors; results stay in their library and on their device."""

    def read(self, estimator: Any, X: Any) -> ForeignRows:
        """Validate X as rows for a fitted estimator; ``apply`` checks for NaN."""
        return read_foreign(estimator, X)

    def apply(self, fitted: FittedMap, rows: ForeignRows, *, device: str | None, n_jobs: int | None) -> Any:
        """Return the cells of rows as int32, by their device if possible, else by the compiled core."""
        cells = cells_of_foreign(rows, fitted, n_threads(n_jobs))
        if cells is not None:
            return cells
        return like(fitted.apply(host_table(rows), n_threads(n_jobs)).astype(np.int32), rows.X)

    def check_cells(self, fitted: FittedMap, cells: Any) -> Any:
        """Return cells; raise if they are out of range."""
        fitted.check_cells(to_host(cells))
        return cells

    def is_single(self, rows: ForeignRows) -> bool:
        """Return whether rows are float32."""
        return bool(rows.X.dtype == namespace(rows.X).float32)

    def features(self, cells: Any, fitted: FittedMap, *, single: bool, sparse_output: bool) -> Any:
        """Return the one-hot encoding of cells: a CSR tensor of PyTorch, or a dense array."""
        if sparse_output and is_torch(namespace(cells)):
            return csr_features(cells, fitted, single=single)
        if len(set(np.diff(fitted.starts))) == 1:
            return dense_features(cells, fitted, single=single)
        own = fitted.check_cells(to_host(cells))  # scales differ in their number of cells, as own partitionings may
        return like(CORE.features(own, fitted, single=single, sparse_output=False), cells)

    def shares(self, first: Any, second: Any, fitted: FittedMap, *, single: bool, n_jobs: int | None) -> Any:
        """Return, for each row of ``first`` and each of ``second``, the fraction of equal cells, weighted by scale."""
        return foreign_shares(first, second, fitted.scale_weights**2, single=single)

    def scores(self, cells: Any, model: Any, n_jobs: int | None, copies: Any = None) -> Any:
        """Return a model's scores of cells, (n, n_columns), and make ``copies`` of arrays that are learned with it."""
        if hasattr(model, "table"):
            _core.copy_model(model.clock, copies or [])
            return foreign_scores(cells, model.moment())
        return like(model.score(to_host(cells).astype(model.cells.dtype), n_threads(n_jobs), copies), cells)

    def labels(self, scores: Any, classes: NDArray[Any]) -> Any:
        """Return the class with the largest score, as a NumPy array if classes are not numbers."""
        if classes.dtype.kind in "buif":
            return foreign_labels(scores, classes)
        return CORE.labels(to_host(scores), classes)

    def to_host(self, values: Any) -> Any:
        """Return an array of this engine as a NumPy array."""
        return to_host(values)

    def to_library(self, values: NDArray[Any], X: Any) -> Any:
        """Return a NumPy array as an array of X's library, unless its values are not numbers."""
        return like(values, X) if values.dtype.kind in "buif" else values

    def check_with(self, X: Any, Y: Any) -> None:
        """Raise unless X and Y have the same library and device."""
        check_same_place(X, Y)


def host_table(rows: ForeignRows) -> NDArray[Any]:
    """Return rows of another library as a table."""
    table = to_host(rows.X)
    check_finite(table, rows.names, allow_nan=rows.allow_nan)
    return table


def _scale_by_scale(cells: NDArray[Any], n_scales: int) -> NDArray[Any]:
    """Return cells with the columns of each scale side by side."""
    return np.ascontiguousarray(cells.reshape(len(cells), -1, n_scales).transpose(0, 2, 1)).reshape(cells.shape)


CORE, _OTHER = CompiledCore(), OtherLibrary()


def engine_of(X: Any) -> CompiledCore | OtherLibrary:
    """Return the engine for an input: rows, cells or scores."""
    return _OTHER if isinstance(X, ForeignRows) or is_foreign(X) else CORE
