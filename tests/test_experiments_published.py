"""Our copies of the published figures are those of the paper's text."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from isokern.data import list_datasets
from isokern.experiments import _settings_e2 as settings

NAMES = [info.name for info in list_datasets()]
SPELT = {"minst": "mnist", "covtype": "covertype"}


@pytest.fixture(scope="module")
def paper():
    """Return the paper's text, which lies beside the checkout, or where ISOKERN_PAPER says."""
    beside = Path(__file__).parents[2] / "shared" / "paper.tex"
    path = Path(os.environ.get("ISOKERN_PAPER", beside))
    if not path.is_file():
        pytest.skip("the paper's text is not at hand; set ISOKERN_PAPER to where it is")
    return path.read_text(encoding="utf-8")


def rows_of(paper, label):
    """Return the cells of a table's lines by the data set, without LaTeX's marks."""
    text = paper[paper.index(rf"\label{{{label}}}") :]
    body = text[text.index(r"\midrule") : text.index(r"\bottomrule")].removeprefix(r"\midrule")
    rows = {}
    for line in body.split(r"\\"):
        name, *cells = (re.sub(r"\\[a-z]+|[{}$\s]", "", cell) for cell in line.split("&"))
        rows[SPELT.get(name, name)] = cells
    return {name: rows[name] for name in NAMES}


def number(cell):
    return float(cell.replace(",", ""))


def time_of(cell):
    """Return a time as the settings have it."""
    if "ME" in cell:
        return "memory error"
    return "> 1 week" if "week" in cell else number(cell)


@pytest.mark.parametrize(("place", "method"), list(enumerate(["OGD", "IK_i-OGD", "IK_a-OGD", "NOGD", "AdaRaker"])))
def test_the_accuracies_of_the_batch_setting_are_the_paper_s(paper, place, method):
    cells = {name: row[place] for name, row in rows_of(paper, "tbl:main_results").items()}
    published = {name: None if cell == "---" else number(cell) for name, cell in cells.items()}
    assert {name: figures[0] for name, figures in settings.BATCH_PUBLISHED[method].items()} == published


@pytest.mark.parametrize(("place", "method"), [(5, "OGD"), (6, "IK_i-OGD"), (-2, "NOGD"), (-1, "AdaRaker")])
def test_the_times_of_the_batch_setting_are_the_paper_s(paper, place, method):
    published = {name: time_of(row[place]) for name, row in rows_of(paper, "tbl:main_results").items()}
    assert {name: figures[1] for name, figures in settings.BATCH_PUBLISHED[method].items()} == published


def test_the_times_of_voronoi_cells_are_those_on_the_cpu(paper):
    published = {name: number(row[0]) for name, row in rows_of(paper, "tbl:GPU_results").items()}
    assert {name: figures[1] for name, figures in settings.BATCH_PUBLISHED["IK_a-OGD"].items()} == published


def test_what_is_published_of_the_primal_and_the_dual_form_is_in_the_paper_s_text(paper):
    begin = paper.index("The proportions of time spent on the two prediction functions")
    text = paper[begin : begin + 1500].replace(r"\%", " percent")
    shares = [float(share) / 100 for share in re.findall(r"([\d.]+) percent", text)]
    totals = [(number(a), number(b)) for a, b in re.findall(r"([\d,]+) seconds versus ([\d,]+) seconds", text)]
    counts = [number(n) for n in re.findall(r"(\d{3},\d{3}) for (?:rcv1.binary|epsilon)", text)]
    primal, dual = settings.PRIMAL_DUAL_PUBLISHED["IK-OGD"], settings.PRIMAL_DUAL_PUBLISHED["IK-OGD(dual)"]
    assert list(primal) == list(dual) == ["rcv1.binary", "epsilon"]
    assert [figures[0] for form in (primal, dual) for figures in form.values()] == pytest.approx(shares)
    assert [(primal[name][1], dual[name][1]) for name in primal] == totals
    assert [primal[name][2] for name in primal] == [dual[name][2] for name in dual] == counts


def test_the_search_ranges_are_the_paper_s(paper):
    assert r"$\psi \in \{ 2^m\ |\ m=2,3,\dots,12\}$" in paper
    assert settings.CELLS["full"] == tuple(2**m for m in range(2, 13))
    assert r"$\lambda \in \{10^m,\frac{10^m}{2}\ |\ m=-2,-3,-4,-5\}$" in paper
    assert sorted(settings.SHRINKAGES["full"]) == pytest.approx(
        sorted(10.0**m / part for m in (-2, -3, -4, -5) for part in (1, 2))
    )


def test_every_data_set_has_its_published_figures():
    assert all(list(figures) == NAMES for figures in settings.BATCH_PUBLISHED.values())
    assert list(settings.BATCH_DATASETS) == NAMES
