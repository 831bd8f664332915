"""Test the benchmarks' arithmetic and tables, without running them; no peer is needed."""

from __future__ import annotations

import os
import sys
from multiprocessing import Pipe
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import make_classification

from isokern import IKOGDClassifier, IsolationKernel

FOLDER = Path(__file__).parents[1] / "benchmarks"
if not FOLDER.exists():
    pytest.skip("there are no benchmarks beside the tests", allow_module_level=True)
sys.path.insert(0, str(FOLDER))
try:
    import contenders
    import datasets
    import defaults
    import defaults_page
    import generated_rows
    import guard
    import guard_work
    import measuring
    import peak
    import peers
    import real_tables
    import scaling
    import stream_data
    import stream_peers
    import streams
    import streams_page
    import svc
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


def test_missed_aims_are_listed_at_the_end_of_the_page():
    assert peers.missed_aims([COMPARISON]) == "\nAims missed on this machine: 0 of 1."
    text = peers.missed_aims([COMPARISON, COMPARISON | {"aim": 8}])
    assert text == "\nAims missed on this machine: 1 of 2.\n\n- map, against peer: 6, aim 8"


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
    X = generated_rows.sparse_rows(50, d)
    X.check_format(full_check=True)
    assert X.has_canonical_format
    assert set(np.diff(X.indptr)) == {min(d, generated_rows.STORED)}


# Two builds


GUARDED = [
    ([1.0, 1.0, 1.1, 1.2], "| 1000.0 | 1050.0 | 1.050 | 1.000–1.125 |  |"),  # as noisy as slower
    ([1.1, 1.1, 1.1, 9.0], "| 1000.0 | 1100.0 | 1.100 | 1.100–3.075 | **slower** |"),
    ([0.5, 0.5, 0.5, 1.0], "| 1000.0 | 500.0 | 0.500 | 0.500–0.625 | faster |"),
]


@pytest.mark.parametrize(("new", "expected"), GUARDED)
def test_a_build_is_slower_if_its_lower_quartile_of_turns_is(new, expected):
    times = np.stack([np.ones(4), new], axis=1)
    assert guard.line("map", times) == f"| map {expected}"


def test_two_interpreters_run_the_same_case_in_turns(capsys):
    command = [sys.executable, sys.executable, "--only", "import", "--rounds", "1", "--turns", "2"]
    status = guard.main(command)
    output = capsys.readouterr().out
    assert output.splitlines()[2].startswith("| import |")
    assert output.endswith("turns: import\n" if status else "turns: none\n")
    with guard.Worker(sys.executable) as worker, pytest.raises(RuntimeError, match="failed at: not a case"):
        worker.seconds("not a case")


def test_work_is_prepared_and_run_once_before_it_is_measured(monkeypatch):
    calls = []
    cases = {name: lambda name=name: calls.append(name) or (lambda: calls.append("run")) for name in "ab"}
    monkeypatch.setattr(guard_work, "WORK", cases)
    assert len(list(guard_work.answer("aab"))) == 3
    assert calls == ["a", "run", "run", "run", "b", "run", "run"]


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


# Defaults


GRID = [{"n_cells": psi, "schedule": "adagrad", "learning_rate": 2.0} for psi in (16, 64)]
PLAN = defaults.FULL | {"t": [25, 400]}


def learner_rows(**accuracies):
    """Return a row of peers; a learner without an accuracy has not finished."""
    metrics = {"fit": 1.0, "predict": 0.1, "log_loss": 0.2, "calibration_error": 0.01}
    found = {
        name: metrics | {"accuracy": value} if value else {"failed": "over 9 s"} for name, value in accuracies.items()
    }
    names = {"default": contenders.DEFAULT, "before": contenders.BEFORE}
    return {names.get(name, name): values for name, values in found.items()}


@pytest.mark.parametrize("n_rows", [10, 100, 1_000_000])
def test_a_grid_has_at_most_40_different_settings_whose_cells_are_at_most_the_rows(n_rows, monkeypatch):
    def with_all_scales_and_linear_term(n_scales="auto", linear="auto"):
        """Stand for a classifier that has these parameters."""

    few = defaults.settings(n_rows)
    monkeypatch.setattr(defaults, "IKOGDClassifier", with_all_scales_and_linear_term)
    grid = defaults.settings(n_rows)
    assert len(few) <= len(grid) <= 40
    assert len({str(setting) for setting in grid}) == len(grid)
    assert max(setting["n_cells"] for setting in grid) <= n_rows
    assert any({"n_scales", "linear"} <= setting.keys() for setting in grid)


