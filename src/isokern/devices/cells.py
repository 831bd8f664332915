"""The cells of rows on a device: the same as those of the compiled core, which settles what the device leaves open."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isokern.arrays import ForeignRows, like, namespace, to_host
from isokern.devices.blocks import Blocks, Pending
from isokern.devices.operations import check_products, full_precision, memory_budget, on_host
from isokern.devices.pytorch import Link, import_torch, link_to, torch_device
from isokern.devices.sources import Foreign, OnDevice, Table
from isokern.devices.trees import TreesOnDevice
from isokern.devices.voronoi import VoronoiOnDevice
from isokern.fitted_map import FittedMap
from isokern.partitionings import IsolationTrees, OwnPartitionings, Partitionings, VoronoiCells
from isokern.rows import n_rows

Ready = tuple[OnDevice, Blocks]

_CHUNK = 8192  # rows that are settled at a time
_TRANSPORT = {"uint8": "uint8", "uint16": "int16", "uint32": "int32"}  # PyTorch computes with no other unsigned type


def cells_of_table(table: Any, fitted: FittedMap, device: str, threads: int) -> NDArray[Any] | None:
    """Return the cells of a table's rows, (n, t), by way of a PyTorch device; None if it cannot be done there."""
    link = link_to(torch_device(device))
    xp = namespace(import_torch().empty(0))
    source = Table(table, fitted.scaling, link, xp)
    cells: NDArray[Any] = np.empty((source.n, fitted.n_partitionings), dtype=fitted.cell_dtype)
    is_open = np.empty(source.n, dtype=bool)
    with full_precision(xp, source.device):
        ready = prepared(fitted.partitionings, source, "float32")
        if ready is None:
            return None
        _fill(source, ready, link, cells, is_open)
        _refine(source, fitted.partitionings, link, cells, is_open)
    for numbers, settled in _settled(source, fitted, np.flatnonzero(is_open), threads):
        cells[numbers] = settled
    return cells


def cells_of_foreign(rows: ForeignRows, fitted: FittedMap, threads: int) -> Any:
    """Return the cells of the rows of an array of another library there, (n, t) of int32; None if it cannot be done."""
    partitionings = fitted.partitionings
    source = Foreign(rows, fitted.scaling)
    with full_precision(source.xp, source.device):
        ready = prepared(partitionings, source, "float32") if source.can_stay else None
        if ready is None:
            return None
        cells, is_open = _found(source, ready)
        numbers = np.flatnonzero(to_host(is_open))
        finer = _finer(partitionings, source) if len(numbers) else None
        if finer is not None:
            some = source.take(numbers)
            better, still_open = _found(some, finer)
            cells = _replaced(cells, numbers, better)
            numbers = numbers[to_host(still_open)]
    parts = [settled for _, settled in _settled(source, fitted, numbers, threads)]
    return _replaced(cells, numbers, like(np.concatenate(parts).astype(np.int32), cells)) if parts else cells


def prepared(partitionings: Partitionings, source: Table | Foreign, dtype: str) -> Ready | None:
    """Return partitionings on a source's device, kept from one call to the next; None if they are not for a device."""
    if isinstance(partitionings, OwnPartitionings):
        return None
    is_sparse = source.is_sparse and isinstance(partitionings, IsolationTrees)
    key = (source.xp.__name__, str(source.device), source.row_dtype.name, dtype, is_sparse)
    if key not in partitionings.on_devices:
        mapper = _prepare(partitionings, source, dtype, is_sparse=is_sparse)
        budget = memory_budget(source.xp, source.device)
        partitionings.on_devices[key] = None if mapper is None else (mapper, Blocks(mapper.bytes_per_row, budget))
    return partitionings.on_devices[key]


def _prepare(
    partitionings: IsolationTrees | VoronoiCells, source: Table | Foreign, dtype: str, *, is_sparse: bool
) -> OnDevice | None:
    xp, device, row_dtype = source.xp, source.device, source.row_dtype
    if isinstance(partitionings, IsolationTrees):
        return TreesOnDevice(partitionings.arrays, partitionings.n_columns, xp, device, row_dtype, compact=is_sparse)
    largest = 2**32 if on_host(xp, device) else memory_budget(xp, device)
    if not VoronoiOnDevice.serves(partitionings.points, largest_pool=largest):
        return None
    check_products(xp, device)
    return VoronoiOnDevice(partitionings.points, partitionings.samples, xp, device, row_dtype=row_dtype, dtype=dtype)


def _finer(partitionings: Partitionings, source: Table | Foreign) -> Ready | None:
    """Return Voronoi cells with float64 products, for devices on which those are worth more than the host's core."""
    if isinstance(partitionings, IsolationTrees) or on_host(source.xp, source.device) or not source.has_float64:
        return None
    return prepared(partitionings, source, "float64")


def _fill(source: Table, ready: Ready, link: Link, cells: NDArray[Any], is_open: NDArray[np.bool_]) -> None:
    """Write the cells of all rows and whether they are open, as they arrive from the device."""
    mapper, blocks = ready
    pending, transport = Pending(), getattr(source.xp, _TRANSPORT[cells.dtype.name])
    for begin, end, (found, still_open) in blocks.found(source, mapper):
        arriving = link.fetch(source.xp.astype(found, transport)), link.fetch(still_open)

        def take_in(begin: int = begin, end: int = end, arriving: Any = arriving) -> None:
            cells[begin:end] = arriving[0]().view(cells.dtype)
            is_open[begin:end] = arriving[1]()

        pending.add(take_in)
    pending.finish()


def _refine(
    source: Table, partitionings: Partitionings, link: Link, cells: NDArray[Any], is_open: NDArray[np.bool_]
) -> None:
    """Look at open rows again with finer products, where that pays."""
    numbers = np.flatnonzero(is_open)
    finer = _finer(partitionings, source) if len(numbers) else None
    if finer is None:
        return
    some, still_open = cells[numbers], is_open[numbers]
    _fill(source.take(numbers), finer, link, some, still_open)
    cells[numbers], is_open[numbers] = some, still_open


def _found(source: Foreign, ready: Ready) -> tuple[Any, Any]:
    """Return the cells of all rows and which are open, on the device."""
    mapper, blocks = ready
    cells, is_open = zip(*(found for *_, found in blocks.found(source, mapper)), strict=True)
    return source.xp.concat(cells, axis=0), source.xp.concat(is_open, axis=0)


def _settled(
    source: Table | Foreign, fitted: FittedMap, numbers: NDArray[np.int64], threads: int
) -> Iterator[tuple[NDArray[np.int64], NDArray[Any]]]:
    """Yield (numbers of rows, their cells by the compiled core) for the rows that are open."""
    for begin in range(0, len(numbers), _CHUNK):
        part = numbers[begin : begin + _CHUNK]
        rows = source.core_rows(part)
        cells: NDArray[Any] = np.empty((n_rows(rows), fitted.n_partitionings), dtype=fitted.cell_dtype)
        fitted.partitionings.apply(rows, cells, threads)
        yield part, cells


def _replaced(cells: Any, numbers: NDArray[np.int64], others: Any) -> Any:
    """Return cells with some rows replaced by others, without writing to an array, which not all libraries allow."""
    xp, order = namespace(cells), np.arange(cells.shape[0])
    order[numbers] = cells.shape[0] + np.arange(len(numbers))
    return xp.take(xp.concat([cells, others], axis=0), like(order, cells), axis=0)
