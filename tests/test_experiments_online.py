"""The experiments on streams: online, primal-dual and dot-product."""

from __future__ import annotations

import numpy as np
import pytest

from isokern import plotting
from isokern.experiments import settings
from isokern.experiments.experiment import Plan
from isokern.experiments.methods import METHODS
from isokern.experiments.paper import dot_product, online, primal_dual
from isokern.experiments.stream import load_stream, shuffled_rows
from tiny_datasets import column, lines, measured, write_tiny

CELL = {"dataset": "covertype", "source": "covertype", "seed": 0}


@pytest.fixture
def folder(monkeypatch, tmp_path):
    return write_tiny(monkeypatch, tmp_path, "covertype", "rcv1-subset")


@pytest.fixture
def plan(folder):
    return Plan(folder=folder, datasets=("covertype", "epsilon"))


def result(method, dataset="covertype", **numbers):
    return CELL | {"dataset": dataset, "method": method, **numbers}


# The stream


def test_a_stream_has_every_row_once_in_an_order_of_its_own(plan):
    stream, other = load_stream(CELL, plan), load_stream(CELL | {"seed": 1}, plan)
    assert len(stream.y) == 600
    assert not np.array_equal(stream.X, other.X)
    np.testing.assert_array_equal(np.sort(stream.X[:, 0]), np.sort(other.X[:, 0]))
    assert sum(len(y) for _, y in stream.blocks()) + stream.n_initial == 600


def test_the_initial_set_is_the_training_part_only_for_the_paper_s_own_files_at_full_size(folder):
    full, quick = Plan(scale="full", folder=folder), Plan(folder=folder)
    stand_in = CELL | {"dataset": "rcv1.binary", "source": "rcv1-subset"}
    assert load_stream(CELL, full).n_initial == 400
    assert load_stream(CELL, quick).n_initial == load_stream(stand_in, full).n_initial == 120
    assert shuffled_rows(stand_in, quick).n_initial == 400


def test_blocks_are_small_enough_to_be_many(plan):
    assert len(list(load_stream(CELL, plan).blocks())) >= settings.MIN_BLOCKS


# online


def test_every_method_follows_the_stream_to_its_end(plan):
    records = measured(online.EXPERIMENT, plan)
    assert [record["method"] for record in records] == online._METHODS
    for record in records:
        rows, accuracies, seconds = zip(*record["curve"], strict=True)
        assert rows[-1] == record["n_stream"] == 480
        assert accuracies[-1] == record["accuracy"]
        assert list(seconds) == sorted(seconds)
        assert record["stopped_at_row"] is None
    found = {record["method"]: record["accuracy"] for record in records}
    assert min(found["IK_i-OGD"], found["IK_a-OGD"], found["OGD"]) > 0.7

    table = online.EXPERIMENT.table(records, plan)
    assert column(table, "data set") == ["epsilon (not at hand)", *["covertype"] * 5]
    assert column(table, "IK_a-OGD")[1] == found["IK_a-OGD"]
    figure = online.EXPERIMENT.draw(records)
    assert [panel.get_title() for panel in figure.axes] == ["Accuracy: covertype", "Time: covertype"]
    assert [len(panel.lines) for panel in figure.axes] == [len(records)] * 2


@pytest.mark.parametrize(("n_looks", "n_rows"), [(3, 48), (0, 0)])
def test_a_run_out_of_time_stops_by_itself_and_keeps_what_it_has(monkeypatch, plan, n_looks, n_rows):
    """The clock says that time is over after it was looked at so many times."""
    looks = iter([False] * n_looks)
    monkeypatch.setattr("isokern.experiments.paper.online._Run.is_over", lambda run: next(looks, True))
    cell = CELL | {"method": "OGD"}
    record = cell | online.EXPERIMENT.measure(cell, plan)
    assert record["stopped_at_row"] == n_rows
    assert record["accuracy"] is None
    assert len(record["curve"]) == n_looks
    table = online.EXPERIMENT.table([record], plan)
    assert column(table, "OGD")[1:3] == ["-", "> 120 s"]
    assert table.notes[-1].endswith(f"stopped by itself at the time limit, after {n_rows} of 480 rows.")
    _, told = online.EXPERIMENT.draw([record]).axes[1].get_xlabel().split("\n")
    assert told == ("OGD: stopped at row 48" if n_rows else "OGD: stopped before the stream")


def test_the_figure_names_a_run_that_was_ended_from_outside():
    ended = result("IK_i-OGD", curve=[[10, 0.5, 1.0], [20, 0.6, 2.0]], stopped_at_row=None)
    panel = online.EXPERIMENT.draw([result("OGD", stopped="time limit of 120 s"), ended]).axes[1]
    assert panel.get_xlabel().split("\n")[1:] == ["OGD: stopped before the stream"]
    assert len(panel.lines) == 1


def test_a_rival_may_run_out_of_time_in_the_initial_set(monkeypatch, plan):
    monkeypatch.setattr(settings, "BLOCK_ROWS", 50)
    monkeypatch.setattr("isokern.experiments.paper.online._Run.is_over", lambda run: True)
    assert online.EXPERIMENT.measure(CELL | {"method": "NOGD"}, plan)["n_support"] <= 50


def test_curves_are_thinned_and_keep_their_end():
    points = [[k, 0.5, 0.1] for k in range(1, 1001)]
    thinned = online.thinned(points)
    assert len(thinned) == settings.CURVE_POINTS
    assert thinned[-1] == points[-1]
    assert online.thinned(points[:30]) == points[:30]
    assert online.thinned([]) == []


