"""Test the measurements of kernel-shape, contours, datasets and feature-map-size."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from isokern.experiments import Plan, find, settings
from isokern.experiments.paper import contours, shapes
from tiny_datasets import crowded_corner, half_zeros, measured, write_tiny

KERNEL_SHAPE, CONTOURS, DATASETS, FEATURE_MAP_SIZE = map(
    find, ("kernel-shape", "contours", "datasets", "feature-map-size")
)

# -- kernel-shape


@pytest.fixture(scope="module")
def records():
    """Return the records of a small run of kernel-shape."""
    few = replace(KERNEL_SHAPE, cells=lambda plan: [c for c in KERNEL_SHAPE.cells(plan) if c["psi"] in (16, 256)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(settings, "SHAPE_ROWS", 2000)
        patch.setattr(settings, "SHAPE_PARTITIONINGS", {"quick": 200})
        yield measured(few, Plan())


def test_a_kernel_is_1_at_its_centre_and_sharper_with_more_cells_or_uncapped_trees(records):
    assert len(records) == 2 * 3
    for record in records:
        values = np.reshape(record["values"], (41, 41))
        assert values[20, 20] == 1 == values.max()
        assert values[20, 20] > values[20, 25] > values[20, 40]
        assert (record["t"], record["lambda"]) == (200, pytest.approx(np.log(record["psi"]) / 2))
    best = {(record["kernel"], record["psi"]): record["best_lambda"] for record in records}
    assert all(best[name, 256] > 1.5 * best[name, 16] for name in shapes.SHAPE_KERNELS)
    assert best["trees", 256] > 2 * best["trees, capped", 256]


def test_the_lambda_of_a_laplacian_kernel_is_found(monkeypatch):
    def similarity(grid, centre):
        return np.exp(-7.0 * np.abs(grid - centre).sum(axis=1))[:, None]

    laplacian = SimpleNamespace(fit=lambda _: SimpleNamespace(similarity=similarity))
    monkeypatch.setattr(shapes, "IsolationKernel", lambda *_, **__: laplacian)
    record = KERNEL_SHAPE.measure({"kernel": "trees", "psi": 256, "seed": 0}, Plan())
    assert record["best_lambda"] == pytest.approx(7.0, abs=1e-3)
    assert record["best_error"] < 1e-4 < record["error"]
    assert record["lambda"] == pytest.approx(np.log(256) / 2)


def test_the_figure_has_a_panel_for_each_kernel_and_the_curves(records):
    *maps, curves, _ = KERNEL_SHAPE.draw(records).axes
    assert [panel.get_title() for panel in maps[2:]] == [
        f"Isolation Kernel, {name}, t = 200" for name in shapes.SHAPE_KERNELS
    ]
    assert "ln(psi)/2 = 2.77" in maps[0].get_title()
    assert len(curves.lines) == 2 * 3 + 1


# -- contours


@pytest.fixture
def few_points(monkeypatch):
    """Measure less."""
    monkeypatch.setattr(contours, "N_CENTRES", 40)
    monkeypatch.setattr(settings, "CONTOUR_PARTITIONINGS", 200)


@pytest.mark.usefixtures("few_points")
def test_contours_reach_farther_where_data_are_sparse(tmp_path, monkeypatch):
    folder = write_tiny(monkeypatch, tmp_path, "covertype", n_train=1000, n_test=250, make=crowded_corner)
    plan = Plan(folder=folder)
    records = measured(CONTOURS, plan)
    assert [(r["dataset"], r["kernel"]) for r in records] == [("covertype", "trees"), ("covertype", "Voronoi")]
    for record in records:
        assert 0 < 1.5 * record["dense_reach"] < record["sparse_reach"] <= 1
        assert max(record["centres"][0]) < 0.2  # in the corner
        assert np.shape(record["values"]) == (2, 61 * 61)
        assert np.max(record["values"]) > 0.8
    assert "Data: covertype." in CONTOURS.table(records, plan).notes[0]
    figure = CONTOURS.draw(records)
    assert "two columns of covertype, psi = 10, t = 200" in figure.get_suptitle()
    assert figure.axes[0].get_xlabel() == "elevation"


@pytest.mark.usefixtures("few_points")
def test_without_covertype_contours_use_data_from_scikit_learn(tmp_path):
    plan = Plan(folder=tmp_path)
    cells = CONTOURS.cells(plan)
    assert {cell["dataset"] for cell in cells} == {"breast cancer"}
    record = cells[0] | CONTOURS.measure(cells[0], plan)
    assert record["n_train"] == 569
    assert "breast cancer" in CONTOURS.draw([record]).get_suptitle()


def test_the_reach_of_a_circular_contour_is_its_radius():
    def similarity(points, centre):
        return np.maximum(0, 1 - np.linalg.norm(points - centre, axis=1))[:, None]

    reach = contours.contour_reach(SimpleNamespace(similarity=similarity), np.array([[0.2, 0.3], [0.9, 0.9]]))
    assert reach == pytest.approx([0.5, 0.5], abs=0.011)


def test_points_are_ordered_by_density():
    rows = np.concatenate([np.full((30, 2), 0.5), np.random.default_rng(0).random((30, 2))])
    assert contours.by_density(rows, np.array([[0.0, 0.0], [0.5, 0.5]])).tolist() == [1, 0]


# -- datasets and feature-map-size

N_TRAIN, N_TEST = 60, 40


@pytest.fixture
def plan(tmp_path, monkeypatch):
    """Return a plan on a small a9a and a small stand-in for rcv1.binary."""
    names = ("a9a", "rcv1-subset")
    return Plan(folder=write_tiny(monkeypatch, tmp_path, *names, n_train=N_TRAIN, n_test=N_TEST, make=half_zeros))


def test_data_sets_are_counted_if_they_are_asked_for_and_available(plan):
    asked = replace(plan, datasets=("a9a", "url"))
    records = measured(DATASETS, asked)
    assert [record["dataset"] for record in records] == ["a9a"]
    n_nonzero = np.count_nonzero(half_zeros(N_TRAIN + N_TEST)[0])
    counts = {"n_train": N_TRAIN, "n_test": N_TEST, "n_features": 6, "nonzero": pytest.approx(n_nonzero / 6)}
    assert counts.items() <= records[0].items()
    assert [row[0] for row in DATASETS.table(records, asked).rows] == ["url (missing)", "a9a"]


def test_sizes_of_maps_are_counted(plan):
    records = measured(FEATURE_MAP_SIZE, plan)
    assert len(records) == 2 * 2 * 2
    for record in records:
        psi = min(record["psi"], N_TRAIN)
        assert (record["n_features_in"], record["n_polynomial"]) == (6, 28)  # (6 + 2) * (6 + 1) / 2
        assert (record["n_cells"], record["n_features"]) == (psi, 100 * psi)
        assert record["fewest_nonzero"] == record["most_nonzero"] == 100
        assert record["kernel_error"] < 1e-12
    assert any("5,000 rows" in note for note in FEATURE_MAP_SIZE.table(records, plan).notes)
    records[0]["fewest_nonzero"] = 90
    row = next(row for row in FEATURE_MAP_SIZE.table(records, plan).rows if row[0] == "rcv1.binary (rcv1-subset)")
    assert "90 to 100" in row
