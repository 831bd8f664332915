"""Test the documentation: its examples run, its links lead somewhere, and its references are complete."""

from __future__ import annotations

import doctest
import functools
import importlib.util
import re
import shlex
from importlib import import_module
from pathlib import Path
from runpy import run_path

import pytest

import isokern
from command_line import succeed
from isokern.cli._app import app

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
GENERATED = {"_build", "examples", "project", "reference"}
PAGES = sorted(page for page in DOCS.rglob("*.md") if page.relative_to(DOCS).parts[0] not in GENERATED)
TEXTS = [
    *PAGES,
    *(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "cpp/README.md")),
]

FENCE = re.compile(r"^```(.*?)\n(.*?)^```", flags=re.DOTALL | re.MULTILINE)  # of code, with its language

# Examples without prompts are run elsewhere, or need what a test does not have.
NOT_RUN_HERE = {
    "index.md": "names rows that it does not make",
    "devices.md": "needs a GPU",
    "distributed.md": "tests/test_distributed.py",
    "recipes/ray.md": "make test-recipes",
    "recipes/spark.md": "make test-recipes",
    "threads.md": "waits for Ctrl-C",
}


def load_generator():
    """Return docs/pages.py, which is no part of the package."""
    spec = importlib.util.spec_from_file_location("pages", DOCS / "pages.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


pages = load_generator()
generated = functools.cache(pages.generated)


def name_of(page):
    return page.relative_to(ROOT if page.parent in {ROOT, ROOT / "cpp"} else DOCS).as_posix()


def python_of(page):
    return "\n".join(code for language, code in FENCE.findall(page.read_text()) if language == "python")


@pytest.mark.parametrize("page", [page for page in PAGES if python_of(page)], ids=name_of)
def test_the_examples_of_a_page_run(page, tmp_path, monkeypatch):
    if name_of(page) in NOT_RUN_HERE:
        assert ">>>" not in python_of(page)
        return
    if name_of(page) == "serving.md":
        pytest.importorskip("onnxruntime")  # not on every Python
    monkeypatch.chdir(tmp_path)
    examples = doctest.DocTestParser().get_doctest(python_of(page), {}, page.name, str(page), 0)
    assert examples.examples
    assert doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(examples).failed == 0


def test_the_commands_of_the_first_page_run(tmp_path):
    text = (DOCS / "start.md").read_text()
    (table,) = [code for _, code in FENCE.findall(text) if "wine.csv" in code and ">>>" in code]
    (commands,) = [code for language, code in FENCE.findall(text) if language == "console"]
    exec(table.replace(">>> ", "").replace("wine.csv", str(tmp_path / "wine.csv")), {})
    for line in commands.splitlines():
        succeed(tmp_path, *shlex.split(line)[1:])
    assert len((tmp_path / "predicted.txt").read_text().splitlines()) == 178


def commands_in(page):
    """Return the commands of a page, those in a pipe included, as lists of words."""
    text = page.read_text()
    blocks = [code for language, code in FENCE.findall(text) if language in {"", "console"}]
    blocks += re.findall(r"^ {4}(.*)$", FENCE.sub("", text), flags=re.MULTILINE)
    lines = [line.split("#")[0] for block in blocks for line in block.splitlines()]
    return [shlex.split(part) for line in lines for part in line.split("|") if part.split()[:1] == ["isokern"]]


@pytest.mark.parametrize("page", [page for page in TEXTS if commands_in(page)], ids=name_of)
def test_commands_in_a_page_exist_with_their_options(page):
    known = pages.commands(app)
    for words in commands_in(page):
        name = next(name for name in known if words[1 : 1 + len(name.split())] == name.split())
        options = {
            option for parameter in known[name].params for option in (*parameter.opts, *parameter.secondary_opts)
        }
        assert {word.split("=")[0] for word in words if word.startswith("-") and word != "-"} <= {*options, "--help"}


# ----------------------------------------------------------------------------------------------- links


def anchors_of(text):
    """Return the anchors of the headings of a page, as GitHub and MyST make them."""
    headings = re.findall(r"^#+ (.*)$", FENCE.sub("", text), flags=re.MULTILINE)
    given = re.findall(r'<a id="([\w-]+)"></a>', text)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings} | {*given}


