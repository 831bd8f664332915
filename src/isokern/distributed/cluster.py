"""Run tasks on the workers of a Dask client, or in this process if there is none.

Everything that tasks need is part of their graph; nothing else is stored on workers. So the scheduler can recompute
whatever is lost when a worker dies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import dask
import distributed
from dask import delayed

from isokern import __version__

_FAN_IN = 8
_TIMEOUT = "10s"  # to connect to a scheduler
_WORKER_TIMEOUT = "30s"  # until the first worker connects


class Cluster:
    """The workers of a client, or threads of this process if there is no client."""

    def __init__(self, client: Any = None) -> None:
        self.client = _current_client() if client is None else client
        if self.client is not None:
            _check_workers(self.client)

    def persist(self, tasks: Sequence[Any]) -> list[Any]:
        """Start tasks whose results stay on the workers; return references to the results."""
        with _large_graphs():
            if self.client is not None:
                return list(self.client.persist(list(tasks)))
            return list(dask.persist(*tasks))

    def send(self, value: Any) -> Any:
        """Return a reference to a value, for use in tasks; each worker receives the value at most once."""
        return self.persist([delayed(value, traverse=False)])[0]

    def compute(self, tasks: Sequence[Any]) -> list[Any]:
        """Return the results of tasks."""
        with _large_graphs():
            if self.client is not None:
                return list(self.client.gather(self.client.compute(list(tasks))))
            return list(dask.compute(*tasks))

    def reduce(self, work: Callable[..., Any], blocks: Iterable[Any], join: Callable[..., Any], *shared: Any) -> Any:
        """Compute ``work(block, its number, *shared)`` for every block and combine the results with ``join``.

        The reduction is a tree over the blocks in order, so the result does not depend on the timing of workers.
        """
        sent = [delayed(value, traverse=False) for value in shared]
        parts = [delayed(work)(block, k, *sent) for k, block in enumerate(blocks)]
        while len(parts) > 1:
            parts = [delayed(join)(parts[k : k + _FAN_IN]) for k in range(0, len(parts), _FAN_IN)]
        return self.compute(parts)[0]


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """Give a client of the scheduler at an address, such as tcp://10.0.0.1:8786; "local" starts a temporary cluster."""
    if address == "local":
        with distributed.LocalCluster(dashboard_address=":0") as cluster, distributed.Client(cluster) as client:
            yield client
        return
    try:
        client = distributed.Client(address, timeout=_TIMEOUT)
    except (OSError, ValueError) as error:
        raise OSError(
            f'address must be that of a running Dask scheduler, or "local"; nothing answers at {address}. Start a '
            "scheduler with: dask scheduler"
        ) from error
    with client:
        yield client


def _current_client() -> Any:
    try:
        return distributed.get_client()
    except ValueError:  # there is none
        return None


def _check_workers(client: Any) -> None:
    """Raise unless there are workers, and all of them have this version of isokern."""
    if not client.nthreads():
        address = client.scheduler.address
        try:
            client.wait_for_workers(1, timeout=_WORKER_TIMEOUT)
        except TimeoutError as error:
            raise TimeoutError(
                f"the cluster must have a worker; none connected to {address} within {_WORKER_TIMEOUT}. Start one "
                f"with: dask worker {address}"
            ) from error

    def version() -> str:  # a local function is pickled by value, so a worker without isokern can unpickle it
        import isokern

        return isokern.__version__

    for worker, found in client.run(version, on_error="return").items():
        if isinstance(found, str | ImportError) and found != __version__:  # other errors: the worker has just died
            what = f"got {found}" if isinstance(found, str) else f"it cannot be imported ({found})"
            raise ImportError(
                f"isokern {__version__} must be installed on every worker; on {worker} {what}. Run there: "
                f"pip install 'isokern[dask]=={__version__}'"
            )


def _large_graphs() -> Any:
    """Silence Dask's warning about large graphs: a map or weights must reach the workers once anyway."""
    return dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TiB"})
