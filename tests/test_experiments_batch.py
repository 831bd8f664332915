"""The experiments that train once and test once: batch and effect-of-t."""

from __future__ import annotations

from dataclasses import replace

import pytest
from threadpoolctl import threadpool_limits

from isokern.experiments import settings
from isokern.experiments.experiment import Plan
from isokern.experiments.methods import METHODS
from isokern.experiments.paper import batch, effect_of_t
from tiny_datasets import column, lines, measured, write_tiny


def result(dataset, method, accuracy=0.9, seconds=1.0, **more):
    return {"dataset": dataset, "source": dataset, "seed": 0, "method": method, "accuracy": accuracy} | {
        "seconds": seconds,
        **more,
    }


@pytest.fixture(scope="module")
def plan(tmp_path_factory):
    """Return a plan for a9a and a stand-in of rcv1.binary, both tiny."""
    # On a busy machine the threads of matrix products wait for each other longer than they work.
    with pytest.MonkeyPatch.context() as patch, threadpool_limits(1, user_api="blas"):
        folder = write_tiny(patch, tmp_path_factory.mktemp("data"), "a9a", "rcv1-subset")
        yield Plan(folder=folder, datasets=("rcv1.binary", "epsilon", "a9a"))


# batch


@pytest.fixture(scope="module")
def batch_records(plan):
    return measured(batch.EXPERIMENT, plan)


def test_every_method_learns_what_no_line_divides_and_the_table_has_it_beside_the_paper_s(plan, batch_records):
    assert {(record["dataset"], record["method"]) for record in batch_records} == {
        (dataset, method) for dataset in ("rcv1.binary", "a9a") for method in METHODS
    }
    by_method = {record["method"]: record for record in batch_records if record["dataset"] == "a9a"}
    for method in ("OGD", "OGD, lambda from data", "IK_i-OGD", "IK_i-OGD, uncapped", "IK_a-OGD"):
        assert by_method[method]["accuracy"] > 0.8
    assert all(record["seconds"] > 0 and record["cpu_seconds"] > 0 for record in batch_records)

    table = batch.EXPERIMENT.table(batch_records, plan)
    shown = lines(table)
    assert shown["a9a", "accuracy"]["IK_a-OGD"] == by_method["IK_a-OGD"]["accuracy"]
    assert shown["a9a", "accuracy"]["IK_a-OGD, paper"] == 0.84
    assert shown["a9a", "seconds"]["AdaRaker, paper"] == 308
    assert shown["rcv1.binary (rcv1-subset)", "accuracy"]["OGD, paper"] == 0.48
    assert shown["epsilon (not at hand)", "accuracy"]["OGD, paper"] == 0.88
    assert shown["epsilon (not at hand)", "accuracy"]["OGD"] is None
    assert table.columns.index("OGD, paper") == table.columns.index("OGD") + 1
    assert any("rcv1-subset" in note and "not the paper's file" in note for note in table.notes)


def test_the_number_of_cells_is_one_that_the_training_folds_have_rows_for(batch_records):
    chosen = {r["method"]: r["chosen"] for r in batch_records if r["dataset"] == "a9a"}
    assert chosen["IK_a-OGD"] in (4, 32, 256)
    assert chosen["OGD"] in settings.N_CELLS_SEARCHED["quick"]
    assert chosen["OGD, lambda from data"] is None
    assert chosen["AdaRaker"] == 5e-4


def test_adaraker_is_left_out_at_quick_scale_where_columns_are_too_many_and_the_table_says_so(monkeypatch, plan):
    monkeypatch.setattr(settings, "ADARAKER_QUICK_COLUMNS", 2)
    cell = {"dataset": "a9a", "source": "a9a", "seed": 0, "method": "AdaRaker"}
    assert cell in batch.EXPERIMENT.cells(plan)
    record = cell | batch.EXPERIMENT.measure(cell, plan)
    assert record["left_out"] == "at quick scale it takes no more than 2 columns, and there are 3"
    table = batch.EXPERIMENT.table([record, record | {"seed": 1}], plan)
    assert lines(table)["a9a", "accuracy"]["AdaRaker"] == lines(table)["a9a", "seconds"]["AdaRaker"] == "left out"
    assert table.notes.count(f"AdaRaker on a9a is left out: {record['left_out']}.") == 1
    assert batch.why_left_out(cell | {"method": "NOGD"}, plan) is None
    assert batch.why_left_out(cell, replace(plan, scale="full")) is None


def test_seeds_are_shown_as_mean_and_spread(plan):
    records = [result("a9a", "NOGD", 0.8, 1.0), result("a9a", "NOGD", 0.9, 3.0)]
    table = batch.EXPERIMENT.table(records, plan)
    row = column(table, "data set").index("a9a")
    assert column(table, "NOGD")[row] == ".850 (.800–.900)"
    assert column(table, "NOGD")[row + 1] == "2.00 (1.00–3.00)"


