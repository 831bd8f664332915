"""Figures from numbers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from isokern import IKOGDClassifier, IKOGDRegressor, IsolationKernel, plotting


@pytest.mark.parametrize(
    ("n_panels", "n_lines", "shape"), [(1, 1, (1, 1)), (3, 1, (1, 3)), (4, 2, (2, 2)), (5, 2, (2, 3))]
)
def test_a_figure_has_exactly_the_panels_asked_for_in_so_many_lines(n_panels, n_lines, shape):
    figure, panels = plotting.new_figure(n_panels, n_lines)
    assert len(panels) == len(figure.axes) == n_panels
    assert {panel.get_subplotspec().get_gridspec().get_geometry() for panel in panels} == {shape}


def test_growth_is_drawn_on_logarithmic_axes_with_the_measured_sizes_as_ticks():
    _, (panel,) = plotting.new_figure(1)
    runs = {"tree map": [(10, 1.0), (100, 8.0)], "Voronoi map": [(100, 3.0), (1000, 2.0)]}
    plotting.cost_growth(panel, runs, {name: name.upper() for name in runs}, xlabel="rows", ylabel="seconds")
    assert (panel.get_xscale(), panel.get_yscale()) == ("log", "log")
    assert [label.get_text() for label in panel.get_xticklabels()] == ["1,000", "100", "10"]
    assert [text.get_text() for text in panel.get_legend().get_texts()] == ["TREE MAP", "VORONOI MAP"]
    assert [line.get_xydata().tolist() for line in panel.lines] == [[[10, 1], [100, 8]], [[100, 3], [1000, 2]]]


@pytest.mark.parametrize("n_panels", [1, 2])
def test_a_shared_legend_is_no_wider_than_its_figure(n_panels):
    figure, panels = plotting.new_figure(n_panels)
    for name in ("IK-OGD", "IK-OGD, mapping apart", "IK-OGD(naive)", "IK-OGD(naive), mapping apart"):
        panels[0].plot([0, 1], label=name)
    plotting.shared_legend(figure, panels)
    figure.draw_without_rendering()
    extent = figure.legends[0].get_window_extent()
    assert 0 <= extent.x0 < extent.x1 <= figure.bbox.width


def test_one_kernel_has_one_colour_in_learners_and_in_pictures_of_kernels():
    colours = plotting.COLOURS
    assert colours["Isolation Kernel, trees, capped"] == colours["IK_i-OGD"]
    assert colours["Isolation Kernel, trees"] == colours["IK_i-OGD, uncapped"]
    assert colours["Isolation Kernel, Voronoi"] == colours["IK_a-OGD"]


# -- displays


def halves(n=200):
    """Return rows of two columns of different scales, and on which side of 0 the first is."""
    X = np.random.default_rng(0).uniform(-1, 1, size=(n, 2)) * [1, 1000]
    return X, np.where(X[:, 0] < 0, "left", "right")


def test_regions_are_what_the_model_predicts_and_span_the_rows():
    X, y = halves()
    model = IKOGDClassifier(n_cells=16, random_state=0).fit(X, y)
    display = plotting.DecisionRegionsDisplay.from_estimator(model, X, y, grid_resolution=30)
    grid = np.stack([display.xx0.ravel(), display.xx1.ravel()], axis=1)
    np.testing.assert_array_equal(display.classes[display.response.ravel()], model.predict(grid))
    assert (grid.min(axis=0) < X.min(axis=0)).all()
    assert (grid.max(axis=0) > X.max(axis=0)).all()
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == ["left", "right"]


def test_classes_differ_in_colour_and_mark():
    X = np.random.default_rng(0).random((90, 2))
    y = np.arange(90) % 9
    display = plotting.DecisionRegionsDisplay.from_estimator(LogisticRegression().fit(X, y), X, y, grid_resolution=5)
    drawn = display.ax_.collections[1:]
    assert len(drawn) == 9
    assert len({(tuple(c.get_facecolor()[0]), c.get_paths()[0].vertices.tobytes()) for c in drawn}) == 9


def test_rows_without_labels_are_black_dots():
    X, y = halves()
    display = plotting.DecisionRegionsDisplay.from_estimator(IKOGDClassifier(n_cells=4).fit(X, y), X)
    assert display.ax_.get_legend() is None
    assert display.ax_.collections[-1].get_offsets().shape == X.shape


def test_a_display_can_be_drawn_again_elsewhere():
    X, y = halves()
    figure, (first, second) = plotting.new_figure(2)
    display = plotting.DecisionRegionsDisplay.from_estimator(IKOGDClassifier(n_cells=4).fit(X, y), X, y, ax=first)
    assert display.figure_ is figure
    assert display.plot(second).ax_ is second
    assert len(first.collections) == len(second.collections)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_the_columns_of_a_data_frame_name_the_axes(frame):
    X, y = halves()
    table = frame({"a": X[:, 0], "b": X[:, 1]})
    model = IKOGDClassifier(n_cells=4, random_state=0).fit(table, y)
    display = plotting.DecisionRegionsDisplay.from_estimator(model, table, y, ylabel="height")
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("a", "height")
    contours = plotting.KernelContoursDisplay.from_kernel(model.kernel_, table, (0, 0), grid_resolution=5)
    assert (contours.ax_.get_xlabel(), contours.ax_.get_ylabel()) == ("a", "b")


def test_contours_are_the_kernel_s_values():
    X, _ = halves()
    kernel = IsolationKernel("voronoi", 50, 8, random_state=0).fit(X)
    for rows in (X, sparse.csr_matrix(X)):
        display = plotting.KernelContoursDisplay.from_kernel(kernel, rows, [0.1, 200], grid_resolution=20)
        grid = np.stack([display.xx0.ravel(), display.xx1.ravel()], axis=1)
        np.testing.assert_array_equal(display.values.ravel(), kernel.similarity(grid, [[0.1, 200]])[:, 0])
        assert display.point == (0.1, 200)


def test_what_cannot_be_drawn_is_an_error():
    X, y = halves()
    model = IKOGDClassifier(n_cells=4).fit(X, y)
    with pytest.raises(ValueError, match=r"X must have rows of 2 columns, .*; got shape \(200, 3\)"):
        plotting.DecisionRegionsDisplay.from_estimator(model, np.c_[X, X[:, :1]])
    with pytest.raises(ValueError, match="estimator must be a fitted classifier; got IKOGDRegressor"):
        plotting.DecisionRegionsDisplay.from_estimator(IKOGDRegressor(n_cells=4).fit(X, X[:, 0]), X)
    with pytest.raises(ValueError, match=r"point must be two numbers; got \(1, 2, 3\)"):
        plotting.KernelContoursDisplay.from_kernel(model.kernel_, X, (1, 2, 3))


def test_a_column_that_does_not_vary_has_an_axis_all_the_same():
    X, y = halves()
    X[:, 1] = 3
    display = plotting.DecisionRegionsDisplay.from_estimator(IKOGDClassifier(n_cells=4).fit(X, y), X, y)
    assert (display.xx1.min(), display.xx1.max()) == (2.5, 3.5)
