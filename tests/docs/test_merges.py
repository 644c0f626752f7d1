"""No page holds what a merge that was not finished leaves behind."""

import re

import pytest
from pages import PAGES, ROOT

MARKS = re.compile(r"^(<{7}|\|{7}|={7}|>{7})( |$)", re.M)


@pytest.mark.parametrize(
    "page",
    [*PAGES, *ROOT.glob("*.md"), ROOT / "benchmarks/README.md"],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_no_page_holds_marks_of_a_merge(page):
    assert not MARKS.search(page.read_text())
