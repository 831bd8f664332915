"""Test the measurements of experiments with online learners: batch, effect-of-t, online, primal-dual and dot-product.

test_experiments.py compares the tables of all experiments with those in the documentation.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from isokern import plotting
from isokern.experiments import Plan, find, settings
from isokern.experiments.measuring import Stopwatch
from isokern.experiments.methods import METHODS, choose, search_rows
from isokern.experiments.paper import streams
from isokern.experiments.plan import available
from isokern.experiments.records import Records
from tiny_datasets import column, measured, write_tiny

CELL = {"dataset": "covertype", "source": "covertype", "seed": 0}
BATCH, EFFECT_OF_T, ONLINE = find("batch"), find("effect-of-t"), find("online")
PRIMAL_DUAL, DOT_PRODUCT = find("primal-dual"), find("dot-product")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with small data sets and a stand-in."""
    # On a busy machine the threads of matrix products wait for each other longer than they work.
    with pytest.MonkeyPatch.context() as patch, threadpool_limits(1, user_api="blas"):
        yield write_tiny(patch, tmp_path_factory.mktemp("data"), "a9a", "covertype", "ijcnn1", "rcv1-subset")


@pytest.fixture
def plan(folder):
    """Return a plan for streams."""
    return Plan(folder=folder, datasets=("covertype", "epsilon"))


# -- batch


def test_batch_measures_every_method_on_every_available_data_set(folder):
    records = measured(BATCH, Plan(folder=folder, datasets=("rcv1.binary", "epsilon", "a9a")))
    assert {(record["dataset"], record["method"]) for record in records} == {
        (dataset, method) for dataset in ("rcv1.binary", "a9a") for method in METHODS
    }
    assert all(record["seconds"] > 0 for record in records)
    by_method = {record["method"]: record for record in records if record["dataset"] == "a9a"}
    for method in ("OGD", "OGD, lambda from data", "IK_i-OGD", "IK_i-OGD, uncapped", "IK_a-OGD"):
        assert by_method[method]["accuracy"] > 0.8
    chosen = {method: record["chosen"] for method, record in by_method.items()}
    assert chosen["IK_a-OGD"] in (4, 32, 256)  # not above the rows of a fold
    assert chosen["OGD"] in settings.N_CELLS_SEARCHED["quick"]
    assert (chosen["OGD, lambda from data"], chosen["AdaRaker"]) == (None, 5e-4)


def test_adaraker_is_left_out_at_quick_scale_if_there_are_too_many_columns(monkeypatch, folder):
    monkeypatch.setattr(settings, "ADARAKER_QUICK_COLUMNS", 2)
    plan = Plan(folder=folder, datasets=("a9a",))
    assert [cell["method"] for cell in BATCH.cells(plan)] == [name for name in METHODS if name != "AdaRaker"]
    assert any("left out on data sets with more than 2 columns" in note for note in BATCH.table([], plan).notes)
    assert [cell["method"] for cell in BATCH.cells(replace(plan, scale="full"))] == list(METHODS)


def test_psi_is_searched_on_all_rows_at_full_scale_except_by_methods_that_take_long(folder):
    cells = BATCH.cells(Plan(scale="full", folder=folder, datasets=("a9a",)))
    marked = {cell["method"] for cell in cells if cell.get("search") == "all rows"}
    assert marked == {"IK_i-OGD", "IK_i-OGD, uncapped", "IK_a-OGD", "NOGD"}
    X, y = np.zeros((6_000, 1)), np.zeros(6_000)
    full = Plan(scale="full")
    assert len(search_rows(X, y, full)[1]) == 6_000
    assert len(search_rows(X, y, full, is_slow=True)[1]) == 5_120
    assert len(search_rows(X, y, Plan())[1]) == 1_000


def test_generated_sets_are_measured_at_full_scale_only_and_without_a_search():
    assert set(settings.GENERATED) <= set(available(Plan(scale="full"), settings.BATCH_DATASETS))
    assert set(settings.GENERATED).isdisjoint(available(Plan(), settings.BATCH_DATASETS))
    cell = {"dataset": "epsilon-generated", "seed": 0}
    assert choose("IK_a-OGD", None, None, Plan(scale="full"), cell) == ({"n_cells": settings.GENERATED_CELLS}, {})


