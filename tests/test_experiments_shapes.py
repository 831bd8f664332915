"""The experiments on the shapes of kernels."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from isokern.experiments import settings
from isokern.experiments.experiment import Plan
from isokern.experiments.paper import contours, kernel_shape
from tiny_datasets import crowded_corner, measured, write_tiny

# -- kernel-shape


@pytest.fixture(scope="module")
def shapes():
    """Return the records of a small run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(settings, "SHAPE_TABLE_CELLS", (16, 256))
        patch.setattr(settings, "SHAPE_ROWS", 2000)
        patch.setattr(settings, "SHAPE_PARTITIONINGS", {"quick": 200})
        yield measured(kernel_shape.EXPERIMENT, Plan())


def test_a_kernel_is_1_at_its_centre_and_falls_off_the_sharper_the_more_cells(shapes):
    assert len(shapes) == 2 * 3
    for record in shapes:
        values = np.reshape(record["values"], (41, 41))
        assert values[20, 20] == 1 == values.max()
        assert values[20, 20] > values[20, 25] > values[20, 40]
    best = {(record["kernel"], record["psi"]): record["best_lambda"] for record in shapes}
    assert all(best[name, 256] > 1.5 * best[name, 16] for name in kernel_shape.KERNELS)


def test_trees_are_sharper_than_capped_ones(shapes):
    best = {(record["kernel"], record["psi"]): record["best_lambda"] for record in shapes}
    assert best["trees", 256] > 2 * best["trees, capped", 256]


def test_the_lambda_of_a_laplacian_kernel_is_found(monkeypatch):
    def similarity(grid, centre):
        return np.exp(-7.0 * np.abs(grid - centre).sum(axis=1))[:, None]

    stand_in = SimpleNamespace(fit=lambda _: SimpleNamespace(similarity=similarity))
    monkeypatch.setattr(kernel_shape, "IsolationKernel", lambda *_, **__: stand_in)
    record = kernel_shape.EXPERIMENT.measure({"kernel": "trees", "psi": 256, "seed": 0}, Plan())
    assert record["best_lambda"] == pytest.approx(7.0, abs=1e-3)
    assert record["best_error"] < 1e-4 < record["error"]
    assert record["lambda"] == pytest.approx(np.log(256) / 2)


def test_the_table_has_a_row_for_each_kernel_and_psi_with_both_lambdas(shapes, monkeypatch):
    monkeypatch.setattr(settings, "SHAPE_TABLE_CELLS", (16, 256))
    table = kernel_shape.EXPERIMENT.table(shapes, Plan())
    assert [row[:2] for row in table.rows] == [(psi, name) for psi in (16, 256) for name in kernel_shape.KERNELS]
    first = dict(zip(table.columns, table.rows[0], strict=True))
    assert first["lambda, paper"] == pytest.approx(np.log(16) / 2)
    assert first["lambda"] == shapes[0]["best_lambda"]
    assert first["t"] == 200


@pytest.mark.parametrize(
    ("error", "best_error", "holds"), [(0.01, 0.01, [True, True]), (0.3, 0.02, [False, True]), (0.3, 0.06, [False] * 2)]
)
def test_the_verdicts_on_shapes_follow_the_errors_of_trees(error, best_error, holds):
    errors = {"psi": 256, "error": error, "best_error": best_error}
    records = [{"kernel": "trees", **errors}, {"kernel": "trees, capped", **errors}]
    assert [verdict.holds for verdict in kernel_shape.EXPERIMENT.verdicts(records)] == holds
    assert [verdict.holds for verdict in kernel_shape.EXPERIMENT.verdicts(records[:1])] == [None, None]


def test_the_figure_has_a_panel_for_each_kernel_and_the_curves(shapes):
    figure = kernel_shape.EXPERIMENT.draw(shapes)
    *maps, curves, _ = figure.axes
    assert [panel.get_title().removesuffix(", t = 200") for panel in maps[2:]] == [
        f"Isolation Kernel, {name}" for name in kernel_shape.KERNELS
    ]
    assert "ln(psi)/2 = 2.77" in maps[0].get_title()
    assert len(curves.lines) == 2 * 3 + 1


# -- contours


@pytest.fixture(autouse=True)
def few_points(monkeypatch):
    """Measure less."""
    monkeypatch.setattr(contours, "N_CENTRES", 40)
    monkeypatch.setattr(settings, "CONTOUR_PARTITIONINGS", 200)


@pytest.fixture
def covertype(tmp_path, monkeypatch):
    """Return a folder with a small covertype: four rows in five in a corner of the plane, the others all over it."""
    return write_tiny(monkeypatch, tmp_path, "covertype", n_train=1000, n_test=250, make=crowded_corner)


def test_contours_reach_farther_where_rows_are_few(covertype):
    plan = Plan(folder=covertype)
    records = measured(contours.EXPERIMENT, plan)
    assert [(record["dataset"], record["kernel"]) for record in records] == [
        ("covertype", "trees"),
        ("covertype", "Voronoi"),
    ]
    for record in records:
        assert 0 < 1.5 * record["dense_reach"] < record["sparse_reach"] <= 1
        assert max(record["centres"][0]) < 0.2  # in the corner
        assert np.shape(record["values"]) == (2, 61 * 61)
        assert np.max(record["values"]) > 0.8
    table = contours.EXPERIMENT.table(records, plan)
    assert table.columns == ("kernel", "reach where dense", "reach where sparse", "ratio")
    assert table.rows[0][3] == records[0]["sparse_reach"] / records[0]["dense_reach"]
    assert "Data: covertype." in table.notes[0]
    figure = contours.EXPERIMENT.draw(records)
    assert "two columns of covertype, psi = 10, t = 200" in figure.get_suptitle()
    assert figure.axes[0].get_xlabel() == "elevation"


def test_without_covertype_contours_are_drawn_on_data_that_scikit_learn_brings_along(tmp_path):
    cells = contours.EXPERIMENT.cells(Plan(folder=tmp_path))
    assert {cell["dataset"] for cell in cells} == {"breast cancer"}
    record = cells[0] | contours.EXPERIMENT.measure(cells[0], Plan(folder=tmp_path))
    assert record["n_train"] == 569
    assert "breast cancer" in contours.EXPERIMENT.draw([record]).get_suptitle()


def test_the_reach_of_a_contour_is_its_radius():
    def similarity(points, centre):
        return np.maximum(0, 1 - np.linalg.norm(points - centre, axis=1))[:, None]

    reach = contours.contour_reach(SimpleNamespace(similarity=similarity), np.array([[0.2, 0.3], [0.9, 0.9]]))
    assert reach == pytest.approx([0.5, 0.5], abs=0.011)


def test_rows_are_put_in_order_of_the_density_around_them():
    rows = np.concatenate([np.full((30, 2), 0.5), np.random.default_rng(0).random((30, 2))])
    assert contours.by_density(rows, np.array([[0.0, 0.0], [0.5, 0.5]])).tolist() == [1, 0]


@pytest.mark.parametrize(("sparse_reach", "holds"), [(0.31, True), (0.29, False)])
def test_the_verdict_on_contours_follows_their_reach(sparse_reach, holds):
    records = [
        {"kernel": "trees", "dense_reach": 0.2, "sparse_reach": sparse_reach},
        {"kernel": "Voronoi", "dense_reach": 0.2, "sparse_reach": 0.5},
    ]
    (verdict,) = contours.EXPERIMENT.verdicts(records)
    assert verdict.holds is holds
    assert f"trees {sparse_reach / 0.2:.2f} times" in verdict.found
    assert contours.EXPERIMENT.verdicts(records[1:])[0].holds is None
