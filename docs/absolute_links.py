"""Make the relative links of README.md absolute, because PyPI shows it outside of the repository.

The workflow ``release`` calls this with the address of the repository and the tag, before it builds anything:

    python docs/absolute_links.py https://github.com/OWNER/NAME v0.1.0
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"
RELATIVE = re.compile(r"(!?)(\[[^]]*\])\((?!\w+:|#)([^)]*)\)")  # [text](path), or ![text](path) of an image


def with_absolute_links(text: str, repository: str, tag: str) -> str:
    """Return a Markdown text whose links to files lead to a repository, at a tag; images to their bytes."""
    return RELATIVE.sub(
        lambda link: f"{link[1]}{link[2]}({repository}/{'raw' if link[1] else 'blob'}/{tag}/{link[3]})", text
    )


if __name__ == "__main__":
    README.write_text(with_absolute_links(README.read_text(), *sys.argv[1:]))
