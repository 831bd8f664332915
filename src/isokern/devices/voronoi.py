"""Find Voronoi cells on a device by matrix products, with a proven bound on the rounding error.

Points and rows are centred at the points' mean and scaled by a power of two to at most 1, so that neither an offset nor
the unit of measurement costs precision. Let u be the unit roundoff of the products, d the number of columns, and |.|
the norm after centring. Rounding changes a squared distance by at most kappa (|x|^2 + |z|^2), whatever the order of
summation, where kappa is about u d. With
    lower(x, z) = (1 - kappa) |z|^2 - 2 x.z,   upper(x, z) = lower(x, z) + 2 kappa (|x|^2 + |z|^2)
(both omit the term (1 - kappa) |x|^2), a point is certainly nearest if its upper bound is below the lower bounds of all
others. If that fails in any partitioning, the row is undecided and the compiled core computes its distances.

Integers (counts, one-hot columns, pixels) have many exact ties. As long as all sums stay below 1/u, they are exact, and
the first of the smallest wins.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from isokern.arrays import has_float64
from isokern.devices.operations import is_torch, multiply_add, smallest_two
from isokern.rows import CoreRows, as_scipy, n_columns, n_rows

# Gathering one product takes as long as this many multiplications (measured on two cores; a GPU's ratio of bandwidth
# to arithmetic is similar).
_LOOKUP = 150
_MOST_COLUMNS = 2**16
_LARGEST, _SMALLEST = 1e30, 1e-30
_LONGEST = 1e30  # squared norm of a row
_CHUNK = 4096
_TINY = 2.0**-100  # covers underflow


class Placement(NamedTuple):
    """The centre and the factor by which points and rows are shifted and scaled."""

    centre: NDArray[np.float64]
    scale: float
    is_integer: bool


class VoronoiOnDevice:
    """The points of all samples on a device, for rows of one dtype.

    Parameters
    ----------
    points, samples : see VoronoiCells
    xp, device : namespace and device
    row_dtype, dtype : float32 or float64, of the rows and of the products
    """

    def __init__(
        self, points: CoreRows, samples: NDArray[np.int32], xp: Any, device: Any, *, row_dtype: Any, dtype: Any
    ) -> None:
        self.xp, self.device = xp, device
        self.dtype = np.dtype(dtype)
        self.n_partitionings, self.n_cells = samples.shape
        self.n_columns = n_columns(points)
        self.column_numbers = None  # it reads all columns
        pool, positions = _pool_of(points, samples)
        self._placement = _find_placement(points, pool, np.dtype(row_dtype))
        self._roundoff = 2.0**-24 if self.dtype == np.float32 else 2.0**-53
        # The core's distance is in float64, so its own rounding counts only against float64 products.
        n_roundings = self.n_columns + 32 if self.dtype == np.float32 else 3 * self.n_columns + 64
        self.kappa = 1.05 * n_roundings * self._roundoff
        # float64 rows are centred on the host if the device has no float64.
        on_device = np.dtype(row_dtype) == np.float32 or has_float64(xp, device)
        self._device_centre = self._asarray(self._placement.centre.astype(row_dtype)) if on_device else None
        self._lay_out(points, pool, positions)

    @staticmethod
    def serves(points: CoreRows, *, largest_pool: int) -> bool:
        """Return whether the products can handle the points' magnitude, number of columns and size."""
        table = as_scipy(points)
        values = table.data if sparse.issparse(table) else table
        largest = max(values.max(initial=0.0), -values.min(initial=0.0))
        n_bytes = 4 * n_rows(points) * n_columns(points)
        return n_columns(points) <= _MOST_COLUMNS and n_bytes <= largest_pool and bool(largest < _LARGEST)

    @property
    def bytes_per_row(self) -> int:
        """Peak memory to map one row."""
        n_all = self.n_partitionings * self.n_cells
        n_scores = (0 if self._lookups is None else self._factors.shape[1]) + (
            n_all if is_torch(self.xp) else 3 * n_all
        )
        return self.dtype.itemsize * (n_scores + 8 * self.n_columns + 8 * self.n_partitionings)

    def prepare(self, rows: Any) -> tuple[Any, ...]:
        """Centre and scale rows, of NumPy or on the device; if the points are integers, also tell which rows are."""
        if isinstance(rows, np.ndarray):
            with np.errstate(over="ignore"):
                return self._prepare(np, rows, self._placement.centre.astype(rows.dtype))
        return self._prepare(self.xp, rows, self._device_centre)

    def _prepare(self, xp: Any, rows: Any, centre: Any) -> tuple[Any, ...]:
        wider = rows if self.dtype == np.float32 else _astype(xp, rows, self.dtype)
        centred = _astype(xp, (wider - centre) * self._placement.scale, self.dtype)
        return (centred, xp.all(xp.floor(rows) == rows, axis=1)) if self._placement.is_integer else (centred,)

    def find(self, rows: tuple[Any, ...]) -> tuple[Any, Any]:
        """Return the cells of prepared rows, (n, t), and which rows are undecided."""
        centred, *are_integers = rows
        xp, shape = self.xp, (centred.shape[0], self.n_partitionings, self.n_cells)
        lower = multiply_add(xp, centred, self._factors, self._offsets)
        if self._lookups is not None:
            lower = xp.take(lower, self._lookups, axis=1)
        smallest, cells, second = smallest_two(xp, xp.reshape(lower, shape))
        squares = xp.sum(centred * centred, axis=1)
        widths = xp.reshape(xp.take(self._widths, xp.reshape(cells + self._starts, (-1,)), axis=0), cells.shape)
        limit = smallest + widths + xp.expand_dims(2.0 * self.kappa * squares + _TINY, axis=1)
        undecided = xp.any(second <= limit, axis=1)
        if are_integers:
            is_exact = squares + 2.0 * self._largest_square < 1.0 / self._roundoff
            undecided = undecided & ~(are_integers[0] & is_exact)
        return xp.astype(cells, xp.int32), undecided | ~(squares < _LONGEST)

    def _lay_out(self, points: CoreRows, pool: NDArray[np.int64], positions: NDArray[np.int64]) -> None:
        """Move the points and the terms of their bounds to the device; an extra last point is infinitely far."""
        factors = np.zeros((len(pool) + 1, self.n_columns), dtype=self.dtype)
        squares = np.zeros(len(pool) + 1)
        for begin, rows in _dense_chunks(points, pool):
            centred = self.prepare(rows.astype(np.float64))[0]
            factors[begin : begin + len(rows)] = -2 * centred
            squares[begin : begin + len(rows)] = np.square(centred.astype(np.float64)).sum(axis=1)
        self._largest_square = float(squares.max())
        if self._placement.is_integer:  # one width for all points keeps the products exact
            offsets, widths = squares.copy(), np.full_like(squares, 2.0 * self.kappa * self._largest_square)
        else:
            offsets, widths = (1.0 - self.kappa) * squares, 2.0 * self.kappa * squares
        offsets[-1] = np.inf
        order = positions.reshape(-1)
        pays = (1.0 - len(pool) / len(order)) * self.n_columns > _LOOKUP
        self._lookups = self._asarray(order.astype(np.int32)) if pays else None
        listed = slice(None) if pays else order
        self._factors = self._asarray(factors[listed]).T
        self._offsets = self._asarray(offsets[listed].astype(self.dtype))
        self._widths = self._asarray(widths[order].astype(self.dtype))
        self._starts = self._asarray(np.arange(self.n_partitionings) * self.n_cells)

    def _asarray(self, values: NDArray[Any]) -> Any:
        return self.xp.asarray(values, device=self.device)


