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
    assert tuple(2**m for m in exponents(laplacian)) == settings.N_CELLS_SEARCHED
    assert sorted(settings.ADARAKER_LAMBDAS_SEARCHED) == pytest.approx(
        sorted(10.0**m / part for m in exponents(lambdas) for part in (1, 2))
    )
    assert tuple(2.0**m for m in exponents(sigmas)) == settings.ADARAKER_SIGMAS


def test_defaults_are_the_papers():
    text = paper_text()
    numbers = {
        "LEARNING_RATE": r"same learning rate \$\\eta=([\d.]+)\$",
        "N_PARTITIONINGS": r"create Isolation Kernel is set to \$t=(\d+)\$",
        "N_LANDMARKS": r"sampling size or budget.*?\$b=(\d+)\$; and the matrix rank",
        "BLOCK": r"arrive sequentially in blocks of (\d+) points",
        "N_FOLDS": r"selected via (\d)-fold cross-validation",
    }
    assert {name: getattr(settings, name) for name in numbers} == {
        name: float(re.search(pattern, text)[1]) for name, pattern in numbers.items()
    }
    share = float(re.search(r"matrix rank is set to \$r=([\d.]+)b\$", text)[1])
    assert share * settings.N_LANDMARKS == settings.RANK