def test_settings_of_the_same_cells_share_a_map_and_equal_those_that_draw_it_alone():
    X, y = make_classification(300, random_state=0)
    data = X[:200], y[:200], X[200:], y[200:]
    found = list(defaults.grid_results(GRID, data, seed=3))
    kernel = IsolationKernel(n_cells=16, random_state=3).fit(data[0])
    alone = IKOGDClassifier(kernel=kernel, schedule="adagrad", learning_rate=2.0, random_state=3)
    np.testing.assert_array_equal(found[0], alone.fit(*data[:2]).predict(data[2]) == data[3])


def test_the_best_setting_is_chosen_on_some_rows_and_measured_on_the_others():
    is_chosen_on = np.array([True, True, False, False, False, False])
    shares = np.array([[0, 1, 1, 1, 1, 1], [1, 1, 0, 1, 0.5, 1]])
    row = defaults.judged(GRID, shares, np.array([0, 0, 0, 1, 0.5, 0]), np.ones(6), is_chosen_on)
    assert row["setting"] == GRID[1]
    assert (row["default"], row["before"], row["best"], row["loss"]) == (0.375, 1.0, 0.625, 0.25)
    assert row["error"] == pytest.approx(np.std([0, 0, 0, 1]) / 2)


def test_losses_are_judged_on_large_data_sets_by_points_or_two_standard_errors():
    row = {"default": 0.9, "before": 0.8, "best": 0.92, "seeds": 3, "setting": GRID[0], "grid": GRID, "loss": 0.02}
    sizes = {"tiny": ([20, 9], 0.001), "noisy": ([2400, 600], 0.01), "clear": ([2400, 600], 0.009)}
    rows = [row | {"data": name, "rows": n, "error": error} for name, (n, error) in sizes.items()]
    lines = list(defaults_page.hindsight_lines(rows, PLAN))
    assert (
        lines[2]
        == "| tiny | 20 | 5 | 3 | 0.9000 | 0.8000 | 0.9200 | n_cells 16, adagrad, learning_rate 2.0 | 2.00 | 0.10 |"
    )
    assert lines[-2] == "- mean loss at most 0.2 points: 2.00 (12.00 before) **missed**"
    assert lines[-1].endswith("2.00 on noisy; more than that on: clear **missed**")


def test_seeds_are_averaged_and_a_slow_or_failed_run_is_the_last():
    assert defaults.averaged([{"fit": 1.0}, {"fit": 3.0}], slow=3) == {"fit": 2.0, "seeds": 2}
    assert defaults.averaged([{"fit": 2.0, "predict": 2.0}, {"fit": 0.0}], slow=3) == {
        "fit": 2.0,
        "predict": 2.0,
        "seeds": 1,
    }
    assert defaults.averaged([{"failed": "over 9 s"}, {"fit": 1.0}], slow=3) == {"failed": "over 9 s"}


def test_peers_are_said_to_be_ahead_by_the_numbers():
    accuracies = {
        "boosted": {"default": 0.9, "before": 0.9, "LinearSVC": 0.902, "LightGBM": 0.95, "HistGradientBoosting": None},
        "ours": {"default": 0.9, "before": 0.9, "LinearSVC": 0.8, "LightGBM": 0.89, "ExtraTrees": 0.91},
        "wide": {"default": 0.9, "before": 0.9, "LinearSVC": 0.91},
    }
    rows = [{"data": name, "learners": learner_rows(**values)} for name, values in accuracies.items()]
    text = "\n".join(defaults_page.peer_lines(rows, PLAN))
    assert "| boosted | HistGradientBoosting | over 9 s | – | – | – | – |" in text
    assert "| boosted | LightGBM | 0.9500 | 0.2000 | 0.0100 | 1.00 | 0.10 |" in text
    assert "The best booster is more than 0.3 points ahead of the default on: boosted (5.0)." in text
    assert "The default is more than 0.3 points ahead of all boosters on: ours (1.0)." in text
    assert "No booster was run, or finished, on: wide." in text
    assert "further below on: wide (1.0) **missed**" in text
    assert text.endswith(
        "calibration error no worse than before: mean 0.0100, was 0.0100; worse by more than 0.002 on: none"
    )


def test_gains_are_points_per_doubling_of_the_seconds():
    found = [{"accuracy": 0.8, "fit": 1.0}, {"accuracy": 0.9, "fit": 4.0}, {"accuracy": 0.89, "fit": 8.0}]
    assert defaults_page.gains(found) == pytest.approx([5.0, -1.0])


FOUND = {"accuracy": 1.0}
OUTCOMES = [
    (("loaded", FOUND, FOUND), [FOUND, FOUND]),
    (("loaded", FOUND), [FOUND, {"failed": "over 0 s"}]),
    ((), [{"failed": "failed"}]),
]


