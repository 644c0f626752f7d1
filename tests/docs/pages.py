"""The pages of the documentation as tests read them: fenced blocks with their language and
title.
"""

import re
from pathlib import Path
from typing import NamedTuple

from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[2]
PAGES = sorted(ROOT.glob("docs/*.md"))
TITLE = re.compile(r'title="([^"]+)"')


class Block(NamedTuple):
    """A fenced block. `title`: the file that it is, or changes."""

    language: str
    title: str | None
    text: str


def blocks(page: Path, *languages: str) -> list[Block]:
    """Fenced blocks of a page in these languages, in order."""
    fences = (token for token in MarkdownIt().parse(page.read_text()) if token.type == "fence")
    found = [
        Block(
            fence.info.split(" ")[0],
            title[1] if (title := TITLE.search(fence.info)) else None,
            fence.content,
        )
        for fence in fences
    ]
    return [block for block in found if block.language in languages]


def prose(page: Path) -> str:
    """A page without its fenced blocks and code spans."""
    return re.sub(r"^```.*?^```|`[^`\n]*`", "", page.read_text(), flags=re.S | re.M)
