"""Displays in scikit-learn's manner: what a model or a kernel does on a plane."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from isokern.plotting.figures import new_figure

# Classes in their order: colours and marks, whose numbers have no common factor, so that 56 classes look different.
_CLASS_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#F0E442", "#666666")
_CLASS_MARKS = "os^Dv*P"
_MARGIN = 0.05  # of the span of the rows, on each side


class DecisionRegionsDisplay:
    """The regions of a plane in which a classifier predicts one class, with the rows.

    Use :meth:`from_estimator` to make one.

    Parameters
    ----------
    xx0, xx1 : ndarray of shape (n_grid, n_grid)
        The coordinates of the points of a grid.
    response : ndarray of shape (n_grid, n_grid)
        The number of the class that is predicted there.
    classes : ndarray
        The classes.
    X : ndarray of shape (n, 2)
        Rows to draw.
    y : ndarray of shape (n,) or None
        Their classes.
    names : tuple of str, default=("", "")
        The columns' names.

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

    def __init__(
        self,
        *,
        xx0: NDArray[np.float64],
        xx1: NDArray[np.float64],
        response: NDArray[np.intp],
        classes: NDArray[Any],
        X: NDArray[np.float64],
        y: NDArray[Any] | None = None,
        names: tuple[str, str] = ("", ""),
    ) -> None:
        self.xx0, self.xx1, self.response, self.classes = xx0, xx1, response, classes
        self.X, self.y, self.names = X, y, names

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
        """Predict the points of a grid around rows, and draw what came out.

        Parameters
        ----------
        estimator : fitted classifier of two columns
        X : {array-like, sparse matrix, data frame} of shape (n, 2)
            Rows to draw; the grid spans them.
        y : array-like of shape (n,), default=None
            Their classes; without them, rows are black dots.
        grid_resolution : int, default=200
            How many points the grid has on a side.
        ax : matplotlib.axes.Axes, default=None
            Where to draw; None means a figure of its own.
        xlabel, ylabel : str, default=None
            The columns' names; None means those of a data frame.

        Returns
        -------
        display : DecisionRegionsDisplay
        """
        if not hasattr(estimator, "classes_"):
            raise ValueError(f"estimator must be a fitted classifier; got {type(estimator).__name__}.")
        rows, xx0, xx1, grid = _plane(X, grid_resolution)
        response = np.searchsorted(estimator.classes_, estimator.predict(grid)).reshape(xx0.shape)
        labels = None if y is None else np.asarray(y)
        names = _axis_names(X, xlabel, ylabel)
        return cls(xx0=xx0, xx1=xx1, response=response, classes=estimator.classes_, X=rows, y=labels, names=names).plot(
            ax
        )

    def plot(self, ax: Any = None) -> Self:
        """Draw, on axes that are given or in a figure of its own.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None

        Returns
        -------
        self
        """
        self.ax_ = new_figure(1)[1][0] if ax is None else ax
        self.figure_ = self.ax_.figure
        colours = [_CLASS_COLOURS[k % len(_CLASS_COLOURS)] for k in range(len(self.classes))]
        self._draw_regions(colours)
        if self.y is None:
            self.ax_.scatter(*self.X.T, s=6, color="black")
        else:
            self._draw_classes(colours)
        self.ax_.set(xlabel=self.names[0], ylabel=self.names[1])
        return self

    def _draw_regions(self, colours: list[str]) -> None:
        from matplotlib.colors import ListedColormap

        # Not contours: between the first and the third class they would draw a seam of the second. Not vectors: viewers
        # show the seams between transparent squares.
        painting = {"cmap": ListedColormap(colours), "vmin": -0.5, "vmax": len(colours) - 0.5, "alpha": 0.3}
        self.ax_.pcolormesh(self.xx0, self.xx1, self.response, shading="nearest", rasterized=True, lw=0, **painting)

    def _draw_classes(self, colours: list[str]) -> None:
        for k, label in enumerate(self.classes):
            rows = self.X[self.y == label]
            mark = _CLASS_MARKS[k % len(_CLASS_MARKS)]
            self.ax_.scatter(
                *rows.T, s=14, color=colours[k], marker=mark, edgecolors="black", lw=0.4, label=_text(label)
            )
        self.ax_.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))