def test_a_cell_that_was_stopped_shows_its_limit(plan):
    stopped = {"dataset": "a9a", "method": "OGD", "seed": 0, "stopped": "time limit of 120 s"}
    failed = {"dataset": "a9a", "method": "NOGD", "seed": 0, "stopped": "memory ran out"}
    table = batch.EXPERIMENT.table([stopped, failed], plan)
    row = column(table, "data set").index("a9a")
    assert column(table, "OGD")[row : row + 2] == ["-", "> 120 s"]
    assert column(table, "NOGD")[row : row + 2] == ["-", "-"]


@pytest.mark.parametrize(
    ("voronoi", "nogd", "trees", "ogd_seconds", "expected"),
    [
        (0.90, 0.85, 0.88, 50.0, [True, True, True]),
        (0.84, 0.85, 0.85, 0.5, [False, False, False]),
        (0.846, 0.85, 0.85, 50.0, [True, True, True]),  # within what the paper's two decimals can tell
        (0.90, 0.85, 0.91, 50.0, [True, True, False]),
    ],
)
def test_the_verdicts_of_batch_follow_the_numbers(voronoi, nogd, trees, ogd_seconds, expected):
    good = [result("mnist", "IK_a-OGD"), result("mnist", "NOGD", 0.8), result("mnist", "IK_i-OGD", 0.9, 1.0)]
    records = [
        *good,
        result("mnist", "OGD", 0.9, 20.0),
        result("a9a", "IK_a-OGD", voronoi),
        result("a9a", "NOGD", nogd),
        result("a9a", "IK_i-OGD", trees, 1.0),
        result("a9a", "OGD", 0.8, ogd_seconds),
    ]
    against_nogd, from_data, time, against_trees = batch.EXPERIMENT.verdicts(records)
    assert [against_nogd.holds, time.holds, against_trees.holds] == expected
    assert from_data.holds is None
    assert "mnist (20 times, 10^1.3)" in time.found


def test_ogd_that_was_stopped_at_the_limit_was_slower():
    stopped = {"dataset": "a9a", "method": "OGD", "seed": 0, "stopped": "time limit of 120 s"}
    _, _, time, _ = batch.EXPERIMENT.verdicts([result("a9a", "IK_i-OGD"), stopped])
    assert time.holds
    _, _, time, _ = batch.EXPERIMENT.verdicts([result("a9a", "IK_i-OGD"), stopped | {"stopped": "memory ran out"}])
    assert time.holds is None


def test_rivals_that_are_better_than_published_are_named(plan):
    records = [result("a9a", "AdaRaker", 0.838), result("a9a", "NOGD", 0.842)]
    records.append(result("rcv1.binary", "NOGD", 0.9, source="rcv1-subset"))  # not the paper's file
    said = [note for note in batch.EXPERIMENT.table(records, plan).notes if "more accurate" in note]
    assert said == ["AdaRaker: more accurate here than AdaRaker as published, on a9a (.838 against .79)."]


# effect-of-t


def test_more_partitionings_and_more_landmarks_are_measured_at_every_size(monkeypatch, tmp_path):
    monkeypatch.setitem(settings.EFFECT_OF_T_SIZES, "quick", (2, 40))
    plan = Plan(folder=write_tiny(monkeypatch, tmp_path, "covertype"))
    records = measured(effect_of_t.EXPERIMENT, plan)
    assert len(records) == 4 * 2
    found = {(r["method"], r["size"]): r["accuracy"] for r in records}
    assert found["IK_i-OGD", 40] > 0.7
    assert found["IK_i-OGD", 40] > found["IK_i-OGD", 2]
    table = effect_of_t.EXPERIMENT.table(records, plan)
    assert column(table, "data set") == [
        "epsilon (not at hand)",
        "smallNORB (not at hand)",
        "mnist (not at hand)",
        *["covertype"] * 2,
    ]
    assert column(table, "t or b")[3:] == [2, 40]
    assert column(table, "NOGD: accuracy")[3:] == [found["NOGD", size] for size in (2, 40)]


@pytest.mark.parametrize(
    ("accuracies", "nogd", "seconds", "expected"),
    [
        ((0.7, 0.9), 0.8, (1.0, 5.0), [True, True, True]),
        ((0.9, 0.9), 0.9, (1.0, 10.0), [False, False, False]),
    ],
)
def test_the_verdicts_of_effect_of_t_follow_the_numbers(accuracies, nogd, seconds, expected):
    records = [
        result("mnist", method, accuracy, time, size=size)
        for size, accuracy, time in zip((100, 1000), accuracies, seconds, strict=True)
        for method in ("IK_i-OGD",)
    ]
    records += [result("mnist", "NOGD", accuracy, size=size) for size, accuracy in ((100, 0.5), (1000, nogd))]
    assert [verdict.holds for verdict in effect_of_t.EXPERIMENT.verdicts(records)] == expected


def test_effect_of_t_draws_two_panels_for_each_data_set():
    records = [
        result(dataset, method, size=size)
        for dataset in ("mnist", "covertype")
        for method in ("IK_i-OGD", "NOGD")
        for size in (100, 1000)
    ]
    figure = effect_of_t.EXPERIMENT.draw(records)
    assert [len(panel.lines) for panel in figure.axes] == [2] * 4
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["IK_i-OGD", "NOGD"]