def test_the_time_of_a_row_grows_from_the_fastest_block_of_the_first_tenth_to_that_of_the_last():
    assert online.growth([4.0, 2.0, *[9.0] * 16, 6.0, 5.0]) == 2.5
    assert online.growth([2.0, 3.0]) == 1.5
    assert online.growth([]) is None


@pytest.mark.parametrize(
    ("accuracy", "growth", "ogd_growth", "expected"),
    [(0.9, 1.1, 3.0, [True, True]), (0.7, 1.1, 1.2, [False, False]), (0.8, 2.0, 3.0, [True, False])],
)
def test_the_verdicts_of_online_follow_the_numbers(accuracy, growth, ogd_growth, expected):
    records = [
        result("IK_i-OGD", accuracy=accuracy, growth=growth),
        result("NOGD", accuracy=0.8),
        result("OGD", accuracy=None, growth=ogd_growth, stopped_at_row=5),
    ]
    against_nogd, from_data, flat = online.EXPERIMENT.verdicts(records)
    assert [against_nogd.holds, flat.holds] == expected
    assert from_data.holds is None


# primal-dual


def test_both_forms_absorb_the_same_support_vectors_and_their_parts_make_up_the_time(plan):
    primal, dual = records = measured(primal_dual.EXPERIMENT, plan)
    assert primal["n_support"] == dual["n_support"] > 50
    for record in records:
        parts = sum(record[f"{part}_seconds"] for part in ("map", "predict", "learn"))
        assert record["seconds"] == pytest.approx(parts)
        assert 0 < record["share"] < 1
    table = primal_dual.EXPERIMENT.table(records, plan)
    assert column(table, "IK-OGD(dual), paper")[:3] == [0.998, 235_966, 349_481]
    assert column(table, "IK-OGD, paper")[:3] == [0.0077, 103, 349_481]
    shown = lines(table)
    assert shown["covertype", "support vectors at the end"]["IK-OGD"] == primal["n_support"]
    assert shown["covertype", "rows in all"]["IK-OGD(dual)"] == 600


@pytest.mark.parametrize(
    ("share", "dual_share", "seconds", "stopped_at_row", "expected"),
    [
        (0.02, 0.99, 100.0, None, [True, True]),
        (0.2, 0.99, 100.0, None, [False, True]),
        (0.02, 0.8, 5.0, None, [False, False]),
        (0.02, 0.99, 100.0, 7, [True, True]),
        (0.02, 0.8, 5.0, 7, [None, None]),  # it might have reached it yet
        (0.2, 0.8, 5.0, 7, [False, None]),
    ],
)
def test_the_verdicts_of_primal_dual_follow_the_numbers(share, dual_share, seconds, stopped_at_row, expected):
    records = [
        result("IK-OGD", share=share, seconds=1.0),
        result("IK-OGD(dual)", share=dual_share, seconds=seconds, stopped_at_row=stopped_at_row),
    ]
    assert [verdict.holds for verdict in primal_dual.EXPERIMENT.verdicts(records)] == expected


def test_a_dual_form_out_of_time_says_at_which_row(monkeypatch, plan):
    monkeypatch.setattr("isokern.experiments.paper.primal_dual.Stopwatch.elapsed", 1000.0)
    record = primal_dual.EXPERIMENT.measure(CELL | {"method": "IK-OGD(dual)"}, plan)
    assert record["stopped_at_row"] == 16  # the first block


# dot-product


def test_both_dot_products_are_timed_for_every_psi_that_has_rows(plan):
    records = measured(dot_product.EXPERIMENT, plan)
    assert {(r["psi"], r["method"]) for r in records} == {
        (psi, method) for psi in (4, 16, 64, 256) for method in ("IK-OGD", "IK-OGD(naive)")
    }
    for record in records:
        assert record["n_stream"] == 200
        assert record["total"] == pytest.approx(record["map"] + record["learn"])
        assert record["total"] == pytest.approx(1e6 * record["seconds"] / 200)
    table = dot_product.EXPERIMENT.table(records, plan)
    assert column(table, "psi") == [None, 4, 16, 64, 256]
    assert column(table, "IK-OGD(naive), total")[-1] == records[-1]["total"]
    (panel,) = dot_product.EXPERIMENT.draw(records).axes
    assert [len(line.get_xdata()) for line in panel.lines] == [4] * 4


@pytest.mark.parametrize(
    ("learn", "naive", "expected"),
    [(2.0, 200.0, [True, True]), (5.0, 200.0, [True, False]), (2.0, 20.0, [False, True])],
)
def test_the_verdicts_of_dot_product_follow_the_numbers(learn, naive, expected):
    records = [
        result("IK-OGD", psi=4, total=2.0, learn=1.0),
        result("IK-OGD(naive)", psi=4, total=4.0, learn=3.0),
        result("IK-OGD", psi=4096, total=8.0, learn=learn),
        result("IK-OGD(naive)", psi=4096, total=naive, learn=naive),
        result("IK-OGD(naive)", psi=8192, stopped="time limit of 120 s"),
    ]
    verdicts = dot_product.EXPERIMENT.verdicts(records)
    assert [verdict.holds for verdict in verdicts] == expected
    assert "covertype (psi 4 to 4,096: 2 times, then " in verdicts[0].found


# Figures


def test_every_method_has_a_colour_and_lines_of_one_figure_look_different():
    looks = [tuple(plotting.style(name).values()) for name in METHODS]
    assert set(METHODS) <= set(plotting.COLOURS)
    assert len(set(looks)) == len(looks)
