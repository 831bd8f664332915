"""The published figures of the experiments with machines and graphics cards, against the paper's text."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from isokern.experiments import _settings_e3 as settings

MISSPELLED = {"minst": "mnist", "covtype": "covertype"}
MARKS = {"---": None, "-GE-": "> 64 GB"}  # GE: no map, since it needed more than 64 GB


@pytest.fixture(scope="module")
def paper():
    """Return the paper's text."""
    default = Path(__file__).parents[2] / "shared" / "paper.tex"
    path = Path(os.environ.get("ISOKERN_PAPER", default))
    if not path.exists():
        pytest.skip("the paper's text is not at hand; set ISOKERN_PAPER to where paper.tex is")
    return path.read_text()


def rows_of(paper, label):
    """Return the rows of a table by data set, empty columns left out."""
    text = paper.split(f"\\label{{{label}}}")[1].split("\\midrule")[1].split("\\bottomrule")[0]
    rows = {}
    for line in filter(str.strip, text.replace("\\\\", "\n").splitlines()):
        name, *cells = (cell.strip() for cell in line.split("&"))
        rows[MISSPELLED.get(name, name)] = [value(cell) for cell in cells if cell]
    return rows


def value(cell):
    plain = re.sub(r"\\textcolor\{\w+\}\{(.*)\}", r"\1", cell).replace("$>$", ">")
    if plain in MARKS or plain.startswith(">"):
        return MARKS.get(plain, plain)
    return float(plain.replace(",", ""))


def test_the_figures_of_svm_are_those_of_the_paper(paper):
    ours, theirs = (settings.SVM_PUBLISHED[method] for method in ("IK_a-SVM", "SVM"))
    figures = {name: [theirs[name][0], ours[name][0], theirs[name][1], ours[name][1]] for name in ours}
    assert figures == rows_of(paper, "tbl_LIBLINEAR")


def test_the_figures_of_additive_kernels_are_those_of_the_paper(paper):
    methods = ("LIBSVM, IK_a", "LIBSVM, chi2", "LIBLINEAR, chi2", "LIBLINEAR, IK_a")
    figures = {
        name: [*(settings.ADDITIVE_PUBLISHED[method][name] for method in methods), n_features]
        for name, n_features in settings.CHI2_FEATURES_PUBLISHED.items()
    }
    assert figures == rows_of(paper, "tbl_additive_kernels")


def test_the_figures_of_graphics_cards_are_those_of_the_paper(paper):
    cpu, gpu = (settings.GPU_PUBLISHED[device] for device in ("CPU", "GPU"))
    assert {name: [cpu[name], gpu[name]] for name in cpu} == rows_of(paper, "tbl:GPU_results")
