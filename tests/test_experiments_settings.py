"""The settings and figures of the paper, held against its text."""

from __future__ import annotations

import re

import pytest

from isokern.experiments import settings
from paper_tables import DATASETS, by_dataset, number, paper_tables, paper_text

TABLE = r"""
\begin{table}[!t]
 \caption{Made up. \label{tbl:made_up}}
 \begin{tabular}{l|r@{ }rr}\toprule
  & \multicolumn{2}{c||}{Both} & \#last\% \\ \cmidrule{2-3}
 minst & .\underline {67} & {\bf 1,203} & \textcolor{blue}{$>$ 1 week} \\
 a9a & \multicolumn{2}{c}{\cellcolor{gray} \multirow{2}{1cm}{\textcolor{red}{this \& that}}} & 0.{\bf 5}\\\hline
 \end{tabular}
\end{table}
"""


@pytest.fixture(scope="module")
def tables():
    """Return the paper's tables by their labels."""
    return paper_tables()


def test_tables_are_read_without_their_markup_cell_by_cell():
    assert paper_tables(TABLE) == {
        "tbl:made_up": [
            ["", "Both", "", "#last%"],
            ["minst", ".67", "1,203", "> 1 week"],
            ["a9a", "this & that", "", "0.5"],
        ]
    }


def test_rows_are_found_by_our_names_of_data_sets():
    assert by_dataset(paper_tables(TABLE)["tbl:made_up"]) == {
        "mnist": [".67", "1,203", "> 1 week"],
        "a9a": ["this & that", "", "0.5"],
    }


@pytest.mark.parametrize(
    ("cell", "value"), [(".67", 0.67), ("1,203", 1203), ("0.5", 0.5), ("> 1 week", None), ("---", None), ("", None)]
)
def test_a_cell_is_a_number_or_none(cell, value):
    assert number(cell) == value
    assert type(number(cell)) is type(value)


def test_the_data_sets_are_the_papers_in_its_order(tables):
    assert tuple(by_dataset(tables["tbl:data_properties"])) == settings.DATASETS == tuple(DATASETS)


def test_the_properties_of_data_sets_are_the_papers(tables):
    rows = by_dataset(tables["tbl:data_properties"])
    assert {name: tuple(map(number, cells)) for name, cells in rows.items()} == settings.DATASETS_PUBLISHED


def test_the_sizes_of_feature_maps_are_the_papers(tables):
    sizes = {row[0]: row[-1] for row in tables["tab:feature_size"][1:]}
    plain = {kernel: size.replace(r"t\psi \rightarrow", "t psi ->") for kernel, size in sizes.items()}
    assert plain == settings.FEATURE_MAP_SIZE_PUBLISHED


BATCH = ["OGD", "IK_i-OGD", "IK_a-OGD", "NOGD", "AdaRaker"]
ADDITIVE = ["LIBSVM, IK_a", "LIBSVM, chi2", "LIBLINEAR, chi2", "LIBLINEAR, IK_a"]
# For each table: its label in the paper, and where in it each of our columns stands.
PLACES = {
    "BATCH_PUBLISHED": (
        "tbl:main_results",
        {(method, "accuracy"): place for place, method in enumerate(BATCH)}
        | {("OGD", "seconds"): 5, ("IK_i-OGD", "seconds"): 6, ("NOGD", "seconds"): 9, ("AdaRaker", "seconds"): 10},
    ),
    "GPU_PUBLISHED": ("tbl:GPU_results", {("CPU", "seconds"): 0, ("GPU", "seconds"): 1}),
    "SVM_PUBLISHED": (
        "tbl_LIBLINEAR",
        {
            (method, measure): 2 * where + which
            for where, measure in enumerate(("accuracy", "seconds"))
            for which, method in enumerate(("SVM", "IK_a-SVM"))
        },
    ),
    "ADDITIVE_PUBLISHED": (
        "tbl_additive_kernels",
        {(method, "accuracy"): place for method, place in zip(ADDITIVE, (0, 1, 3, 4), strict=True)}
        | {("LIBLINEAR, chi2", "n_columns"): 6},
    ),
}
MARKS = {"---": None, "-ME-": "memory error", "-GE-": "> 64 GB"}  # GE: no map, since it needed more than that


