"""``isokern reproduce``."""

from __future__ import annotations

from unittest.mock import Mock

import pytest

from command_line import run, succeed
from isokern import experiments
from isokern.experiments import worker
from tiny_datasets import write_tiny

HERE = ("datasets", "feature-map-size")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return a folder with a small a9a, where measuring needs no process of its own."""
    monkeypatch.setattr(worker.Worker, "measure", lambda self, function, *given: function(*given))
    monkeypatch.setattr(experiments, "NAMES", HERE)
    monkeypatch.delenv("ISOKERN_DATA", raising=False)
    (tmp_path / "data").mkdir()
    write_tiny(monkeypatch, tmp_path / "data", "a9a")
    return tmp_path


def test_one_experiment_is_measured_judged_and_written(folder):
    done = succeed(folder, "reproduce", "feature-map-size", "--data", "data", "--out", "out")
    assert "Confirmed: The map is exact, not an approximation (on 1 of 1 data sets: a9a (4 maps))" in done.out
    assert "Missing data sets: url, news20.binary" in done.out
    assert {path.name for path in (folder / "out").iterdir()} == {"feature-map-size"}
    names = {path.name for path in (folder / "out" / "feature-map-size").iterdir()}
    assert names == {"records.jsonl", "feature-map-size.csv", "feature-map-size.md"}


def test_all_experiments_make_a_report(folder):
    done = succeed(folder, "reproduce", "all", "--data", "data", "--out", "out")
    assert [name for name in HERE if f"{name}: " in done.out] == list(HERE)
    assert {path.name for path in (folder / "out").iterdir()} == {*HERE, "report.md"}
    assert "See out/report.md" in done.out


def test_nothing_is_measured_twice_unless_the_run_is_fresh(folder, monkeypatch):
    arguments = ("reproduce", "datasets", "--data", "data", "--out", "out")
    first = succeed(folder, *arguments)
    measure = Mock(side_effect=lambda function, *given: function(*given))
    monkeypatch.setattr(worker.Worker, "measure", measure)
    assert succeed(folder, *arguments).out == first.out
    assert measure.call_count == 0
    succeed(folder, *arguments, "--fresh")
    assert measure.call_count == 1


def test_an_interrupted_run_says_how_to_resume_and_keeps_its_report(folder, monkeypatch):
    calls = iter([False, True])

    def measure(self, function, *given):
        if next(calls):
            raise KeyboardInterrupt
        return function(*given)

    monkeypatch.setattr(worker.Worker, "measure", measure)
    done = run(folder, "reproduce", "all", "--data", "data", "--out", "out")
    assert done.code == 130
    assert done.err == "stopped: measurements are kept in out; run the same command to resume.\n"
    assert "Properties of the data sets" in (folder / "out" / "report.md").read_text()


def test_stopped_measurements_are_counted(folder, monkeypatch):
    def measure(self, function, *given):
        raise worker.StoppedError("time limit of 1 s")

    monkeypatch.setattr(worker.Worker, "measure", measure)
    done = succeed(folder, "reproduce", "datasets", "--data", "data", "--out", "out", "--time-limit", 1)
    assert "1 of 1 measurements were stopped" in done.out
    assert "a9a (seed 0): time limit of 1 s." in (folder / "out" / "datasets" / "datasets.md").read_text()


def test_a_report_alone_needs_no_measurements(folder, monkeypatch):
    monkeypatch.setattr(worker.Worker, "measure", Mock(side_effect=AssertionError))
    done = succeed(folder, "reproduce", "all", "--data", "data", "--out", "out", "--report-only")
    assert "none of the paper's own files is available" in done.out
    assert (folder / "out" / "report.md").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("all", "--fresh", "--report-only"), "leave one of them out"),
        (("dataset",), 'name must be one of "datasets" or "feature-map-size"; got "dataset". Did you mean "datasets"?'),
        (("all", "--scale", "fast"), 'scale must be "quick" or "full"; got "fast".'),
        (("all", "--datasets", "a9a,ulr"), 'got "ulr". Did you mean "url"?'),
        (("all", "--data", "nowhere"), "data must be a folder; got nowhere."),
    ],
)
def test_invalid_arguments_are_one_line_before_anything_is_written(arguments, message, folder):
    done = run(folder, "reproduce", *arguments, "--out", "out")
    assert (done.code, done.out) == (1, "")
    assert message in done.err
    assert not (folder / "out").exists()
