"""Numbers of the documentation: every command and every Python session on a page is run, and says
what the page says.

A decimal number in the text of a page stands in a block of that page, or is one that a paper
prints.
"""

import contextlib
import doctest
import io
import re
import shlex
from pathlib import Path

import pytest
from pages import PAGES, ROOT, blocks, prose

from confide.cli import main

NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")
CONCEPTS = [
    ROOT / f"docs/{name}.md"
    for name in (
        "index",
        "epsilon",
        "confidentiality",
        "selective",
        "domain_privacy",
        "regularisation",
    )
]
CONSOLE = [
    (page, block.text)
    for page in PAGES
    for block in blocks(page, "console")
    if "$ confide epsilon" in block.text
]
SESSIONS = [(page, block.text) for page in PAGES for block in blocks(page, "pycon")]
PLACES = re.compile(
    r"(?:Theorem|Proposition|Definition|Algorithm|Figure|Table|section|Section|Python) "
    r"\d+(?:\.\d+)*"
)


def said(command: str) -> str:
    """What a command of ours prints."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        assert main(shlex.split(command)[1:]) == 0
    return output.getvalue()


@pytest.mark.parametrize(
    ("page", "text"), CONSOLE, ids=lambda value: value.stem if isinstance(value, Path) else ""
)
def test_commands_print_what_the_page_says(page: Path, text: str) -> None:
    """Words to the letter, numbers to one in a thousand: they are rounded to four digits."""
    printed = "".join(
        f"$ {command}\n{said(command)}" for command in re.findall(r"^\$ (.*)", text, flags=re.M)
    )
    assert NUMBER.sub("#", printed).split() == NUMBER.sub("#", text).split()
    numbers = [list(map(float, NUMBER.findall(one))) for one in (printed, text)]
    assert numbers[1] == pytest.approx(numbers[0], rel=1e-3) and len(numbers[0]) > 10


@pytest.mark.parametrize("page", sorted({page for page, _ in SESSIONS}), ids=lambda page: page.stem)
def test_sessions_print_what_the_page_says(page: Path) -> None:
    text = "\n".join(session for where, session in SESSIONS if where == page)
    test = doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0)
    found = doctest.DocTestRunner(verbose=False).run(test)
    assert found.attempted and not found.failed


@pytest.mark.parametrize("page", CONCEPTS, ids=lambda page: page.stem)
def test_decimal_numbers_of_the_text_are_computed_or_quoted(page: Path) -> None:
    computed = " ".join(block.text for block in blocks(page, "console", "pycon"))
    quoted = (ROOT / "src/confide/report/published.csv").read_text()
    text = re.sub(r"\(https://\S+\)", "", PLACES.sub("", prose(page)))
    for number in re.findall(r"\b\d+\.\d+\b|\b\d+e-\d+\b", text):
        assert number in NUMBER.findall(computed) or number in NUMBER.findall(quoted), number
