"""Fit the Isolation Kernel to Dask collections and apply it to them."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from isokern.distributed.cluster import Cluster
from isokern.distributed.collections import as_rows
from isokern.distributed.remote import RemoteEstimator
from isokern.distributed.survey import Survey
from isokern.feature_map import IsolationKernel
from isokern.rows import csr_class


class DaskIsolationKernel(TransformerMixin, RemoteEstimator[IsolationKernel]):
    """Isolation Kernel for Dask arrays and data frames.

    The map does not depend on the partitions or the workers. It is bit for bit the map of
    :class:`isokern.IsolationKernel` fitted to all rows with the same seed (up to rounding for ``scale="standard"``).
    Only the sampled rows, at most ``n_partitionings * n_cells``, come to this process. The fitted map goes to each
    worker once. ``apply`` and ``transform`` are lazy and keep the blocks of X.

    Parameters
    ----------
    partitioning, n_partitionings, n_cells, max_depth, n_scales, scale, categorical_features, sparse_output, device
        See :class:`isokern.IsolationKernel`; user-defined partitionings are not supported.
    random_state : int, RandomState instance or None, default=None
        Seed.
    n_jobs : int, default=None
        Threads per task; None means 1, since Dask runs many tasks at once.
    client : distributed.Client or None, default=None
        The cluster; None means the current client, or threads of this process if there is none.

    Attributes
    ----------
    kernel_ : IsolationKernel
        The fitted local kernel.
    n_cells_ : int
        Number of cells of a partitioning.
    n_scales_ : int
        Number of scales of each partitioning.
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
    dask.array<transform, shape=(150, 1600), dtype=float64, chunksize=(40, 1600), chunktype=scipy.csr_matrix>
    >>> kernel.apply(X).compute().shape
    (150, 100)
    """

    def __init__(
        self,
        partitioning: str = "tree",
        n_partitionings: int = 100,
        n_cells: int | str = "auto",
        *,
        max_depth: int | str | None = None,
        n_scales: int | str = 1,
        scale: str | None = None,
        categorical_features: Any = "from_dtype",
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
        self.n_scales = n_scales
        self.scale = scale
        self.categorical_features = categorical_features
        self.sparse_output = sparse_output
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.client = client

    def fit(self, X: Any, y: object = None) -> Self:
        """Draw the partitionings from the rows of X; X is read twice, first to scan it, then for the sampled rows.

        Parameters
        ----------
        X : Dask array or data frame of shape (n, d)
            Blocks may be dense or CSR; lengths may be unknown.
        y : ignored

        Returns
        -------
        self
        """
        parameters = self.get_params(deep=False)
        del parameters["client"]
        kernel = IsolationKernel(**parameters)
        check_drawn(kernel)
        Survey(Cluster(self.client), X, kernel=kernel).fit_kernel(kernel)
        return self._take(kernel)

    def apply(self, X: Any) -> Any:
        """Return the cells of each row, lazily; see :meth:`isokern.IsolationKernel.apply`."""
        check_is_fitted(self)
        fitted = self.kernel_.map_
        return self._map_blocks("apply", X, np.empty((0, len(fitted.starts) - 1), dtype=fitted.cell_dtype))

    def transform(self, X: Any) -> Any:
        """Return the features of rows, lazily; see :meth:`isokern.IsolationKernel.transform`."""
        check_is_fitted(self)
        dtype = np.float32 if as_rows(X)[0].dtype == np.float32 else np.float64
        form = csr_class() if self.sparse_output else np.empty
        return self._map_blocks("transform", X, form((0, self.kernel_.map_.width), dtype=dtype))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the columns' names; see :meth:`isokern.IsolationKernel.get_feature_names_out`."""
        check_is_fitted(self)
        return self.kernel_.get_feature_names_out(input_features)

    @property
    def kernel_(self) -> IsolationKernel:
        """The fitted local kernel."""
        return self._local

    @property
    def n_cells_(self) -> int:
        """The number of cells of a partitioning."""
        return self.kernel_.n_cells_

    @property
    def n_scales_(self) -> int:
        """The number of scales of each partitioning."""
        return self.kernel_.n_scales_


def check_drawn(kernel: IsolationKernel) -> None:
    """Raise unless a kernel's partitionings need only sampled rows; nothing else is fetched from the workers."""
    if not isinstance(kernel.partitioning, str):
        raise ValueError(
            f'partitioning must be "tree" or "voronoi" for Dask collections; got {kernel.partitioning!r}. Fit an '
            "IsolationKernel to a sample of the rows and pass it as kernel."
        )
    kernel.check_parameters()
