"""What estimators on a cluster share: a client that stays behind, and what they have sent to the workers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from sklearn.base import BaseEstimator, clone

from isokern.distributed.cluster import Cluster


class RemoteEstimator(BaseEstimator):
    """Base of the estimators on a cluster."""

    client: Any

    def _remote(self, prepare: Callable[[Any], Any], value: Any) -> Any:
        """Return what stands for a fitted value in tasks; it is sent when it is first needed."""
        if not hasattr(self, "_sent"):
            self._sent = Cluster(self.client).send(prepare(value))
        return self._sent

    def _forget_remote(self) -> None:
        self.__dict__.pop("_sent", None)

    def __sklearn_clone__(self) -> Self:
        """Clone the parameters, but let the copy have the same client."""
        parameters = self.get_params(deep=False)
        copies = {name: value if name == "client" else clone(value, safe=False) for name, value in parameters.items()}
        return type(self)(**copies)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what belongs to a connection."""
        state = {name: value for name, value in super().__getstate__().items() if name != "_sent"}
        return state | {"client": None}
