"""A page of headings, sentences, tables and pictures, as Markdown and as HTML that stands by itself."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

_STYLE = """
:root { color-scheme: light dark; --ink: #1f2328; --paper: #fff; --faint: #6a737d; --line: #d0d7de; --band: #f6f8fa;
  --yes: #00704f; --no: #b04600; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e6e6; --paper: #16181c; --faint: #9aa4af; --line: #3a4048;
  --band: #20242a; --yes: #4cc9a0; --no: #f0a05a; } }
body { margin: 2rem auto; max-width: 80rem; padding: 0 1rem; color: var(--ink); background: var(--paper);
  font: 16px/1.5 system-ui, sans-serif; }
h2 { margin-top: 3rem; border-bottom: 1px solid var(--line); padding-bottom: .3rem; }
a { color: inherit; }
.wide { overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; font-size: .85rem; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .6rem; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
th { background: var(--band); }
td.number, th.number { text-align: right; }
td.number, td:first-child { white-space: nowrap; }
td.good { color: var(--yes); font-weight: 600; white-space: nowrap; }
td.bad { color: var(--no); font-weight: 600; white-space: nowrap; }
ul { color: var(--faint); font-size: .9rem; }
img { max-width: 100%; background: #fff; border-radius: 4px; }
"""


@dataclass(frozen=True)
class Heading:
    """A heading; those of the second level can be linked to by their anchors."""

    text: str
    level: int = 2
    anchor: str = ""

    def as_markdown(self) -> str:
        """Return it as Markdown."""
        target = f'<a id="{self.anchor}"></a>\n\n' if self.anchor else ""
        return f"{target}{'#' * self.level} {self.text}"

    def as_html(self) -> str:
        """Return it as HTML."""
        target = f' id="{self.anchor}"' if self.anchor else ""
        return f"<h{self.level}{target}>{escape(self.text)}</h{self.level}>"


@dataclass(frozen=True)
class Paragraph:
    """A sentence or more."""

    text: str

    def as_markdown(self) -> str:
        """Return it as Markdown."""
        return _escaped(self.text)

    def as_html(self) -> str:
        """Return it as HTML."""
        return f"<p>{escape(self.text)}</p>"


@dataclass(frozen=True)
class Remarks:
    """Sentences, one below the other."""

    sentences: Sequence[str]

    def as_markdown(self) -> str:
        """Return it as Markdown."""
        return "\n".join(f"- {_escaped(sentence)}" for sentence in self.sentences)

    def as_html(self) -> str:
        """Return it as HTML."""
        return "<ul>" + "".join(f"<li>{escape(sentence)}</li>" for sentence in self.sentences) + "</ul>"


@dataclass(frozen=True)
class Link:
    """A cell that leads to a heading of the page."""

    text: str
    anchor: str


@dataclass(frozen=True)
class Mark:
    """A cell that says yes, no, or neither."""

    text: str
    is_good: bool | None


Content = str | Link | Mark


@dataclass(frozen=True)
class Grid:
    """A table of texts; columns of numbers stand at their right."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Content]]
    of_numbers: frozenset[int] = frozenset()

    def as_markdown(self) -> str:
        """Return it as Markdown."""
        rules = ["---:" if place in self.of_numbers else "---" for place in range(len(self.columns))]
        lines = [
            list(map(_escaped, self.columns)),
            rules,
            *([_cell_markdown(cell) for cell in row] for row in self.rows),
        ]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)

    def as_html(self) -> str:
        """Return it as HTML."""
        head = "".join(f"<th{self._class(place)}>{escape(name)}</th>" for place, name in enumerate(self.columns))
        lines = ["".join(self._cell_html(place, cell) for place, cell in enumerate(row)) for row in self.rows]
        body = "\n".join(f"<tr>{line}</tr>" for line in ([head, *lines] if any(self.columns) else lines))
        return f'<div class="wide"><table>\n{body}\n</table></div>'

    def _class(self, place: int) -> str:
        return ' class="number"' if place in self.of_numbers else ""

    def _cell_html(self, place: int, cell: Content) -> str:
        if isinstance(cell, Link):
            return f'<td><a href="#{cell.anchor}">{escape(cell.text)}</a></td>'
        if isinstance(cell, Mark):
            kind = {True: ' class="good"', False: ' class="bad"', None: ""}[cell.is_good]
            return f"<td{kind}>{escape(cell.text)}</td>"
        return f"<td{self._class(place)}>{escape(cell)}</td>"


@dataclass(frozen=True)
class Picture:
    """A PNG file: Markdown points to it, relative to the page; HTML holds it."""

    path: Path
    link: str
    title: str

    def as_markdown(self) -> str:
        """Return it as Markdown."""
        return f"![{_escaped(self.title)}]({self.link})"

    def as_html(self) -> str:
        """Return it as HTML."""
        data = base64.b64encode(self.path.read_bytes()).decode("ascii")
        return f'<p><img alt="{escape(self.title)}" src="data:image/png;base64,{data}"></p>'


Block = Heading | Paragraph | Remarks | Grid | Picture


def markdown_page(blocks: Iterable[Block]) -> str:
    """Return blocks as a page of Markdown."""
    return "\n\n".join(block.as_markdown() for block in blocks) + "\n"


def html_page(blocks: Iterable[Block], title: str) -> str:
    """Return blocks as a page of HTML that needs no other file."""
    head = (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style></head>\n<body>\n"
    )
    return head + "\n".join(block.as_html() for block in blocks) + "\n</body></html>\n"


def _cell_markdown(cell: Content) -> str:
    if isinstance(cell, Link):
        return f"[{_escaped(cell.text)}](#{cell.anchor})"
    if isinstance(cell, Mark):
        return f"**{_escaped(cell.text)}**" if cell.is_good is not None else _escaped(cell.text)
    return _escaped(cell)


def _escaped(text: str) -> str:
    """Return text in which nothing is taken for a mark of Markdown's."""
    for mark in ("\\", "|", "_", "*", "<"):
        text = text.replace(mark, f"\\{mark}")
    return text