class KernelContoursDisplay:
    """Contours of a kernel: how similar the points of a plane are to one of them.

    Use :meth:`from_kernel` to make one.

    Parameters
    ----------
    xx0, xx1 : ndarray of shape (n_grid, n_grid)
        The coordinates of the points of a grid.
    values : ndarray of shape (n_grid, n_grid)
        Their similarity to ``point``.
    point : tuple of float
    X : ndarray of shape (n, 2)
        Rows to draw.
    names : tuple of str, default=("", "")
        The columns' names.

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

    def __init__(
        self,
        *,
        xx0: NDArray[np.float64],
        xx1: NDArray[np.float64],
        values: NDArray[np.float64],
        point: tuple[float, float],
        X: NDArray[np.float64],
        names: tuple[str, str] = ("", ""),
    ) -> None:
        self.xx0, self.xx1, self.values, self.point, self.X, self.names = xx0, xx1, values, point, X, names

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
        """Compute a kernel between a point and a grid around rows, and draw its contours.

        Parameters
        ----------
        kernel : fitted IsolationKernel of two columns
            Or any object with ``similarity(X, Y)``.
        X : {array-like, sparse matrix, data frame} of shape (n, 2)
            Rows to draw; the grid spans them.
        point : array-like of shape (2,)
        grid_resolution : int, default=100
            How many points the grid has on a side.
        ax : matplotlib.axes.Axes, default=None
            Where to draw; None means a figure of its own.
        xlabel, ylabel : str, default=None
            The columns' names; None means those of a data frame.

        Returns
        -------
        display : KernelContoursDisplay
        """
        centre = np.asarray(point, dtype=np.float64)
        if centre.shape != (2,):
            raise ValueError(f"point must be two numbers; got {point!r}.")
        rows, xx0, xx1, grid = _plane(X, grid_resolution)
        values = kernel.similarity(grid, _like(X, centre[None]))[:, 0].reshape(xx0.shape)
        names = _axis_names(X, xlabel, ylabel)
        x0, x1 = centre.tolist()
        return cls(xx0=xx0, xx1=xx1, values=values, point=(x0, x1), X=rows, names=names).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw, on axes that are given or in a figure of its own.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None

        Returns
        -------
        self
        """
        self.ax_ = new_figure(1)[1][0] if ax is None else ax
        self.figure_ = self.ax_.figure
        levels = np.linspace(0, 1, 11)
        filled = self.ax_.contourf(self.xx0, self.xx1, self.values, levels=levels, cmap="YlGnBu")
        self.ax_.contour(self.xx0, self.xx1, self.values, levels=levels[1:-1], colors="white", linewidths=0.5)
        self.ax_.scatter(*self.X.T, s=3, color="black", linewidths=0)
        self.ax_.plot(*self.point, marker="o", ms=8, color="#D55E00", markeredgecolor="white", ls="none")
        self.figure_.colorbar(filled, ax=self.ax_, label="similarity to the point")
        self.ax_.set(xlabel=self.names[0], ylabel=self.names[1])
        return self


def _plane(X: Any, n_grid: int) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], Any]:
    """Return rows as an array, the coordinates of a grid that spans them, and its points as rows such as X."""
    rows = np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] != 2 or not len(rows):
        raise ValueError(f"X must have rows of 2 columns, which become the axes; got shape {rows.shape}.")
    low, high = rows.min(axis=0), rows.max(axis=0)
    margin = np.where(high > low, _MARGIN * (high - low), 0.5)
    xx0, xx1 = np.meshgrid(*np.linspace(low - margin, high + margin, n_grid).T)
    return rows, xx0, xx1, _like(X, np.stack([xx0.ravel(), xx1.ravel()], axis=1))


def _like(X: Any, points: NDArray[np.float64]) -> Any:
    """Return points as a data frame if X is one."""
    if not hasattr(X, "columns"):
        return points
    argument = "schema" if type(X).__module__.startswith("polars") else "columns"
    return type(X)(points, **{argument: list(X.columns)})


def _axis_names(X: Any, xlabel: str | None, ylabel: str | None) -> tuple[str, str]:
    first, second = map(str, getattr(X, "columns", ("", "")))
    return first if xlabel is None else xlabel, second if ylabel is None else ylabel


def _text(label: Any) -> str:
    return f"{label:g}" if isinstance(label, float) else str(label)
