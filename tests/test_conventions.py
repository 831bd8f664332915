"""Test the conventions of the package: names, docstrings, stubs, version and README."""

from __future__ import annotations

import ast
import inspect
import re
import tomllib
from pathlib import Path

import pytest

import isokern
from isokern import _core

ROOT = Path(__file__).parents[1]
TEXT = {".py", ".pyi", ".cpp", ".hpp", ".md", ".rst", ".txt", ".toml", ".cff", ".yaml", ".yml", ".cmake"}


def public_members(name):
    value = getattr(isokern, name)
    members = vars(value).items() if inspect.isclass(value) else ()
    return [f"{name}.{member}" for member, function in members if callable(function) and not member.startswith("_")]


@pytest.mark.parametrize("name", [*isokern.__all__, *(m for name in isokern.__all__ for m in public_members(name))])
def test_every_public_name_has_a_docstring(name):
    value = isokern
    for part in name.split("."):
        value = getattr(value, part)
    assert inspect.getdoc(value)


@pytest.mark.parametrize("name", [name for name in isokern.__all__ if inspect.isclass(getattr(isokern, name))])
def test_an_estimator_has_at_most_one_base_class_of_ours_beside_a_public_estimator(name):
    ours = [cls for cls in getattr(isokern, name).__mro__[1:] if cls.__module__.startswith("isokern")]
    public = [cls for cls in ours if cls.__name__ in isokern.__all__]
    assert len(public) <= 1
    assert len([cls for cls in ours if not any(issubclass(estimator, cls) for estimator in public)]) <= 1


def test_the_stub_of_the_core_names_exactly_its_public_functions_classes_and_methods():
    stub = ast.parse((Path(isokern.__file__).parent / "_core.pyi").read_text())
    named = {node.name for node in stub.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    assert named == {name for name in dir(_core) if not name.startswith("_")}
    classes = [node for node in stub.body if isinstance(node, ast.ClassDef)]
    named = {(node.name, f.name) for node in classes for f in node.body if isinstance(f, ast.FunctionDef)}
    public = {(node.name, m) for node in classes for m in vars(getattr(_core, node.name)) if not m.startswith("_")}
    assert {pair for pair in named if pair[1] != "__init__"} == public


def test_the_version_is_that_of_the_project_file():
    if not (ROOT / "pyproject.toml").exists():
        pytest.skip("there is no pyproject.toml beside the tests")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == isokern.__version__


def test_no_file_names_a_folder_of_somebody_s_machine():
    files = [file for part in ("src", "cpp", "tests", "docs") for file in (ROOT / part).rglob("*")]
    files = [file for file in [*files, *ROOT.glob("*")] if file.suffix in TEXT]
    named = re.compile(r"(?<![\w.])/(?:home|root|Users|work|workspace)/")
    assert [str(file.relative_to(ROOT)) for file in files if named.search(file.read_text())] == []


def test_the_readme_s_example_runs(capsys):
    (example,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL)
    exec(compile(example, "README.md", "exec"), {})
    accuracies = [float(line) for line in capsys.readouterr().out.split()]
    assert min(accuracies) > 0.8
