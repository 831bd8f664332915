from typing import overload

import numpy as np
from numpy.typing import NDArray

Real = NDArray[np.float32] | NDArray[np.float64]
Csr = tuple[Real, NDArray[np.int32], NDArray[np.int64], int]
Rows = Real | Csr
Cells = NDArray[np.uint8] | NDArray[np.uint16] | NDArray[np.uint32]

def draw_samples(n_rows: int, n_partitionings: int, sample_size: int, seed: int) -> NDArray[np.int64]: ...
def grow_trees(
    rows: Rows, samples: NDArray[np.int64], max_depth: int, seed: int, threads: int
) -> tuple[NDArray[np.float64], NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]]: ...
def match_cells(first: Cells, second: Cells, shares: Real, threads: int) -> None: ...
@overload
def find_nonfinite(values: NDArray[np.float32]) -> int: ...
@overload
def find_nonfinite(values: NDArray[np.float64]) -> int: ...
def is_canonical(columns: NDArray[np.int32], starts: NDArray[np.int64], n_columns: int) -> bool: ...

class TreeMap:
    def __init__(
        self,
        split: NDArray[np.float64],
        column: NDArray[np.int32],
        left: NDArray[np.int32],
        starts: NDArray[np.int64],
        n_columns: int,
        n_cells: int,
    ) -> None: ...
    def apply(self, rows: Rows, cells: Cells, threads: int) -> None: ...

class VoronoiMap:
    def __init__(self, points: Rows, samples: NDArray[np.int32]) -> None: ...
    def apply(self, rows: Rows, cells: Cells, threads: int) -> None: ...
