"""Draw the Isolation Kernel on uniform data beside Laplacian kernels: the experiment kernel-shape."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from isokern import IsolationKernel, plotting
from isokern.experiments import settings
from isokern.experiments.claims import NO_MEASUREMENTS
from isokern.experiments.experiment import Cell, Experiment, Plan, Record, Table, Verdict
from isokern.experiments.plan import grid
from isokern.experiments.tables import having, mean, select, shown
from isokern.kernels import gamma_from_psi

Floats = NDArray[np.float64]


def plane(side: Floats) -> Floats:
    """Return the points of a square grid, row by row."""
    return np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)


SHAPE_KERNELS: dict[str, tuple[str, str | None]] = {
    "trees": ("tree", None),
    "trees, capped": ("tree", "log2"),
    "Voronoi": ("voronoi", None),
}
_N_SIDE = 41


def measure_shape(cell: Cell, plan: Plan) -> dict[str, Any]:
    """Return a kernel between (0, 0) and a grid of points, and the lambda of the nearest Laplacian kernel."""
    points = plane(_side(cell["psi"]))
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
    maps = {f"Laplacian, lambda = ln(psi)/2 = {papers:.2f}": _laplacian(plane(side), papers)}
    for record in select(found, kernel="trees"):
        best = record["best_lambda"]
        maps[f"Laplacian, lambda = {best:.1f}, nearest to trees"] = _laplacian(plane(side), best)
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
