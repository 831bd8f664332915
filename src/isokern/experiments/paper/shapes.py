"""Draw the Isolation Kernel around a point: on uniform data beside Laplacian kernels, and on real data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from sklearn.datasets import load_breast_cancer
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import minmax_scale

from isokern import IsolationKernel, plotting
from isokern.experiments import settings
from isokern.experiments.claims import NO_MEASUREMENTS
from isokern.experiments.experiment import Cell, Experiment, Plan, Record, Table, Verdict
from isokern.experiments.measuring import load_rows
from isokern.experiments.plan import available, grid
from isokern.experiments.tables import datasets_in, having, mean, select, shown
from isokern.kernels import gamma_from_psi

Floats = NDArray[np.float64]


def _plane(side: Floats) -> Floats:
    """Return the points of a square grid, row by row."""
    return np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)


# -- kernel-shape

SHAPE_KERNELS: dict[str, tuple[str, str | None]] = {
    "trees": ("tree", None),
    "trees, capped": ("tree", "log2"),
    "Voronoi": ("voronoi", None),
}
_N_SIDE = 41


def measure_shape(cell: Cell, plan: Plan) -> dict[str, Any]:
    """Return a kernel between (0, 0) and a grid of points, and the lambda of the nearest Laplacian kernel."""
    points = _plane(_side(cell["psi"]))
    t = min(settings.SHAPE_ALL_CELLS[plan.scale] // cell["psi"], settings.SHAPE_PARTITIONINGS[plan.scale])
    partitioning, max_depth = SHAPE_KERNELS[cell["kernel"]]
    rows = np.random.default_rng(cell["seed"]).uniform(-0.5, 0.5, size=(settings.SHAPE_ROWS, 2))
    kernel = IsolationKernel(partitioning, t, cell["psi"], max_depth=max_depth, random_state=cell["seed"])
    values = kernel.fit(rows).similarity(points, np.zeros((1, 2)))[:, 0]

    def error(scale: float) -> float:
        return float(np.sqrt(np.mean((_laplacian(points, scale) - values) ** 2)))

    best = minimize_scalar(error, bounds=(0.1, 500.0), method="bounded")
    papers = gamma_from_psi(cell["psi"], 2)
    return {
        "t": t,
        "lambda": papers,
        "error": error(papers),
        "best_lambda": float(best.x),
        "best_error": float(best.fun),
        "values": np.round(values, 4).tolist(),
    }


def _laplacian(points: Floats, scale: float) -> Floats:
    return np.exp(-scale * np.abs(points).sum(axis=1))


def _side(psi: int) -> Floats:
    """Return the coordinates of the grid: four cell widths either way, where the kernel is not yet 0."""
    reach = min(0.5, 4 / math.sqrt(psi))
    return np.linspace(-reach, reach, _N_SIDE)


def _shape_table(records: Sequence[Record], plan: Plan) -> Table:
    keys = ("best_lambda", "lambda", "best_error", "error", "t")
    rows = [
        (psi, name, *(shown(select(records, kernel=name, psi=psi), key) for key in keys))
        for psi in settings.SHAPE_TABLE_CELLS
        for name in SHAPE_KERNELS
    ]
    columns = ("psi", "kernel", "lambda", "lambda, paper", "error", "error with the paper's lambda", "t")
    note = (
        "Errors are root mean squared differences from exp(-lambda |x|_1) on a grid that extends 4/sqrt(psi), four "
        f"cell widths, either way. t gives {settings.SHAPE_ALL_CELLS[plan.scale]:,} cells in all, but is at most "
        f"{settings.SHAPE_PARTITIONINGS[plan.scale]:,}; the kernel is drawn from {settings.SHAPE_ROWS:,} rows."
    )
    return Table(columns, rows, (note,))


def _judge_shape(claim: str, error: str, scale: str, why: str, records: Sequence[Record]) -> Verdict:
    """Judge by the errors and lambdas of these names."""
    rule = (
        f"the root mean squared difference from exp(-lambda |x|_1) on the grid is at most {settings.SHAPE_ERROR:g} "
        f"for capped and uncapped trees at psi = {settings.SHAPE_CELLS}"
    )
    found = {}
    for name in SHAPE_KERNELS:
        runs = having(select(records, kernel=name, psi=settings.SHAPE_CELLS), error)
        if runs:
            found[name] = mean(runs, error) or 0.0, mean(runs, scale) or 0.0
    if not found.keys() >= {"trees", "trees, capped"}:
        return Verdict(claim, rule, None, NO_MEASUREMENTS)
    numbers = "; ".join(f"{name} {one:.3f} from lambda = {two:.3g}" for name, (one, two) in found.items())
    holds = max(found["trees"][0], found["trees, capped"][0]) <= settings.SHAPE_ERROR
    return Verdict(claim, rule, holds, f"differences: {numbers}", why="" if holds else why)


_SHAPE_CLAIMS = (
    partial(
        _judge_shape,
        "On uniform data the Isolation Kernel has the shape of a Laplacian kernel (the nearest of any lambda)",
        "best_error",
        "best_lambda",
        "",
    ),
    partial(
        _judge_shape,
        "At equal psi both kernels are equally sharp, the Laplacian with lambda = ln(psi)/d",
        "error",
        "lambda",
        "The Isolation Kernel is far sharper: its cells are about psi^(-1/d) wide, so its sharpness is a power of psi, "
        "while lambda is its logarithm",
    ),
)


def _draw_shapes(records: Sequence[Record]) -> Any:
    """Draw contours of the kernels side by side, and all of them along an axis."""
    psi = settings.SHAPE_CELLS
    found, side, papers = having(select(records, psi=psi, seed=0), "values"), _side(psi), gamma_from_psi(psi, 2)
    maps = {f"Laplacian, lambda = ln(psi)/2 = {papers:.2f}": _laplacian(_plane(side), papers)}
    for record in select(found, kernel="trees"):
        best = record["best_lambda"]
        maps[f"Laplacian, lambda = {best:.1f}, nearest to trees"] = _laplacian(_plane(side), best)
    maps |= {f"Isolation Kernel, {r['kernel']}, t = {r['t']:,}": np.array(r["values"]) for r in found}
    figure, panels = plotting.new_figure(len(maps) + 1, 2)
    for panel, (title, values) in zip(panels, maps.items(), strict=False):
        levels = np.linspace(0, 1, 11)
        drawn = panel.contourf(side, side, values.reshape(_N_SIDE, _N_SIDE), levels=levels, cmap="viridis")
        panel.set(title=title, xlabel="x1", ylabel="x2", aspect="equal")
    figure.colorbar(drawn, ax=panels, label="K((0, 0), x)", shrink=0.6)
    _draw_profiles(panels[-1], found, side[_N_SIDE // 2 :], papers)
    figure.suptitle(f"Kernels around (0, 0) on uniform data, psi = {psi}")
    return figure


def _draw_profiles(panel: Any, records: Sequence[Record], distances: Floats, papers: float) -> None:
    """Draw kernels along the first axis, and the Laplacian kernel nearest to each as a dotted line."""

    def draw_laplacian(scale: float, colour: str, line: str, digits: int) -> None:
        label = f"Laplacian, lambda {scale:.{digits}f}"
        panel.plot(distances, np.exp(-scale * distances), color=colour, ls=line, label=label)

    middle = _N_SIDE // 2
    for record in records:
        colour = plotting.COLOURS[f"Isolation Kernel, {record['kernel']}"]
        values = np.array(record["values"]).reshape(_N_SIDE, _N_SIDE)[middle, middle:]
        panel.plot(distances, values, color=colour, label=record["kernel"])
        draw_laplacian(record["best_lambda"], colour, ":", 1)
    draw_laplacian(papers, plotting.COLOURS["Laplacian"], "--", 2)
    panel.set(xlabel="x1, at x2 = 0", ylabel="K((0, 0), x)", ylim=(0, 1.02))
    plotting.plain(panel)
    panel.legend(frameon=False, fontsize="small", ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1.0))


KERNEL_SHAPE = Experiment(
    name="kernel-shape",
    title="The Laplacian and the Isolation Kernel on uniform data",
    cells=grid((), psi=settings.SHAPE_TABLE_CELLS, kernel=tuple(SHAPE_KERNELS)),
    measure=measure_shape,
    table=_shape_table,
    claims=_SHAPE_CLAIMS,
    draw=_draw_shapes,
    notes=(
        "Rows are uniform on a square of side 1 around (0, 0). The table gives the lambda of the nearest Laplacian "
        "kernel and the paper's, for which psi is the sharpness of both kernels.",
        "The paper's figure has trees; Voronoi cells are added for comparison.",
    ),
    has_times=False,
)

# -- contours

CONTOUR_KERNELS = {"trees": "tree", "Voronoi": "voronoi"}
_BUNDLED = "breast cancer"  # with scikit-learn
_COLUMNS = {
    "covertype": ((0, 5), ("elevation", "distance to roadways")),
    _BUNDLED: ((3, 6), ("mean area", "mean concavity")),
}

N_DOTS, N_CENTRES, N_NEIGHBOURS, N_DIRECTIONS = 500, 160, 20, 8
_LEVEL = 0.5  # of the contour whose distance is measured
_LENGTHS = np.linspace(0, 1, 101)[1:]
_N_PLANE = 61


def _contour_cells(plan: Plan) -> list[Cell]:
    """List the kernels on covertype or, if it is not available, on scikit-learn's breast cancer data."""
    name = "covertype" if available(plan, ["covertype"]).get("covertype") else _BUNDLED
    return grid((), dataset=[name], kernel=list(CONTOUR_KERNELS))(plan)


