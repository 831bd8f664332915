"""Define the fixtures that several test modules use."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("isokern", max_examples=30, deadline=None, derandomize=True, database=None)
settings.load_profile("isokern")

IN_A_SCRIPT = '''
import numpy as np
from isokern import IsolationKernel

def megabytes(field):
    """Return a field of this process's memory, for example VmRSS, or VmHWM for its highest so far."""
    with open("/proc/self/status") as status:
        lines = dict(line.split(":") for line in status)
    return int(lines[field].split()[0]) / 1024
'''


@pytest.fixture
def run_script(tmp_path):
    """Return a function that runs Python code in a process of its own and returns what it printed."""

    def run(code, *arguments, timeout=600):
        script = tmp_path / "script.py"
        script.write_text(IN_A_SCRIPT + code)
        done = subprocess.run(
            [sys.executable, str(script), *map(str, arguments)],
            check=False,
            capture_output=True,
            text=True,
            timeout=timeout,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return run


@pytest.fixture
def tiny_blocks(monkeypatch):
    """Let the map work through its input three rows at a time."""
    monkeypatch.setattr("isokern.rows._BLOCK_ROWS", 3)
    monkeypatch.setattr("isokern.rows._VIEW_ROWS", 3)


@pytest.fixture(scope="session")
def data_set():
    """Return a function that gives the path of a real data set, or skips the test if it is not there."""
    root = Path(__file__).parents[1]
    folder = Path(os.environ.get("ISOKERN_DATA", root.parent / "shared" / "data"))

    def find(name):
        path = folder / f"{name}.xz"
        if not path.exists():
            pytest.skip(f"{path.name} is not in the folder of data sets; set ISOKERN_DATA to where it is")
        return path

    return find


@pytest.fixture
def memory_is_known():
    """Skip the test where the memory of a process cannot be read."""
    if not Path("/proc/self/status").exists():
        pytest.skip("memory is read from Linux's /proc")
