"""The Isolation Kernel around the middle of uniform data, against Laplacian kernels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from isokern import IsolationKernel, plotting
from isokern.experiments import settings
from isokern.experiments.experiment import Cell, Experiment, Plan, Record, Table, Verdict
from isokern.experiments.measuring import Stopwatch
from isokern.experiments.showing import having, mean, select, shown
from isokern.kernels import gamma_from_psi

KERNELS: dict[str, tuple[str, str | None]] = {
    "trees": ("tree", None),
    "trees, capped": ("tree", "log2"),
    "Voronoi": ("voronoi", None),
}
_N_GRID = 41


def cells(plan: Plan) -> list[Cell]:
    """List kernels and numbers of cells."""
    return [
        {"kernel": name, "psi": psi, "seed": seed}
        for psi in settings.SHAPE_TABLE_CELLS
        for name in KERNELS
        for seed in range(plan.n_seeds)
    ]


def measure(cell: Cell, plan: Plan) -> dict[str, Any]:
    """Return a kernel between (0, 0) and a grid of points, and the lambda that describes it best."""
    grid = _grid(cell["psi"])
    t = min(settings.SHAPE_ALL_CELLS[plan.scale] // cell["psi"], settings.SHAPE_PARTITIONINGS[plan.scale])
    partitioning, max_depth = KERNELS[cell["kernel"]]
    rows = np.random.default_rng(cell["seed"]).uniform(-0.5, 0.5, size=(settings.SHAPE_ROWS, 2))
    watch = Stopwatch()
    kernel = IsolationKernel(partitioning, t, cell["psi"], max_depth=max_depth, random_state=cell["seed"])
    values = kernel.fit(rows).similarity(grid, np.zeros((1, 2)))[:, 0]
    seconds = watch.seconds()
    best = minimize_scalar(lambda scale: laplacian_error(values, grid, scale), bounds=(0.1, 500.0), method="bounded")
    papers = gamma_from_psi(cell["psi"], 2)
    return {
        "t": t,
        "lambda": papers,
        "error": laplacian_error(values, grid, papers),
        "best_lambda": float(best.x),
        "best_error": float(best.fun),
        "values": np.round(values, 4).tolist(),
        **seconds,
    }


def laplacian_error(values: NDArray[np.float64], grid: NDArray[np.float64], scale: float) -> float:
    """Return the root mean squared difference of a kernel on a grid from exp(-scale |x|_1)."""
    return float(np.sqrt(np.mean((_laplacian(grid, scale) - values) ** 2)))


def _laplacian(grid: NDArray[np.float64], scale: float) -> NDArray[np.float64]:
    return np.exp(-scale * np.abs(grid).sum(axis=1))


def _side(psi: int) -> NDArray[np.float64]:
    """Return the coordinates of a grid: four times the width of a cell either way, where the kernel is not yet 0."""
    reach = min(0.5, 4 / math.sqrt(psi))
    return np.linspace(-reach, reach, _N_GRID)


def _grid(psi: int) -> NDArray[np.float64]:
    """Return the points of the grid, row by row."""
    return np.stack(np.meshgrid(_side(psi), _side(psi)), axis=-1).reshape(-1, 2)


def table(records: Sequence[Record], plan: Plan) -> Table:
    """Lay out the lambda that describes each kernel best beside the paper's, and how far off both are."""
    rows = []
    for psi in settings.SHAPE_TABLE_CELLS:
        for name in KERNELS:
            found = select(records, kernel=name, psi=psi)
            keys = ("best_lambda", "lambda", "best_error", "error", "t")
            rows.append((psi, name, *(shown(found, key, plan) for key in keys)))
    columns = ("psi", "kernel", "lambda", "lambda, paper", "error", "error with the paper's lambda", "t")
    note = (
        "Errors are root mean squared differences from exp(-lambda |x|_1) over a grid that reaches "
        "4/sqrt(psi), four times the width of a cell, either way. "
        f"As many partitionings as make {settings.SHAPE_ALL_CELLS[plan.scale]:,} cells in all, at most "
        f"{settings.SHAPE_PARTITIONINGS[plan.scale]:,}, and {settings.SHAPE_ROWS:,} rows."
    )
    return Table(columns, rows, (note,))


