"""Check the stream, the learners and the chart of ``isokern demo``."""

from __future__ import annotations

import io
import itertools

import numpy as np
import pytest
from rich.console import Console
from sklearn.ensemble import RandomForestClassifier

from isokern.cli import demo
from isokern.cli._chart import line_chart

RANGES = {"x_range": (0, 10), "y_range": (0.0, 1.0), "marks": {}}


@pytest.fixture(scope="module")
def race():
    """Return a short race, run to its end."""
    race = demo.Race(demo.Rings(6000))
    race.ends = list(race.run())
    return race


def test_the_classes_are_odd_and_even_rings_around_a_centre_that_jumps_and_moves():
    stream = demo.Rings(60_000)
    centres = [stream._centre(row) for row in (0, 19_000, 20_000, 39_000, 40_000, 50_000, 59_000)]
    assert centres[0].tolist() == centres[1].tolist() == [0.0, 0.0]
    assert centres[2].tolist() == centres[3].tolist() == centres[4].tolist() == [0.5, 0.0]
    assert np.linalg.norm(centres[5] - [0.0, 0.5]) < 1e-12
    assert 0.9 < np.linalg.norm(centres[6] - centres[4]) < 1.0
    for (X, y), centre in zip(
        itertools.islice(stream.blocks(), 50), map(stream._centre, range(0, 50_000, 1000)), strict=True
    ):
        assert ((3.0 * np.hypot(*(X - centre).T)).astype(int) % 2 == y).all()


def test_the_forest_is_trained_on_the_latest_rows():
    blocks = list(demo.Rings(8000).blocks())
    forest = demo.WindowForest(n_estimators=3, random_state=0)
    for X, y in blocks:
        forest.partial_fit(X, y, classes=[0, 1])
    rows, labels = (np.concatenate(part)[-5000:] for part in zip(*blocks, strict=True))
    expected = RandomForestClassifier(n_estimators=3, random_state=0).fit(rows, labels)
    assert np.array_equal(forest.predict_proba(blocks[0][0]), expected.predict_proba(blocks[0][0]))


def test_all_learners_predict_the_same_blocks(race):
    assert race.ends == [2000, 3000, 4000, 5000, 6000]
    assert {tuple(n for n, _ in curve) for curve in race.curves.values()} == {tuple(race.ends)}


def test_accuracies_of_the_summary_are_means_of_blocks(race):
    curve = dict(race.curves["isokern"])
    assert race.accuracy("isokern", *race.stream.parts["after the jump"]) == pytest.approx(
        (curve[3000] + curve[4000]) / 2
    )
    assert race.accuracy("isokern", 0, 6000) == pytest.approx(np.mean(list(curve.values())))


def test_a_terminal_shows_a_chart_with_the_latest_accuracies(race, monkeypatch):
    console = Console(file=io.StringIO(), force_terminal=True, width=80, height=30)
    monkeypatch.setattr(demo, "results", console)
    console.print(race.picture())
    lines = console.file.getvalue().splitlines()
    shown = "\n".join(lines)
    assert all(f"{name} {curve[-1][1]:6.1%}" in shown for name, curve in race.curves.items())
    assert "the centre jumps" in lines[-1] and "it moves on" in lines[-1]
    assert "100% ┤" in shown and "40% ┤" in shown
    assert sum("┊" in line for line in lines) > 5


# -- charts


def dots(text):
    """Return the dots of a chart without labels, by line and column."""
    lines = [line[7:] for line in text.plain.splitlines()[:-2]]
    bits = np.array([[ord(character) - 0x2800 if character != " " else 0 for character in line] for line in lines])
    places = [[0, 3], [1, 4], [2, 5], [6, 7]]  # Unicode numbers the dots of a character so
    cells = np.array([[(bits >> place) & 1 for place in row] for row in places])
    return cells.transpose(2, 0, 3, 1).reshape(4 * len(lines), -1)


def test_a_level_line_is_one_line_of_dots():
    found = dots(line_chart({"red": [(0, 0.0), (10, 0.0)]}, size=(27, 6), **RANGES))
    assert found.shape == (16, 40)
    assert found[-1].all() and not found[:-1].any()


def test_a_step_has_no_gaps():
    found = dots(line_chart({"red": [(0, 0.0), (5, 0.0), (5.01, 1.0), (10, 1.0)]}, size=(27, 6), **RANGES))
    assert found.any(axis=0).all() and found.any(axis=1).all()
    assert (found.sum(axis=0) > 1).sum() == 1


def test_a_line_ends_where_its_points_end():
    found = dots(line_chart({"red": [(2, 0.5), (4, 0.5)]}, size=(27, 6), **RANGES))
    (drawn,) = found.any(axis=0).nonzero()
    assert (drawn.min(), drawn.max()) == (8, 15)


def test_values_out_of_range_stay_in_the_chart():
    found = dots(line_chart({"red": [(0, -3.0), (10, 7.0)]}, size=(27, 6), **RANGES))
    assert found[-1, 0] and found[0, -1]


def test_the_last_line_is_seen_where_lines_meet():
    line = [(0, 0.5), (10, 0.5)]
    text = line_chart({"red": line, "blue": line}, size=(27, 6), **RANGES)
    colours = {str(span.style) for span in text.spans}
    assert "blue" in colours and "red" not in colours


def test_a_chart_without_points_has_axes_and_marks():
    text = line_chart({"red": []}, size=(27, 6), **RANGES | {"marks": {5: "here", 10: "there"}})
    *lines, axis, names = text.plain.splitlines()
    assert all(line[7:].count("┊") == 2 for line in lines)
    assert axis.strip() == "─" * 20
    assert names.split() == ["here", "there"] and len(names.rstrip()) <= 27
