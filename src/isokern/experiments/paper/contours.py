"""Draw contours of the Isolation Kernel on real data, and compare their reach where data are dense and sparse."""

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
from isokern.experiments.claims import NO_MEASUREMENTS
from isokern.experiments.experiment import Cell, Experiment, Plan, Record, Table, Verdict
from isokern.experiments.measuring import load_rows
from isokern.experiments.paper.shapes import Floats, plane
from isokern.experiments.plan import available, grid
from isokern.experiments.tables import datasets_in, having, mean, select, shown

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
    values = kernel.similarity(centres, plane(np.linspace(0, 1, _N_PLANE)))
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
    xx0, xx1 = plane(np.linspace(0, 1, _N_PLANE)).T.reshape(2, _N_PLANE, _N_PLANE)
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