def _astype(xp: Any, values: Any, dtype: np.dtype[Any]) -> Any:
    return values.astype(dtype) if xp is np else xp.astype(values, getattr(xp, dtype.name))


def _pool_of(points: CoreRows, samples: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the pool of distinct sampled points, and each sample as positions in the pool.

    Of equal points in one sample only the first counts; the others get the position after the end.
    """
    pool, positions = np.unique(_first_equal(points)[samples], return_inverse=True)
    positions = positions.reshape(samples.shape)
    order = np.argsort(positions, axis=1, kind="stable")
    ordered = np.take_along_axis(positions, order, axis=1)
    is_repeated = np.zeros(positions.shape, dtype=bool)
    np.put_along_axis(is_repeated, order[:, 1:], ordered[:, 1:] == ordered[:, :-1], axis=1)
    return pool, np.where(is_repeated, len(pool), positions)


def _first_equal(points: CoreRows) -> NDArray[np.int64]:
    """Return, for each point, the number of the first point that equals it; equal hashes are compared in full."""
    factors = np.random.default_rng(0).integers(2**63, size=n_columns(points), dtype=np.uint64) | np.uint64(1)
    hashes = np.empty(n_rows(points), dtype=np.uint64)
    for begin, rows in _dense_chunks(points, np.arange(n_rows(points))):
        bits = (rows.astype(np.float64) + 0.0).view(np.uint64)  # + 0.0 turns -0.0 into 0.0
        hashes[begin : begin + len(rows)] = bits @ factors
    order = np.argsort(hashes, kind="stable")
    alike = np.flatnonzero(hashes[order[1:]] == hashes[order[:-1]]) + 1
    is_new = np.ones(len(order), dtype=bool)
    pairs = zip(_dense_chunks(points, order[alike]), _dense_chunks(points, order[alike - 1]), strict=True)
    for (begin, rows), (_, before) in pairs:
        is_new[alike[begin : begin + len(rows)]] = (rows != before).any(axis=1)
    first = np.empty(len(order), dtype=np.int64)
    first[order] = order[np.maximum.accumulate(np.where(is_new, np.arange(len(order)), 0))]
    return first


def _dense_chunks(points: CoreRows, numbers: NDArray[np.int64]) -> Iterator[tuple[int, NDArray[Any]]]:
    """Yield (position of the first, dense points) for chunks of a list of points."""
    table = as_scipy(points)
    for begin in range(0, len(numbers), _CHUNK):
        chunk = table[numbers[begin : begin + _CHUNK]]
        yield begin, chunk.toarray() if sparse.issparse(chunk) else chunk


def _find_placement(points: CoreRows, pool: NDArray[np.int64], row_dtype: np.dtype[Any]) -> Placement:
    """Return the points' mean in the rows' precision, and the power of two that scales them to at most 1."""
    total, is_integer = np.zeros(n_columns(points)), True
    for _, rows in _dense_chunks(points, pool):
        total += rows.sum(axis=0, dtype=np.float64)
        is_integer = is_integer and bool((rows == np.rint(rows)).all())
    centre = (np.rint(total / len(pool)) if is_integer else total / len(pool)).astype(row_dtype).astype(np.float64)
    largest = max(float(np.abs(rows - centre).max()) for _, rows in _dense_chunks(points, pool))
    if is_integer and largest < 2**23:
        return Placement(centre, 1.0, True)
    scale = 2.0 ** -np.ceil(np.log2(largest)) if largest > _SMALLEST else 1.0
    return Placement(centre, float(scale), False)
