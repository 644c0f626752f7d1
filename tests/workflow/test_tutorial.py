"""docs/tutorial.md: its commands are run in order in a fresh project, and what it shows of their
output is compared.
"""

import re
from pathlib import Path
from typing import NamedTuple

import pytest

PAGE = Path(__file__).parents[2] / "docs/tutorial.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NUMBER = r"\d+(?:,\d{3})*(?:\.\d+)?"
MARK = re.compile(rf"(…|~{NUMBER})")
ROOM = 0.35  # of a number that differs from run to run


class Block(NamedTuple):
    """Commands, and the lines that the page shows of what they print."""

    commands: str
    shown: list[str]


def blocks(text: str) -> list[Block]:
    """Each block of commands with the block of output that follows it, if one does; no output
    stands alone.
    """
    found: list[Block] = []
    for kind, content in BLOCK.findall(text):
        assert kind in ("bash", "text"), kind
        if kind == "bash":
            found.append(Block(content, []))
        else:
            assert found and not found[-1].shown, f"output of no command:\n{content}"
            found[-1].shown.extend(line.rstrip() for line in content.splitlines())
    return found


def fits(shown: str, real: str) -> bool:
    """Whether a line of the page may stand for a printed one: … is any text, ~12 a number near
    12.
    """
    parts = MARK.split(shown)
    pattern = "".join(
        ".*" if part == "…" else f"({NUMBER})" if part.startswith("~") else re.escape(part)
        for part in parts
    )
    if (match := re.fullmatch(pattern, real.rstrip())) is None:
        return False
    wanted = [part[1:] for part in parts if part.startswith("~")]
    pairs = [
        [float(text.replace(",", "")) for text in pair]
        for pair in zip(wanted, match.groups(), strict=True)
    ]
    return all(abs(number - expected) <= ROOM * expected for expected, number in pairs)


def missing(shown: list[str], printed: str) -> list[str]:
    """Lines of the page that were not printed, or not in this order."""
    lines = iter(printed.splitlines())
    return [
        line
        for line in shown
        if line not in ("", "…") and not any(fits(line, real) for real in lines)
    ]


def test_lines_are_compared():
    printed = "a 1\nb 2.51, 1,234 of 3\n\nc\n"
    assert missing(["a 1", "b …", "", "c"], printed) == []
    assert (
        missing(["…", "b ~2.4, ~1,300 of 3"], printed) == [] == missing(["a,~2,~7…"], "a,2.1,7.05")
    )
    assert missing(["c", "a 1"], printed) == ["a 1"]  # the order counts
    assert missing(["b ~1.2, …"], printed) == ["b ~1.2, …"]
    assert missing(["a"], printed) == ["a"]
    assert blocks("```bash\na\n```\n\n```text\nb\n```\n```bash\nc\n```\n") == [
        Block("a\n", ["b"]),
        Block("c\n", []),
    ]
    with pytest.raises(AssertionError, match="no command"):
        blocks("```text\nb\n```\n")


@pytest.mark.slow
@pytest.mark.nightly
def test_the_tutorial_does_what_it_says(fresh, tmp_path):
    project = fresh.copy(tmp_path / "project")
    page = blocks(PAGE.read_text())
    assert len(page) >= 8 and sum(bool(block.shown) for block in page) >= 6
    for block in page:
        printed = project.run("bash", "-euo", "pipefail", "-c", block.commands)
        assert not (lost := missing(block.shown, printed)), (
            f"{block.commands}\n{lost}\n\nprinted:\n{printed}"
        )
