r"""Parse the tables of the paper's text, for tests that compare our copies of its numbers with them.

``paper_tables()["tbl:main_results"]`` is a list of rows, each a list of cells in plain text: ``"url"``, ``".67"``,
``"65,319"``, ``"-ME-"``, ``"> 1 week"``, ``""``. Empty cells follow a cell that spans several columns, so that the
index of a cell is its column.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from isokern.data import list_datasets

DATASETS = [info.name for info in list_datasets()]
SPELLINGS = {"minst": "mnist", "covtype": "covertype"}

_RULES = re.compile(r"\\(?:toprule|midrule|bottomrule|hline|cline\{[^}]*\}|cmidrule(?:\([^)]*\))?\{[^}]*\})")
_WRAPPERS = [
    re.compile(pattern)
    for pattern in (
        r"\\cellcolor\{[^{}]*\}()",
        r"\\ref\{([^{}]*)\}",
        r"\\underline\s*\{([^{}]*)\}",
        r"\{\\bf\s+([^{}]*)\}",
        r"\\textcolor\{[^{}]*\}\{([^{}]*)\}",
        r"\\multirow\{[^{}]*\}\{[^{}]*\}\{([^{}]*)\}",
        r"^\{([^{}]*)\}$",
    )
]
_MULTICOLUMN = re.compile(r"\\multicolumn\{(\d+)\}\{[^{}]*\}\{(.*)\}", flags=re.DOTALL)


def paper_text():
    """Return the paper's text, or skip the test if it is not available."""
    root = Path(__file__).parents[1]
    data = Path(os.environ.get("ISOKERN_DATA", root.parent / "shared" / "data"))
    path = Path(os.environ.get("ISOKERN_PAPER", data.parent / "paper.tex"))
    if not path.is_file():
        pytest.skip("the paper's text is not available; set ISOKERN_PAPER to its path")
    return path.read_text(encoding="utf-8")


def paper_tables():
    """Return the rows of each table, headings included, by the table's label."""
    tables = re.findall(r"\\begin\{table\*?\}.*?\\end\{table\*?\}", paper_text(), flags=re.DOTALL)
    return {re.search(r"\\label\{([^}]*)\}", table)[1]: _rows(table) for table in tables}


def by_dataset(rows):
    """Return the rows that begin with a data set's name, without it, by our spelling of the name."""
    named = {SPELLINGS.get(row[0], row[0]): row[1:] for row in rows}
    return {name: cells for name, cells in named.items() if name in DATASETS}


def number(cell):
    """Return a cell as int or, with a decimal point, float, and None if it is not a number."""
    digits = cell.replace(",", "")
    if not re.fullmatch(r"\d+|\d*\.\d+", digits):
        return None
    return float(digits) if "." in digits else int(digits)


def _rows(table):
    body = re.search(r"\\begin\{tabular\}\{(?:[^{}]|\{[^{}]*\})*\}(.*)\\end\{tabular\}", table, flags=re.DOTALL)[1]
    lines = (_RULES.sub("", line).strip() for line in body.split(r"\\"))
    return [[cell for part in re.split(r"(?<!\\)&", line) for cell in _cells(part.strip())] for line in lines if line]


def _cells(part):
    """Return a cell, and empty ones for the other columns that it spans."""
    wide = _MULTICOLUMN.fullmatch(part)
    return [_plain(wide[2]), *[""] * (int(wide[1]) - 1)] if wide else [_plain(part)]


def _plain(text):
    before = None
    while before != text:
        before, text = text, text.strip()
        for wrapper in _WRAPPERS:
            text = wrapper.sub(r"\1", text)
    for marked, plain in (("$", ""), (r"\#", "#"), (r"\%", "%"), (r"\&", "&"), ("~", " ")):
        text = text.replace(marked, plain)
    return " ".join(text.split())
