"""The documentation as a site: it builds without a warning, loads nothing from elsewhere, and no
link in it is dead.
"""

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlparse

import pytest
from pages import PAGES, ROOT

pytestmark = pytest.mark.slow

LOADED = {
    "script": "src",
    "link": "href",
    "img": "src",
    "iframe": "src",
    "source": "src",
    "video": "src",
    "audio": "src",
}


class Page(HTMLParser):
    """What a page of the site loads, links to, and can be linked at."""

    def __init__(self, path: Path):
        super().__init__()
        self.path = path
        self.loads = []
        self.links = []
        self.anchors = set()
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, given: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in given}
        self.anchors |= {attributes[name] for name in ("id", "name") if name in attributes}
        if tag in LOADED and LOADED[tag] in attributes:
            self.loads.append(attributes[LOADED[tag]])
        if tag == "a" and "href" in attributes:
            self.links.append(attributes["href"])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--strict",
        "--quiet",
        "--site-dir",
        str(folder),
    ]
    variables = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    found = {path: Page(path) for path in site.rglob("*.html") if path.name != "404.html"}
    assert len(found) > len(PAGES)
    return found


def test_every_page_is_there(site: Path) -> None:
    for page in [*PAGES, *(ROOT / "docs/api").glob("*.md")]:
        assert (site / page.relative_to(ROOT / "docs").with_suffix(".html")).is_file()
    assert 'id="what-is-promised-and-what-is-not"' in (site / "readme.html").read_text()


def test_nothing_is_loaded_from_elsewhere(site: Path, pages: dict[Path, Page]) -> None:
    for page in pages.values():
        for address in page.loads:
            assert not urlparse(address).scheme and not urlparse(address).netloc, (
                page.path.name,
                address,
            )
            assert (page.path.parent / unquote(urldefrag(address)[0])).is_file(), (
                page.path.name,
                address,
            )
    styles = list(site.rglob("*.css"))
    assert styles
    for path in styles:
        for address in re.findall(r"@import\s*([^;]+);|url\(([^)]+)\)", path.read_text()):
            assert "".join(address).strip("'\"").startswith(("data:", "#", "../", "./")), (
                path.name,
                address,
            )


def test_every_internal_link_resolves(pages: dict[Path, Page]) -> None:
    checked = 0
    for page in pages.values():
        for link in page.links:
            if urlparse(link).scheme or link.startswith("//"):
                continue
            target, anchor = urldefrag(link)
            path = (page.path.parent / unquote(target)).resolve() if target else page.path
            path = path / "index.html" if path.is_dir() else path
            assert path.is_file(), (page.path.name, link)
            if anchor and path in pages:
                assert unquote(anchor) in pages[path].anchors, (page.path.name, link)
                checked += 1
    assert checked > 100


def test_the_reference_has_signatures_and_docstrings(site: Path) -> None:
    text = (site / "api/privacy.html").read_text()
    assert (
        'id="confide.dp.accounting.price.epsilon"' in text
        and "Epsilon of the noised updates alone" in text
    )