@pytest.mark.parametrize(("sent", "expected"), OUTCOMES)
def test_a_contender_is_killed_whether_it_finishes_hangs_or_dies(sent, expected, monkeypatch):
    context, process = Mock(Pipe=Pipe), Mock()

    def start(target, args):
        for message in sent:
            args[0].send(message)
        process.sender = args[0] if not sent else os.dup(args[0].fileno())  # a process that dies closes its end
        return process

    context.Process = start
    monkeypatch.setattr(contenders, "get_context", lambda method: context)
    assert list(contenders.runs("any", "any", None, 0, 2)) == expected
    assert [call[0] for call in process.method_calls] == ["start", "kill", "join"]
    if sent:
        os.close(process.sender)


def test_a_contender_runs_in_a_process_of_its_own(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    (found,) = contenders.runs(contenders.DEFAULT, "iris", None, None, 1)
    assert found.keys() == {"accuracy", "fit", "predict", *contenders.METRICS}
    assert found["accuracy"] > 0.8


@pytest.mark.parametrize("name", datasets.BUNDLED)
def test_data_without_an_official_split_are_split_80_to_20_always_in_the_same_way(name):
    X, y, X_test, y_test = datasets.load(name)
    assert len(y_test) / (len(y) + len(y_test)) == pytest.approx(0.2, abs=0.01)
    assert len(np.unique(y)) == len(np.unique(y_test))
    np.testing.assert_array_equal(X, datasets.load(name)[0])
    sample = datasets.some_rows((X, y, X_test, y_test), 50)
    assert [len(part) for part in sample] == [50, 50, len(y_test), len(y_test)]


FRAME = pd.DataFrame({"word": ["a", "b", None, "c"] * 30, "number": np.arange(120.0)})
NUMBERS = np.random.default_rng(0).normal(size=(120, 3))


@pytest.mark.parametrize("X", [FRAME, NUMBERS, sparse.csr_matrix(NUMBERS)], ids=["frame", "dense", "CSR"])
@pytest.mark.parametrize("name", [name for name in contenders.CONTENDERS if not name.startswith("LightGBM")])
def test_a_contender_learns_what_it_is_said_to_take(name, X):
    if contenders.CONTENDERS[name].takes(X):
        y = np.array(["no", "yes"] * 60)
        found = contenders.measure(name, (X, y, X[:50], y[:50]), seed=0)
        assert found["accuracy"] > 0.4
        assert ("log_loss" in found) == (name not in {"LinearSVC", "SVC", "Nystroem + SGD"})


def test_bytes_of_a_model_are_those_of_its_arrays_each_once():
    class Holder:
        def __init__(self, **parts):
            vars(self).update(parts)

    array = np.zeros(100)
    assert defaults.array_bytes(Holder(a=array, b={"c": [array[:10], (array,)]}, d=Holder(e=np.zeros(5, "u1")))) == 805


def test_a_page_has_the_measured_sections_and_their_figures(tmp_path):
    metrics = {"fit": 1.0, "predict": 0.1, "memory": 2e6, "file": 1e6}
    by_t = [{"t": 200, "accuracy": 0.9, "fit": 1.0}, {"t": 400, "accuracy": 0.92, "fit": 4.0}]
    both = (contenders.DEFAULT, contenders.BEFORE)
    rows = {
        "peers": {"data": "a9a", "learners": learner_rows(default=0.849, before=0.84, LightGBM=None)},
        "partitionings": {"data": "letter", "learners": dict.fromkeys(both, by_t)},
        "cost": {
            "data": "covertype",
            "learners": {both[0]: metrics, contenders.AT_100: metrics | {"fit": 2.5}, both[1]: metrics},
        },
    }
    record = {
        section: {**measuring.environment(), "plan": PLAN, "rows": {row["data"]: row | {"commit": "abc"}}}
        for section, row in rows.items()
    }
    page = "\n".join(defaults_page.page_of(record, tmp_path / "defaults").lines)
    assert "hindsight" not in page
    assert "- a9a at least 0.848: 0.8490\n" in page
    assert "- letter at t = 200 as high as before at t = 400: 0.9000, was 0.9200 **missed**" in page
    assert "| covertype | isokern, default at t = 100 | 2.50 | 0.100 | 2.0 | 1.0 |" in page
    assert "- covertype: fit at t = 100 at most 2 times before: 2.50 **missed**" in page
    for figure in ("defaults", "defaults-t"):
        assert f"]({figure}.png)" in page
        assert (tmp_path / f"{figure}.png").read_bytes().startswith(b"\x89PNG")


def test_a_cut_run_goes_on_and_joins_what_was_saved(tmp_path, monkeypatch, capsys):
    cost = {"fit": 1.0, "predict": 0.1, "memory": 2e6, "file": 1e6}
    measured = []

    def measure(name, plan):
        measured.append(name)
        return {
            "data": name,
            "learners": dict.fromkeys((contenders.DEFAULT, contenders.AT_100, contenders.BEFORE), cost),
        }

    monkeypatch.setitem(defaults.SECTIONS, "cost", measure)
    command = ["--only", "cost", "--save", str(tmp_path / "page")]
    defaults.main([*command, "--data", defaults_page.STREAM])
    defaults.main([*command, "--resume"])
    assert measured == [defaults_page.STREAM, *defaults.DATA["cost"][:2]]
    page = (tmp_path / "page.md").read_text()
    assert capsys.readouterr().out.endswith(page)
    assert page.count("| isokern, default |") == 3
    assert page.index("| mnist") < page.index(f"| {defaults_page.STREAM}")


def test_machines_are_measured_once_and_those_left_out_are_dashes(tmp_path, monkeypatch, capsys):
    run, measured = {"accuracy": 0.9, "fit": 2.0, "predict": 0.5}, []

    def measure(name, plan):
        measured.append(name)
        found = {"IKSVC": run, contenders.ON_MAP: run | {"accuracy": 0.88, "fit": 4.0}, "SVC": {"failed": "over 9 s"}}
        return found if name == "churn" else found | {contenders.ON_MAP: {"failed": "failed"}}

    monkeypatch.setattr(svc, "measure", measure)
    command = ["--quick", "--save", str(tmp_path / "page")]
    svc.main([*command, "--data", "iris"])
    svc.main([*command, "--resume"])
    assert measured == ["iris", "churn"]
    page = (tmp_path / "page.md").read_text()
    assert "| churn | 0.9000 | 0.8800 | over 9 s | - | - |" in page
    assert "| churn | 2.00 + 0.50 | 4.00 + 0.50 | over 9 s | - | - |" in page
    assert "- churn: +2.00 points, 0.50 times the seconds to fit." in page
    assert "- iris: not both finished." in page
    assert page.index("| churn") < page.index("| iris")
    assert capsys.readouterr().out.rstrip().endswith("not both finished.")


# Streams


@pytest.mark.parametrize("name", [name for name, source in stream_data.STREAMS.items() if "file" not in source.text])
def test_a_generated_stream_is_the_same_each_time_and_has_all_of_its_classes_in_each_quarter(name):
    stream, again = (stream_data.make(name, 4000) for _ in range(2))
    np.testing.assert_array_equal(stream.X, again.X)
    np.testing.assert_array_equal(stream.y, again.y)
    assert all(len(np.unique(part)) == stream.n_classes for part in np.split(stream.y, 4))


def test_a_saved_stream_is_read_back_with_its_levels(tmp_path):
    stream = stream_data.Stream(np.eye(3), np.array([0, 2, 1]), {1: ["tcp", "udp"]})
    stream.save(tmp_path / "stream.npz")
    again = stream_data.Stream.load(tmp_path / "stream.npz")
    np.testing.assert_array_equal(again.X, stream.X)
    assert (again.levels, again.n_classes) == (stream.levels, 3)
    frame = stream_peers.as_frame(again)
    assert frame["1"].tolist() == ["tcp", "udp", "tcp"]


def test_a_run_stops_at_its_limit_with_the_answers_so_far():
    stream = stream_data.make("SEA", 3000)
    stopped = stream_peers.run(stream_peers.no_change(stream, 0), 3000, 1000, limit=0)
    assert len(stopped["predictions"]) == 0
    whole = stream_peers.run(stream_peers.no_change(stream, 0), 3000, 1000, limit=9)
    np.testing.assert_array_equal(whole["predictions"][1:], stream.y[:-1])
    assert np.isnan(whole["shares"]).all()


def test_the_summary_of_a_run_has_the_right_rows_of_each_block():
    stream = stream_data.Stream(np.zeros((2500, 1)), np.arange(2500) % 2, {})
    predictions = np.where(np.arange(2500) < 1200, stream.y, 0)
    shares, seconds = np.where(np.arange(2500) < 10, np.nan, 0.5), np.full(2500, 1e-6)
    seconds[7] = 1e-3
    answers = {"predictions": predictions, "shares": shares, "seconds": seconds, "cpu": 0.1, "megabytes": 5.0}
    found = streams.summary(answers | {"elapsed": 2.0, "version": "river 1"}, stream)
    assert (found["right"], found["rows"]) == ([1000, 600, 250], 2500)
    assert (found["accuracy"], found["kappa"]) == (0.74, 0.48)
    assert found["log_loss"] == pytest.approx(np.log(2), abs=1e-6)
    assert found["microseconds"] == [1.0, 1.0, 1000.0]


def test_ranks_are_means_over_streams_of_learners_that_ran_on_all_and_equal_ones_share_them():
    accuracies = {"a": [0.9, 0.5], "b": [0.8, 0.5], "c": [0.7, 0.6], "stopped": [0.99, None]}
    assert streams_page.mean_ranks(accuracies) == {"a": 1.75, "b": 2.25, "c": 2.0}
    assert streams_page.mean_ranks({"stopped": [None]}) == {}


def stream_run(stream, learner, accuracy, rows=30_000, **values):
    """Return a record; the rows that are right are spread evenly."""
    right = [round(1000 * accuracy)] * (rows // 1000)
    measures = {"accuracy": accuracy, "kappa": 0.5, "seconds": rows / 1e4, "cpu": 1.0, "megabytes": 1.0, "right": right}
    sizes = {"rows": rows, "columns": 2, "classes": 2, "limit": 900, "package": "river 1"}
    key = {"stream": stream, "learner": learner, "seed": 0}
    return key | sizes | measures | measuring.environment() | values


def test_the_page_of_streams_says_which_aims_are_missed_and_where_a_peer_is_ahead(tmp_path):
    ours, growing, river = stream_peers.ADAPTIVE, stream_peers.GROWING, stream_peers.RIVER_ARF
    speed = stream_data.THROUGHPUT[0]
    runs = [
        stream_run("RBF", ours, 0.95),
        stream_run("RBF", growing, 0.97),
        stream_run("SEA", ours, 0.1, seed=1),
        stream_run("SEA", ours, 0.9, seed=1),  # the last record of a seed counts
        stream_run("SEA", stream_peers.LAST_LABEL, 0.5),
        stream_run("SEA", stream_peers.MOA_ARF, 0.92),
        stream_run("SEA", "CapyMOA SGBT", 0.99, rows=2000),
        stream_run("SEA", river, 0.91, rows=25_000),
        stream_run(speed, stream_peers.AT_100, 0.9, seconds=0.25),
        stream_run(speed, river, 0.9, seconds=30.0, microseconds=[1.0, 2.0, 3.0]),
    ]
    page = "\n".join(streams_page.page_of(runs, tmp_path / "streams").lines)
    assert "at most 1 point below isokern, growing on stationary streams: at worst 2.00 below on RBF **missed**" in page
    assert "at most 1 point below NoChange on all streams: at worst -40.00 below on SEA\n" in page
    assert "| SEA | 30,000 | 90.00 | CapyMOA ARF(10) | 92.00 | 2.00 |" in page
    assert "| SEA | 25,000 | 90.00 | CapyMOA ARF(10) | 92.00 | 2.00 |" in page
    assert "On fewer rows, because of a limit of time or rows: CapyMOA SGBT on SEA (99.00 on 2,000 rows)." in page
    assert "- at least 100,000 rows a second: 120,000\n" in page
    assert "- at least 100 times river ARF(10): 120.0" in page
    assert (tmp_path / "streams.png").read_bytes().startswith(b"\x89PNG")


def test_times_of_a_stream_come_from_one_cpu():
    runs = [
        stream_run("SEA", "river HAT", 0.9, machine="old"),
        stream_run("SEA", stream_peers.GROWING, 0.9, machine="old"),
        stream_run("SEA", stream_peers.FIXED, 0.9, machine="new"),
    ]
    table = streams_page.Table(runs)
    assert streams_page.rate(table, "SEA", "river HAT") == pytest.approx(1e4)
    assert streams_page.rate(table, "SEA", stream_peers.FIXED) is None


def test_streams_are_measured_in_processes_and_a_cut_run_goes_on(tmp_path, capfd):
    pytest.importorskip("river", reason="river is not installed; make bench installs it")
    learners = [stream_peers.LAST_LABEL, stream_peers.GROWING, "river HAT"]
    command = ["--quick", "--streams", "SEA", "--save", str(tmp_path / "page"), "--learners"]
    streams.main([*command, *learners[1:]])
    streams.main([*command, *learners, "--resume"])
    runs = streams.Records(tmp_path / "page").runs
    assert [run["learner"] for run in runs] == [*learners[1:], learners[0]]
    assert all(run["rows"] == 2000 and run["accuracy"] > 0.5 for run in runs)
    assert capfd.readouterr().out.endswith((tmp_path / "page.md").read_text())
