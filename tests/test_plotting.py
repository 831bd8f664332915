"""Test figures made from numbers, and displays of models and kernels."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from isokern import IKOGDClassifier, IKOGDRegressor, IsolationKernel, plotting


@pytest.mark.parametrize(
    ("n_panels", "n_lines", "shape"), [(1, 1, (1, 1)), (3, 1, (1, 3)), (4, 2, (2, 2)), (5, 2, (2, 3))]
)
def test_a_figure_arranges_its_panels_in_lines(n_panels, n_lines, shape):
    figure, panels = plotting.new_figure(n_panels, n_lines)
    assert len(panels) == len(figure.axes) == n_panels
    assert {panel.get_subplotspec().get_gridspec().get_geometry() for panel in panels} == {shape}


def test_growth_has_logarithmic_axes_with_the_measured_sizes_as_ticks():
    _, (panel,) = plotting.new_figure(1)
    runs = {"tree map": [(10, 1.0), (100, 8.0)], "Voronoi map": [(100, 3.0), (1000, 2.0)]}
    plotting.cost_growth(panel, runs, {name: name.upper() for name in runs}, xlabel="rows", ylabel="seconds")
    assert (panel.get_xscale(), panel.get_yscale()) == ("log", "log")
    assert [label.get_text() for label in panel.get_xticklabels()] == ["1,000", "100", "10"]
    assert [text.get_text() for text in panel.get_legend().get_texts()] == ["TREE MAP", "VORONOI MAP"]
    assert [line.get_xydata().tolist() for line in panel.lines] == [[[10, 1], [100, 8]], [[100, 3], [1000, 2]]]


def test_blocks_in_which_a_change_was_found_are_shaded():
    _, (panel,) = plotting.new_figure(1)
    runs = {
        "one": [(10, 0.5, 0.5, 1), (20, 0.6, 0.7, 1), (30, 0.6, 0.6, 3)],
        "two": [(15, 0.4, 0.4, 0), (25, 0.4, 0.0, 1)],
    }
    plotting.blocks_along_stream(panel, runs, "title")
    spans = [(patch.get_x(), patch.get_x() + patch.get_width()) for patch in panel.patches]
    assert spans == [(0, 10), (20, 30), (15, 25)]
    colours = [line.get_color() for line in panel.lines[:2]]
    assert [line.get_color() for line in panel.lines[2:4]] == colours
    assert panel.lines[3].get_xydata().tolist() == [[15, 40], [25, 0]]
    assert [text.get_text() for text in panel.get_legend().get_texts()][2:] == ["each block", "change found"]


@pytest.mark.parametrize("n_panels", [1, 2])
def test_a_shared_legend_is_no_wider_than_its_figure(n_panels):
    figure, panels = plotting.new_figure(n_panels)
    for name in ("IK-OGD", "IK-OGD, mapping apart", "IK-OGD(naive)", "IK-OGD(naive), mapping apart"):
        panels[0].plot([0, 1], label=name)
    plotting.shared_legend(figure, panels)
    figure.draw_without_rendering()
    extent = figure.legends[0].get_window_extent()
    assert 0 <= extent.x0 < extent.x1 <= figure.bbox.width


def test_a_kernel_has_the_colour_of_its_learner():
    colours = plotting.COLOURS
    assert colours["Isolation Kernel, trees, capped"] == colours["IK_i-OGD"]
    assert colours["Isolation Kernel, trees"] == colours["IK_i-OGD, uncapped"]
    assert colours["Isolation Kernel, Voronoi"] == colours["IK_a-OGD"]


# -- displays


def halves(n=200):
    """Return rows of two columns of different scales, and the sign of the first column as a class."""
    X = np.random.default_rng(0).uniform(-1, 1, size=(n, 2)) * [1, 1000]
    return X, np.where(X[:, 0] < 0, "left", "right")


def fitted(X, y):
    return IKOGDClassifier(n_cells=4, random_state=0).fit(X, y)


def draw_regions(X, y, rows=None, **options):
    """Draw the regions of a model fitted to rows, with other rows if they are given."""
    rows = (X, y) if rows is None else rows
    return plotting.DecisionRegionsDisplay.from_estimator(fitted(X, y), *rows, **options)


def grid_of(display):
    return np.stack([display.xx0.ravel(), display.xx1.ravel()], axis=1)


def test_regions_are_the_predictions_of_the_model_and_span_the_rows():
    X, y = halves()
    display = draw_regions(X, y, grid_resolution=30)
    grid = grid_of(display)
    np.testing.assert_array_equal(display.classes[display.response.ravel()], fitted(X, y).predict(grid))
    assert (grid.min(axis=0) < X.min(axis=0)).all()
    assert (grid.max(axis=0) > X.max(axis=0)).all()
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == ["left", "right"]


def test_classes_differ_in_colour_and_marker():
    X = np.random.default_rng(0).random((90, 2))
    drawn = draw_regions(X, np.arange(90) % 9, grid_resolution=5).ax_.collections[1:]
    assert len(drawn) == 9
    assert len({(tuple(c.get_facecolor()[0]), c.get_paths()[0].vertices.tobytes()) for c in drawn}) == 9


def test_rows_without_labels_are_black_dots():
    X, y = halves()
    display = draw_regions(X, y, rows=(X,))
    assert display.ax_.get_legend() is None
    assert display.ax_.collections[-1].get_offsets().shape == X.shape


def test_a_display_can_be_drawn_again_elsewhere():
    figure, (first, second) = plotting.new_figure(2)
    display = draw_regions(*halves(), ax=first)
    assert display.figure_ is figure
    assert display.plot(second).ax_ is second
    assert len(first.collections) == len(second.collections)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_the_columns_of_a_data_frame_name_the_axes(frame):
    X, y = halves()
    table = frame({"a": X[:, 0], "b": X[:, 1]})
    display = draw_regions(table, y, ylabel="height")
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("a", "height")
    kernel = fitted(table, y).kernel_
    contours = plotting.KernelContoursDisplay.from_kernel(kernel, table, (0, 0), grid_resolution=5)
    assert (contours.ax_.get_xlabel(), contours.ax_.get_ylabel()) == ("a", "b")


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_contours_are_the_values_of_the_kernel(form):
    X, _ = halves()
    kernel = IsolationKernel("voronoi", 50, 8, random_state=0).fit(X)
    display = plotting.KernelContoursDisplay.from_kernel(kernel, form(X), [0.1, 200], grid_resolution=20)
    similarity = kernel.similarity(grid_of(display), [[0.1, 200]])
    np.testing.assert_array_equal(display.values.ravel(), similarity[:, 0])
    assert display.point == (0.1, 200)


def test_wrong_arguments_are_errors():
    X, y = halves()
    with pytest.raises(ValueError, match=r"X must have rows of 2 columns, .*; got shape \(200, 3\)"):
        draw_regions(X, y, rows=(np.c_[X, X[:, :1]],))
    with pytest.raises(ValueError, match="estimator must be a fitted classifier; got IKOGDRegressor"):
        plotting.DecisionRegionsDisplay.from_estimator(IKOGDRegressor(n_cells=4).fit(X, X[:, 0]), X)
    with pytest.raises(ValueError, match=r"point must be two numbers; got \(1, 2, 3\)"):
        plotting.KernelContoursDisplay.from_kernel(fitted(X, y).kernel_, X, (1, 2, 3))


def test_a_constant_column_has_an_axis_of_length_one():
    X, y = halves()
    X[:, 1] = 3
    display = draw_regions(X, y)
    assert (display.xx1.min(), display.xx1.max()) == (2.5, 3.5)
