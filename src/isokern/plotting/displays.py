"""Draw what a model or a kernel does on a plane, with displays like those of scikit-learn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from isokern.plotting.figures import new_figure

# The numbers of colours and of markers have no common factor, so that 56 classes look different.
_CLASS_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#F0E442", "#666666")
_CLASS_MARKERS = "os^Dv*P"
_MARGIN = 0.05  # on each side, relative to the range of the rows


@dataclass(kw_only=True, eq=False, repr=False)
class _PlaneDisplay:
    """The part that displays share: rows of two columns, and a grid that spans them."""

    xx0: NDArray[np.float64]
    xx1: NDArray[np.float64]
    X: NDArray[np.float64]
    names: tuple[str, str] = ("", "")

    def plot(self, ax: Any = None) -> Self:
        """Draw on the given axes or, without axes, in a new figure.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None

        Returns
        -------
        self
        """
        self.ax_ = new_figure(1)[1][0] if ax is None else ax
        self.figure_ = self.ax_.figure
        self._draw()
        self.ax_.set(xlabel=self.names[0], ylabel=self.names[1])
        return self

    def _draw(self) -> None:
        raise NotImplementedError


@dataclass(kw_only=True, eq=False, repr=False)
class DecisionRegionsDisplay(_PlaneDisplay):
    """The class that a classifier predicts at each point of a plane, with rows as dots.

    Use :meth:`from_estimator` to make one.

    Parameters
    ----------
    xx0, xx1 : ndarray of shape (n_grid, n_grid)
        The coordinates of the points of a grid.
    response : ndarray of shape (n_grid, n_grid)
        The index of the class predicted at each point.
    classes : ndarray
        The classes.
    X : ndarray of shape (n, 2)
        Rows to draw.
    y : ndarray of shape (n,) or None, default=None
        Their classes.
    names : tuple of str, default=("", "")
        The labels of the axes.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
    figure_ : matplotlib.figure.Figure

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from isokern import IKOGDClassifier
    >>> from isokern.plotting import DecisionRegionsDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> model = IKOGDClassifier(n_cells=16, random_state=0).fit(X[:, 2:], y)
    >>> display = DecisionRegionsDisplay.from_estimator(model, X[:, 2:], y, xlabel="petal length")
    >>> display.ax_.get_xlabel()
    'petal length'
    """

    response: NDArray[np.intp]
    classes: NDArray[Any]
    y: NDArray[Any] | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: ArrayLike,
        y: ArrayLike | None = None,
        *,
        grid_resolution: int = 200,
        ax: Any = None,
        xlabel: str | None = None,
        ylabel: str | None = None,
    ) -> Self:
        """Predict the class at each point of a grid, and draw the regions.

        Parameters
        ----------
        estimator : fitted classifier of two columns
        X : {array-like, sparse matrix, data frame} of shape (n, 2)
            Rows to draw; the grid spans them.
        y : array-like of shape (n,), default=None
            Their classes; None draws black dots.
        grid_resolution : int, default=200
            The number of grid points per axis.
        ax : matplotlib.axes.Axes, default=None
            Where to draw; None makes a new figure.
        xlabel, ylabel : str, default=None
            The labels of the axes; None takes the column names of a data frame.

        Returns
        -------
        display : DecisionRegionsDisplay
        """
        if not hasattr(estimator, "classes_"):
            raise ValueError(f"estimator must be a fitted classifier; got {type(estimator).__name__}.")
        plane, points = _plane(X, grid_resolution, xlabel, ylabel)
        classes = estimator.classes_
        response = np.searchsorted(classes, estimator.predict(points)).reshape(plane["xx0"].shape)
        return cls(response=response, classes=classes, y=None if y is None else np.asarray(y), **plane).plot(ax)

    def _draw(self) -> None:
        from matplotlib.colors import ListedColormap

        colours = [_CLASS_COLOURS[k % len(_CLASS_COLOURS)] for k in range(len(self.classes))]
        look = {"cmap": ListedColormap(colours), "vmin": -0.5, "vmax": len(colours) - 0.5, "alpha": 0.3}
        # Contours would draw a seam of the second class between the first and the third. As vector graphics, viewers
        # would show seams between the transparent squares.
        self.ax_.pcolormesh(self.xx0, self.xx1, self.response, shading="nearest", rasterized=True, lw=0, **look)
        if self.y is None:
            self.ax_.scatter(*self.X.T, s=6, color="black")
            return
        for k, label in enumerate(self.classes):
            name = f"{label:g}" if isinstance(label, float) else str(label)
            look = {"color": colours[k], "marker": _CLASS_MARKERS[k % len(_CLASS_MARKERS)], "edgecolors": "black"}
            self.ax_.scatter(*self.X[self.y == label].T, s=14, lw=0.4, label=name, **look)
        self.ax_.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))


@dataclass(kw_only=True, eq=False, repr=False)
class KernelContoursDisplay(_PlaneDisplay):
    """Contours of a kernel: the similarity of the points of a plane to one of them.

    Use :meth:`from_kernel` to make one.

    Parameters
    ----------
    values : ndarray of shape (n_grid, n_grid)
        The similarity of the grid points to ``point``.
    point : tuple of float
    xx0, xx1, X, names
        See :class:`DecisionRegionsDisplay`.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
    figure_ : matplotlib.figure.Figure

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from isokern import IsolationKernel
    >>> from isokern.plotting import KernelContoursDisplay
    >>> X = load_iris().data[:, 2:]
    >>> kernel = IsolationKernel("voronoi", 1000, 10, random_state=0).fit(X)
    >>> display = KernelContoursDisplay.from_kernel(kernel, X, (4.0, 1.2))
    >>> bool(display.values.max() > 0.9)
    True
    """

    values: NDArray[np.float64]
    point: tuple[float, float]

    @classmethod
    def from_kernel(
        cls,
        kernel: Any,
        X: ArrayLike,
        point: ArrayLike,
        *,
        grid_resolution: int = 100,
        ax: Any = None,
        xlabel: str | None = None,
        ylabel: str | None = None,
    ) -> Self:
        """Compute the similarity of a point to the points of a grid, and draw its contours.

        Parameters
        ----------
        kernel : fitted IsolationKernel of two columns
            Or any object with ``similarity(X, Y)``.
        point : array-like of shape (2,)
        X, grid_resolution, ax, xlabel, ylabel
            See :meth:`DecisionRegionsDisplay.from_estimator`; grid_resolution is 100 by default.

        Returns
        -------
        display : KernelContoursDisplay
        """
        centre = np.asarray(point, dtype=np.float64)
        if centre.shape != (2,):
            raise ValueError(f"point must be two numbers; got {point!r}.")
        plane, points = _plane(X, grid_resolution, xlabel, ylabel)
        values = kernel.similarity(points, _like(X, centre[None]))[:, 0].reshape(plane["xx0"].shape)
        x0, x1 = centre.tolist()
        return cls(values=values, point=(x0, x1), **plane).plot(ax)

    def _draw(self) -> None:
        levels = np.linspace(0, 1, 11)
        filled = self.ax_.contourf(self.xx0, self.xx1, self.values, levels=levels, cmap="YlGnBu")
        self.ax_.contour(self.xx0, self.xx1, self.values, levels=levels[1:-1], colors="white", linewidths=0.5)
        self.ax_.scatter(*self.X.T, s=3, color="black", linewidths=0)
        self.ax_.plot(*self.point, marker="o", ms=8, color="#D55E00", markeredgecolor="white", ls="none")
        self.figure_.colorbar(filled, ax=self.ax_, label="similarity to the point")


def _plane(X: Any, n_grid: int, xlabel: str | None, ylabel: str | None) -> tuple[dict[str, Any], Any]:
    """Return the fields of a display that spans rows, and its grid points in the form of X."""
    rows = np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] != 2 or not len(rows):
        raise ValueError(f"X must have rows of 2 columns, which become the axes; got shape {rows.shape}.")
    low, high = rows.min(axis=0), rows.max(axis=0)
    margin = np.where(high > low, _MARGIN * (high - low), 0.5)
    xx0, xx1 = np.meshgrid(*np.linspace(low - margin, high + margin, n_grid).T)
    first, second = map(str, getattr(X, "columns", ("", "")))
    names = (first if xlabel is None else xlabel, second if ylabel is None else ylabel)
    points = _like(X, np.stack([xx0.ravel(), xx1.ravel()], axis=1))
    return {"xx0": xx0, "xx1": xx1, "X": rows, "names": names}, points


def _like(X: Any, points: NDArray[np.float64]) -> Any:
    """Return points as a data frame if X is one."""
    if not hasattr(X, "columns"):
        return points
    argument = "schema" if type(X).__module__.startswith("polars") else "columns"
    return type(X)(points, **{argument: list(X.columns)})