def test_generated_sets_have_one_seed(monkeypatch):
    found = {name: name for name in ("mnist", "epsilon-generated")}
    monkeypatch.setattr("isokern.experiments.plan.available", lambda plan, datasets: found)
    n_cells = Counter(cell["dataset"] for cell in EFFECT_OF_T.cells(Plan(scale="full", n_seeds=3)))
    assert n_cells["mnist"] == 3 * n_cells["epsilon-generated"] > 0


def test_generated_sets_count_for_claims_about_costs_only():
    records = [
        {"dataset": "epsilon-generated", "source": "epsilon-generated", "seed": 0, "method": name} | measured
        for name, measured in {
            "OGD": {"seconds": 50.0, "stopped_at_row": 5, "n_rows": 10, "expected_seconds": 1000.0},
            "NOGD": {"seconds": 1.0, "accuracy": 0.9},
            "IK_i-OGD": {"seconds": 1.0, "accuracy": 0.5},
            "IK_a-OGD": {"seconds": 1.0, "accuracy": 0.5},
        }.items()
    ]
    verdicts = BATCH.verdicts(records)
    assert [verdict.holds for verdict in verdicts] == [None, None, None, None, True, None]
    assert "extrapolated, 1e+03 times, 10^3.0" in verdicts[4].found


# -- effect-of-t


def test_accuracy_is_measured_at_every_size_and_drawn_in_two_panels(monkeypatch, folder):
    monkeypatch.setitem(settings.EFFECT_OF_T_SIZES, "quick", (2, 40))
    records = measured(EFFECT_OF_T, Plan(folder=folder))
    found = {(record["method"], record["size"]): record["accuracy"] for record in records}
    assert len(records) == len(found) == 4 * 2
    assert found["IK_i-OGD", 40] > max(0.7, found["IK_i-OGD", 2])
    figure = EFFECT_OF_T.draw(records)
    assert [len(panel.lines) for panel in figure.axes] == [4, 4]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == list(dict.fromkeys(name for name, _ in found))


# -- streams


def test_a_stream_has_every_row_once_in_an_order_of_its_own(plan):
    stream, other = (streams.load_stream(CELL | {"seed": seed}, plan) for seed in (0, 1))
    assert len(stream.y) == 600
    assert not np.array_equal(stream.X, other.X)
    np.testing.assert_array_equal(np.sort(stream.X[:, 0]), np.sort(other.X[:, 0]))
    blocks = list(stream.blocks())
    assert sum(len(y) for _, y in blocks) + stream.n_initial == 600
    assert len(blocks) >= settings.MIN_BLOCKS


def test_the_initial_set_is_the_training_part_only_for_the_paper_s_own_files_at_full_size(folder):
    full, quick = Plan(scale="full", folder=folder), Plan(folder=folder)
    stand_in = CELL | {"dataset": "rcv1.binary", "source": "rcv1-subset"}
    assert streams.load_stream(CELL, full).n_initial == 400
    assert streams.load_stream(CELL, quick).n_initial == streams.load_stream(stand_in, full).n_initial == 120
    assert streams.shuffled_rows(stand_in, quick).n_initial == 400


# -- online


def test_every_method_follows_the_stream_to_its_end(plan):
    records = measured(ONLINE, plan)
    assert [record["method"] for record in records] == [name for name in METHODS if name != "AdaRaker"]
    for record in records:
        rows, accuracies, seconds = zip(*record["curve"], strict=True)
        assert rows[-1] == record["n_stream"] == 480
        assert accuracies[-1] == record["accuracy"]
        assert list(seconds) == sorted(seconds)
        assert record["stopped_at_row"] is None
    found = {record["method"]: record["accuracy"] for record in records}
    assert min(found["IK_i-OGD"], found["IK_a-OGD"], found["OGD"]) > 0.7
    figure = ONLINE.draw(records)
    assert [panel.get_title() for panel in figure.axes] == ["Accuracy: covertype", "Time: covertype"]
    assert [len(panel.lines) for panel in figure.axes] == [len(records)] * 2


