"""Voronoi cells on a device: blocked matrix products, and a proven bound on their rounding.

Points and rows are moved to the points' mean and scaled by a power of two to at most 1, so that neither an offset nor a
unit costs precision. With u the unit roundoff of the products, d columns and |.| the length of what was moved, rounding
of inputs, products and sums changes a squared distance by at most kappa (|x|^2 + |z|^2), in whatever order a device
adds up. With
    lower(x, z) = (1 - kappa) |z|^2 - 2 x.z,   upper(x, z) = lower(x, z) + 2 kappa (|x|^2 + |z|^2),
both less (1 - kappa) |x|^2, the nearest point is known if its upper bound is below all other lower bounds. Rows for
which that fails in any partitioning are left open; the compiled core settles them by the distance itself.

Whole numbers (counts, one-hot columns, pixels) are full of exact ties. As long as all sums stay below 1/u they are
computed without rounding, and the first of the smallest is the answer.
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

# Looking up a product in the pool's takes as long as so many multiplications (measured on two cores; a GPU's ratio of
# bandwidth to products is much the same).
_LOOKUP = 150
_MOST_COLUMNS = 2**16
_LARGEST, _SMALLEST = 1e30, 1e-30
_LONGEST = 1e30  # squared, of a row
_CHUNK = 4096
_TINY = 2.0**-100  # covers what underflows


class Placement(NamedTuple):
    """Where points and rows are moved and how they are scaled."""

    centre: NDArray[np.float64]
    scale: float
    is_whole: bool


class VoronoiOnDevice:
    """The points of all samples on a device, for rows of one type.

    Parameters
    ----------
    points, samples : as of VoronoiCells
    xp, device : namespace and device
    row_dtype : dtype of the rows, float32 or float64
    dtype : dtype of the products, float32 or float64
    """

    def __init__(
        self, points: CoreRows, samples: NDArray[np.int32], xp: Any, device: Any, *, row_dtype: Any, dtype: Any
    ) -> None:
        self.xp, self.device = xp, device
        self.dtype = np.dtype(dtype)
        self.n_partitionings, self.n_cells = samples.shape
        self.n_columns = n_columns(points)
        self.column_numbers = None  # all columns are written out
        pool, places = _pool_of(points, samples)
        self._placement = _find_placement(points, pool, np.dtype(row_dtype))
        self._roundoff = 2.0**-24 if self.dtype == np.float32 else 2.0**-53
        # float64 products round no more coarsely than the distance itself, whose rounding counts then, too.
        n_roundings = self.n_columns + 32 if self.dtype == np.float32 else 3 * self.n_columns + 64
        self.kappa = 1.05 * n_roundings * self._roundoff
        # Without float64, such rows are placed on the host.
        is_placed_there = np.dtype(row_dtype) == np.float32 or has_float64(xp, device)
        self._centre_there = self._asarray(self._placement.centre.astype(row_dtype)) if is_placed_there else None
        self._lay_out(points, pool, places)

    @staticmethod
    def serves(points: CoreRows, *, largest_pool: int) -> bool:
        """Return whether points have magnitudes, columns and a size that products can handle."""
        table = as_scipy(points)
        values = table.data if sparse.issparse(table) else table
        largest = max(values.max(initial=0.0), -values.min(initial=0.0))
        n_bytes = 4 * n_rows(points) * n_columns(points)
        return n_columns(points) <= _MOST_COLUMNS and n_bytes <= largest_pool and bool(largest < _LARGEST)

    @property
    def bytes_per_row(self) -> int:
        """Bytes that finding the cells of one row takes at its peak."""
        n_all = self.n_partitionings * self.n_cells
        n_scores = (0 if self._lookups is None else self._factors.shape[1]) + (
            n_all if is_torch(self.xp) else 3 * n_all
        )
        return self.dtype.itemsize * (n_scores + 8 * self.n_columns + 8 * self.n_partitionings)

    def place(self, rows: Any) -> tuple[Any, ...]:
        """Return rows, of NumPy or on the device, moved and scaled and, if the points are whole numbers, which are."""
        if isinstance(rows, np.ndarray):
            with np.errstate(over="ignore"):
                return self._place(np, rows, self._placement.centre.astype(rows.dtype))
        return self._place(self.xp, rows, self._centre_there)

    def _place(self, xp: Any, rows: Any, centre: Any) -> tuple[Any, ...]:
        wider = rows if self.dtype == np.float32 else _astype(xp, rows, self.dtype)
        placed = _astype(xp, (wider - centre) * self._placement.scale, self.dtype)
        return (placed, xp.all(xp.floor(rows) == rows, axis=1)) if self._placement.is_whole else (placed,)

    def find(self, rows: tuple[Any, ...]) -> tuple[Any, Any]:
        """Return the cells of placed rows, (n, t), and which of the rows are open."""
        placed, *are_whole = rows
        xp, shape = self.xp, (placed.shape[0], self.n_partitionings, self.n_cells)
        lower = multiply_add(xp, placed, self._factors, self._offsets)
        if self._lookups is not None:
            lower = xp.take(lower, self._lookups, axis=1)
        smallest, place, second = smallest_two(xp, xp.reshape(lower, shape))
        squares = xp.sum(placed * placed, axis=1)
        widths = xp.reshape(xp.take(self._widths, xp.reshape(place + self._starts, (-1,)), axis=0), place.shape)
        limit = smallest + widths + xp.expand_dims(2.0 * self.kappa * squares + _TINY, axis=1)
        is_open = xp.any(second <= limit, axis=1)
        if are_whole:
            is_small = squares + 2.0 * self._largest_square < 1.0 / self._roundoff  # so that nothing was rounded
            is_open = is_open & ~(are_whole[0] & is_small)
        return xp.astype(place, xp.int32), is_open | ~(squares < _LONGEST)

    def _lay_out(self, points: CoreRows, pool: NDArray[np.int64], places: NDArray[np.int64]) -> None:
        """Move the points to the device, with the terms of their bounds; one more point is infinitely far."""
        factors = np.zeros((len(pool) + 1, self.n_columns), dtype=self.dtype)
        squares = np.zeros(len(pool) + 1)
        for begin, rows in _written_out(points, pool):
            placed = self.place(rows.astype(np.float64))[0]
            factors[begin : begin + len(rows)] = -2 * placed
            squares[begin : begin + len(rows)] = np.square(placed.astype(np.float64)).sum(axis=1)
        self._largest_square = float(squares.max())
        if self._placement.is_whole:  # the same width for all, so that the scores themselves need no rounding
            offsets, widths = squares.copy(), np.full_like(squares, 2.0 * self.kappa * self._largest_square)
        else:
            offsets, widths = (1.0 - self.kappa) * squares, 2.0 * self.kappa * squares
        offsets[-1] = np.inf
        order = places.reshape(-1)
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
    """Return the numbers of the distinct sampled points, and each sample as places in that list.

    Of equal points in one sample only the first counts; the others have the place after the list's end.
    """
    pool, places = np.unique(_first_equal(points)[samples], return_inverse=True)
    places = places.reshape(samples.shape)
    order = np.argsort(places, axis=1, kind="stable")
    ordered = np.take_along_axis(places, order, axis=1)
    is_repeated = np.zeros(places.shape, dtype=bool)
    np.put_along_axis(is_repeated, order[:, 1:], ordered[:, 1:] == ordered[:, :-1], axis=1)
    return pool, np.where(is_repeated, len(pool), places)


def _first_equal(points: CoreRows) -> NDArray[np.int64]:
    """Return, for each point, the number of the first point of equal values."""
    factors = np.random.default_rng(0).integers(2**63, size=n_columns(points), dtype=np.uint64) | np.uint64(1)
    hashes = np.empty(n_rows(points), dtype=np.uint64)
    for begin, rows in _written_out(points, np.arange(n_rows(points))):
        bits = (rows.astype(np.float64) + 0.0).view(np.uint64)  # which makes -0.0 to 0.0
        hashes[begin : begin + len(rows)] = bits @ factors
    order = np.argsort(hashes, kind="stable")
    alike = np.flatnonzero(hashes[order[1:]] == hashes[order[:-1]]) + 1
    is_new = np.ones(len(order), dtype=bool)
    pairs = zip(_written_out(points, order[alike]), _written_out(points, order[alike - 1]), strict=True)
    for (begin, rows), (_, before) in pairs:
        is_new[alike[begin : begin + len(rows)]] = (rows != before).any(axis=1)
    first = np.empty(len(order), dtype=np.int64)
    first[order] = order[np.maximum.accumulate(np.where(is_new, np.arange(len(order)), 0))]
    return first


def _written_out(points: CoreRows, numbers: NDArray[np.int64]) -> Iterator[tuple[int, NDArray[Any]]]:
    """Yield (place of the first, points as a dense array) for a list of points, a chunk at a time."""
    table = as_scipy(points)
    for begin in range(0, len(numbers), _CHUNK):
        chunk = table[numbers[begin : begin + _CHUNK]]
        yield begin, chunk.toarray() if sparse.issparse(chunk) else chunk


def _find_placement(points: CoreRows, pool: NDArray[np.int64], row_dtype: np.dtype[Any]) -> Placement:
    """Return the mean of the points, in the rows' own precision, and the power of two that scales them to at most 1."""
    total, is_whole = np.zeros(n_columns(points)), True
    for _, rows in _written_out(points, pool):
        total += rows.sum(axis=0, dtype=np.float64)
        is_whole = is_whole and bool((rows == np.rint(rows)).all())
    centre = (np.rint(total / len(pool)) if is_whole else total / len(pool)).astype(row_dtype).astype(np.float64)
    largest = max(float(np.abs(rows - centre).max()) for _, rows in _written_out(points, pool))
    if is_whole and largest < 2**23:
        return Placement(centre, 1.0, True)
    scale = 2.0 ** -np.ceil(np.log2(largest)) if largest > _SMALLEST else 1.0
    return Placement(centre, float(scale), False)
