from collections.abc import Callable, Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

Real = NDArray[np.float32] | NDArray[np.float64]
Csr = tuple[Real, NDArray[np.int32], NDArray[np.int64], int]
Rows = Real | Csr
# Columns of classes; or values with a column per score, and their units.
Targets = NDArray[np.int32] | tuple[NDArray[np.float64], NDArray[np.float64] | None]
Cells = NDArray[np.uint8] | NDArray[np.uint16] | NDArray[np.uint32]

def instruction_set() -> str: ...
def draw_samples(n_rows: int, n_partitionings: int, sample_size: int, seed: int) -> NDArray[np.int64]: ...
def category_codes(values: list[Any], name_of: Callable[[Any], str | None]) -> NDArray[np.float64]: ...

Forest = tuple[
    NDArray[np.float64], NDArray[np.int32], NDArray[np.int32], NDArray[np.uint8], NDArray[np.int32], NDArray[np.int64]
]

def grow_trees(
    rows: Rows,
    samples: NDArray[np.int64],
    max_depth: int,
    seed: int,
    categorical: NDArray[np.int32],
    threads: int,
    number: NDArray[np.int64] | None = None,
    column_weights: NDArray[np.float64] | None = None,
) -> Forest: ...
def grow_further(
    split: NDArray[np.float64],
    column: NDArray[np.int32],
    left: NDArray[np.int32],
    missing_right: NDArray[np.uint8],
    starts: NDArray[np.int64],
    n_cells: int,
    rows: Rows,
    samples: NDArray[np.int64],
    cells: NDArray[np.int32],
    max_depth: int,
    seed: int,
    categorical: NDArray[np.int32],
    threads: int,
    column_weights: NDArray[np.float64] | None = None,
) -> tuple[Forest, int, NDArray[np.int32]]: ...
def split_gains(
    column: NDArray[np.int32],
    left: NDArray[np.int32],
    starts: NDArray[np.int64],
    n_cells: int,
    n_columns: int,
    leaves: Cells,
    targets: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
def count_scale_cells(
    left: NDArray[np.int32], n_points: NDArray[np.int32], starts: NDArray[np.int64], n_cells: int, n_scales: int
) -> NDArray[np.int64]: ...
def find_paths(
    left: NDArray[np.int32], n_points: NDArray[np.int32], starts: NDArray[np.int64], paths: Cells
) -> None: ...
def expand_leaves(leaves: Cells, paths: Cells, cells: Cells, threads: int) -> None: ...
def match_cells(
    first: Cells, second: Cells, shares: Real, threads: int, weights: NDArray[np.float64] | None = None
) -> None: ...
@overload
def find_nonfinite(values: NDArray[np.float32], allow_nan: bool = False) -> int: ...
@overload
def find_nonfinite(values: NDArray[np.float64], allow_nan: bool = False) -> int: ...
def is_canonical(columns: NDArray[np.int32], starts: NDArray[np.int64], n_columns: int) -> bool: ...

class TreeMap:
    def __init__(
        self,
        split: NDArray[np.float64],
        column: NDArray[np.int32],
        left: NDArray[np.int32],
        missing_right: NDArray[np.uint8],
        n_points: NDArray[np.int32],
        starts: NDArray[np.int64],
        categorical: NDArray[np.int32],
        n_columns: int,
        n_cells: int,
    ) -> None: ...
    def apply(self, rows: Rows, cells: Cells, threads: int) -> None: ...

class VoronoiMap:
    def __init__(
        self,
        points: Rows,
        samples: NDArray[np.int32],
        sizes: Sequence[int],
        axes: Callable[[], NDArray[np.float64]],
    ) -> None: ...
    def apply(self, rows: Rows, cells: list[Cells], threads: int) -> None: ...
    @property
    def is_on_grid(self) -> bool: ...

class Rule:
    def __init__(
        self,
        loss: str,
        epsilon: float,
        schedule: str,
        rate: float,
        shrinkage: float,
        counted_from: list[int],
        is_new: bool = True,
        quantiles: list[float] = ...,
    ) -> None: ...
    @property
    def is_new(self) -> bool: ...

class Clock:
    def __init__(
        self, rounds: int = 0, n_support: int = 0, scale: float = 1.0, scale_sum: float = 0.0, n_rows: int = 0
    ) -> None: ...
    @property
    def rounds(self) -> int: ...
    @property
    def n_support(self) -> int: ...
    @property
    def scale(self) -> float: ...
    @property
    def scale_sum(self) -> float: ...
    @property
    def n_rows(self) -> int: ...

Copies = list[tuple[NDArray[Any], NDArray[Any]]]

def learn_primal(
    cells: Cells,
    starts: NDArray[np.int64],
    targets: Targets,
    row_weights: NDArray[np.float64] | None,
    rule: Rule,
    naive: bool,
    values: NDArray[np.float64],
    sums: NDArray[np.float64] | None,
    squares: NDArray[np.float64] | None,
    clock: Clock,
    scores: NDArray[np.float64] | None,
    copies: Copies = ...,
) -> None: ...
def score_primal(
    cells: Cells,
    starts: NDArray[np.int64],
    values: NDArray[np.float64],
    sums: NDArray[np.float64] | None,
    clock: Clock,
    naive: bool,
    scores: NDArray[np.float64],
    threads: int,
    copies: Copies = ...,
) -> None: ...
def count_targets(
    targets: NDArray[np.float64],
    row_weights: NDArray[np.float64] | None,
    state: NDArray[np.float64],
    standard: NDArray[np.float64],
) -> None: ...
def copy_model(clock: Clock, copies: Copies) -> Clock: ...
def copy_models(guard: Clock, clocks: Sequence[Clock], copies: Copies, threads: int = 1) -> list[Clock]: ...

class Memory:
    def empty_like(self, array: NDArray[Any]) -> NDArray[Any]: ...
    @property
    def n_bytes(self) -> int: ...

class Entrant:
    def __init__(
        self,
        cells: Cells | None,
        starts: NDArray[np.int64] | None,
        shares: NDArray[np.float32],
        weights: NDArray[np.float32] | None,
        linear_values: NDArray[np.float32] | None,
        linear_squares: NDArray[np.float32] | None,
        rule: Rule,
        clock: Clock,
        scores: NDArray[np.float64],
        renewals: list[Renewal] = ...,
    ) -> None: ...

class Renewal:
    def __init__(
        self,
        row: int,
        first: int,
        cells: Cells,
        targets: Targets,
        row_weights: NDArray[np.float64] | None,
        square: float,
    ) -> None: ...

def new_monitor() -> NDArray[np.float64]: ...
def read_monitor(monitor: NDArray[np.float64]) -> tuple[float, int, NDArray[np.int64]]: ...
def learn_scales(
    entrants: list[Entrant],
    linear: Rows | None,
    constant: float,
    targets: Targets,
    row_weights: NDArray[np.float64] | None,
    guard: Clock,
    seen_from: list[int],
    fade: float,
    errors: NDArray[np.float64],
    history: NDArray[np.float64],
    threads: int,
    copies: Copies = ...,
    monitor: NDArray[np.float64] | None = None,
) -> None: ...
def score_scales(
    cells: Cells | None,
    starts: NDArray[np.int64] | None,
    n_scales: int,
    values: NDArray[np.float32] | NDArray[np.float64] | None,
    linear: Rows | None,
    constant: float,
    linear_values: NDArray[np.float32] | None,
    guard: Clock,
    scores: NDArray[np.float64],
    threads: int,
    copies: Copies = ...,
) -> None: ...
def fold_scales(
    paths: Cells,
    starts: NDArray[np.int64],
    values: NDArray[np.float32],
    guard: Clock,
    folded: NDArray[np.float64],
    threads: int,
    copies: Copies = ...,
) -> None: ...
def before_fork() -> None: ...
def after_fork_in_parent() -> None: ...
def after_fork_in_child() -> None: ...
def sum_by_cell(
    cells: Cells, starts: NDArray[np.int64], values: NDArray[np.float64], sums: NDArray[np.float64]
) -> None: ...
def learn_dual(
    cells: Cells,
    starts: NDArray[np.int64],
    targets: Targets,
    row_weights: NDArray[np.float64] | None,
    rule: Rule,
    support: Cells,
    n_support: int,
    values: NDArray[np.float64],
    sums: NDArray[np.float64] | None,
    clock: Clock,
    scores: NDArray[np.float64] | None,
) -> int: ...
def score_dual(
    cells: Cells,
    starts: NDArray[np.int64],
    support: Cells,
    n_support: int,
    values: NDArray[np.float64],
    sums: NDArray[np.float64] | None,
    clock: Clock,
    scores: NDArray[np.float64],
    threads: int,
) -> None: ...

class SvmRule:
    def __init__(
        self, is_squared: bool, cost: float, intercept: float, tolerance: float, gain: float, max_iter: int, seed: int
    ) -> None: ...

def solve_svm(
    cells: Cells | None,
    starts: NDArray[np.int64] | None,
    shares: NDArray[np.float32],
    linear: Rows | None,
    which: NDArray[np.int32],
    targets: NDArray[np.int32],
    row_weights: NDArray[np.float64] | None,
    rule: SvmRule,
    weights: NDArray[np.float64],
    intercepts: NDArray[np.float64],
    alpha: NDArray[np.float64] | None,
    threads: int,
) -> NDArray[np.int64]: ...
def are_cells(cells: Cells, starts: NDArray[np.int64]) -> bool: ...

class KernelSpec:
    def __init__(self, name: str, factor: float, offset: float, degree: int, normalised: bool) -> None: ...

def kernel_matrix(spec: KernelSpec, rows: Rows, points: Rows, values: NDArray[np.float64], threads: int) -> None: ...

class KernelMachine:
    def __init__(self, spec: KernelSpec, n_columns: int, n_scores: int) -> None: ...
    @property
    def size(self) -> int: ...
    def add(self, rows: Rows, alpha: NDArray[np.float64], births: NDArray[np.int64]) -> None: ...
    def learn(
        self,
        rows: Rows,
        targets: Targets,
        row_weights: NDArray[np.float64] | None,
        rule: Rule,
        clock: Clock,
        threads: int,
        averages: bool = ...,
        scores: NDArray[np.float64] | None = ...,
    ) -> None: ...
    def score(
        self, rows: Rows, n_points: int, averaged_rounds: int, scores: NDArray[np.float64], threads: int
    ) -> None: ...
    def support(
        self, n_points: int
    ) -> tuple[NDArray[np.float64], NDArray[np.int32], NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]: ...

def learn_linear(
    features: NDArray[np.float64],
    targets: Targets,
    row_weights: NDArray[np.float64] | None,
    rule: Rule,
    values: NDArray[np.float64],
    sums: NDArray[np.float64] | None,
    n_updates: NDArray[np.int64],
    clock: Clock,
    scores: NDArray[np.float64] | None = ...,
) -> None: ...
def project(rows: Rows, matrix: NDArray[np.float64], projected: NDArray[np.float64], threads: int) -> None: ...

class AdaRaker:
    def __init__(
        self,
        bandwidths: NDArray[np.float64],
        theta: NDArray[np.float32],
        weights: NDArray[np.float64],
        confidences: NDArray[np.float64],
        rate: float,
        shrinkage: float,
        restarts_cold: bool,
    ) -> None: ...
    def score(
        self, projections: NDArray[np.float64], rounds: int, scores: NDArray[np.float64], threads: int
    ) -> None: ...
    def learn(
        self,
        projections: NDArray[np.float64],
        targets: NDArray[np.int32],
        row_weights: NDArray[np.float64] | None,
        rounds: int,
        scores: NDArray[np.float64] | None = ...,
    ) -> None: ...

def read_libsvm(
    text: bytes, first: int, last: int, largest: float, threads: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int32], NDArray[np.int64], int, str]: ...
def write_libsvm(labels: NDArray[np.float64], rows: Csr, first: int) -> bytes: ...

class ExplainedTrees:
    def __init__(
        self,
        split: NDArray[np.float64],
        column: NDArray[np.int32],
        left: NDArray[np.int64],
        missing_right: NDArray[np.uint8],
        n_points: NDArray[np.int32],
        starts: NDArray[np.int64],
        values: NDArray[np.float64],
        categorical: NDArray[np.int32],
        used: NDArray[np.int32],
        n_columns: int,
    ) -> None: ...
    def add_path_dependent(self, rows: Rows, shapley: NDArray[np.float64], threads: int) -> None: ...
    def add_interventional(self, rows: Rows, background: Rows, shapley: NDArray[np.float64], threads: int) -> None: ...
    def sum_leaves(self, rows: Rows, scores: NDArray[np.float64], threads: int) -> None: ...

def find_similar(
    panels: list[NDArray[Any]],
    rows: list[NDArray[Any]],
    weights: NDArray[np.float64],
    n_stored: int,
    indices: NDArray[np.int64],
    similarities: NDArray[np.float64],
    threads: int,
) -> None: ...
