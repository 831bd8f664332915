"""Compare the settings and the published numbers with the paper's text."""

from __future__ import annotations

import re

import pytest

from isokern.experiments import settings
from paper_tables import DATASETS, by_dataset, number, paper_tables, paper_text

BATCH = ["OGD", "IK_i-OGD", "IK_a-OGD", "NOGD", "AdaRaker"]
SVM = ["SVM", "IK_a-SVM"]
ADDITIVE = ["LIBSVM, IK_a", "LIBSVM, chi2", "LIBLINEAR, chi2", "LIBLINEAR, IK_a"]
# For each of our tables: its label in the paper, and the paper's column of each of our columns.
PLACES = {
    "BATCH_PUBLISHED": (
        "tbl:main_results",
        {(method, "accuracy"): place for place, method in enumerate(BATCH)}
        | {("OGD", "seconds"): 5, ("IK_i-OGD", "seconds"): 6, ("NOGD", "seconds"): 9, ("AdaRaker", "seconds"): 10},
    ),
    "GPU_PUBLISHED": ("tbl:GPU_results", {("CPU", "seconds"): 0, ("GPU", "seconds"): 1}),
    "SVM_PUBLISHED": (
        "tbl_LIBLINEAR",
        {(method, key): 2 * k + j for k, key in enumerate(("accuracy", "seconds")) for j, method in enumerate(SVM)},
    ),
    "ADDITIVE_PUBLISHED": (
        "tbl_additive_kernels",
        {(method, "accuracy"): place for method, place in zip(ADDITIVE, (0, 1, 3, 4), strict=True)}
        | {("LIBLINEAR, chi2", "n_columns"): 6},
    ),
}
MARKS = {"---": None, "-ME-": "memory error", "-GE-": "> 64 GB"}  # GE: the map needs more memory than that


@pytest.fixture(scope="module")
def tables():
    """Return the paper's tables by their labels."""
    return paper_tables()


def test_the_data_sets_are_the_papers_in_its_order(tables):
    rows = by_dataset(tables["tbl:data_properties"])
    assert tuple(rows) == settings.DATASETS == tuple(DATASETS)
    assert {name: tuple(map(number, cells)) for name, cells in rows.items()} == settings.DATASETS_PUBLISHED


def test_the_sizes_of_feature_maps_are_the_papers(tables):
    sizes = {row[0]: row[-1] for row in tables["tab:feature_size"][1:]}
    plain = {kernel: size.replace(r"t\psi \rightarrow", "t psi ->") for kernel, size in sizes.items()}
    assert plain == settings.FEATURE_MAP_SIZE_PUBLISHED


@pytest.mark.parametrize("name", PLACES)
def test_all_published_numbers_are_those_of_the_papers_table(name, tables):
    label, places = PLACES[name]
    rows, ours = by_dataset(tables[label]), getattr(settings, name)
    for method, measure in ((one, key) for one in ours for key in ours[one]):
        if (name, method, measure) == ("BATCH_PUBLISHED", "IK_a-OGD", "seconds"):
            assert ours[method][measure] is settings.GPU_PUBLISHED["CPU"]["seconds"]
            continue
        cells = {dataset: cells[places[method, measure]] for dataset, cells in rows.items()}
        expected = {dataset: MARKS.get(cell, cell) for dataset, cell in cells.items()}
        expected |= {dataset: number(cell) for dataset, cell in cells.items() if number(cell) is not None}
        assert ours[method][measure] == expected


def test_every_published_table_is_compared_with_the_paper():
    elsewhere = {"DATASETS_PUBLISHED", "FEATURE_MAP_SIZE_PUBLISHED", "PRIMAL_DUAL_PUBLISHED"}
    assert {name for name in vars(settings) if name.endswith("_PUBLISHED")} == {*PLACES, *elsewhere}


def test_the_published_numbers_of_the_primal_and_the_dual_form_are_in_the_paper_s_text():
    text = paper_text()
    begin = text.index("The proportions of time spent on the two prediction functions")
    text = text[begin : begin + 1500].replace(r"\%", " percent")
    shares = [float(share) / 100 for share in re.findall(r"([\d.]+) percent", text)]
    totals = [(number(a), number(b)) for a, b in re.findall(r"([\d,]+) seconds versus ([\d,]+) seconds", text)]
    counts = [number(n) for n in re.findall(r"(\d{3},\d{3}) for (?:rcv1.binary|epsilon)", text)]
    primal, dual = (settings.PRIMAL_DUAL_PUBLISHED[form] for form in ("IK-OGD", "IK-OGD(dual)"))
    assert {tuple(numbers) for form in (primal, dual) for numbers in form.values()} == {("rcv1.binary", "epsilon")}
    assert [*primal["share"].values(), *dual["share"].values()] == pytest.approx(shares)
    assert list(zip(primal["seconds"].values(), dual["seconds"].values(), strict=True)) == totals
    assert list(primal["n_support"].values()) == list(dual["n_support"].values()) == counts


def exponents(text):
    """Return the numbers m of "m=2,3,...,12", with those that the dots omit."""
    before, _, after = re.search(r"m=([^\\}]*(?:\\dots[^\\}]*)?)", text)[1].partition(r",\dots,")
    first, last = ([int(m) for m in part.split(",") if m] for part in (before, after))
    return [*first, *range(first[-1] + 1, last[0]), *last] if last else first


def test_search_ranges_are_the_papers(tables):
    _, laplacian, _, lambdas, sigmas = (row[1] for row in tables["tbl:param"])
    assert tuple(2**m for m in exponents(laplacian)) == settings.N_CELLS_SEARCHED["full"]
    assert sorted(settings.ADARAKER_LAMBDAS_SEARCHED["full"]) == pytest.approx(
        sorted(10.0**m / part for m in exponents(lambdas) for part in (1, 2))
    )
    assert tuple(2.0**m for m in exponents(sigmas)) == settings.ADARAKER_SIGMAS
    for searched in (settings.N_CELLS_SEARCHED, settings.ADARAKER_LAMBDAS_SEARCHED):
        assert set(searched["quick"]) < set(searched["full"])


def test_defaults_are_the_papers():
    text = paper_text()
    numbers = {
        "LEARNING_RATE": r"same learning rate \$\\eta=([\d.]+)\$",
        "N_PARTITIONINGS": r"create Isolation Kernel is set to \$t=(\d+)\$",
        "N_LANDMARKS": r"sampling size or budget.*?\$b=(\d+)\$; and the matrix rank",
        "BLOCK_ROWS": r"arrive sequentially in blocks of (\d+) points",
        "RANK": r"matrix rank is set to \$r=([\d.]+)b\$",
        "N_FOLDS": r"selected via (\d)-fold cross-validation",
    }
    assert {name: getattr(settings, name) for name in numbers} == {
        name: float(re.search(pattern, text)[1]) for name, pattern in numbers.items()
    }


def test_folds_have_rows_for_the_largest_psi():
    n_left = settings.SLOW_CROSS_VALIDATION_ROWS["full"] * (settings.N_FOLDS - 1) // settings.N_FOLDS
    assert n_left >= max(settings.N_CELLS_SEARCHED["full"])
