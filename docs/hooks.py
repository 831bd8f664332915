"""Extend Sphinx: links between pages and names, frames of figures, and a list of the pages for language models."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pages
from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.transforms import SphinxTransform
from sphinx_gallery.directives import imgsgnode


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect everything in this file."""
    app.connect("source-read", relink)
    app.connect("autodoc-skip-member", skip_member)
    app.connect("build-finished", write_llms_txt)
    app.connect("build-finished", check_output)
    app.add_transform(LinkedNames)
    app.add_transform(FramedFigures)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def relink(app: Sphinx, page: str, source: list[str]) -> None:
    """Let links to files of the repository lead to their pages of the site."""
    if not page.startswith(("project/", "reference/", "examples/")):
        source[0] = pages.relinked(source[0], str(Path(page).parent).strip("."))


# Methods that modules of isokern call; users do not need them.
INTERNAL = {
    *("apply_rows", "begin", "check", "check_parameters", "code_rows", "features", "fit_mapped", "fit_rows"),
    *("fit_sampled", "forest", "holds_out", "losses", "map_rows", "read_targets", "takes_cells", "without_rows"),
}


def skip_member(app: Sphinx, kind: str, name: str, member: Any, skip: bool, options: Any) -> bool | None:
    """Leave out internal methods, and what scikit-learn documents: ``get_params``, ``score``, metadata requests."""
    is_inherited = str(getattr(member, "__module__", "")).startswith("sklearn")
    return True if is_inherited or name in INTERNAL or re.fullmatch(r"set_\w+_request", name) else None


# Names that in prose mostly mean something else: readers of Dask, experiments named like a common word.
AMBIGUOUS = {
    *(f"isokern.distributed.read_{kind}" for kind in ("csv", "libsvm", "parquet")),
    *(f"isokern.experiments.{name}" for name in ("batch", "datasets", "gpu", "online", "svm", "find", "additive")),
}


class LinkedNames(SphinxTransform):
    """Link public names in prose to the reference: `IKSVC`, `IKSVC(C=1)`, `isokern.save`, `prequential`."""

    default_priority = 400

    def apply(self, **kwargs: Any) -> None:
        """Wrap literals that begin with a public name in a reference to it."""
        full = [name for module in reversed(pages.public_modules()) for name in pages.object_pages(module)]
        names = {name.rpartition(".")[2]: name for name in full if name not in AMBIGUOUS} | {
            name: name for name in full
        }
        page = self.env.docname.rpartition("/")[2]
        for literal in list(self.document.findall(nodes.literal)):
            name = re.match(r"[\w.]+", literal.astext())
            target = names.get(name[0]) if name else None
            if target and target != page and not isinstance(literal.parent, nodes.reference | addnodes.pending_xref):
                link = addnodes.pending_xref("", refdomain="py", reftype="obj", reftarget=target, refwarn=True)
                literal.replace_self(link)
                link += literal


class FramedFigures(SphinxTransform):
    """Put each figure into a frame of its own, which scrolls on a phone while the text stays; see site.css."""

    default_priority = 400

    def apply(self, **kwargs: Any) -> None:
        """Wrap images of the gallery, and those that are a whole paragraph."""
        for image in list(self.document.findall(lambda node: isinstance(node, nodes.image | imgsgnode))):
            is_paragraph = isinstance(image.parent, nodes.paragraph) and len(image.parent) == 1
            if is_paragraph or isinstance(image, imgsgnode):
                frame = nodes.container(classes=["figure-frame"])
                (image.parent if is_paragraph else image).replace_self(frame)
                frame += image


def write_llms_txt(app: Sphinx, error: Exception | None) -> None:
    """Write llms.txt: all pages with their first sentence, as links to their Markdown or reStructuredText."""
    if error or app.builder.name != "html":
        return
    text = "# isokern\n\n> Online kernel learning with the Isolation Kernel: a Python library and a command line.\n"
    for section in app.env.toctree_includes["index"]:
        text += f"\n## {app.env.titles[section].astext()}\n\n"
        text += "".join(_entry(app, page) for page in _pages_below(app, section))
    Path(app.outdir, "llms.txt").write_text(text)


def _pages_below(app: Sphinx, page: str) -> list[str]:
    below = app.env.toctree_includes.get(page, [])
    return [page, *(name for one in below for name in _pages_below(app, one))]


def _entry(app: Sphinx, page: str) -> str:
    paragraphs = app.env.get_doctree(page).findall(nodes.paragraph)
    texts = (one.astext().replace("\n", " ") for one in paragraphs if isinstance(one.parent, nodes.section))
    first = re.split(r"(?<=\.) ", next(texts, ""))[0]
    source = f"_sources/{page}{Path(app.env.doc2path(page)).suffix}.txt"
    return f"- [{app.env.titles[page].astext()}]({source}): {first}\n"


def check_output(app: Sphinx, error: Exception | None) -> None:
    """Raise if a page would load anything from the network, or names a folder of this machine."""
    if error or app.builder.name != "html":
        return
    loads = re.compile(r"""<(?:script|link|img|iframe|source)\b[^>]*\b(?:src|href)=["'](?:https?:)?//""")
    for path in Path(app.outdir).rglob("*.html"):
        text = path.read_text()
        if loads.search(text) or str(pages.DOCS.parent) in text:
            raise ExtensionError(f"{path.name} must need no network and name no local folder.")
