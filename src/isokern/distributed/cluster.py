"""Where tasks run: on the workers of a client, or in this process where there is none.

All that tasks need is part of their graph, nothing is put on workers beside it. So the scheduler can make anew whatever
a worker takes with it when it dies.
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
_TIMEOUT = "10s"  # for a scheduler to answer
_PATIENCE = "30s"  # for a first worker to come


class Cluster:
    """The workers of a client, or threads of this process if there is no client."""

    def __init__(self, client: Any = None) -> None:
        self.client = _current_client() if client is None else client
        if self.client is not None:
            _check_workers(self.client)

    def persist(self, tasks: Sequence[Any]) -> list[Any]:
        """Begin to compute tasks whose results stay where they are made; return what stands for these."""
        with _large_graphs():
            if self.client is not None:
                return list(self.client.persist(list(tasks)))
            return list(dask.persist(*tasks))

    def send(self, value: Any) -> Any:
        """Return what stands for a value in tasks, which goes to each worker that needs it once."""
        return self.persist([delayed(value, traverse=False)])[0]

    def compute(self, tasks: Sequence[Any]) -> list[Any]:
        """Return the results of tasks."""
        with _large_graphs():
            if self.client is not None:
                return list(self.client.gather(self.client.compute(list(tasks))))
            return list(dask.compute(*tasks))

    def reduce(self, work: Callable[..., Any], blocks: Iterable[Any], join: Callable[..., Any], *shared: Any) -> Any:
        """Return what ``join`` makes of the results of ``work(block, its number, *shared)`` for all blocks.

        They are joined a few at a time, in the order of the blocks, so that the result does not depend on which
        worker is fast, or alive.
        """
        sent = [delayed(value, traverse=False) for value in shared]
        parts = [delayed(work)(block, k, *sent) for k, block in enumerate(blocks)]
        while len(parts) > 1:
            parts = [delayed(join)(parts[k : k + _FAN_IN]) for k in range(0, len(parts), _FAN_IN)]
        return self.compute(parts)[0]


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """Give a client of the scheduler at an address, such as tcp://10.0.0.1:8786, or of a cluster of this machine.

    Parameters
    ----------
    address : str
        "local" starts a cluster on this machine, which ends with the block.

    Yields
    ------
    client : distributed.Client
    """
    if address == "local":
        with distributed.LocalCluster(dashboard_address=":0") as cluster, distributed.Client(cluster) as client:
            yield client
        return
    try:
        client = distributed.Client(address, timeout=_TIMEOUT)
    except (OSError, ValueError) as error:
        raise OSError(
            f'the address must be that of a running Dask scheduler, or "local"; nothing answers at {address}. Start '
            "one with: dask scheduler"
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
        try:
            client.wait_for_workers(1, timeout=_PATIENCE)
        except TimeoutError as error:
            raise TimeoutError(
                f"the cluster must have a worker; none came to {client.scheduler.address} in {_PATIENCE}. Start one "
                f"with: dask worker {client.scheduler.address}"
            ) from error

    def version() -> str:  # within a function, so that it is sent as code and not as a name in isokern
        import isokern

        return isokern.__version__

    for worker, found in client.run(version, on_error="return").items():
        if isinstance(found, str | ImportError) and found != __version__:  # else the worker has just died
            what = f"got {found}" if isinstance(found, str) else f"it cannot be imported ({found})"
            raise ImportError(
                f"isokern {__version__} must be installed on every worker; on {worker} {what}. Run there: "
                f"pip install 'isokern[dask]=={__version__}'"
            )


def _large_graphs() -> Any:
    """Let graphs hold a map or weights without Dask's warning, since they must get to the workers once."""
    return dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TiB"})
