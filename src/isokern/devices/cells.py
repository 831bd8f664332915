"""Find the cells of rows on a device; the result equals that of the compiled core.

A device rounds differently, so it may leave rows undecided. The compiled core decides those.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isokern.arrays import ForeignRows, device_of, like, namespace, to_host
from isokern.devices.blocks import Blocks, lagging
from isokern.devices.operations import check_products, full_precision, memory_budget, on_host
from isokern.devices.pytorch import Link, import_torch, link_to, torch_device
from isokern.devices.sources import Foreign, OnDevice, Table
from isokern.devices.trees import TreesOnDevice
from isokern.devices.voronoi import VoronoiOnDevice
from isokern.fitted_map import FittedMap
from isokern.partitionings import IsolationTrees, OwnPartitionings, Partitionings, VoronoiCells
from isokern.rows import n_rows

Ready = tuple[OnDevice, Blocks]

_PENDING = 4  # blocks whose cells may still be on their way to the host
_CHUNK = 8192  # undecided rows that the core maps at a time
_TRANSPORT = {"uint8": "uint8", "uint16": "int16", "uint32": "int32"}  # PyTorch has no uint16 and uint32 arithmetic


def cells_of_table(table: Any, fitted: FittedMap, device: str, threads: int) -> NDArray[Any] | None:
    """Map a table's rows on a PyTorch device, (n, t * n_scales); return None if the device cannot.

    A table with missing values is for the compiled core.
    """
    if isinstance(table, np.ndarray) and table.dtype.kind == "f" and np.isnan(table).any():
        return None
    if is_for_the_core(fitted):
        return None
    link = link_to(torch_device(device))
    xp = namespace(import_torch().empty(0))
    source = Table(table, fitted.scaling, link, xp)
    cells: NDArray[Any] = np.empty((source.n, fitted.n_partitionings), dtype=fitted.cell_dtype)
    undecided = np.empty(source.n, dtype=bool)
    with full_precision(xp, source.device):
        ready = prepared(fitted.partitionings, source, "float32")
        if ready is None:
            return None
        _fill(source, ready, link, cells, undecided)
        numbers = np.flatnonzero(undecided)
        finer = _finer(fitted.partitionings, source, numbers)
        if finer is not None:
            some, still_undecided = cells[numbers], undecided[numbers]
            _fill(source.take(numbers), finer, link, some, still_undecided)
            cells[numbers], numbers = some, numbers[still_undecided]
    for part, decided in _decided(source, fitted, numbers, threads):
        cells[part] = decided
    return fitted.expand(cells, threads)


def cells_of_foreign(rows: ForeignRows, fitted: FittedMap, threads: int) -> Any:
    """Map rows of another library's array where they are, int32; return None if the device cannot."""
    source = Foreign(rows, fitted.scaling)
    with full_precision(source.xp, source.device):
        can_stay = source.can_stay and not is_for_the_core(fitted)
        ready = prepared(fitted.partitionings, source, "float32") if can_stay else None
        if ready is None:
            return None
        cells, undecided = _found(source, ready)
        numbers = np.flatnonzero(to_host(undecided))
        finer = _finer(fitted.partitionings, source, numbers)
        if finer is not None:
            better, still_undecided = _found(source.take(numbers), finer)
            cells = _replaced(cells, numbers, better)
            numbers = numbers[to_host(still_undecided)]
    parts = [decided for _, decided in _decided(source, fitted, numbers, threads)]
    if parts:
        cells = _replaced(cells, numbers, like(np.concatenate(parts).astype(np.int32), cells))
    return _expanded(cells, fitted)


def is_for_the_core(fitted: FittedMap) -> bool:
    """Return whether only the compiled core finds the cells: others than those of numbers in trees or one scale."""
    partitionings = fitted.partitionings
    if isinstance(partitionings, IsolationTrees):
        return len(partitionings.categorical) > 0
    return not isinstance(partitionings, VoronoiCells) or fitted.n_scales > 1


def prepared(partitionings: Partitionings, source: Table | Foreign, dtype: str) -> Ready | None:
    """Return partitionings on a source's device, cached between calls; None if the device cannot hold them."""
    assert not isinstance(partitionings, OwnPartitionings)
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


def _finer(partitionings: Partitionings, source: Table | Foreign, undecided: NDArray[np.int64]) -> Ready | None:
    """Return Voronoi cells with float64 products for undecided rows, on devices where they beat the host's core."""
    is_tree = isinstance(partitionings, IsolationTrees)
    if len(undecided) == 0 or is_tree or on_host(source.xp, source.device) or not source.has_float64:
        return None
    return prepared(partitionings, source, "float64")


def _fill(source: Table, ready: Ready, link: Link, cells: NDArray[Any], undecided: NDArray[np.bool_]) -> None:
    """Write the cells of all rows, and which rows are undecided, as they arrive from the device."""
    mapper, blocks = ready
    transport = getattr(source.xp, _TRANSPORT[cells.dtype.name])
    copies = (
        (begin, end, link.fetch(source.xp.astype(found, transport)), link.fetch(is_open))
        for begin, end, (found, is_open) in blocks.found(source, mapper)
    )
    for begin, end, found, is_open in lagging(copies, _PENDING):
        cells[begin:end] = found().view(cells.dtype)
        undecided[begin:end] = is_open()


def _found(source: Foreign, ready: Ready) -> tuple[Any, Any]:
    """Return the cells of all rows, and which rows are undecided, on the device."""
    mapper, blocks = ready
    cells, undecided = zip(*(found for *_, found in blocks.found(source, mapper)), strict=True)
    return source.xp.concat(cells, axis=0), source.xp.concat(undecided, axis=0)


def _decided(
    source: Table | Foreign, fitted: FittedMap, numbers: NDArray[np.int64], threads: int
) -> Iterator[tuple[NDArray[np.int64], NDArray[Any]]]:
    """Yield (row numbers, their cells by the compiled core) for undecided rows."""
    for begin in range(0, len(numbers), _CHUNK):
        part = numbers[begin : begin + _CHUNK]
        rows = source.core_rows(part)
        cells: NDArray[Any] = np.empty((n_rows(rows), fitted.n_partitionings), dtype=fitted.cell_dtype)
        fitted.partitionings.apply(rows, cells, threads)
        yield part, cells


def _expanded(leaves: Any, fitted: FittedMap) -> Any:
    """Return the cells of trees at all scales, by a gather from the table of paths on the device."""
    trees, n_scales = fitted.partitionings, fitted.n_scales
    if n_scales == 1 or not isinstance(trees, IsolationTrees):
        return leaves
    xp, (n, t) = namespace(leaves), leaves.shape
    key = ("paths", xp.__name__, str(device_of(leaves)), n_scales)
    if key not in trees.on_devices:
        trees.on_devices[key] = like(trees.paths(n_scales).reshape(-1, n_scales).astype(np.int32), leaves)
    places = leaves + like(np.arange(t, dtype=np.int32) * np.int32(trees.n_cells), leaves)
    cells = xp.take(trees.on_devices[key], xp.reshape(places, (-1,)), axis=0)
    return xp.reshape(cells, (n, t * n_scales))


def _replaced(cells: Any, numbers: NDArray[np.int64], others: Any) -> Any:
    """Return a copy of cells with some rows replaced; some libraries have immutable arrays."""
    xp, order = namespace(cells), np.arange(cells.shape[0])
    order[numbers] = cells.shape[0] + np.arange(len(numbers))
    return xp.take(xp.concat([cells, others], axis=0), like(order, cells), axis=0)
