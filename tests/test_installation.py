"""Check what an installation without extras can do, and that it says what is missing.

``tests/installs.py`` makes such installations.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib.metadata import requires
from pathlib import Path

import pytest

import isokern
from isokern.system import try_lock

ROOT = Path(__file__).parents[1]
SOURCES = Path(isokern.__file__).parent
BY_SKLEARN = {"pandas", "pyarrow", "rich"}  # imported by scikit-learn if they are installed
OPTIONAL = {
    *("array_api_compat", "backports.zstd", "click", "dask", "distributed", "jax", "matplotlib", "polars", "pooch"),
    *("requests", "torch", "typer"),
}
MODULES = ("data", "evaluation", "experiments", "learners", "merging", "persistence", "plotting")
IMPORTS = (
    "".join(f"import isokern.{name}\n" for name in MODULES) + "[getattr(isokern, name) for name in isokern.__all__]\n"
)


WITHOUT = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name in {}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Missing())
"""


def run(code, *, without=()):
    """Run code in a process in which some packages cannot be imported."""
    command = [sys.executable, "-W", "error", "-c", WITHOUT.format(list(without)) + code]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_library_works_without_optional_packages():
    fit = "isokern.IKOGDClassifier(random_state=0).fit([[0], [1], [2], [3]], [0, 0, 1, 1])"
    done = run(f"{IMPORTS}{fit}", without=[*OPTIONAL, *BY_SKLEARN])
    assert (done.returncode, done.stderr) == (0, "")


def test_quantiles_of_numpy_rows_need_no_optional_package():
    regressor = "isokern.IKOGDRegressor(loss='quantile', quantiles=[0.1, 0.9], random_state=0)"
    done = run(f"{IMPORTS}{regressor}.fit([[0], [1], [2], [3]], [0, 1, 2, 3]).predict([[1]])", without=OPTIONAL)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_library_imports_no_optional_package():
    done = run(f"{IMPORTS}print(*({OPTIONAL!r} & sys.modules.keys()))")
    assert (done.stdout, done.stderr) == ("\n", "")


def test_the_package_itself_imports_nothing_but_the_standard_library():
    done = run(
        "before = {*sys.modules}; import isokern; print(*{name.split('.')[0] for name in {*sys.modules} - before})"
    )
    assert set(done.stdout.split()) - sys.stdlib_module_names == {"isokern"}


@pytest.mark.parametrize("package", ["typer", "rich"])
def test_the_command_without_its_packages_says_so_in_one_line(package):
    done = run("sys.argv = ['isokern', 'demo']; from isokern.cli import main; main()", without=[package])
    expected = "error: the command line needs packages: pip install isokern[cli]\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", expected)


def test_a_fault_of_our_own_imports_is_not_taken_for_a_missing_package():
    done = run("from isokern.cli import main; main()", without=["sklearn.base"])
    assert done.returncode == 1 and "ModuleNotFoundError" in done.stderr


@pytest.mark.parametrize("package", ["pooch", "rich"])
def test_a_download_without_its_packages_names_the_extra(package):
    load = "from isokern.data import load_dataset; load_dataset('a9a', '/nowhere')"
    assert (
        "ImportError: downloading a9a needs packages: pip install isokern[cli]" in run(load, without=[package]).stderr
    )


def test_data_sets_on_the_disk_need_no_download_package(tmp_path, monkeypatch):
    monkeypatch.delenv("ISOKERN_DATA", raising=False)
    call = f"from isokern.data import load_dataset; load_dataset('url-subset', {str(tmp_path)!r})"
    assert "FileNotFoundError: url-subset is not in" in run(call, without=["pooch", "rich"]).stderr
    call = "from isokern.data import load_dataset; load_dataset('url-subset')"
    assert "url-subset is not in $ISOKERN_DATA, and" in run(call, without=["pooch", "rich"]).stderr


def test_only_numpy_scipy_and_scikit_learn_and_what_they_need_are_always_installed():
    always = {re.match(r"[\w-]+", need)[0] for need in requires("isokern") if "extra ==" not in need}
    assert always == {"numpy", "scipy", "scikit-learn", "narwhals", "joblib", "threadpoolctl"}


# -- operating systems


def test_calls_of_one_operating_system_are_in_one_module():
    special = re.compile(
        r"import (fcntl|msvcrt|pwd|resource|select|termios)\b|register_at_fork|/proc/|os\.umask|\.mkfifo"
    )
    found = {path.name for path in SOURCES.rglob("*.py") if special.search(path.read_text())}
    assert found == {"system.py"}


def test_the_core_calls_the_operating_system_in_one_file():
    special = re.compile(r"#include <(sys/|unistd|sched|pthread|windows|fcntl)")
    files = [path for path in (ROOT / "cpp").rglob("*.[ch]pp") if special.search(path.read_text())]
    assert [path.name for path in files] == ["cpus.cpp"]


def test_a_locked_file_cannot_be_locked_again_until_it_is_closed(tmp_path):
    path = tmp_path / "lock"
    with open(path, "ab") as first, open(path, "ab") as second:
        assert try_lock(first) and not try_lock(second)
    with open(path, "ab") as third:
        assert try_lock(third)


# -- metadata


def test_the_version_is_the_same_wherever_it_is_written():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    citation = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), flags=re.MULTILINE)
    recipe = re.search(r'^  version: "(.+)"$', (ROOT / "recipe" / "recipe.yaml").read_text(), flags=re.MULTILINE)
    assert {version, citation[1], recipe[1]} == {isokern.__version__}


def test_the_changelog_has_a_section_for_the_version_and_one_for_what_comes():
    headings = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)
    assert headings[0] == "Unreleased"
    assert headings[1].startswith(f"{isokern.__version__} - ")


def test_the_recipe_needs_what_the_project_and_its_command_line_need():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    needs = [*project["dependencies"], *extras["cli"], *extras["plot"], *extras["tables"]]
    recipe = (ROOT / "recipe" / "recipe.yaml").read_text()
    for need in needs:
        name, _, version = need.partition(">=")
        name = {"matplotlib": "matplotlib-base"}.get(name, name)
        assert name.startswith("isokern[") or f"- {name} >={version}\n" in recipe
