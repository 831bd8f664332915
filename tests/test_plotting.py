"""Figures from numbers."""

from __future__ import annotations

import pytest

from isokern import plotting


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
