"""Running experiments, and what is kept of it."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from unittest.mock import Mock

import pytest

from isokern.experiments import worker
from isokern.experiments.experiment import Plan
from isokern.experiments.records import Records
from isokern.experiments.runner import run
from toy_experiment import cell, measure, toy

PLAN = Plan()


# -- what is kept


@pytest.fixture
def path(tmp_path):
    """Return where records are kept."""
    return tmp_path / "toy" / "records.jsonl"


def test_a_record_is_found_again_with_plain_numbers(path):
    Records(path, PLAN).add(cell("square", 3), {"square": 9, "curve": [(1, 0.5)]})
    assert Records(path, PLAN).find(cell("square", 3)) == {"do": "square", "n": 3, "square": 9, "curve": [[1, 0.5]]}


def test_a_record_is_on_the_disk_as_soon_as_it_is_added(path):
    Records(path, PLAN).add(cell("square", 3), {"square": 9})
    (line,) = path.read_text().splitlines()
    assert json.loads(line)["result"] == {"square": 9}


@pytest.mark.parametrize("change", [{"scale": "full"}, {"folder": "elsewhere"}])
def test_a_record_is_of_one_scale_and_of_the_files_that_were_read(change, path, tmp_path):
    for folder in ("here", "elsewhere"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a9a").write_text("1 1:1\n" * len(folder))
        (tmp_path / folder / "a9a.t").write_text("1 1:1\n")
    plan = Plan(folder=tmp_path / "here")
    Records(path, plan).add({"dataset": "a9a"}, {"accuracy": 0.5})
    if "folder" in change:
        change = {"folder": tmp_path / "elsewhere"}
    assert Records(path, plan).find({"dataset": "a9a"}) is not None
    assert Records(path, replace(plan, **change)).find({"dataset": "a9a"}) is None


def test_a_last_line_that_was_not_written_to_its_end_is_dropped(path):
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
def test_a_line_that_is_no_record_is_named(line, path):
    Records(path, PLAN).add(cell("square", 1), {"square": 1})
    path.write_text(path.read_text() + line + "\n")
    with pytest.raises(ValueError, match=r"records.jsonl, line 2: must be a record of a run; got .* --fresh"):
        Records(path, PLAN)


@pytest.mark.parametrize(
    ("result", "limit", "is_tried_again"),
    [
        ({"stopped": "time limit of 120 s"}, 120.0, False),
        ({"stopped": "time limit of 120 s"}, 60.0, False),
        ({"stopped": "time limit of 120 s"}, 121.0, True),
        ({"stopped": "MemoryError"}, 120.0, True),
        ({"stopped_at_row": 0}, 120.0, False),
        ({"stopped_at_row": 0}, 121.0, True),
        ({"stopped_at_row": None}, 121.0, False),
        ({"left_out": "too many columns"}, 121.0, False),
    ],
)
def test_what_came_to_no_end_is_tried_again_if_it_may_do_better(result, limit, is_tried_again, path):
    Records(path, PLAN).add(cell("sleep"), result)
    found = Records(path, replace(PLAN, time_limit=limit)).find(cell("sleep"))
    assert (found is None) == is_tried_again


def test_fresh_forgets(path):
    Records(path, PLAN).add(cell("square", 1), {"square": 1})
    assert Records(path, PLAN, fresh=True).find(cell("square", 1)) is None
    assert not path.exists()


def test_without_a_folder_nothing_is_kept():
    records = Records(None, PLAN)
    assert records.add(cell("square", 1), {"square": 1}) == {"do": "square", "n": 1, "square": 1}


# -- the run


def test_a_run_goes_on_after_cells_that_come_to_no_end_and_says_why_they_did_not(tmp_path, monkeypatch):
    monkeypatch.setattr(worker, "GRACE", 0.5)
    cells = [cell("tell", 1), cell("raise"), cell("tell", 2), cell("sleep", 30), cell("die"), cell("square", 3)]
    records = run(toy(*cells), replace(PLAN, time_limit=1.0), tmp_path)
    assert [record.pop("stopped", None) for record in records] == [
        None,
        r"KeyError: 'a key\nthat is not there'",
        None,
        "time limit of 1 s",
        "its process ended by SIGKILL; perhaps memory ran out",
        None,
    ]
    first, _, second, *others = records
    assert (
        first["pid"] == second["pid"] != os.getpid()
    )  # one process, not this one, for all cells that end by themselves
    assert first["threads"] == "2"
    assert others == [cells[3] | {"time_limit": 1.0}, cells[4], cells[5] | {"square": 9, "seconds": 0.25}]
    assert len((tmp_path / "toy" / "records.jsonl").read_text().splitlines()) == 6
    with pytest.raises(ProcessLookupError):
        os.kill(first["pid"], 0)


def test_a_lack_of_memory_is_told_in_one_line():
    measured, error = worker._attempt(measure, cell("exhaust"), PLAN)
    assert measured is None
    assert re.fullmatch(r"_?(Array)?MemoryError: Unable to allocate .*", error)


@pytest.fixture
def in_this_process(monkeypatch):
    """Measure in this process, without the wait for another one."""
    monkeypatch.setattr(worker.Worker, "measure", lambda self, function, *arguments: function(*arguments))


@pytest.mark.usefixtures("in_this_process")
def test_a_run_goes_on_where_it_was_interrupted(tmp_path):
    trace = tmp_path / "trace"
    cells = [cell("square", n, trace) for n in (1, 2, 3)]
    with pytest.raises(KeyboardInterrupt):
        run(toy(*cells), PLAN, tmp_path, Mock(side_effect=[None, None, KeyboardInterrupt]))
    assert trace.read_text() == "squaresquare"
    seen = []
    records = run(toy(*cells), PLAN, tmp_path, lambda *now: seen.append(now))
    assert [record["square"] for record in records] == [1, 4, 9]
    assert trace.read_text() == "squaresquaresquare"
    assert seen == [(0, 3, cells[0]), (1, 3, cells[1]), (2, 3, cells[2]), (3, 3, None)]
