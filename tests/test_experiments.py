"""Test plans, records, the worker process and the runner of experiments."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest

from isokern import experiments
from isokern.data import DatasetInfo
from isokern.experiments import Plan, Result, Verdict, worker
from isokern.experiments.plan import make_plan
from isokern.experiments.records import Records
from isokern.experiments.runner import run
from isokern.system import processor
from toy_experiment import cell, measure, toy

PLAN = Plan()


# -- what a user asks for


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"scale": "fast"}, 'scale must be "quick" or "full"; got "fast".'),
        ({"datasets": ["a9b"]}, 'got "a9b". Did you mean "a9a"?'),
        ({"datasets": ["rcv1-subset"]}, 'got "rcv1-subset". Did you mean "rcv1.binary"?'),
        ({"datasets": []}, "datasets must be None or at least one name; got none."),
        ({"n_seeds": 0}, "n_seeds must be an integer of at least 1; got 0."),
        ({"time_limit": 0}, "time_limit must be None or a number of seconds above 0; got 0."),
        ({"data": "nowhere"}, "data must be a folder; got nowhere."),
    ],
)
def test_invalid_arguments_are_refused_before_anything_is_measured(wrong, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        experiments.feature_map_size(**wrong)


def test_data_sets_that_an_experiment_does_not_use_are_refused(monkeypatch):
    monkeypatch.setattr("isokern.experiments.find", lambda name: replace(toy(), datasets=("url", "mnist")))
    with pytest.raises(ValueError, match='datasets must include one of toy\'s: "url" or "mnist"; got a9a'):
        experiments.online(datasets=["a9a"])


@pytest.mark.parametrize(("scale", "given", "limit"), [("quick", None, 120), ("full", None, 3600), ("full", 7, 7)])
def test_the_time_limit_depends_on_the_scale_unless_it_is_given(scale, given, limit):
    plan = make_plan(None, scale=scale, datasets="a9a,url", n_seeds=1, time_limit=given)
    assert plan.time_limit == limit
    assert plan.datasets == ("a9a", "url")  # names may be one text


@pytest.mark.parametrize("name", experiments.NAMES)
def test_every_experiment_has_a_documented_function(name):
    function = getattr(experiments, name.replace("-", "_"))
    assert function.__name__ in experiments.__all__
    assert f"experiments.{function.__name__}(" in function.__doc__
    assert experiments.find(name).name == name


# -- records


@pytest.fixture
def path(tmp_path):
    """Return the path of a records file."""
    return tmp_path / "toy" / "records.jsonl"


def test_a_record_is_written_at_once_and_found_again_with_plain_numbers(path):
    Records(path, PLAN).add(cell("square", 3), {"square": 9, "curve": [(1, 0.5)]})
    (line,) = path.read_text().splitlines()
    assert json.loads(line)["result"] == {"square": 9, "curve": [[1, 0.5]]}
    assert Records(path, PLAN).find(cell("square", 3)) == {"do": "square", "n": 3, "square": 9, "curve": [[1, 0.5]]}


@pytest.mark.parametrize("change", [{"scale": "full"}, {"folder": "elsewhere"}])
def test_a_record_is_valid_for_one_scale_and_for_the_same_data_files(change, path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for folder in ("here", "elsewhere"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a9a").write_text("1 1:1\n" * len(folder))
        (tmp_path / folder / "a9a.t").write_text("1 1:1\n")
    plan = Plan(folder="here")
    Records(path, plan).add({"dataset": "a9a"}, {"accuracy": 0.5})
    assert Records(path, plan).find({"dataset": "a9a"}) is not None
    assert Records(path, replace(plan, **change)).find({"dataset": "a9a"}) is None


@pytest.mark.parametrize(("version", "is_valid"), [("0.7.0", True), ("0.7.0.dev3", True), ("0.8.0", False)])
def test_a_record_is_valid_for_one_release_and_its_development_versions(version, is_valid, path, monkeypatch):
    monkeypatch.setattr("isokern.__version__", "0.7.0.dev0")
    Records(path, PLAN).add(cell("square", 3), {"square": 9})
    monkeypatch.setattr("isokern.__version__", version)
    assert (Records(path, PLAN).find(cell("square", 3)) is not None) == is_valid


def test_an_incomplete_last_line_is_dropped(path):
    records = Records(path, PLAN)
    for n in (1, 2):
        records.add(cell("square", n), {"square": n * n})
    path.write_bytes(path.read_bytes()[:-5])
    records = Records(path, PLAN)
    assert records.find(cell("square", 1)) is not None
    assert records.find(cell("square", 2)) is None
    records.add(cell("square", 2), {"square": 4})
    assert Records(path, PLAN).find(cell("square", 2))["square"] == 4


@pytest.mark.parametrize("line", ["{", "[1]", '{"cell": {}}'])
def test_an_invalid_line_is_an_error_that_names_it(line, path):
    Records(path, PLAN).add(cell("square", 1), {"square": 1})
    path.write_text(path.read_text() + line + "\n")
    with pytest.raises(ValueError, match=r"records.jsonl, line 2: must be a record of a run; got .* --fresh"):
        Records(path, PLAN)


@pytest.mark.parametrize(
    ("result", "limit", "is_repeated"),
    [
        ({"stopped": "time limit of 120 s"}, 120.0, False),
        ({"stopped": "time limit of 120 s"}, 60.0, False),
        ({"stopped": "time limit of 120 s"}, 121.0, True),
        ({"stopped": "MemoryError"}, 120.0, True),
        ({"stopped_at_row": 0}, 120.0, False),
        ({"stopped_at_row": 0}, 121.0, True),
        ({"stopped_at_row": None}, 121.0, False),
    ],
)
def test_a_stopped_measurement_is_repeated_with_more_time_or_after_an_error(result, limit, is_repeated, path):
    Records(path, PLAN).add(cell("sleep"), result)
    found = Records(path, replace(PLAN, time_limit=limit)).find(cell("sleep"))
    assert (found is None) == is_repeated


def test_fresh_deletes_earlier_records(path):
    Records(path, PLAN).add(cell("square", 1), {"square": 1})
    assert Records(path, PLAN, fresh=True).find(cell("square", 1)) is None
    assert not path.exists()


KEPT = Path(__file__).parents[1] / "docs" / "results" / "paper"


@pytest.mark.parametrize("name", experiments.NAMES)
def test_the_measurements_in_the_documentation_give_its_tables_verdicts_and_notes(name, tmp_path, monkeypatch):
    if not KEPT.exists():
        pytest.skip("there are no docs beside the tests")
    kept = [json.loads(line) for file in KEPT.glob("*/records.jsonl") for line in file.read_text().splitlines()]
    files = {line["cell"].get("dataset"): line["files"] for line in kept}
    sources = {line["cell"].get("source", line["cell"].get("dataset")) for line in kept}
    n_seeds = int(re.search(r"reproduce all .*--seeds (\d+)", (KEPT / "report.md").read_text())[1])

    def is_there(info):
        return info.name in sources or not info.files

    # As if the same files were here, and the same version.
    monkeypatch.setattr(DatasetInfo, "find", lambda info, folder=None: () if is_there(info) else None)
    monkeypatch.setattr("isokern.experiments.records._fingerprint", lambda dataset, plan: files.get(dataset, ""))
    monkeypatch.setattr("isokern.__version__", kept[0]["version"])
    monkeypatch.setattr("isokern.experiments.paper.gpu.has_gpu", lambda: False)
    monkeypatch.setattr(worker.Worker, "measure", Mock(side_effect=AssertionError))
    shutil.copytree(KEPT / name, tmp_path / name)
    experiment, plan = replace(experiments.find(name), draw=None), Plan(scale="full", n_seeds=n_seeds)
    run(experiment, plan, tmp_path, only_report=True)
    for file in (f"{name}.csv", f"{name}.md"):
        written, expected = ((folder / name / file).read_text().splitlines() for folder in (tmp_path, KEPT))
        assert [line for line in written if line] == [line for line in expected if line and "![" not in line]


# -- the run


def test_a_run_continues_after_stopped_cells_and_records_why_they_stopped(tmp_path, monkeypatch):
    monkeypatch.setattr(worker, "GRACE", 0.5)
    cells = [cell("tell", 1), cell("raise"), cell("tell", 2), cell("work", 30), cell("die"), cell("square", 3)]
    records = run(toy(*cells), replace(PLAN, time_limit=1.0), tmp_path).records
    assert [record.pop("stopped", None) for record in records] == [
        None,
        r"KeyError: 'a missing\nkey'",
        None,
        "time limit of 1 s",
        "its process ended by SIGKILL; perhaps memory ran out",
        None,
    ]
    first, _, second, *others = records
    assert first["pid"] == second["pid"] != os.getpid()  # one worker process for all cells that finish
    assert first["threads"] == "1"
    assert others == [
        cells[3] | {"time_limit": 1.0},
        cells[4],
        cells[5] | {"square": 9, "seconds": 0.25, "cell_seconds": 0.0},
    ]
    assert len((tmp_path / "toy" / "records.jsonl").read_text().splitlines()) == 6
    with pytest.raises(ProcessLookupError):
        os.kill(first["pid"], 0)


def test_a_worker_ends_with_a_parent_that_was_killed():
    code = (
        "from isokern.experiments import Plan\nfrom isokern.experiments.worker import Worker\n"
        "from toy_experiment import cell, measure\n"
        "worker = Worker()\nworker._start()\nprint('started', flush=True)\n"
        "worker.measure(measure, cell('work', 3600), Plan())"
    )
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", code], cwd=Path(__file__).parent, **pipes) as parent:
        assert parent.stdout.readline() == "started\n"
        parent.kill()
        parent.communicate(timeout=120)  # the worker has the same stderr, which ends when both have


def test_a_lack_of_memory_is_an_error_in_one_line():
    measured, error = worker._attempt(measure, cell("exhaust"), PLAN)
    assert measured is None
    assert re.fullmatch(r"_?(Array)?MemoryError: Unable to allocate .*", error)


@pytest.fixture
def in_this_process(monkeypatch):
    """Measure in this process, which needs no start."""
    monkeypatch.setattr(worker.Worker, "measure", lambda self, function, *arguments: function(*arguments))


@pytest.mark.usefixtures("in_this_process")
def test_an_interrupted_run_resumes(tmp_path):
    trace = tmp_path / "trace"
    cells = [cell("square", n, trace) for n in (1, 2, 3)]
    with pytest.raises(KeyboardInterrupt):
        run(toy(*cells), PLAN, tmp_path, Mock(side_effect=[None, None, KeyboardInterrupt]))
    assert trace.read_text() == "squaresquare"
    seen = []
    records = run(toy(*cells), PLAN, tmp_path, lambda *now: seen.append(now)).records
    assert [record["square"] for record in records] == [1, 4, 9]
    assert trace.read_text() == "squaresquaresquare"
    assert seen == [(0, 3, cells[0]), (1, 3, cells[1]), (2, 3, cells[2]), (3, 3, None)]


@pytest.mark.usefixtures("in_this_process")
@pytest.mark.parametrize(
    ("first", "n_seeds"),
    [({"cell_seconds": 599}, 3), ({"cell_seconds": 601}, 1), ({"stopped": "time limit of 120 s"}, 1)],
)
def test_a_cell_whose_first_seed_takes_long_has_no_other_seeds(first, n_seeds, tmp_path):
    Records(tmp_path / "toy" / "records.jsonl", PLAN).add(cell("square", 3) | {"seed": 0}, first)
    cells = [cell("square", 3) | {"seed": seed} for seed in range(3)]
    assert len(run(toy(*cells), PLAN, tmp_path).records) == n_seeds


@pytest.mark.usefixtures("in_this_process")
def test_a_report_alone_measures_nothing_and_uses_also_stopped_measurements(tmp_path):
    stopped, measured, missing = (cell("square", n) for n in (1, 2, 3))
    records = Records(tmp_path / "toy" / "records.jsonl", PLAN)
    records.add(stopped, {"stopped": "time limit of 120 s"})
    records.add(measured, {"square": 4})
    plan = replace(PLAN, time_limit=1000.0)
    result = run(toy(stopped, measured, missing), plan, tmp_path, only_report=True)
    assert [(record["n"], record.get("square")) for record in result.records] == [(1, None), (2, 4)]
    assert "- Measurements still to be made: 1." in (tmp_path / "toy" / "toy.md").read_text()


def test_the_line_of_a_record_names_the_processor_that_measured_it(path):
    records = Records(path, PLAN)
    records.add({"dataset": "a9a", "seed": 0}, {"accuracy": 0.5})
    assert json.loads(path.read_text())["machine"] == processor()
    (only,) = Records(path, PLAN).runs({"dataset": "a9a", "seed": 0})
    assert only.machine == processor()
    assert records.runs({"dataset": "url", "seed": 0}) == []


@pytest.mark.usefixtures("in_this_process")
@pytest.mark.parametrize("is_kept", [True, False])
def test_a_function_runs_its_experiment_and_writes_only_if_asked_to(is_kept, monkeypatch, tmp_path):
    monkeypatch.setattr("isokern.experiments.find", lambda name: toy(cell("square", 3)))
    result = experiments.batch(out=tmp_path if is_kept else None)
    assert isinstance(result, Result)
    assert result.records == [cell("square", 3) | {"square": 9, "seconds": 0.25}]
    assert result.verdicts == [Verdict("It works.", "All squares are there.", True, "1 records")]
    written = {path.name: path for path in tmp_path.rglob("*.*")}
    assert set(written) == ({"toy.csv", "toy.md", "records.jsonl"} if is_kept else set())
    if is_kept:
        assert written["toy.csv"].read_text() == "n,square\n3,9\n"
