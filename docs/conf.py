"""Configure Sphinx; `make docs` builds the site. Nothing is fetched: neither while it is built nor while it is read."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import hooks
import pages

import isokern

pages.write_pages()

project = "isokern"
author = "The isokern developers"
copyright = author
version = release = isokern.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_design",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "gallery", "results/paper/*/*"]
smartquotes = False  # would turn --option into a dash
nitpicky = True  # a reference to a name that does not exist is a warning, and so an error

myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence"]

autosummary_generate = False  # pages.py writes a page for each name
autodoc_typehints = "none"  # types are in the docstrings, with their meaning
toc_object_entries_show_parents = "hide"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False

copybutton_exclude = ".linenos, .gp, .go"  # prompts and output are not copied

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "examples",
    "backreferences_dir": "examples/backreferences",
    "doc_module": ("isokern",),
    "reference_url": {"isokern": None},
    "within_subsection_order": "FileNameSortKey",
    "image_scrapers": ("matplotlib",),
    "image_srcset": ["2x"],  # sharp on phones
    "min_reported_time": 1e6,  # of an example; it depends on the machine
    "write_computation_times": False,
    "capture_repr": (),
}

# Pages whose tables need the room of the contents at the right.
WIDE_PAGES = [f"results/{path.stem}" for path in sorted(pages.DOCS.glob("results/*.md"))]

html_theme = "pydata_sphinx_theme"
html_title = "isokern"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_show_sourcelink = False
html_sidebars = {"index": [], "start": []}
html_theme_options = {
    "show_toc_level": 2,
    "secondary_sidebar_items": {"**": ["page-toc"]} | {name: [] for name in WIDE_PAGES},
    "header_links_before_dropdown": 7,
    "navbar_align": "left",
    "navigation_with_keys": False,
    "show_prev_next": False,
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}

setup = hooks.setup
