"""Every form that docs/scan.md says is seen is planted in a released file and found; what it says
is unseen is so.
"""

import contextlib
import re
from pathlib import Path

import pytest
from planted_forms import SEEN
from unseen_forms import NOT_PLANTED, UNSEEN

from confide.errors import Failure
from confide.files.io import read_json, write_jsonl
from confide.specs import ScanSpec
from confide.stages.scan import scan

PAGE = Path(__file__).parents[2] / "docs/scan.md"
CASES = [
    (row, place, secret, make)
    for row, cases in SEEN.items()
    for place, (secret, make) in enumerate(cases)
]


def scanned(folder: Path, secrets: list[str], content: bytes, name: str = "released") -> dict:
    """The report of a search for some secrets in one file."""
    rows = [
        {"key": text, "text": f"I am {text}", "gold": [[5, 5 + len(text), "name", 1.0]]}
        for text in secrets
    ]
    write_jsonl(folder / "points.jsonl", rows)
    (folder / name).write_bytes(content)
    files = {
        "points": [folder / "points.jsonl"],
        "canaries": [],
        "public": [],
        "published": [],
        "files": [folder / name],
    }
    with contextlib.suppress(Failure):
        scan(ScanSpec(), **files, output=folder / "scan.json")
    return read_json(folder / "scan.json")


@pytest.mark.parametrize(
    ("row", "place", "secret", "make"), CASES, ids=[f"{case[0]} {case[1]}" for case in CASES]
)
def test_every_planted_form_is_found(tmp_path, row, place, secret, make):
    (found,) = scanned(tmp_path, [secret], make(secret))["files"]
    assert found["hits"] > 0 and found["secrets"] == [0]


@pytest.mark.parametrize(
    ("row", "place", "secret", "make"), CASES, ids=[f"{case[0]} {case[1]}" for case in CASES]
)
def test_the_same_file_holds_no_other_secret(tmp_path, row, place, secret, make):
    """Of the same kind and length: nothing is found only because of the form."""
    others = [
        "Emma Bovaryova",
        "Zürich Gasse 12",
        "Достоевск",
        "492913",
        "Smith-Jonas 13",
        "Rosie O'Brian",
        "555-123-4568",
        "Petrov",
    ]
    (found,) = scanned(tmp_path, others, make(secret))["files"]
    assert found["hits"] == 0


def forms_under(title: str) -> list[str]:
    """Forms in the list below a heading of the page: what stands before a colon."""
    part = PAGE.read_text().split(f"## {title}\n")[1].split("\n## ")[0]
    return re.findall(r"^- ([^:\n]+)", part, re.MULTILINE)


def test_the_page_lists_these_forms():
    assert forms_under("What it sees") == list(SEEN)


UNSEEN_CASES = [(row, secret, make) for row, cases in UNSEEN.items() for secret, make in cases]


@pytest.mark.parametrize(
    ("row", "secret", "make"),
    UNSEEN_CASES,
    ids=[f"{row}-{secret}" for row, secret, _ in UNSEEN_CASES],
)
def test_the_page_says_honestly_what_is_not_found(tmp_path, row, secret, make):
    (found,) = scanned(tmp_path, [secret, "Somebody Else"], make(secret))["files"]
    assert found["hits"] == 0


def test_the_page_lists_what_is_not_seen():
    assert set(forms_under("What it does not see")) == {*UNSEEN, *NOT_PLANTED}