def verdicts(records: Sequence[Record]) -> list[Verdict]:
    """Judge whether the trees' kernel is like the Laplacian kernel of the paper's lambda, and like any."""
    psi = settings.SHAPE_CELLS
    rule = (
        f"the root mean squared difference on the grid is at most {settings.SHAPE_ERROR:g} for trees, capped and "
        f"uncapped, at psi = {psi}"
    )
    return [
        _alike(
            records,
            "On uniform data the Isolation Kernel is like the Laplacian kernel of lambda = ln(psi)/d",
            rule,
            "error",
        ),
        _alike(records, "It is like the Laplacian kernel of some lambda", rule, "best_error"),
    ]


def _alike(records: Sequence[Record], claim: str, rule: str, error: str) -> Verdict:
    errors = {name: mean(records, error, kernel=name, psi=settings.SHAPE_CELLS) for name in KERNELS}
    judged = [errors[name] for name in ("trees", "trees, capped")]
    if None in judged:
        return Verdict(claim, rule, None, "nothing to judge by")
    found = "; ".join(f"{name} {value:.3f}" for name, value in errors.items() if value is not None)
    return Verdict(claim, rule, max(value or 0.0 for value in judged) <= settings.SHAPE_ERROR, f"differences: {found}")


def draw(records: Sequence[Record]) -> Any:
    """Draw contours of the kernels side by side, and all of them along an axis."""
    psi = settings.SHAPE_CELLS
    found = having(select(records, psi=psi, seed=0), "values")
    maps = _laplacian_maps(found)
    maps |= {f"{_title(record['kernel'])}, t = {record['t']:,}": np.array(record["values"]) for record in found}
    figure, panels = plotting.new_figure(len(maps) + 1, 2)
    for panel, (title, values) in zip(panels, maps.items(), strict=False):
        grid = values.reshape(_N_GRID, _N_GRID)
        drawn = panel.contourf(_side(psi), _side(psi), grid, levels=np.linspace(0, 1, 11), cmap="viridis")
        panel.set(title=title, xlabel="x1", ylabel="x2", aspect="equal")
    figure.colorbar(drawn, ax=panels, label="K((0, 0), x)", shrink=0.6)
    _draw_curves(panels[-1], found)
    figure.suptitle(f"Kernels around (0, 0) on uniform data, psi = {psi}")
    return figure


def _laplacian_maps(records: Sequence[Record]) -> dict[str, NDArray[np.float64]]:
    """Return the Laplacian kernel of the paper's lambda and the one nearest to the trees' kernel."""
    grid, papers = _grid(settings.SHAPE_CELLS), gamma_from_psi(settings.SHAPE_CELLS, 2)
    maps = {f"Laplacian, lambda = ln(psi)/2 = {papers:.2f}": _laplacian(grid, papers)}
    for record in select(records, kernel="trees"):
        best = record["best_lambda"]
        maps[f"Laplacian, lambda = {best:.1f}, nearest to trees"] = _laplacian(grid, best)
    return maps


def _title(kernel: str) -> str:
    return f"Isolation Kernel, {kernel}"


def _draw_curves(panel: Any, records: Sequence[Record]) -> None:
    """Draw kernels along the first axis, and dotted the Laplacian kernel nearest to each."""
    middle, papers = _N_GRID // 2, gamma_from_psi(settings.SHAPE_CELLS, 2)
    distances = _side(settings.SHAPE_CELLS)[middle:]
    for record in records:
        colour, best = plotting.COLOURS[_title(record["kernel"])], record["best_lambda"]
        values = np.array(record["values"]).reshape(_N_GRID, _N_GRID)[middle, middle:]
        panel.plot(distances, values, color=colour, label=record["kernel"])
        panel.plot(distances, np.exp(-best * distances), color=colour, ls=":", label=f"Laplacian, lambda {best:.1f}")
    values = np.exp(-papers * distances)
    panel.plot(distances, values, color=plotting.COLOURS["Laplacian"], ls="--", label=f"Laplacian, lambda {papers:.2f}")
    panel.set(xlabel="x1, at x2 = 0", ylabel="K((0, 0), x)", ylim=(0, 1.02))
    plotting.plain(panel)
    panel.legend(frameon=False, fontsize="small", ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1.0))


EXPERIMENT = Experiment(
    name="kernel-shape",
    title="The Laplacian and the Isolation Kernel on uniform data",
    cells=cells,
    measure=measure,
    table=table,
    verdicts=verdicts,
    draw=draw,
    notes=(
        "Uniform rows on a square of side 1 around (0, 0). The paper names lambda = ln(psi)/d as that of the Laplacian "
        "kernel which the Isolation Kernel comes near to; the table gives the lambda that comes nearest.",
        "The paper's figure is of trees; Voronoi cells are shown for comparison.",
    ),
)
