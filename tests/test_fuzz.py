"""Check that the fuzzer's corpus and a few hundred forged model files do no harm, and that faults are noticed."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import fuzz
from fuzz.driver import Worker, keep
from fuzz.driver import fuzz as run
from fuzz.targets import TARGETS
from fuzz.worker import ending_of

CORPUS = Path(fuzz.__file__).with_name("corpus")


@pytest.mark.parametrize("target", sorted(path.name for path in CORPUS.iterdir() if path.is_dir()))
def test_inputs_that_once_failed_end_in_a_result_or_a_clean_error(target, tmp_path, memory_is_known):
    shutil.copytree(CORPUS / target, tmp_path, dirs_exist_ok=True)
    worker = Worker(target)
    endings = {path.name: worker.ending_of(path) for path in sorted(tmp_path.iterdir())}
    worker.stop()
    assert endings
    assert {name: ending for name, ending in endings.items() if ending.startswith("fault")} == {}


def test_hundreds_of_forged_models_do_no_harm(tmp_path, memory_is_known):
    counts = run("models", tmp_path, most=400)
    assert list(tmp_path.iterdir()) == []
    assert counts["tried"] == counts["accepted"] + counts["rejected"] == 400
    assert counts["accepted"] > 20


def test_other_errors_than_clean_ones_are_faults(tmp_path):
    def ending(error):
        def use(path):
            raise error

        return ending_of(TARGETS["models"]._replace(use=use), tmp_path / "input")

    assert ending(ValueError("input: damaged.")) == ending(OSError("input: no such file")) == "rejected"
    assert ending(ValueError("damaged.")) == "fault unnamed-ValueError-outside"
    assert ending(KeyError("input")) == "fault KeyError-outside"


@pytest.mark.parametrize(
    ("end", "ending"),
    [
        ("os.kill(os.getpid(), signal.SIGPROF)", "fault hang"),
        ("os.kill(os.getpid(), signal.SIGSEGV)", "fault crash-SIGSEGV"),
        ("sys.exit(3)", "fault crash-3"),
    ],
)
def test_a_worker_that_ends_is_a_fault(end, ending, monkeypatch):
    command = [sys.executable, "-c", f"import os, signal, sys; input(); {end}"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    monkeypatch.setattr(Worker, "_start", lambda self: subprocess.Popen(command, **pipes))
    worker = Worker("models")
    assert worker.ending_of("input") == worker.ending_of("input") == ending
    assert worker.stop() is None


def test_the_smallest_input_of_each_fault_is_kept(tmp_path):
    for fault, content in (("a", b"12"), ("a", b"1"), ("a", b"123"), ("b", b"1234")):
        keep(tmp_path, fault, content, ".txt")
    assert sorted(path.read_bytes() for path in tmp_path.iterdir()) == [b"1", b"1234"]
