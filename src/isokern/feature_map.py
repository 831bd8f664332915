"""Provide the Isolation Kernel and its exact feature map as a scikit-learn transformer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from isokern.checks import all_or_nothing, is_integer, n_threads, one_of
from isokern.devices import is_compiled_core, torch_device
from isokern.engines import engine_of
from isokern.fitted_map import FittedMap, draw_map, draw_own, draw_samples, draw_seed
from isokern.forest import CellForest, column_names
from isokern.frames import check_categorical_features
from isokern.notebooks import repr_html, repr_mimebundle
from isokern.partitionings import PARTITIONINGS, Partitioning, is_tree
from isokern.parts import need
from isokern.rows import input_tags, read_rows
from isokern.scaling import Scaling, check_scale

_MOST_PARTITIONINGS = 10**6
_INT32_MAX = np.iinfo(np.int32).max
_LEAST_WEIGHT = 2.0**-20  # of a column; the core draws columns by rejection, which would take too long with less


class IsolationKernel(TransformerMixin, BaseEstimator):
    """Isolation Kernel: the share of random partitionings in which two rows fall into the same cell.

    Each of ``n_partitionings`` partitionings is built from ``n_cells`` rows sampled from the data and has one cell
    around each of them. Cells are small where data are dense and large where they are sparse, so the kernel adapts to
    the local density. Its feature map is exact, finite and sparse: a row becomes one cell number per partitioning.

    Parameters
    ----------
    partitioning : {"tree", "voronoi"} or object, default="tree"
        Isolation trees, Voronoi cells (of the nearest sampled point in Euclidean distance), or your own object with
        ``fit(X, rng)``, ``apply(X)`` and ``n_cells_``; see the example below. An object that offers scales also has
        ``n_scales_``; its ``n_cells_`` lists the numbers of cells from coarse to fine, and its ``apply`` returns an
        array of shape ``(n, n_scales_)``.
    n_partitionings : int, default=100
        Number of partitionings, the paper's t. Time and memory are proportional to it; noise falls with its square
        root.
    n_cells : int or "auto", default="auto"
        Number of rows sampled for a partitioning, which is its number of cells: the paper's psi. More cells make the
        kernel sharper. "auto" is n / 32 rounded to a power of two, at most 16,384. A number larger than n uses all
        rows and warns.
    max_depth : None, "log2" or int, default=None
        Maximum depth of trees. None isolates every sampled point; "log2" is ceil(log2(n_cells)).
    n_scales : int or "auto", default=1
        Number of scales of each partitioning, from coarse cells to the finest, of which there are n_cells. 1 is the
        paper's kernel. "auto" is ceil(log4(n_cells)), which is also the limit, or as many as your own partitioning
        offers. See the notes.
    scale : {None, "minmax", "standard", "maxabs"}, default=None
        Scaling of the columns, fitted in ``fit`` and applied to all later input. Voronoi cells need columns of similar
        scale; trees do not depend on it. Sparse input supports None and "maxabs".
    categorical_features : "from_dtype", None or array-like, default="from_dtype"
        Columns that hold categories, by name, by position or as a mask; None for none. "from_dtype" means the columns
        of data frames with a text or category dtype and, in arrays of objects and lists, the columns that hold text.
        Only isolation trees take categories, and missing values (NaN, None, NA): see the notes.
    column_weights : array-like of shape (d,) or None, default=None
        How often trees split each column, relative to the others: numbers of at least 0. None means all alike, as in
        the paper. A weight below a millionth of the largest counts as 0, and a column of weight 0 is never split.
    sparse_output : bool, default=True
        Whether ``transform`` returns CSR or a dense array.
    device : None, "cpu", "cuda", "cuda:1", "mps", "xpu" or "torch:cpu", default=None
        Device that maps NumPy and SciPy input: None and "cpu" use the compiled core, other names a PyTorch device, with
        the same cells. Arrays of other libraries, such as tensors, are mapped on their own device and the results stay
        there: cells as int32, ``transform`` as a CSR tensor for PyTorch and a dense array otherwise.
    n_jobs : int, default=None
        Number of threads. None means ``$OMP_NUM_THREADS`` or else all CPUs, -1 all CPUs. Results do not depend on it.
    random_state : int, RandomState instance or None, default=None
        Seed. The same seed gives the same cells on every machine.

    Attributes
    ----------
    n_cells_ : int
        Number of cells of a partitioning at the finest scale; for your own partitionings, of the largest.
    n_scales_ : int
        Number of scales of each partitioning.
    map_ : FittedMap
        The fitted scaling and partitionings.
    n_features_in_ : int
        Number of columns seen in ``fit``.
    feature_names_in_ : ndarray of str
        Names of the columns seen in ``fit``, if X was a data frame or dicts. Later frames may have the same columns in
        another order.
    is_categorical_ : ndarray of bool or None
        Which columns hold categories; None if there is none.

    Notes
    -----
    A tree sends each category to a random side of a split, by a hash of its name and of the split, so categories that
    come after ``fit`` need no care and cost no memory. Names are compared as text: 1 and 1.0 are "1", True is "true". A
    missing category is a category of its own. A missing number goes to the side of a split where most of the sampled
    points are.

    With several scales, a row has one cell at each scale of each partitioning; l = 0 is the coarsest scale. In a tree,
    it is the first node on the row's path that holds at most n_cells / 4^(l + 1) of the sampled points, or else the
    leaf. A Voronoi cell at scale l is that of the nearest of the first n_cells / 4^(n_scales - 1 - l) points of the
    sample. The finest scale has the cells of ``n_scales=1``. The kernel is the mean over the scales of the share of
    partitionings in which two rows fall into the same cell. Scale l has the weight a_l^2; a_l grows by the factor 1.25
    from each scale to the next, and the a_l^2 sum to 1.

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

    Your own partitioning, here by the signs of random projections:

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

    _repr_html_inner, _repr_mimebundle_ = repr_html, repr_mimebundle

    def __init__(
        self,
        partitioning: str | Partitioning = "tree",
        n_partitionings: int = 100,
        n_cells: int | str = "auto",
        *,
        max_depth: int | str | None = None,
        n_scales: int | str = 1,
        scale: str | None = None,
        categorical_features: Any = "from_dtype",
        column_weights: ArrayLike | None = None,
        sparse_output: bool = True,
        device: str | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.partitioning = partitioning
        self.n_partitionings = n_partitionings
        self.n_cells = n_cells
        self.max_depth = max_depth
        self.n_scales = n_scales
        self.scale = scale
        self.categorical_features = categorical_features
        self.column_weights = column_weights
        self.sparse_output = sparse_output
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Draw the partitionings from the rows of X.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame, list of dicts} of shape (n, d)
            Rows to sample from.
        y : ignored

        Returns
        -------
        self
        """
        self.check_parameters()
        table = read_rows(self, X, reset=True)
        return self.fit_rows(table, self.is_categorical_)

    def fit_rows(self, table: Any, is_categorical: NDArray[np.bool_] | None = None) -> Self:
        """Draw the partitionings from a validated table, see :func:`isokern.rows.read_rows`."""
        self.is_categorical_ = is_categorical
        seed, scaling = draw_seed(self.random_state), Scaling.learn(self.scale, table, is_categorical)
        if isinstance(self.partitioning, str):
            samples = draw_samples(table.shape[0], self.n_partitionings, self.n_cells, seed)
            self.map_ = self._draw(table, samples, scaling, seed)
        else:
            own, t = self.partitioning, self.n_partitionings
            self.map_ = draw_own(table, own, t, scaling, n_scales=self.n_scales, seed=seed)
        self.n_features_in_ = table.shape[1]
        return self

    def fit_sampled(
        self,
        n_rows: int,
        fetch: Callable[[NDArray[np.int64]], Any],
        scaling: Scaling | None,
        is_categorical: NDArray[np.bool_] | None = None,
    ) -> Self:
        """Fit to ``n_rows`` rows stored elsewhere; ``fetch`` returns a table of the rows with ascending indices."""
        self.check_parameters()
        self.is_categorical_ = is_categorical
        seed = draw_seed(self.random_state)
        samples = draw_samples(n_rows, self.n_partitionings, self.n_cells, seed)
        sampled, places = np.unique(samples, return_inverse=True)
        table = fetch(sampled)
        self.map_ = self._draw(table, places.reshape(samples.shape), scaling, seed)
        self.n_features_in_ = table.shape[1]
        return self

    def _draw(self, table: Any, samples: NDArray[np.int64], scaling: Scaling | None, seed: int) -> FittedMap:
        return draw_map(
            table,
            samples,
            scaling,
            partitioning=str(self.partitioning),
            max_depth=self.max_depth,
            n_scales=self.n_scales,
            is_categorical=self.is_categorical_,
            column_weights=core_weights(self.column_weights, table.shape[1]),
            seed=seed,
            threads=n_threads(self.n_jobs),
        )

    def apply(self, X: ArrayLike) -> NDArray[Any]:
        """Return the cells of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame, list of dicts} of shape (n, d)

        Returns
        -------
        cells : ndarray of shape (n, n_partitionings * n_scales)
            Cell numbers from 0, in the smallest unsigned dtype that fits: partitioning by partitioning, the scales of
            each from coarse to fine.
        """
        check_is_fitted(self)
        return self.apply_rows(engine_of(X).read(self, X))

    def apply_rows(self, rows: Any) -> Any:
        """Return the cells of validated rows."""
        return engine_of(rows).apply(self.map_, rows, device=self.device, n_jobs=self.n_jobs)

    def code_rows(self, rows: Any) -> Any:
        """Return the codes of validated rows, the least that determines their cells."""
        return engine_of(rows).apply(self.map_.code_map, rows, device=self.device, n_jobs=self.n_jobs)

    def transform(self, X: ArrayLike) -> Any:
        """Return the feature map: 1/sqrt(t) in the column of the row's cell in each partitioning, else 0.

        With several scales, the value is the weight a_l of the scale over sqrt(t).

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame, list of dicts} of shape (n, d)

        Returns
        -------
        features : CSR or ndarray of shape (n, number of cells of all partitionings and scales)
            float32 for float32 X, else float64. The dot product of two rows is their similarity.
        """
        check_is_fitted(self)
        engine = engine_of(X)
        rows = engine.read(self, X)
        self._check_width(rows.shape[0])
        cells, is_single = self.apply_rows(rows), engine.is_single(rows)
        return engine.features(cells, self.map_, single=is_single, sparse_output=self.sparse_output)

    def similarity(self, X: ArrayLike, Y: ArrayLike | None = None) -> NDArray[Any]:
        """Return the kernel matrix: the share of partitionings in which two rows fall into the same cell.

        With several scales, it is the mean of the shares at each scale, weighted by a_l^2.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame, list of dicts} of shape (n, d)
        Y : {array-like, sparse matrix, data frame} of shape (m, d), default=None
            None means X.

        Returns
        -------
        K : ndarray of shape (n, m)
            For Y = X: symmetric, positive semi-definite, with a diagonal of exactly 1.
        """
        check_is_fitted(self)
        engine = engine_of(X)
        if Y is not None:
            engine.check_with(X, Y)
        rows = engine.read(self, X)
        others = rows if Y is None else engine.read(self, Y)
        first = self.apply_rows(rows)
        second = first if Y is None else self.apply_rows(others)
        is_single = engine.is_single(rows) and engine.is_single(others)
        return engine.shares(first, second, self.map_, single=is_single, n_jobs=self.n_jobs)

    def forest(self) -> CellForest:
        """Return the trees and the cells of their leaves; see :mod:`isokern.forest`."""
        check_is_fitted(self)
        return CellForest(*self.map_.cells_of_leaves(), names=column_names(self))

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[np.object_]:
        """Return a name for each column of ``transform``: ``partitioning3_cell17``, or ``partitioning3_scale1_cell17``.

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            Validated against the columns seen in ``fit``; otherwise unused.

        Returns
        -------
        names : ndarray of str objects
        """
        check_is_fitted(self)
        _check_feature_names_in(self, input_features, generate_names=False)
        n_scales, sizes = self.n_scales_, np.diff(self.map_.starts)
        names = [
            f"partitioning{k // n_scales}" + (f"_scale{k % n_scales}" if n_scales > 1 else "") + f"_cell{j}"
            for k, size in enumerate(sizes)
            for j in range(size)
        ]
        return np.asarray(names, dtype=object)

    @property
    def n_cells_(self) -> int:
        """The number of cells of a partitioning; for your own partitionings, of the largest."""
        return self.map_.n_cells

    @property
    def n_scales_(self) -> int:
        """The number of scales of each partitioning."""
        return self.map_.n_scales

    @property
    def _n_features_out(self) -> int:
        return self.map_.width

    def _check_width(self, n: int) -> None:
        t, n_scales, width = self.map_.n_partitionings, self.n_scales_, self.map_.width
        if n * t * n_scales > _INT32_MAX or width > _INT32_MAX:
            scales = f" x {n_scales} scales" if n_scales > 1 else ""
            raise ValueError(
                f"transform must store fewer than 2^31 values and columns; got {n} rows x {t} partitionings{scales}, "
                f"{width} columns. Use apply, which returns cell numbers, or fewer rows at a time."
            )

    def check_parameters(self) -> None:
        """Raise ValueError if a parameter is invalid."""
        is_own = not isinstance(self.partitioning, str)
        _check_partitioning(self.partitioning)
        if not is_integer(self.n_partitionings, at_least=1) or self.n_partitionings > _MOST_PARTITIONINGS:
            rule = f"an integer from 1 to {_MOST_PARTITIONINGS:,}"
            raise ValueError(f"n_partitionings must be {rule}; got {self.n_partitionings!r}.")
        if is_own and self.n_cells != "auto":
            raise ValueError(f'n_cells must be "auto" for your own partitioning; got {self.n_cells!r}.')
        for name, least in (("n_cells", 2), ("n_scales", 1)):
            value = getattr(self, name)
            if value != "auto" and not is_integer(value, at_least=least):
                raise ValueError(f'{name} must be "auto" or an integer of at least {least}; got {value!r}.')
        if self.max_depth not in (None, "log2") and not is_integer(self.max_depth, at_least=1):
            raise ValueError(f'max_depth must be None, "log2" or an integer of at least 1; got {self.max_depth!r}.')
        if self.max_depth is not None and self.partitioning != "tree":
            raise ValueError(f"max_depth must be None unless the partitioning is a tree; got {self.max_depth!r}.")
        check_scale(self.scale)
        check_categorical_features(self.categorical_features)
        _check_weights(self.column_weights, self.partitioning)
        n_threads(self.n_jobs)
        if not is_compiled_core(self.device):
            if is_own:
                raise ValueError(f"device must be None for your own partitioning; got {self.device!r}.")
            torch_device(self.device)

    def check(self) -> None:
        """Raise unless the map, if there is one, has the kernel's columns; see :mod:`isokern.parts`."""
        if "map_" in vars(self):
            need(isinstance(self.map_, FittedMap), "map_ must be a FittedMap")
            d = self.map_.partitionings.n_columns
            need(self.n_features_in_ == d, "n_features_in_ must be the number of columns of the partitionings")

    def __sklearn_tags__(self) -> Any:
        tags = input_tags(super().__sklearn_tags__(), trees=is_tree(self.partitioning))
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def core_weights(weights: ArrayLike | None, d: int) -> NDArray[np.float64] | None:
    """Return weights of d columns with 1 as the largest, as the core takes them."""
    if weights is None:
        return None
    array = _read_weights(weights)
    if len(array) != d:
        raise ValueError(f"column_weights must have one entry for each of the {d} columns; got {len(array)}.")
    array = array / array.max()
    return np.where(array < _LEAST_WEIGHT, 0.0, array)


def _check_weights(weights: Any, partitioning: Any) -> None:
    if weights is None:
        return
    _read_weights(weights)
    if partitioning != "tree":
        rule = "None unless the partitioning is a tree"
        raise ValueError(f"column_weights must be {rule}; got weights for {partitioning!r}.")


def _read_weights(weights: Any) -> NDArray[np.float64]:
    """Return weights as an array; raise unless they can be weights of columns."""
    try:
        array = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.empty(0)
    if array.ndim != 1 or not (np.isfinite(array).all() and (array >= 0.0).all() and array.any()):
        raise ValueError(
            "column_weights must be None or numbers of at least 0, one for each column, of which one is positive; got "
            f"{weights!r}."
        )
    return array


def _check_partitioning(partitioning: Any) -> None:
    is_own = not isinstance(partitioning, str)
    if is_own and not (hasattr(partitioning, "fit") and hasattr(partitioning, "apply")):
        raise ValueError(f"partitioning must be a name or have fit and apply; got {partitioning!r}.")
    if not is_own and partitioning not in PARTITIONINGS:
        raise ValueError(f"partitioning must be {one_of(PARTITIONINGS)} or an object; got {partitioning!r}.")
