"""Test that the times of a data set come from one processor, in tables, claims and the report."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from isokern.experiments import Plan, find
from isokern.experiments.clocks import Run, of_one_machine, without_times
from isokern.experiments.runner import run
from tiny_datasets import lines, write_tiny
from toy_experiment import toy

PLAN = Plan()


def measured(*runs, dataset="a9a", method="OGD"):
    """Return a cell with runs, which are given by line, machine and record."""
    return {"dataset": dataset, "method": method, "seed": 0}, [Run(*one) for one in runs]


def test_times_come_from_the_machine_that_measured_most_cells_of_the_data_set():
    cells = [
        measured((0, "A", {"accuracy": 0.8, "seconds": 1.0}), method="OGD"),
        measured((3, "B", {"accuracy": 0.9, "seconds": 2.0}), method="NOGD"),
        measured((1, "A", {"accuracy": 0.7, "seconds": 3.0}), method="IK_a-OGD"),
        measured((2, "B", {"accuracy": 0.6, "seconds": 4.0}), dataset="url"),
    ]
    records, machines, n_untimed = of_one_machine(cells)
    assert machines == (("a9a", "A"), ("url", "B"))
    assert [record.get("seconds") for record in records] == [1.0, None, 3.0, 4.0]
    assert [record["accuracy"] for record in records] == [0.8, 0.9, 0.7, 0.6]
    assert n_untimed == 1


@pytest.mark.parametrize(("number", "machine"), [(0, "B"), (2, "A")])
def test_of_two_machines_with_as_many_cells_the_one_of_the_latest_record_counts(number, machine):
    cells = [measured((number, "A", {"seconds": 1.0})), measured((1, "B", {"seconds": 2.0}), method="NOGD")]
    assert of_one_machine(cells).machines == (("a9a", machine),)


def test_seeds_from_another_machine_leave_the_times_of_the_other_seeds():
    cells = [measured((k, machine, {"seconds": 1.0})) for k, machine in enumerate("AAB")]
    for seed, (cell, _) in enumerate(cells):
        cell["seed"] = seed
    records, _, n_untimed = of_one_machine(cells)
    assert [record.get("seconds") for record in records] == [1.0, 1.0, None]
    assert n_untimed == 0


def test_a_cell_that_two_machines_measured_has_the_times_of_the_one_that_counts():
    others = [measured((k, "A", {"seconds": 1.0}), method=method) for k, method in enumerate(("OGD", "NOGD"))]
    twice = measured((2, "A", {"seconds": 3.0}), (3, "B", {"seconds": 2.0}), method="IK_a-OGD")
    assert of_one_machine([*others, twice]).records[-1]["seconds"] == 3.0
    stopped = {"stopped": "time limit of 9 s", "time_limit": 9.0}
    finished = measured((2, "A", stopped), (3, "B", {"seconds": 2.0, "accuracy": 0.5}), method="IK_a-OGD")
    assert of_one_machine([*others, finished]).records[-1] == {"accuracy": 0.5}  # it came to an end


def test_all_that_comes_from_a_clock_is_a_time():
    times = ("seconds", "map_seconds", "cv_seconds", "cell_seconds", "expected_seconds", "time_limit")
    times += ("share", "growth", "total", "map", "learn")
    others = {"accuracy": 0.5, "psi": 4, "n_support": 3, "stopped_at_row": 7}
    assert without_times(others | dict.fromkeys(times, 1.0)) == others
    assert without_times({"curve": [[10, 0.5, 0.1]]}) == {"curve": [[10, 0.5]]}


def test_a_stopped_run_of_another_machine_shows_no_time_limit():
    stopped = {"stopped": "time limit of 9 s", "time_limit": 9.0}
    shown = []
    for record in (stopped, without_times(stopped)):
        of_nogd = {"dataset": "a9a", "source": "a9a", "method": "NOGD", **record}
        table = lines(find("batch").table([of_nogd], PLAN))
        shown += [row["NOGD"] for (name, what), row in table.items() if what == "seconds" and name.startswith("a9a")]
    assert shown == ["> 9 s", "-"]


def test_a_stream_without_times_is_drawn_in_the_panel_of_accuracies_only():
    curve = [[10, 0.5, 1.0], [20, 0.6, 2.0]]
    run = {"dataset": "url", "source": "url", "seed": 0, "method": "OGD", "curve": curve, "stopped_at_row": 20}
    accuracy, time = find("online").draw([without_times(run)]).axes
    assert (len(accuracy.lines), len(time.lines)) == (2, 0)  # the curve, and a mark at its end


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """Return a folder with records of two machines, a plan and the experiment that they belong to."""
    monkeypatch.setattr("isokern.experiments.records._fingerprint", lambda dataset, plan: "")
    plan = Plan(folder=write_tiny(monkeypatch, tmp_path, "a9a", "rcv1-subset"))
    cells = [{"dataset": "a9a", "n": n, "seed": 0} for n in range(3)] + [{"dataset": "rcv1.binary", "n": 0, "seed": 0}]
    texts = []
    for cell, machine in zip(cells, "AABA", strict=True):
        line = {"cell": cell, "machine": f"CPU {machine}", "result": {"square": 1, "seconds": 1.0}}
        line |= {"scale": "quick", "files": "", "version": "0.1.0", "time_limit": 120.0}
        texts.append(json.dumps(line))
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy" / "records.jsonl").write_text("\n".join(texts) + "\n")
    monkeypatch.setattr("isokern.__version__", "0.1.0")
    return tmp_path, plan, toy(*cells)


def test_a_section_names_the_processor_of_its_times_and_says_how_many_are_left_out(kept):
    folder, plan, experiment = kept
    result = run(experiment, plan, folder, only_report=True)
    assert [record.get("seconds") for record in result.records] == [1.0, 1.0, None, 1.0]
    text = (folder / "toy" / "toy.md").read_text()
    assert "- Times of a data set come from one CPU. a9a, rcv1.binary: CPU A." in text
    assert "- Cells whose times are left out, because only another CPU measured them: 1." in text


def test_an_experiment_without_times_names_no_processor(kept):
    folder, plan, experiment = kept
    result = run(replace(experiment, has_times=False), plan, folder, only_report=True)
    assert (result.machines, result.n_untimed) == ((), 0)
    assert "CPU" not in (folder / "toy" / "toy.md").read_text()
    assert [name for name in ("feature-map-size", "kernel-shape", "contours", "datasets") if find(name).has_times] == []
