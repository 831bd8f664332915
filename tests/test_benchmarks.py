"""The benchmarks' arithmetic, without running them; no peer is needed."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
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
    import scaling
    import scaling_work
finally:
    sys.path.remove(str(FOLDER))

SHARE = {"rate": 1.5e9, "peak": 6e9, "share": 0.25, "unit": "visits"}


def a_comparison(**changes):
    turns = [(2.0, 9.0), (1.0, 8.0), (3.0, 6.0)]
    return {**peers.summary(turns), "work": "map", "against": "peer", "aim": 6, "note": "", "peak": SHARE, **changes}


def a_growth(**changes):
    points = [(10, 0.1), (100, 1.0), (1000, 20.0)]
    return {"cost": "seconds", "against": "n", "work": "map", "points": points, "exponent": 1.301, **changes}


# Exponents


@pytest.mark.parametrize("power", [-1.0, 0.0, 0.5, 2.0])
def test_the_exponent_of_a_power_is_that_power(power):
    points = [(x, 3.0 * x**power) for x in (1, 3, 10, 32, 100, 316)]
    assert scaling.exponent(points) == pytest.approx(power, abs=1e-12)


def test_the_exponent_looks_at_the_upper_decade_alone():
    constant_at_first = [(1, 7.0), (10, 7.0), (99, 7.0), (1000, 1000.0), (3000, 3000.0), (10_000, 10_000.0)]
    assert scaling.exponent(constant_at_first) == pytest.approx(1.0)


def test_there_is_no_exponent_of_one_point():
    assert scaling.exponent([(1, 2.0)]) is None


def test_every_sweep_covers_two_decades_with_enough_points_above_for_a_line():
    for name in ("n", "d", "t", "psi"):
        sizes = np.array(scaling.FULL[name])
        assert sizes[-1] / sizes[0] >= 100
        assert np.sum(sizes >= 0.099 * sizes[-1]) >= 3


# Tables


def test_a_ratio_is_that_of_the_best_times_and_its_range_that_of_the_turns():
    found = peers.summary([(2.0, 9.0), (1.0, 8.0), (3.0, 6.0)])
    assert found == {"ours": 1.0, "theirs": 6.0, "ratio": 6.0, "lowest": 2.0, "highest": 8.0}


def test_a_line_of_the_peers_has_a_value_for_each_column():
    line = peers.line(a_comparison())
    assert line == "| map | peer | 1.000 | 6.000 | 6 (2–8) | 6 | 1.5 G visits | 25.0% of 6 |"
    assert line.count("|") == len(peers.COLUMNS) + 1


def test_what_misses_its_aim_is_marked():
    assert "**short**" in peers.line(a_comparison(aim=6.1))


def test_work_without_counted_operations_leaves_their_columns_empty():
    assert peers.line(a_comparison(peak=None)).endswith("| 6 |  |  |")


def test_a_line_of_the_peers_compares_with_another_commit():
    assert peers.line(a_comparison(), a_comparison(ours=2.0, ratio=3.0)).endswith(
        "| 2.000 s, ratio 3; now 2.00 times as fast |"
    )


def test_a_line_of_growth_tells_the_ends_and_the_exponent():
    assert scaling.line(a_growth()) == "| map | n = 10 – 1,000 | 0.1 – 20 seconds | 1.30 |"


def test_a_line_of_growth_compares_the_largest_size_with_another_commit():
    assert scaling.line(a_growth(), a_growth(points=[[1000, 40.0]])).endswith("| 40 seconds, 0.50 times now |")
    assert scaling.line(a_growth(), a_growth(points=[[999, 40.0]])).endswith("| other sizes |")


# Records


def test_rows_come_back_from_the_file_they_were_kept_in(tmp_path):
    rows = [a_comparison(), a_comparison(against="another")]
    page = measuring.Page()
    page.add(measuring.table_head("a", "b"))
    page.save(tmp_path / "kept", {**measuring.environment(), "rows": rows})
    kept = measuring.kept_rows(tmp_path / "kept.json", peers.KEYS)
    assert kept == {("map", "peer"): rows[0], ("map", "another"): rows[1]}
    assert (tmp_path / "kept.md").read_text() == "| a | b |\n|---|---|\n"


def test_the_points_of_a_sweep_come_back_and_compare(tmp_path):
    measuring.Page().save(tmp_path / "kept", {"rows": [a_growth()]})
    (kept,) = measuring.kept_rows(tmp_path / "kept.json", scaling.KEYS).values()
    assert scaling.line(a_growth(), kept).endswith("| 20 seconds, 1.00 times now |")


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


def test_products_are_those_of_all_rows_with_all_distinct_points():
    X = np.random.default_rng(0).normal(size=(30, 4))
    cells = IsolationKernel("voronoi", 10, 20, random_state=0).fit(X).map_.partitionings
    n_points = len(np.unique(cells.samples))
    assert peak.n_products(cells, X[:7]) == 7 * n_points * 4


def test_products_of_sparse_rows_are_those_of_values_in_the_same_column():
    X = sparse.random(30, 50, density=0.1, format="csr", random_state=0)
    cells = IsolationKernel("voronoi", 10, 29, random_state=0).fit(X).map_.partitionings
    assert len(np.unique(cells.samples)) == 30
    has = (X.toarray() != 0).astype(int)
    assert peak.n_products(cells, X) == (has @ has.T).sum()


# Generated rows


@pytest.mark.parametrize("d", [2, 5, 16, 500])
def test_generated_sparse_rows_have_so_many_values_in_different_columns(d):
    X = scaling_work.sparse_rows(50, d)
    X.check_format(full_check=True)
    assert X.has_canonical_format
    assert set(np.diff(X.indptr)) == {min(d, scaling_work.STORED)}


@pytest.mark.parametrize("costs", [("seconds", "megabytes"), ("seconds",)])
def test_a_picture_is_drawn_of_what_was_measured(costs, tmp_path):
    sweeps = [sweep for sweep in scaling.SWEEPS if sweep[0] in costs]
    rows = [a_growth(cost=cost, against=against, work=work) for cost, against, works in sweeps for work in works]
    scaling.draw(rows, tmp_path / "scaling.png")
    assert (tmp_path / "scaling.png").read_bytes().startswith(b"\x89PNG")