def links_of(page):
    found = re.findall(r"\]\(([^)\s]+)\)", FENCE.sub("", page.read_text()))
    return [link for link in found if not link.startswith("http")]


@pytest.mark.parametrize("page", [page for page in TEXTS if links_of(page)], ids=name_of)
def test_links_of_a_page_lead_to_files_and_headings_that_exist(page):
    on_site = {DOCS / name for name in generated()}
    for link in links_of(page):
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists() or target in on_site, link
        if anchor:
            assert anchor in anchors_of(target.read_text()), link


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_the_site_leads_to_every_page(page):
    listed = {entry for one in PAGES for entry in toctree_of(one)}
    is_listed = any(page.match(f"{entry}.md") for entry in listed)
    assert is_listed or page.name == "index.md" or "paper" in page.parts


def test_the_site_lists_only_pages_that_exist():
    on_site = {(DOCS / name).with_suffix("") for name in generated()} | {DOCS / "examples" / "index"}
    for page in PAGES:
        for entry in toctree_of(page):
            assert any(page.parent.glob(f"{entry}.md")) or page.parent / entry in on_site, entry


def toctree_of(page):
    blocks = [code for language, code in FENCE.findall(page.read_text()) if language == "{toctree}"]
    lines = [line for block in blocks for line in block.splitlines() if line and not line.startswith(":")]
    return [line.rpartition("<")[2].rstrip(">") for line in lines]


def test_the_readme_on_pypi_has_no_relative_link_to_a_file():
    address, text = "https://github.com/owner/name", (ROOT / "README.md").read_text()
    absolute = run_path(DOCS / "absolute_links.py")["with_absolute_links"](text, address, "v0.1.0")
    targets = re.findall(r"\]\(([^)]*)\)", absolute)
    assert f"{address}/raw/v0.1.0/docs/images/overview.png" in targets
    assert f"{address}/blob/v0.1.0/CHANGELOG.md" in targets
    assert all(target.startswith(("https://", "#")) for target in targets)


# ------------------------------------------------------------------------------------------- references


def test_the_reference_groups_every_public_name_of_the_package_once():
    assert sorted(name for names in pages.GROUPS.values() for name in names) == sorted(isokern.__all__)


def test_the_reference_has_every_public_module():
    folder = Path(isokern.__file__).parent
    packages = {path.name for path in folder.iterdir() if (path / "__init__.py").exists()}
    modules = {path.stem for path in folder.glob("[a-z]*.py") if "\n__all__ = " in path.read_text()}
    internal = {"cli", "devices", "learners"}
    assert {f"isokern.{name}" for name in (packages | modules) - internal} == set(pages.public_modules()) - {"isokern"}


@pytest.mark.parametrize("module", pages.public_modules())
def test_every_public_name_has_a_page_and_a_line_in_the_index(module):
    index = pages.api_index() if module == "isokern" else pages.module_page(module)
    written = generated()
    for name in import_module(module).__all__:
        assert f"\n   {name}\n" in index and f"<{module}.{name}>" in index
        assert f":: {name}\n" in written[f"reference/{module}.{name}.rst"]
        assert getattr(import_module(module), name).__doc__ or f"{module}.{name}" in pages.CONSTANTS


def test_the_command_line_reference_has_every_command_and_option():
    text = pages.command_reference()
    for name, command in pages.commands(app).items():
        (section,) = re.findall(rf"^## isokern {name}$(.*?)(?=^## |\Z)", text, flags=re.DOTALL | re.MULTILINE)
        for parameter in command.params:
            for option in parameter.opts if parameter.param_type_name == "option" else [parameter.name.upper()]:
                assert f"`{option}`" in section


@pytest.mark.parametrize("example", sorted(DOCS.glob("gallery/*.py")), ids=lambda path: path.stem)
def test_examples_of_the_gallery_need_neither_a_network_nor_shared_data(example):
    text = example.read_text()
    assert not re.search(r"fetch_|load_dataset|https?://|ISOKERN_DATA", text)
    assert "plt.show()" in text