def measure_contours(cell: Cell, plan: Plan) -> dict[str, Any]:
    """Return a kernel's values around two points, and the distance of its contours where data are dense and sparse."""
    rows = _load_plane(cell, plan)
    rng = np.random.default_rng(cell["seed"])
    dots = rows[rng.permutation(len(rows))[:N_DOTS]]
    kernel = IsolationKernel(
        CONTOUR_KERNELS[cell["kernel"]],
        settings.CONTOUR_PARTITIONINGS,
        settings.CONTOUR_CELLS,
        random_state=cell["seed"],
    ).fit(rows)
    order = by_density(rows, dots[:N_CENTRES])
    n_part = max(1, len(order) // 4)
    centres = dots[[order[n_part // 2], order[-1 - n_part // 2]]]
    dense, sparse = (float(contour_reach(kernel, dots[part]).mean()) for part in (order[:n_part], order[-n_part:]))
    values = kernel.similarity(centres, _plane(np.linspace(0, 1, _N_PLANE)))
    return {
        "n_train": len(rows),
        "dense_reach": dense,
        "sparse_reach": sparse,
        "dots": np.round(dots, 4).tolist(),
        "centres": centres.tolist(),
        "values": np.round(values, 4).tolist(),
    }


def _load_plane(cell: Cell, plan: Plan) -> Floats:
    """Return two columns, scaled to [0, 1]."""
    X = load_breast_cancer().data if cell["dataset"] == _BUNDLED else load_rows(cell, plan).X_train
    return minmax_scale(X[:, list(_COLUMNS[cell["dataset"]][0])])


def by_density(rows: Floats, points: Floats) -> NDArray[np.intp]:
    """Return the indices of points, those in dense regions (with the nearest k-th neighbour) first."""
    distances, _ = NearestNeighbors(n_neighbors=min(N_NEIGHBOURS, len(rows))).fit(rows).kneighbors(points)
    return np.argsort(distances[:, -1], kind="stable")


def contour_reach(kernel: IsolationKernel, points: Floats) -> Floats:
    """Return the distance of each point to the contour around it, averaged over directions."""
    angles = 2 * np.pi * np.arange(N_DIRECTIONS) / N_DIRECTIONS
    steps = (_LENGTHS[:, None, None] * np.stack([np.cos(angles), np.sin(angles)], axis=-1)).reshape(-1, 2)
    reaches = []
    for point in points:
        values = kernel.similarity(point + steps, point[None])[:, 0].reshape(len(_LENGTHS), N_DIRECTIONS)
        is_below = values < _LEVEL
        first = np.where(is_below.any(axis=0), is_below.argmax(axis=0), len(_LENGTHS) - 1)
        reaches.append(_LENGTHS[first].mean())
    return np.array(reaches)


def _contour_ratio(records: Sequence[Record], kernel: str) -> float | None:
    """Return the reach of contours where data are sparse over that where they are dense."""
    dense, sparse = (mean(records, f"{where}_reach", kernel=kernel) for where in ("dense", "sparse"))
    return None if dense is None or sparse is None else sparse / dense


def _contour_table(records: Sequence[Record], plan: Plan) -> Table:
    rows: list[tuple[Any, ...]] = []
    for name in CONTOUR_KERNELS:
        reaches = (shown(select(records, kernel=name), f"{where}_reach") for where in ("dense", "sparse"))
        rows.append((name, *reaches, _contour_ratio(records, name)))
    rows.append(("any kernel of the distance alone", None, None, 1.0))
    note = (
        f"Data: {' and '.join(sorted(set(datasets_in(records))))}. Reach: the distance of a row to the contour "
        f"K = {_LEVEL:g} around it, in sides of the plane, averaged over {N_DIRECTIONS} directions. Dense and sparse: "
        f"the quarters of {N_CENTRES} rows with the nearest and the farthest {N_NEIGHBOURS}th neighbour."
    )
    return Table(("kernel", "reach where dense", "reach where sparse", "ratio"), rows, (note,))


def _judge_contours(records: Sequence[Record]) -> Verdict:
    claim = "Contours of the Isolation Kernel are wide where data are sparse and narrow where they are dense"
    rule = (
        f"K = {_LEVEL:g} reaches at least {settings.CONTOUR_RATIO} times as far where data are sparse, for both kernels"
    )
    ratios = [ratio for name in CONTOUR_KERNELS if (ratio := _contour_ratio(records, name)) is not None]
    if len(ratios) < len(CONTOUR_KERNELS):
        return Verdict(claim, rule, None, NO_MEASUREMENTS)
    numbers = ", ".join(f"{name} {ratio:.2f} times" for name, ratio in zip(CONTOUR_KERNELS, ratios, strict=True))
    return Verdict(claim, rule, min(ratios) >= settings.CONTOUR_RATIO, numbers)


def _draw_contours(records: Sequence[Record]) -> Any:
    """Draw, for each kernel, contours around a row in a dense and one in a sparse region."""
    found = having(select(records, seed=0), "values")
    xx0, xx1 = _plane(np.linspace(0, 1, _N_PLANE)).T.reshape(2, _N_PLANE, _N_PLANE)
    figure, panels = plotting.new_figure(2 * len(found), len(found))
    for k, panel in enumerate(panels):
        record, place = found[k // 2], k % 2
        values = np.array(record["values"][place]).reshape(_N_PLANE, _N_PLANE)
        dots, point, names = np.array(record["dots"]), record["centres"][place], _COLUMNS[record["dataset"]][1]
        plotting.KernelContoursDisplay(xx0=xx0, xx1=xx1, values=values, point=point, X=dots, names=names).plot(panel)
        panel.set(title=f"{record['kernel']}, around a row in a {('dense', 'sparse')[place]} region")
    psi, t = settings.CONTOUR_CELLS, settings.CONTOUR_PARTITIONINGS
    figure.suptitle(f"Contours of the Isolation Kernel on two columns of {found[0]['dataset']}, psi = {psi}, t = {t:,}")
    return figure


CONTOURS = Experiment(
    name="contours",
    title="Contours of the Isolation Kernel on a real data set",
    cells=_contour_cells,
    measure=measure_contours,
    table=_contour_table,
    claims=(_judge_contours,),
    draw=_draw_contours,
    datasets=("covertype",),
    notes=(
        "The paper does not name its data set. This uses covertype or, if it is not available, scikit-learn's breast "
        "cancer data; columns are scaled to [0, 1].",
    ),
    has_times=False,
)
