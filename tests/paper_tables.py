r"""The tables of the paper's text, parsed, for tests that hold our copies of the figures against them.

``paper_tables()["tbl:main_results"]`` is a list of rows, each a list of cells in plain text: ``"url"``, ``".67"``,
``"65,319"``, ``"-ME-"``, ``"> 1 week"``, ``""``. A cell over two columns is followed by an empty one, so that the place
of a cell is its column. ``by_dataset(rows)`` keeps the rows of data sets under their names as we spell them, and
``number(cell)`` makes a number of a cell, or None if it is none.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from isokern.data import list_datasets

DATASETS = [info.name for info in list_datasets()]
SPELT = {"minst": "mnist", "covtype": "covertype"}

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
    """Return the paper's text, or skip the test if it is not at hand."""
    root = Path(__file__).parents[1]
    data = Path(os.environ.get("ISOKERN_DATA", root.parent / "shared" / "data"))
    path = Path(os.environ.get("ISOKERN_PAPER", data.parent / "paper.tex"))
    if not path.is_file():
        pytest.skip("the paper's text is not at hand; set ISOKERN_PAPER to where it is")
    return path.read_text(encoding="utf-8")


def paper_tables(text=None):
    """Return the rows of each table, headings included, by the table's label."""
    tables = re.findall(r"\\begin\{table\*?\}.*?\\end\{table\*?\}", text or paper_text(), flags=re.DOTALL)
    return {re.search(r"\\label\{([^}]*)\}", table)[1]: _rows(table) for table in tables}


def by_dataset(rows):
    """Return the cells after the first one of the rows that begin with a data set's name, by that name."""
    named = {SPELT.get(row[0], row[0]): row[1:] for row in rows}
    return {name: cells for name, cells in named.items() if name in DATASETS}


def number(cell):
    """Return a cell's number: an int where it has no point, a float where it has one, None where it is none."""
    digits = cell.replace(",", "")
    if not re.fullmatch(r"\d+|\d*\.\d+", digits):
        return None
    return float(digits) if "." in digits else int(digits)


def _rows(table):
    body = re.search(r"\\begin\{tabular\}\{(?:[^{}]|\{[^{}]*\})*\}(.*)\\end\{tabular\}", table, flags=re.DOTALL)[1]
    lines = (_RULES.sub("", line).strip() for line in body.split(r"\\"))
    return [[cell for part in re.split(r"(?<!\\)&", line) for cell in _cells(part.strip())] for line in lines if line]


def _cells(part):
    """Return a cell, and the empty ones that it lies over."""
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
