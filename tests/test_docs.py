"""Run the examples of the documentation pages."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"


PAGES = ["adaptive", "export", "imbalance", "progress", "race", "serving", "streams", "tables"]


@pytest.mark.parametrize("page", [f"{name}.md" for name in PAGES])
def test_the_examples_of_a_page_run(page):
    text = "\n".join(re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), flags=re.DOTALL))
    examples = doctest.DocTestParser().get_doctest(text, {}, page, page, 0)
    assert examples.examples
    assert doctest.DocTestRunner().run(examples).failed == 0