@pytest.mark.parametrize(("n_looks", "n_rows"), [(3, 48), (0, 0)])
def test_a_run_that_reaches_the_time_limit_keeps_what_it_measured(monkeypatch, plan, n_looks, n_rows):
    looks = iter([False] * n_looks)  # then time is over
    monkeypatch.setattr(Stopwatch, "has_passed", lambda watch, limit: next(looks, True))
    cell = CELL | {"method": "OGD"}
    record = Records(None, plan).add(cell, ONLINE.measure(cell, plan))
    assert (record["stopped_at_row"], record["accuracy"], len(record["curve"])) == (n_rows, None, n_looks)
    table = ONLINE.table([record], plan)
    accuracy, seconds = column(table, "OGD")[1:3]
    assert accuracy == "-"
    assert re.fullmatch(r"> 120 s \(~.+ s\)", seconds)  # extrapolated
    assert column(table, "OGD")[5] == n_rows  # shown although the run was stopped
    assert f"stopped at the time limit after {n_rows} of 480 rows; all would take about" in table.notes[-1]
    _, line = ONLINE.draw([record]).axes[1].get_xlabel().split("\n")
    assert line == ("OGD: stopped at row 48" if n_rows else "OGD: stopped before the stream")


def test_the_figure_names_a_run_that_was_killed():
    ended = {**CELL, "method": "IK_i-OGD", "curve": [[10, 0.5, 1.0], [20, 0.6, 2.0]], "stopped_at_row": None}
    panel = ONLINE.draw([{**CELL, "method": "OGD", "stopped": "time limit of 120 s"}, ended]).axes[1]
    assert panel.get_xlabel().split("\n")[1:] == ["OGD: stopped before the stream"]
    assert len(panel.lines) == 1


def test_a_rival_stops_at_the_time_limit_within_the_initial_set(monkeypatch, plan):
    monkeypatch.setattr(settings, "BLOCK_ROWS", 50)
    monkeypatch.setattr(Stopwatch, "has_passed", lambda watch, limit: True)
    assert ONLINE.measure(CELL | {"method": "NOGD"}, plan)["n_support"] <= 50


def test_curves_are_thinned_but_keep_their_last_point():
    points = [[k, 0.5, 0.1] for k in range(1, 1001)]
    thinned = streams.thinned(points)
    assert len(thinned) == settings.CURVE_POINTS
    assert thinned[-1] == points[-1]
    assert streams.thinned(points[:30]) == points[:30]
    assert streams.thinned([]) == []


def test_growth_compares_the_fastest_blocks_of_the_first_and_the_last_tenth():
    assert streams.growth([4.0, 2.0, *[9.0] * 16, 6.0, 5.0]) == 2.5
    assert streams.growth([2.0, 3.0]) == 1.5
    assert streams.growth([]) is None


# -- primal-dual


def test_both_forms_have_the_same_support_vectors_and_partial_times_that_add_up(plan):
    primal, dual = records = measured(PRIMAL_DUAL, plan)
    assert primal["n_support"] == dual["n_support"] > 50
    for record in records:
        parts = sum(record[f"{part}_seconds"] for part in ("map", "predict", "learn"))
        assert record["seconds"] == pytest.approx(parts)
        assert 0 < record["share"] < 1
        assert record["n_rows"] == 600


def test_a_dual_form_that_reaches_the_time_limit_records_its_row(monkeypatch, plan):
    monkeypatch.setattr(Stopwatch, "has_passed", lambda watch, limit: True)
    record = PRIMAL_DUAL.measure(CELL | {"method": "IK-OGD(dual)"}, plan)
    assert record["stopped_at_row"] == 16  # the first block


# -- dot-product


def test_both_dot_products_are_timed_for_every_psi_up_to_the_rows_of_the_initial_set(plan):
    records = measured(DOT_PRODUCT, plan)
    forms = ("IK-OGD", "IK-OGD(naive)")
    assert [(r["psi"], r["method"]) for r in records] == [(psi, form) for psi in (4, 16, 64, 256) for form in forms]
    for record in records:
        assert record["n_stream"] == 200
        assert record["total"] == pytest.approx(record["map"] + record["learn"])
        assert record["total"] == pytest.approx(1e6 * record["seconds"] / 200)
    (panel,) = DOT_PRODUCT.draw(records).axes
    assert [len(line.get_xdata()) for line in panel.lines] == [4] * 4


# -- figures


def test_every_method_has_a_colour_and_lines_of_one_figure_look_different():
    looks = [tuple(plotting.style(name).values()) for name in METHODS]
    assert set(METHODS) <= set(plotting.COLOURS)
    assert len(set(looks)) == len(looks)
