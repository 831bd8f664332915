"""Test the benchmarks' arithmetic and tables, without running them; no peer is needed."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from isokern import IsolationKernel

FOLDER = Path(__file__).parents[1] / "benchmarks"
if not FOLDER.exists():
    pytest.skip("there are no benchmarks beside the tests", allow_module_level=True)
sys.path.insert(0, str(FOLDER))
try:
    import measuring
    import peak
    import peers
    import real_tables
    import scaling
    import scaling_work
finally:
    sys.path.remove(str(FOLDER))

PEAK = {"rate": 1.5e9, "peak": 6e9, "share": 0.25, "unit": "visits"}
SUMMARY = {"ours": 1.0, "theirs": 6.0, "ratio": 6.0, "lowest": 2.0, "highest": 8.0}
COMPARISON = {**SUMMARY, "work": "map", "against": "peer", "aim": 6, "note": "", "peak": PEAK}
POINTS = [(10, 0.1), (100, 1.0), (1000, 20.0)]
GROWTH = {"cost": "seconds", "against": "n", "work": "map", "points": POINTS, "exponent": 1.301}


# Exponents


@pytest.mark.parametrize("power", [-1.0, 0.0, 0.5, 2.0])
def test_the_exponent_of_a_power_law_is_its_power(power):
    points = [(x, 3.0 * x**power) for x in (1, 3, 10, 32, 100, 316)]
    assert scaling.exponent(points) == pytest.approx(power, abs=1e-12)


def test_the_exponent_is_that_of_the_upper_decade():
    constant_at_first = [(1, 7.0), (10, 7.0), (99, 7.0), (1000, 1000.0), (3000, 3000.0), (10_000, 10_000.0)]
    assert scaling.exponent(constant_at_first) == pytest.approx(1.0)
    assert scaling.exponent([(1, 2.0)]) is None


@pytest.mark.parametrize("name", ["n", "d", "t", "psi"])
def test_every_sweep_covers_two_decades_with_three_points_in_the_upper_one(name):
    sizes = np.array(scaling.FULL[name])
    assert sizes[-1] / sizes[0] >= 100
    assert np.sum(sizes >= 0.099 * sizes[-1]) >= 3


# Tables and records


def test_a_ratio_is_that_of_the_best_times_and_its_range_that_of_the_turns():
    assert peers.summary([(2.0, 9.0), (1.0, 8.0), (3.0, 6.0)]) == SUMMARY


PEER_LINES = [
    ({}, None, "| map | peer | 1.000 | 6.000 | 6 (2–8) | 6 | 1.5 G visits | 25.0% of 6 |"),
    ({"aim": 6.1}, None, "| map | peer | 1.000 | 6.000 | 6 (2–8) **short** | 6.1 | 1.5 G visits | 25.0% of 6 |"),
    ({"peak": None}, None, "| map | peer | 1.000 | 6.000 | 6 (2–8) | 6 |  |  |"),
    ({}, {"ours": 2.0, "ratio": 3.0}, "| 25.0% of 6 | 2.000 s, ratio 3; now 2.00 times as fast |"),
]


@pytest.mark.parametrize(("row", "before", "expected"), PEER_LINES)
def test_a_line_of_peers_has_a_value_for_each_column(row, before, expected):
    line = peers.line(COMPARISON | row, before and COMPARISON | before)
    assert line.endswith(expected)
    assert line.count("|") == len(peers.COLUMNS) + 1 + bool(before)


GROWTH_LINES = [
    (None, "| map | n = 10 – 1,000 | 0.1 – 20 seconds | 1.30 |"),
    ([[1000, 40.0]], "| 1.30 | 40 seconds, 0.50 times now |"),
    ([[999, 40.0]], "| 1.30 | other sizes |"),
]


@pytest.mark.parametrize(("points", "expected"), GROWTH_LINES)
def test_a_line_of_growth_has_the_range_the_exponent_and_the_change(points, expected):
    assert scaling.line(GROWTH, points and GROWTH | {"points": points}).endswith(expected)


def test_records_are_read_back_from_their_file(tmp_path):
    rows = [COMPARISON, COMPARISON | {"against": "another"}]
    page = measuring.Page()
    page.add(measuring.table_head("a", "b"))
    page.save(tmp_path / "kept", {**measuring.environment(), "rows": rows})
    kept = measuring.kept_rows(tmp_path / "kept.json", peers.KEYS)
    assert kept == {("map", "peer"): rows[0], ("map", "another"): rows[1]}
    assert (tmp_path / "kept.md").read_text() == "| a | b |\n|---|---|\n"
    page.save(tmp_path / "kept", {"rows": [GROWTH]})
    (kept,) = measuring.kept_rows(tmp_path / "kept.json", scaling.KEYS).values()
    assert scaling.line(GROWTH, kept).endswith("| 20 seconds, 1.00 times now |")


@pytest.mark.parametrize("costs", [("seconds", "megabytes"), ("seconds",)])
def test_a_figure_is_drawn(costs, tmp_path):
    sweeps = [sweep for sweep in scaling.SWEEPS if sweep[0] in costs]
    rows = [GROWTH | {"cost": cost, "against": size, "work": work} for cost, size, works in sweeps for work in works]
    scaling.draw(rows, tmp_path / "scaling.png")
    assert (tmp_path / "scaling.png").read_bytes().startswith(b"\x89PNG")


# Operations


def depth_by_walking(arrays, tree, x):
    node, depth = 0, 0
    while (left := arrays["left"][(here := arrays["starts"][tree] + node)]) >= 0:
        node = left + (x[arrays["column"][here]] >= arrays["split"][here])
        depth += 1
    return depth


@pytest.mark.parametrize("max_depth", [None, 3])
def test_visits_are_the_depths_that_rows_reach(max_depth):
    X = np.random.default_rng(0).normal(size=(40, 3))
    kernel = IsolationKernel("tree", 5, 16, max_depth=max_depth, random_state=0).fit(X)
    trees = kernel.map_.partitionings
    expected = sum(depth_by_walking(trees.arrays, tree, x) for tree in range(5) for x in X)
    assert peak.n_visits(trees, kernel.apply(X)) == expected


@pytest.mark.parametrize("density", [0.1, 1.0])
def test_products_are_those_of_values_of_all_rows_and_distinct_points_in_the_same_column(density):
    X = sparse.random(30, 50, density=density, format="csr", random_state=0)
    rows = X.toarray() if density == 1.0 else X
    cells = IsolationKernel("voronoi", 10, 29, random_state=0).fit(rows).map_.partitionings
    assert len(np.unique(cells.samples)) == 30
    has = (X.toarray() != 0).astype(int)
    assert peak.n_products(cells, rows[:7]) == (has[:7] @ has.T).sum()


@pytest.mark.parametrize("d", [2, 5, 16, 500])
def test_generated_sparse_rows_have_a_fixed_number_of_values_in_different_columns(d):
    X = scaling_work.sparse_rows(50, d)
    X.check_format(full_check=True)
    assert X.has_canonical_format
    assert set(np.diff(X.indptr)) == {min(d, scaling_work.STORED)}


# Tables with words and holes


def test_categories_are_those_of_the_training_rows_and_too_many_become_codes():
    train = pd.DataFrame({"word": ["b", "a", None, "c"], "number": [1.0, 2.0, 3.0, np.nan]})
    test = pd.DataFrame({"word": ["c", "unseen"], "number": [4.0, 5.0]})
    fitted, other = real_tables.with_categories(train, test)
    assert list(other["word"].cat.categories) == list(fitted["word"].cat.categories) == ["b", "a", "c"]
    assert list(other["word"].isna()) == [False, True]
    fitted, other = real_tables.with_categories(train, test, most=2)
    np.testing.assert_array_equal(fitted["word"], [0, 1, np.nan, 2])
    np.testing.assert_array_equal(other["word"], [2, np.nan])
    assert list(train["word"][:2]) == ["b", "a"]
    pd.testing.assert_series_equal(fitted["number"], train["number"])


def test_auc_of_two_classes_is_that_of_the_second_and_of_more_the_mean_over_those_met():
    y, second = np.array(["a", "b", "b", "a"]), np.array([0.1, 0.8, 0.4, 0.6])
    assert real_tables.macro_auc(y, np.stack([1 - second, second], axis=1), ["a", "b"]) == 0.75
    scores = np.array([[0.9, 0.1, 0.0], [0.2, 0.8, 0.0], [0.6, 0.4, 0.0], [0.7, 0.3, 0.0]])
    assert real_tables.macro_auc(y, scores, ["a", "b", "not met"]) == 1.0


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_the_given_share_of_values_is_removed_and_the_others_stay(share):
    X = np.arange(20_000.0).reshape(-1, 4)
    removed = real_tables.remove_values(X, share, np.random.default_rng(0))
    is_left = ~np.isnan(removed)
    assert 1 - is_left.mean() == pytest.approx(share, abs=0.02)
    np.testing.assert_array_equal(removed[is_left], X[is_left])


def test_a_line_of_words_has_means_deviations_and_times_the_native_seconds():
    native = [{"accuracy": 0.5, "auc": 0.5, "seconds": 1.0}] * 2
    runs = [{"accuracy": 0.5, "auc": 0.9, "seconds": 3.0}, {"accuracy": 0.7, "auc": 0.9, "seconds": 2.0}]
    line = real_tables.word_line({"table": "adult", "learner": "peer", "runs": runs}, native)
    assert line == "| adult | peer | 0.6000 ± 0.1000 | 0.9000 ± 0.0000 | 2.50 | 2.50 |"


def test_a_figure_of_missing_values_is_drawn(tmp_path):
    points = [(0.0, 0.9), (0.5, 0.6)]
    rows = [{"table": table, "learner": learner, "points": points} for table in "ab" for learner in "cd"]
    real_tables.draw(rows, tmp_path / "tables.png")
    assert (tmp_path / "tables.png").read_bytes().startswith(b"\x89PNG")
