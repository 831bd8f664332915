"""The Isolation Kernel, fitted to and applied to Dask collections."""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from isokern.distributed.cluster import Cluster
from isokern.distributed.collections import as_rows, check_columns
from isokern.distributed.remote import RemoteEstimator
from isokern.distributed.survey import Survey, in_partition
from isokern.feature_map import IsolationKernel
from isokern.rows import csr_class


class DaskIsolationKernel(TransformerMixin, RemoteEstimator):
    """Isolation Kernel of Dask arrays and data frames.

    The map is drawn from the same rows however the data are partitioned and whatever the workers: it is that of
    :class:`isokern.IsolationKernel` fitted to all rows with the same seed, to the last bit (with ``scale="standard"``,
    but for rounding). Only the sampled rows, at most ``n_partitionings * n_cells``, come to this process; the fitted
    map goes to each worker once.

    Parameters
    ----------
    partitioning, n_partitionings, n_cells, max_depth, scale, sparse_output, device, random_state
        As of :class:`isokern.IsolationKernel`; a partitioning of your own is not possible here.
    n_jobs : int, default=None
        Threads of a task; None means 1, since Dask runs many tasks at once.
    client : distributed.Client or None, default=None
        The cluster. None means the current client, or threads of this process if there is none.

    Attributes
    ----------
    kernel_ : IsolationKernel
        The fitted kernel, an ordinary one.
    n_cells_ : int
        Number of cells of a partitioning.
    n_features_in_ : int
        Number of columns.

    Examples
    --------
    >>> import dask.array as da
    >>> from sklearn.datasets import load_iris
    >>> from isokern.distributed import DaskIsolationKernel
    >>> X = da.from_array(load_iris().data, chunks=(40, 4))
    >>> kernel = DaskIsolationKernel(n_cells=16, random_state=0).fit(X)
    >>> kernel.transform(X)
    dask.array<transform_block, shape=(150, 1600), dtype=float64, chunksize=(40, 1600), chunktype=scipy.csr_matrix>
    >>> kernel.apply(X).compute().shape
    (150, 100)
    """

    kernel_: IsolationKernel

    def __init__(
        self,
        partitioning: str = "tree",
        n_partitionings: int = 100,
        n_cells: int | str = "auto",
        *,
        max_depth: int | str | None = None,
        scale: str | None = None,
        sparse_output: bool = True,
        device: str | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        client: Any = None,
    ) -> None:
        self.partitioning = partitioning
        self.n_partitionings = n_partitionings
        self.n_cells = n_cells
        self.max_depth = max_depth
        self.scale = scale
        self.sparse_output = sparse_output
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.client = client

    def fit(self, X: Any, y: object = None) -> Self:
        """Draw the partitionings from the rows of X, which is read twice: to look at, and to fetch the sampled rows.

        Parameters
        ----------
        X : Dask array or data frame of shape (n, d)
            Blocks may be dense or CSR; lengths may be unknown.
        y : ignored

        Returns
        -------
        self
        """
        parameters = {name: value for name, value in self.get_params(deep=False).items() if name != "client"}
        kernel = IsolationKernel(**parameters)
        check_drawn(kernel)
        self.kernel_ = Survey(Cluster(self.client), X, scale=self.scale).fit_kernel(kernel)
        self._forget_remote()
        return self

    def apply(self, X: Any) -> Any:
        """Return the cells that each row falls into.

        Parameters
        ----------
        X : Dask array or data frame of shape (n, d)

        Returns
        -------
        cells : Dask array of shape (n, n_partitionings)
            Lazy, its blocks those of X.
        """
        check_is_fitted(self)
        fitted = self.kernel_.map_
        empty = np.empty((0, 0), dtype=fitted.cell_dtype)
        return self._mapped(apply_block, X, fitted.n_partitionings, fitted.cell_dtype, empty)

    def transform(self, X: Any) -> Any:
        """Return the feature map: for each partitioning 1/sqrt(t) in the column of the row's cell, else 0.

        Parameters
        ----------
        X : Dask array or data frame of shape (n, d)

        Returns
        -------
        features : Dask array of shape (n, n_partitionings * n_cells_)
            Lazy, its blocks those of X and CSR, or dense if not ``sparse_output``.
        """
        check_is_fitted(self)
        dtype = np.dtype(np.float32 if as_rows(X)[0].dtype == np.float32 else np.float64)
        empty = csr_class()((0, 0), dtype=dtype) if self.sparse_output else np.empty((0, 0), dtype=dtype)
        return self._mapped(transform_block, X, self.kernel_.map_.width, dtype, empty)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return a name for each column of ``transform``: ``partitioning3_cell17``.

        Parameters
        ----------
        input_features : array-like of str or None, default=None

        Returns
        -------
        names : ndarray of str objects
        """
        check_is_fitted(self)
        return self.kernel_.get_feature_names_out(input_features)

    def to_local(self) -> IsolationKernel:
        """Return the fitted kernel as an ordinary one.

        Returns
        -------
        kernel : IsolationKernel
        """
        check_is_fitted(self)
        return copy.deepcopy(self.kernel_)

    @property
    def n_cells_(self) -> int:
        """The number of cells of a partitioning."""
        return self.kernel_.n_cells_

    @property
    def n_features_in_(self) -> int:
        """The number of columns seen in ``fit``."""
        return self.kernel_.n_features_in_

    def _mapped(self, work: Any, X: Any, width: int, dtype: Any, empty: Any) -> Any:
        rows, names = as_rows(X)
        check_columns(rows, names, self.kernel_)
        chunks = (rows.chunks[0], (width,))
        return rows.map_blocks(
            work, kernel=self._remote(sent_kernel, self.kernel_), dtype=dtype, chunks=chunks, meta=empty
        )


def check_drawn(kernel: IsolationKernel) -> None:
    """Raise unless a kernel's partitionings are made from samples, which is all of the rows that can be fetched."""
    if not isinstance(kernel.partitioning, str):
        raise ValueError(
            f'partitioning must be "tree" or "voronoi" for Dask collections; got {kernel.partitioning!r}. Fit an '
            "IsolationKernel to a sample of the rows, and give it as kernel."
        )
    kernel.check_parameters()


def sent_kernel(kernel: IsolationKernel) -> IsolationKernel:
    """Return a kernel as workers need it: without names of columns, which blocks lack, and one thread for a task."""
    sent = copy.copy(kernel)
    sent.__dict__.pop("feature_names_in_", None)
    sent.n_jobs = kernel.n_jobs or 1
    return sent


def apply_block(rows: Any, kernel: IsolationKernel, block_id: tuple[int, ...] = (0,)) -> NDArray[Any]:
    """Return the cells of a block of rows, of which there may be none."""
    if rows.shape[0] == 0:
        return np.empty((0, kernel.map_.n_partitionings), dtype=kernel.map_.cell_dtype)
    with in_partition(block_id[0]):
        return kernel.apply(rows)


def transform_block(rows: Any, kernel: IsolationKernel, block_id: tuple[int, ...] = (0,)) -> Any:
    """Return the features of a block of rows, of which there may be none."""
    with in_partition(block_id[0]):
        if rows.shape[0]:
            return kernel.transform(rows)
        dtype = np.float32 if rows.dtype == np.float32 else np.float64
        empty = sparse.csr_array((0, kernel.map_.width), dtype=dtype)
        return csr_class()(empty) if kernel.sparse_output else empty.toarray()