def as_ours(cell):
    """Return a cell as the settings have it."""
    value = number(cell)
    return MARKS.get(cell, cell) if value is None else value


@pytest.mark.parametrize("name", PLACES)
def test_the_published_figures_are_those_of_the_paper_s_table(name, tables):
    label, places = PLACES[name]
    rows, ours = by_dataset(tables[label]), getattr(settings, name)
    for (method, measure), place in places.items():
        assert ours[method][measure] == {dataset: as_ours(cells[place]) for dataset, cells in rows.items()}


def test_no_published_figure_is_left_unchecked():
    elsewhere = {("BATCH_PUBLISHED", "IK_a-OGD", "seconds")}  # these are those of GPU_PUBLISHED
    kept = {
        (name, method, measure)
        for name in PLACES
        for method, figures in getattr(settings, name).items()
        for measure in figures
    }
    assert kept - elsewhere == {(name, *which) for name, (_, places) in PLACES.items() for which in places}
    assert {name for name in vars(settings) if name.endswith("_PUBLISHED")} == {
        *PLACES,
        "DATASETS_PUBLISHED",
        "FEATURE_MAP_SIZE_PUBLISHED",
        "PRIMAL_DUAL_PUBLISHED",
    }


def test_the_times_of_voronoi_cells_are_those_on_the_cpu():
    assert settings.BATCH_PUBLISHED["IK_a-OGD"]["seconds"] == settings.GPU_PUBLISHED["CPU"]["seconds"]


def test_what_is_published_of_the_primal_and_the_dual_form_is_in_the_paper_s_text():
    text = paper_text()
    begin = text.index("The proportions of time spent on the two prediction functions")
    text = text[begin : begin + 1500].replace(r"\%", " percent")
    shares = [float(share) / 100 for share in re.findall(r"([\d.]+) percent", text)]
    totals = [(number(a), number(b)) for a, b in re.findall(r"([\d,]+) seconds versus ([\d,]+) seconds", text)]
    counts = [number(n) for n in re.findall(r"(\d{3},\d{3}) for (?:rcv1.binary|epsilon)", text)]
    primal, dual = (settings.PRIMAL_DUAL_PUBLISHED[form] for form in ("IK-OGD", "IK-OGD(dual)"))
    assert {tuple(figures) for form in (primal, dual) for figures in form.values()} == {("rcv1.binary", "epsilon")}
    assert [*primal["share"].values(), *dual["share"].values()] == pytest.approx(shares)
    assert list(zip(primal["seconds"].values(), dual["seconds"].values(), strict=True)) == totals
    assert list(primal["n_support"].values()) == list(dual["n_support"].values()) == counts


def exponents(text):
    """Return the numbers m of "m=2,3,...,12", with those that the dots stand for."""
    given = [
        int(digits) if digits != r"\dots" else None
        for digits in re.search(r"m=([^\\}]*(?:\\dots[^\\}]*)?)", text)[1].split(",")
    ]
    if None not in given:
        return given
    dots = given.index(None)
    return [*given[:dots], *range(given[dots - 1] + 1, given[dots + 1]), *given[dots + 1 :]]


def test_search_ranges_are_the_papers(tables):
    _, laplacian, _, lambdas, sigmas = (row[1] for row in tables["tbl:param"])
    assert tuple(2**m for m in exponents(laplacian)) == settings.N_CELLS_SEARCHED["full"]
    assert sorted(settings.ADARAKER_LAMBDAS_SEARCHED["full"]) == pytest.approx(
        sorted(10.0**m / part for m in exponents(lambdas) for part in (1, 2))
    )
    assert tuple(2.0**m for m in exponents(sigmas)) == settings.ADARAKER_SIGMAS


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


def test_quick_scale_searches_a_part_of_the_paper_s_range():
    for searched in (settings.N_CELLS_SEARCHED, settings.ADARAKER_LAMBDAS_SEARCHED):
        assert set(searched["quick"]) < set(searched["full"])


def test_folds_have_rows_for_as_many_cells_as_are_searched():
    n_left = settings.CROSS_VALIDATION_ROWS["full"] * (settings.N_FOLDS - 1) // settings.N_FOLDS
    assert n_left >= max(settings.N_CELLS_SEARCHED["full"])
