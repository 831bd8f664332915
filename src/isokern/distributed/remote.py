"""Share what the Dask estimators have in common: a local estimator that workers use, block by block."""

from __future__ import annotations

import copy
from typing import Any, Generic, Self, TypeVar

from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from isokern.distributed.cluster import Cluster
from isokern.distributed.collections import as_rows, check_columns
from isokern.distributed.survey import in_partition

Local = TypeVar("Local")


class RemoteEstimator(BaseEstimator, Generic[Local]):
    """Base of the Dask estimators."""

    client: Any
    _local: Any

    def to_local(self) -> Local:
        """Return a copy of the fitted estimator that needs no Dask, and can be saved.

        Returns
        -------
        estimator : IsolationKernel or IKOGDClassifier
        """
        check_is_fitted(self)
        return copy.deepcopy(self._local)

    @property
    def n_features_in_(self) -> int:
        """The number of columns seen in ``fit``."""
        return self._local.n_features_in_

    def _take(self, local: Any) -> Self:
        """Replace the fitted local estimator; the workers' copy is out of date."""
        self._local = local
        self.__dict__.pop("_sent", None)
        return self

    def _map_blocks(self, method: str, X: Any, empty: Any) -> Any:
        """Call a method of the local estimator on every block, lazily; ``empty`` is its answer to no rows."""
        rows, names = as_rows(X, self._local)
        check_columns(rows, names, self._local)
        if not hasattr(self, "_sent"):
            self._sent = Cluster(self.client).send(for_workers(self._local))
        shape = {"drop_axis": 1} if empty.ndim == 1 else {"chunks": (rows.chunks[0], (empty.shape[1],))}
        return rows.map_blocks(
            _call, method=method, fitted=self._sent, empty=empty, token=method, dtype=empty.dtype, meta=empty, **shape
        )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_local")

    def __sklearn_clone__(self) -> Self:
        """Clone the parameters; the clone keeps the client, which cannot be copied."""
        parameters = self.get_params(deep=False)
        copies = {name: value if name == "client" else clone(value, safe=False) for name, value in parameters.items()}
        return type(self)(**copies)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out everything that belongs to a connection."""
        state = {name: value for name, value in super().__getstate__().items() if name != "_sent"}
        return state | {"client": None}


def for_workers(local: Any) -> Any:
    """Return a copy of a fitted estimator for workers.

    It has no column names, since blocks have none, and uses one thread by default, since workers run many tasks.
    """
    sent = copy.copy(local)
    sent.__dict__.pop("feature_names_in_", None)
    sent.n_jobs = local.n_jobs or 1
    if hasattr(local, "kernel_"):
        sent.kernel, sent.kernel_ = None, for_workers(local.kernel_)
    return sent


def _call(rows: Any, method: str, fitted: Any, empty: Any, block_id: tuple[int, ...] = (0,)) -> Any:
    with in_partition(block_id[0]):
        return getattr(fitted, method)(rows) if rows.shape[0] else empty
