"""Contours of the Isolation Kernel on two columns of a real data set, wide where data are sparse."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import minmax_scale

from isokern import IsolationKernel, plotting
from isokern.experiments import settings
from isokern.experiments.datasets import at_hand, load_rows
from isokern.experiments.experiment import Cell, Experiment, Plan, Record, Table, Verdict
from isokern.experiments.measuring import Stopwatch
from isokern.experiments.showing import having, mean, select, shown

KERNELS = {"trees": "tree", "Voronoi": "voronoi"}
# Columns, and their names, of the data set from the paper's list and of the one that comes with scikit-learn.
COVERTYPE = ((0, 5), ("elevation", "distance to roadways"))
BUNDLED, BUNDLED_COLUMNS = "breast cancer", ((3, 6), ("mean area", "mean concavity"))

N_DOTS, N_CENTRES, N_NEIGHBOURS, N_DIRECTIONS = 500, 160, 20, 8
LEVEL = 0.5  # of the contour whose reach is measured
_LENGTHS = np.linspace(0, 1, 101)[1:]
_N_GRID = 61


def cells(plan: Plan) -> list[Cell]:
    """List the kernels on covertype or, where it is not at hand, on a data set that scikit-learn brings along."""
    name = "covertype" if at_hand(plan, ("covertype",)).get("covertype") else BUNDLED
    return [{"dataset": name, "kernel": kernel, "seed": seed} for kernel in KERNELS for seed in range(plan.n_seeds)]


def measure(cell: Cell, plan: Plan) -> dict[str, Any]:
    """Return a kernel's values around two points, and how far its contours reach where data are dense and sparse."""
    rows = _load_plane(cell, plan)
    rng = np.random.default_rng(cell["seed"])
    dots = rows[rng.permutation(len(rows))[:N_DOTS]]
    watch = Stopwatch()
    kernel = IsolationKernel(
        KERNELS[cell["kernel"]], settings.CONTOUR_PARTITIONINGS, settings.CONTOUR_CELLS, random_state=cell["seed"]
    ).fit(rows)
    order = by_density(rows, dots[:N_CENTRES])
    few = max(1, len(order) // 4)
    centres = dots[[order[few // 2], order[-1 - few // 2]]]
    reaches = [float(contour_reach(kernel, dots[part]).mean()) for part in (order[:few], order[-few:])]
    values = kernel.similarity(centres, _grid())
    return {
        **watch.seconds(),
        "n_train": len(rows),
        "dense_reach": reaches[0],
        "sparse_reach": reaches[1],
        "dots": np.round(dots, 4).tolist(),
        "centres": centres.tolist(),
        "values": np.round(values, 4).tolist(),
    }


def _load_plane(cell: Cell, plan: Plan) -> NDArray[np.float64]:
    """Return two columns, scaled to [0, 1]."""
    if cell["dataset"] == BUNDLED:
        return minmax_scale(load_breast_cancer().data[:, list(BUNDLED_COLUMNS[0])])
    return minmax_scale(load_rows("covertype", plan, cell["seed"]).X_train[:, list(COVERTYPE[0])])


def by_density(rows: NDArray[np.float64], points: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return the numbers of points, those first whose nearest rows are nearest: where data are dense."""
    distances, _ = NearestNeighbors(n_neighbors=min(N_NEIGHBOURS, len(rows))).fit(rows).kneighbors(points)
    return np.argsort(distances[:, -1], kind="stable")


def contour_reach(kernel: IsolationKernel, points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return for each point how far it is, in the mean of directions, to the contour around it."""
    angles = 2 * np.pi * np.arange(N_DIRECTIONS) / N_DIRECTIONS
    steps = (_LENGTHS[:, None, None] * np.stack([np.cos(angles), np.sin(angles)], axis=-1)).reshape(-1, 2)
    reaches = []
    for point in points:
        values = kernel.similarity(point + steps, point[None])[:, 0].reshape(len(_LENGTHS), N_DIRECTIONS)
        is_below = values < LEVEL
        first = np.where(is_below.any(axis=0), is_below.argmax(axis=0), len(_LENGTHS) - 1)
        reaches.append(_LENGTHS[first].mean())
    return np.array(reaches)


def _grid() -> NDArray[np.float64]:
    side = np.linspace(0, 1, _N_GRID)
    return np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)


def table(records: Sequence[Record], plan: Plan) -> Table:
    """Lay out the reach of contours where data are dense and where they are sparse."""
    rows = []
    for name in KERNELS:
        found = select(records, kernel=name)
        rows.append((name, *(shown(found, f"{where}_reach", plan) for where in ("dense", "sparse")), _ratio(found)))
    rows.append(("any kernel of the distance alone", None, None, 1.0))
    columns = ("kernel", "reach where dense", "reach where sparse", "ratio")
    used = " and ".join(sorted({record["dataset"] for record in records}))
    note = (
        f"Data: {used}. Reach: how far the contour K = {LEVEL:g} around a row is from it, in sides of the plane; "
        f"means over {N_DIRECTIONS} directions and over the quarters of {N_CENTRES} rows with the nearest and the "
        f"farthest {N_NEIGHBOURS}th neighbour."
    )
    return Table(columns, rows, (note,))


def _ratio(records: Sequence[Record]) -> float | None:
    dense, sparse = (mean(records, f"{where}_reach") for where in ("dense", "sparse"))
    return None if dense is None or sparse is None else sparse / dense


def verdicts(records: Sequence[Record]) -> list[Verdict]:
    """Judge whether contours reach farther where data are sparse."""
    claim = "Contours of the Isolation Kernel are wide where data are sparse and narrow where they are dense"
    rule = (
        f"the contour K = {LEVEL:g} reaches at least {settings.CONTOUR_RATIO} times as far where data are sparse, for "
        "both kernels"
    )
    found = {name: _ratio(select(records, kernel=name)) for name in KERNELS}
    ratios = {name: ratio for name, ratio in found.items() if ratio is not None}
    if len(ratios) < len(KERNELS):
        return [Verdict(claim, rule, None, "nothing to judge by")]
    numbers = ", ".join(f"{name} {ratio:.2f} times" for name, ratio in ratios.items())
    return [Verdict(claim, rule, min(ratios.values()) >= settings.CONTOUR_RATIO, numbers)]


def draw(records: Sequence[Record]) -> Any:
    """Draw, for each kernel, contours around a row among many and around one among few."""
    found = having(select(records, seed=0), "values")
    figure, panels = plotting.new_figure(2 * len(found), len(found))
    for k, panel in enumerate(panels):
        record, place = found[k // 2], k % 2
        names = (BUNDLED_COLUMNS if record["dataset"] == BUNDLED else COVERTYPE)[1]
        xx0, xx1 = _grid().T.reshape(2, _N_GRID, _N_GRID)
        values = np.array(record["values"][place]).reshape(_N_GRID, _N_GRID)
        dots, point = np.array(record["dots"]), record["centres"][place]
        plotting.KernelContoursDisplay(xx0=xx0, xx1=xx1, values=values, point=point, X=dots, names=names).plot(panel)
        panel.set(title=f"{record['kernel']}, around a row in a {('dense', 'sparse')[place]} region")
    psi, t = settings.CONTOUR_CELLS, settings.CONTOUR_PARTITIONINGS
    figure.suptitle(f"Contours of the Isolation Kernel on two columns of {found[0]['dataset']}, psi = {psi}, t = {t:,}")
    return figure


EXPERIMENT = Experiment(
    name="contours",
    title="Contours of the Isolation Kernel on a real data set",
    cells=cells,
    measure=measure,
    table=table,
    verdicts=verdicts,
    draw=draw,
    datasets=("covertype",),
    notes=(
        "The paper does not name its data set. Ours is covertype, or scikit-learn's breast cancer data where that is "
        "not at hand; columns are scaled to [0, 1].",
    ),
)
