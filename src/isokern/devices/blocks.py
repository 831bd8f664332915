"""Map rows in blocks that fit the device's memory, with smaller blocks after it runs out."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

import numpy as np

from isokern.checks import warn_user
from isokern.devices.operations import is_out_of_memory
from isokern.devices.sources import Foreign, OnDevice, Table

Item = TypeVar("Item")

_MOST_ROWS = 8192


class Blocks:
    """The number of rows per block; halved whenever the device runs out of memory."""

    def __init__(self, bytes_per_row: int, budget: int) -> None:
        self.n_rows = max(1, min(_MOST_ROWS, budget // max(1, bytes_per_row)))
        self._has_warned = False

    def found(self, source: Table | Foreign, mapper: OnDevice) -> Iterator[tuple[int, int, tuple[Any, Any]]]:
        """Yield (begin, end, the mapper's result) for consecutive blocks of rows."""
        begin = 0
        while begin < source.n:
            end = min(begin + self.n_rows, source.n)
            try:
                with np.errstate(over="ignore", invalid="ignore"):  # rows that overflow stay undecided
                    result = mapper.find(source.block(mapper, begin, end))
            except Exception as error:
                if not is_out_of_memory(error):
                    raise
                self._halve(end - begin, error)
                continue
            yield begin, end, result
            begin = end

    def _halve(self, n_rows: int, error: Exception) -> None:
        if n_rows == 1:
            raise MemoryError(
                "the device must have memory to map at least 1 row; it is out of memory. Use fewer cells or "
                'partitionings, or device="cpu".'
            ) from error
        self.n_rows = n_rows // 2
        if not self._has_warned:
            self._has_warned = True
            warn_user(f"The device is out of memory: blocks now have {self.n_rows} rows or fewer.")


def lagging(items: Iterable[Item], lag: int) -> Iterator[Item]:
    """Yield items ``lag`` positions late, so that this many asynchronous results can be pending."""
    pending: deque[Item] = deque()
    for item in items:
        pending.append(item)
        if len(pending) > lag:
            yield pending.popleft()
    yield from pending
