"""Find the stored rows that are most similar to a row under an Isolation Kernel."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from isokern import _core
from isokern.checks import is_integer, n_threads
from isokern.feature_map import IsolationKernel
from isokern.parts import Part, need
from isokern.rows import read_rows

_PANEL = 64  # rows of a panel; kPanelRows in cpp/inspection/equal_counts.hpp


@dataclass(eq=False, repr=False)
class SimilarRows(Part):
    """Index of rows by the cells of an Isolation Kernel, to which rows can be added along a stream.

    It stores cells, not the rows themselves: one to four bytes for each partitioning and scale of a row, one byte up to
    256 cells. A search compares a row with all stored ones, so its result is exact.

    Parameters
    ----------
    kernel : fitted IsolationKernel, or a learner that holds one
        Its map must not change: neither grow nor renew itself.

    Attributes
    ----------
    n : int
        Number of stored rows.
    bytes_per_row : int
        Memory of a stored row.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from isokern import IsolationKernel
    >>> from isokern.inspection import SimilarRows
    >>> X = load_iris().data
    >>> index = SimilarRows(IsolationKernel(n_cells=16, random_state=0).fit(X))
    >>> indices, similarities = index.add(X[:100]).add(X[100:]).query(X[:2], k=3)
    >>> indices.shape, float(similarities[0, 0])
    ((2, 3), 1.0)
    >>> index.n, index.bytes_per_row
    (150, 100)
    """

    kernel: IsolationKernel
    # By scale, the cells of stored rows, (n_panels, t, 64): a comparison then serves as many rows as a register holds.
    panels: list[NDArray[Any]] = field(default_factory=list)
    n: int = 0

    def __post_init__(self) -> None:
        self.kernel = fixed_kernel(self.kernel)
        self._map = self.kernel.map_
        if not self.panels:
            t = self._map.n_partitionings
            self.panels = [np.zeros((0, t, _PANEL), dtype=dtype) for dtype in self._dtypes]

    @property
    def bytes_per_row(self) -> int:
        """Memory of a stored row; arrays have room for up to twice as many rows."""
        return sum(self._map.n_partitionings * dtype.itemsize for dtype in self._dtypes)

    @property
    def _dtypes(self) -> list[np.dtype[Any]]:
        """Smallest dtype of the cells of each scale."""
        sizes = np.diff(self._map.starts).reshape(-1, self._map.n_scales).max(axis=0)
        return [np.min_scalar_type(int(size) - 1) for size in sizes]

    def _cells(self, X: Any) -> list[NDArray[Any]]:
        """Return the cells of rows by scale, (n, t)."""
        if self.kernel.map_ is not self._map:
            raise ValueError("kernel must not be fitted anew after rows have been stored; make a new SimilarRows.")
        cells = self.kernel.apply_rows(read_rows(self.kernel, X, reset=False))
        by_scale = cells.reshape(len(cells), -1, self._map.n_scales)
        return [np.ascontiguousarray(by_scale[:, :, k], dtype=dtype) for k, dtype in enumerate(self._dtypes)]

    def add(self, X: ArrayLike) -> Self:
        """Store rows; they get the next numbers.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame, list of dicts} of shape (n, d)

        Returns
        -------
        self
        """
        cells = self._cells(X)
        numbers = np.arange(self.n, self.n + len(cells[0]))
        n_panels = -(-(self.n + len(numbers)) // _PANEL)
        panels = [_with_room(of_scale, n_panels) for of_scale in self.panels]
        for of_scale, new in zip(panels, cells, strict=True):
            of_scale[numbers // _PANEL, :, numbers % _PANEL] = new
        self.panels, self.n = panels, self.n + len(numbers)
        return self

    def query(self, X: ArrayLike, k: int = 10) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the k most similar stored rows of each row, the most similar first.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame, list of dicts} of shape (n, d)
        k : int, default=10

        Returns
        -------
        indices : ndarray of shape (n, k)
            Numbers of the stored rows, in the order in which they were added; of equally similar ones, the earlier is
            first.
        similarities : ndarray of shape (n, k)
            As ``kernel.similarity`` computes them.
        """
        if not is_integer(k, at_least=1) or k > self.n:
            raise ValueError(f"k must be from 1 to the number of stored rows, {self.n}; got {k!r}.")
        cells = self._cells(X)
        indices = np.empty((len(cells[0]), int(k)), dtype=np.int64)
        similarities = np.empty(indices.shape)
        weights, threads = self._map.scale_weights**2, n_threads(self.kernel.n_jobs)
        _core.find_similar(self.panels, cells, weights, self.n, indices, similarities, threads)
        return indices, similarities

    def __len__(self) -> int:
        return self.n

    def __repr__(self) -> str:
        return f"SimilarRows({self.n} rows of {self.bytes_per_row} bytes)"

    # -- contract of isokern.parts

    def state(self) -> dict[str, Any]:
        """Return the kernel and the cells, without spare room."""
        n_panels = -(-self.n // _PANEL)
        return {"kernel": self.kernel, "panels": [panels[:n_panels] for panels in self.panels], "n": self.n}

    def check(self) -> None:
        """Raise ValueError unless there are panels for all rows and scales."""
        shape = (-(-self.n // _PANEL), self._map.n_partitionings, _PANEL)
        is_sound = [panels.dtype for panels in self.panels] == self._dtypes
        need(is_sound and all(panels.shape == shape for panels in self.panels), "panels must have the cells of n rows")


def similar_rows(
    kernel: Any, X: ArrayLike, k: int = 10, *, among: ArrayLike | None = None
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the k rows that are most similar to each row under an Isolation Kernel, by exact search.

    Parameters
    ----------
    kernel : fitted IsolationKernel, a learner that holds one, or SimilarRows
        Rows of a :class:`SimilarRows` are searched without storing them again.
    X : {array-like, sparse matrix, data frame, list of dicts} of shape (n, d)
        Rows to find others for.
    k : int, default=10
        Number of rows to find for each.
    among : {array-like, sparse matrix, data frame, list of dicts} of shape (m, d), default=None
        Rows to search. None means those of the index or, with a kernel, X: then a row also finds itself.

    Returns
    -------
    indices : ndarray of shape (n, k)
        Numbers of rows, the most similar first; of equally similar ones, the earlier is first.
    similarities : ndarray of shape (n, k)
        The share of partitionings in which both rows fall into the same cell, as ``kernel.similarity`` computes it.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from isokern import IsolationKernel
    >>> from isokern.inspection import similar_rows
    >>> X = load_iris().data
    >>> kernel = IsolationKernel(n_cells=16, random_state=0).fit(X)
    >>> indices, similarities = similar_rows(kernel, X[:2], k=3, among=X)
    >>> indices[:, 0].tolist(), similarities[:, 0].tolist()
    ([0, 1], [1.0, 1.0])
    """
    if isinstance(kernel, SimilarRows):
        if among is not None:
            raise ValueError("among must be None if kernel is an index of stored rows; got both.")
        return kernel.query(X, k)
    return SimilarRows(kernel).add(X if among is None else among).query(X, k)


def fixed_kernel(kernel: Any) -> IsolationKernel:
    """Return the kernel itself or that of a learner; raise unless it is fitted and its map stays as it is."""
    found = kernel if isinstance(kernel, IsolationKernel) else _kernel_of(kernel)
    check_is_fitted(found)
    if found.map_.is_growing:
        raise ValueError(
            "kernel must have a map that stays as it is; got one that grows or renews itself, so that cells of stored "
            "rows would be out of date. Use a learner with growth=False, or an IsolationKernel."
        )
    return found


def _kernel_of(learner: Any) -> IsolationKernel:
    if hasattr(learner, "get_params") and "kernel" in learner.get_params(deep=False):
        check_is_fitted(learner)
    found = getattr(learner, "kernel_", None)
    if not isinstance(found, IsolationKernel):
        raise TypeError(
            f"kernel must be a fitted IsolationKernel or a learner that holds one; got {type(learner).__name__}."
        )
    return found


def _with_room(panels: NDArray[Any], n_panels: int) -> NDArray[Any]:
    """Return panels with room for at least ``n_panels``, twice as many as before if they have to be copied."""
    if len(panels) >= n_panels and panels.flags.writeable:
        return panels
    larger = np.zeros((max(n_panels, 2 * len(panels)), *panels.shape[1:]), dtype=panels.dtype)
    larger[: len(panels)] = panels
    return larger
