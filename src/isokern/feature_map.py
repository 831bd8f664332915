"""The Isolation Kernel and its exact feature map."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import TransformerMixin
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from isokern import _core
from isokern._drawing import FLOATS, DrawnPartitionings
from isokern.arrays import check_foreign, check_same_place, is_foreign, like, namespace, to_host
from isokern.checks import n_threads, unchanged_on_error
from isokern.devices import (
    FittedMap,
    cells_of_foreign,
    cells_of_table,
    foreign_features,
    foreign_shares,
    is_compiled_core,
)
from isokern.partitionings import OwnPartitionings, Partitioning
from isokern.rows import (
    check_rows,
    csr_class,
    n_rows,
    row_blocks,
)

_INT32_MAX = np.iinfo(np.int32).max
_FEW_ROWS = 64


class IsolationKernel(TransformerMixin, DrawnPartitionings):
    """Isolation Kernel: how often two rows fall into the same cell of a random partitioning of space.

    Each of ``n_partitionings`` partitionings is built from ``n_cells`` rows sampled from the data and has one cell
    around each of them. Cells are small where data are dense and large where they are sparse, so the kernel adapts to
    the data. Its feature map is exact, finite and sparse: a row becomes one cell number for each partitioning.

    Parameters
    ----------
    partitioning : {"tree", "voronoi"} or object, default="tree"
        How space is cut into cells: isolation trees, Voronoi cells (the nearest sampled point in Euclidean distance),
        or an object of your own with ``fit(X, rng)``, ``apply(X)`` and ``n_cells_``, see the example below.
    n_partitionings : int, default=100
        Number of partitionings, the paper's t. Cost grows with it in proportion; noise falls with its square root.
    n_cells : int or "auto", default="auto"
        Number of rows sampled for one partitioning and so of its cells, the paper's psi: the kernel's sharpness. "auto"
        follows the number of rows: a 32nd of it, rounded to a power of two, at most 16,384. More than there are rows
        means all rows, with a warning.
    max_depth : None, "log2" or int, default=None
        Limit on the depth of trees. None isolates every sampled point; "log2" stops at log2(n_cells), rounded up.
    scale : {None, "minmax", "standard", "maxabs"}, default=None
        Scaling of the columns, learned in ``fit`` and applied ever after. Voronoi cells need columns of like scale;
        trees do not care. Sparse input takes None or "maxabs".
    sparse_output : bool, default=True
        Whether ``transform`` returns CSR or a dense array.
    device : None, "cpu", "cuda", "cuda:1", "mps", "xpu" or "torch:cpu", default=None
        Where rows of NumPy and SciPy are mapped: None and "cpu" mean the compiled core, others PyTorch's devices, which
        give the same cells. Arrays of other libraries, such as tensors, are mapped where they are and answered there:
        cells as int32, ``transform`` as a CSR tensor of PyTorch or else a dense array.
    n_jobs : int, default=None
        Number of threads; None means as many as OpenMP allows, -1 all cores. Results never depend on it.
    random_state : int, RandomState instance or None, default=None
        Seed of all randomness: the same seed gives the same cells, on every machine.

    Attributes
    ----------
    n_cells_ : int
        Number of cells of a partitioning (for partitionings of your own: of the largest).
    n_features_in_ : int
        Number of columns seen in ``fit``.
    feature_names_in_ : ndarray of str
        Names of the columns seen in ``fit``, if it was given a data frame.

    References
    ----------
    Ting, Wells and Washio, "Isolation Kernel: The X Factor in Efficient and Effective Large Scale Online Kernel
    Learning".

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from isokern import IsolationKernel
    >>> X, y = load_iris(return_X_y=True)
    >>> kernel = IsolationKernel(n_cells=16, random_state=0).fit(X)
    >>> kernel.apply(X).shape
    (150, 100)
    >>> kernel.transform(X).shape
    (150, 1600)
    >>> float(kernel.similarity(X[:1], X[:1])[0, 0])
    1.0

    A partitioning of your own, here by the signs of random projections:

    >>> import numpy as np
    >>> class Hyperplanes:
    ...     n_cells_ = 8
    ...     def fit(self, X, rng):
    ...         self.normals = rng.standard_normal((X.shape[1], 3))
    ...         self.offsets = X[rng.integers(X.shape[0])] @ self.normals
    ...         return self
    ...     def apply(self, X):
    ...         return (X @ self.normals > self.offsets) @ np.array([1, 2, 4])
    >>> IsolationKernel(Hyperplanes(), random_state=0).fit_transform(X).shape
    (150, 800)
    """

    def __init__(
        self,
        partitioning: str | Partitioning = "tree",
        n_partitionings: int = 100,
        n_cells: int | str = "auto",
        *,
        max_depth: int | str | None = None,
        scale: str | None = None,
        sparse_output: bool = True,
        device: str | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.partitioning = partitioning
        self.n_partitionings = n_partitionings
        self.n_cells = n_cells
        self.max_depth = max_depth
        self.scale = scale
        self.sparse_output = sparse_output
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Draw the partitionings from the rows of X.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n, d)
            Rows to sample from.
        y : ignored

        Returns
        -------
        self
        """
        self._check_parameters()
        with unchanged_on_error(self):
            table = check_rows(self, X, reset=True)
            seed = self._draw_seed()
            self._scaling = self._learn_scaling(table)
            self._take(self._draw_partitionings(table, seed))
        return self

    def apply(self, X: ArrayLike) -> NDArray[Any]:
        """Return the cells that each row falls into.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n, d)

        Returns
        -------
        cells : ndarray of shape (n, n_partitionings)
            Cell numbers from 0, of the smallest unsigned type that fits.
        """
        check_is_fitted(self)
        return self._apply_foreign(X) if is_foreign(X) else self._apply(check_rows(self, X, reset=False))

    def transform(self, X: ArrayLike) -> Any:
        """Return the feature map: for each partitioning 1/sqrt(t) in the column of the row's cell, else 0.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n, d)

        Returns
        -------
        features : CSR or ndarray of shape (n, n_partitionings * n_cells_)
            float32 for float32 X, else float64. The dot product of two rows is their similarity.
        """
        check_is_fitted(self)
        if is_foreign(X):
            return self._transform_foreign(X)
        table = check_rows(self, X, reset=False)
        dtype = np.dtype(np.float32 if table.dtype == np.float32 else np.float64)
        self._check_width(table.shape[0])
        return self._features(self._apply(table), dtype)

    def similarity(self, X: ArrayLike, Y: ArrayLike | None = None) -> NDArray[Any]:
        """Return the kernel: the share of partitionings in which two rows fall into one cell.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n, d)
        Y : {array-like, sparse matrix, data frame} of shape (m, d), default=None
            None means X.

        Returns
        -------
        K : ndarray of shape (n, m)
            Symmetric and positive semi-definite for Y = X, with a diagonal of exactly 1.
        """
        check_is_fitted(self)
        if is_foreign(X) or is_foreign(Y):
            return self._similarity_foreign(X, Y)
        table = check_rows(self, X, reset=False)
        other = table if Y is None else check_rows(self, Y, reset=False)
        first = self._apply(table)
        second = first if Y is None else self._apply(other)
        is_single = table.dtype == other.dtype == np.float32
        shares: NDArray[Any] = np.empty((len(first), len(second)), dtype=np.float32 if is_single else np.float64)
        for begin in range(0, len(first), 256):
            part = slice(begin, begin + 256)
            _core.match_cells(first[part], second, shares[part], n_threads(self.n_jobs))
        return shares

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[np.object_]:
        """Return a name for each column of ``transform``: ``partitioning3_cell17``.

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            Checked against the columns seen in ``fit``; not used otherwise.

        Returns
        -------
        names : ndarray of str objects
        """
        check_is_fitted(self)
        _check_feature_names_in(self, input_features, generate_names=False)
        sizes = np.diff(self._cell_starts)
        names = [f"partitioning{i}_cell{j}" for i, size in enumerate(sizes) for j in range(size)]
        return np.asarray(names, dtype=object)

    @property
    def _n_features_out(self) -> int:
        return int(self._cell_starts[-1])

    @property
    def _t(self) -> int:
        """The number of partitionings drawn; the parameter belongs to the next fit."""
        return len(self._cell_starts) - 1

    @property
    def _cell_dtype(self) -> np.dtype[Any]:
        return np.min_scalar_type(self.n_cells_ - 1)

    def _apply(self, table: Any) -> NDArray[Any]:
        """Return the cells of checked rows."""
        cells: NDArray[Any] = np.empty((table.shape[0], self._t), dtype=self._cell_dtype)
        fitted = None if is_compiled_core(self.device) else self._fitted_map()
        if fitted is not None and cells_of_table(table, fitted, str(self.device), cells):
            return cells
        names, threads = getattr(self, "feature_names_in_", None), n_threads(self.n_jobs)
        for begin, block in row_blocks(table, names):
            self._partitionings.apply(self._scaled(block), cells[begin : begin + n_rows(block)], threads)
        return cells

    def _fitted_map(self) -> FittedMap | None:
        """Return what a device needs to know of the map; None for partitionings of the user's own."""
        if isinstance(self._partitionings, OwnPartitionings):
            return None
        names = getattr(self, "feature_names_in_", None)
        return FittedMap(self._partitionings, self._scaling, names, n_threads(self.n_jobs))

    def _apply_foreign(self, X: Any) -> Any:
        """Return the cells of the rows of an array of another library: there or, where that cannot be, by the core."""
        check_foreign(self, X)
        fitted = self._fitted_map()
        cells = None if fitted is None else cells_of_foreign(X, fitted, self._cell_dtype)
        return like(self._apply(to_host(X)).astype(np.int32), X) if cells is None else cells

    def _apply_few(self, X: NDArray[Any]) -> NDArray[Any] | None:
        """Return the cells of a few plain rows, without scikit-learn's costly checks; None if X is anything else."""
        is_plain = (
            X.ndim == 2
            and 0 < X.shape[0] <= _FEW_ROWS
            and X.shape[1] == self.n_features_in_
            and X.dtype in FLOATS
            and X.flags.c_contiguous
            and _core.find_nonfinite(X.reshape(-1)) < 0
        )
        if not is_plain:
            return None
        cells: NDArray[Any] = np.empty((X.shape[0], self._t), dtype=self._cell_dtype)
        self._partitionings.apply(self._scaled(X), cells, 1)
        return cells

    def _transform_foreign(self, X: Any) -> Any:
        if isinstance(self._partitionings, OwnPartitionings):  # whose numbers of cells may differ
            features = self.transform(to_host(X))
            return like(features.toarray() if self.sparse_output else features, X)
        self._check_width(X.shape[0])
        cells, single = self._apply_foreign(X), X.dtype == namespace(X).float32
        return foreign_features(cells, self._cell_starts, single=single, sparse_output=self.sparse_output)

    def _similarity_foreign(self, X: Any, Y: Any) -> Any:
        if Y is not None:
            check_same_place(X, Y)
        first = self._apply_foreign(X)
        second = first if Y is None else self._apply_foreign(Y)
        single = namespace(X).float32
        return foreign_shares(first, second, single=X.dtype == single and (Y is None or Y.dtype == single))

    def _check_width(self, n: int) -> None:
        t, width = self._t, self._n_features_out
        if n * t > _INT32_MAX or width > _INT32_MAX:
            raise ValueError(
                f"transform must store fewer than 2^31 values and columns; got {n} rows x {t} partitionings, {width} "
                "columns. Use apply, which returns cell numbers, or fewer rows at a time."
            )

    def _features(self, cells: NDArray[Any], dtype: np.dtype[Any]) -> Any:
        """Return the one-hot form of cells."""
        (n, t), width = cells.shape, self._n_features_out
        self._check_width(n)
        columns = (cells + self._cell_starts[:-1]).astype(np.int32)
        if not self.sparse_output:
            features = np.zeros((n, width), dtype=dtype)
            np.put_along_axis(features, columns, 1.0 / math.sqrt(t), axis=1)
            return features
        values = np.full(n * t, 1.0 / math.sqrt(t), dtype=dtype)
        starts = np.arange(0, n * t + 1, t, dtype=np.int32)
        return csr_class()((values, columns.ravel(), starts), shape=(n, width))

    def _check_cells(self, cells: Any) -> NDArray[Any]:
        """Return cells in the form that apply gives them; raise if they cannot come from this kernel."""
        if is_foreign(cells):
            self._check_cells(to_host(cells))
            return cells
        array = np.asarray(cells)
        if array.ndim != 2 or array.shape[1] != self._t or array.dtype.kind not in "ui":
            raise ValueError(
                f"cells must be integers of shape (n, {self._t}), as apply returns them; "
                f"got shape {array.shape} and dtype {array.dtype}."
            )
        if array.dtype != self._cell_dtype and array.size and (array.min() < 0 or array.max() >= self.n_cells_):
            raise ValueError(f"cells must be from 0 to {self.n_cells_ - 1}; got {array.min()} to {array.max()}.")
        array = np.ascontiguousarray(array, dtype=self._cell_dtype)
        if not _core.are_cells(array, self._cell_starts):
            raise ValueError("cells must be below the number of cells of their partitioning; got larger ones.")
        return array

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
