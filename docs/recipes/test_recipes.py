"""Test that the code on the recipes' pages runs and learns."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import isokern

FOLDER = Path(__file__).parent


@pytest.mark.parametrize("name", ["spark", "ray"])
def test_the_code_of_a_recipe_runs_and_learns(name, tmp_path):
    blocks = re.findall(r"```python\n(.*?)```", (FOLDER / f"{name}.md").read_text(), flags=re.DOTALL)
    (tmp_path / "recipe.py").write_text("\n".join(blocks))
    path = os.pathsep.join([str(Path(isokern.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    there = os.environ | {"PYTHONPATH": path, "PYSPARK_PYTHON": sys.executable, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "recipe.py"],
        check=False,
        cwd=tmp_path,
        env=there,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout.split()[-1]) > 0.9
