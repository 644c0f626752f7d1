"""What `mkdocs build` does beyond mkdocs.yml: pages of the site that lie outside docs/, and links
between the two.

In the repository README.md links to docs/results.md and pages link to ../README.md; on the site all
of them are neighbours. A link to any other file of the repository, which the site does not have,
becomes its words alone.
"""

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
BESIDES = {
    "README.md": "readme.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
LINK = re.compile(r"\[([^\]]*)\]\(\.\./([^)#\s]+)(#[^)\s]*)?\)")


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that lie beside docs/."""
    for name, page in BESIDES.items():
        files.append(
            File.generated(config, page, content=_beside_the_others((ROOT / name).read_text()))
        )
    return files


def _beside_the_others(text: str) -> str:
    """A page whose links lead to its neighbours on the site, where those in the repository lead to
    docs/ and beside it.
    """
    text = text.replace("](docs/", "](")
    for name, page in BESIDES.items():
        text = text.replace(f"]({name}", f"]({page}")
    return text


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Links that lead out of docs/ lead to the page of that file, if it has one."""
    return LINK.sub(_inside, markdown)


def _inside(link: re.Match[str]) -> str:
    words, path, anchor = link.groups(default="")
    return f"[{words}]({BESIDES[path]}{anchor})" if path in BESIDES else words
