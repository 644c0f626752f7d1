"""What an installation needs: the project and the pinned packages run on the oldest Python that is promised."""

import re
from importlib.metadata import distributions
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

OLDEST = "3.11.2"  # of Debian 12
ROOT = Path(__file__).parents[1]
PINNED = {
    canonicalize_name(line.partition("==")[0]) for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line
}
INSTALLED = {canonicalize_name(found.name): found.metadata["Requires-Python"] for found in distributions()}


@pytest.mark.parametrize("name", sorted(PINNED & INSTALLED.keys()))
def test_a_pinned_package_takes_the_oldest_python(name):
    assert SpecifierSet(INSTALLED[name] or "").contains(OLDEST)


def test_what_is_pinned_is_installed():
    assert len(PINNED & INSTALLED.keys()) > 150


def test_no_pattern_of_ours_has_a_possessive_group():
    """Before Python 3.11.5 `(?:...)*+` may match less than it should where the group itself can backtrack."""
    files = list((ROOT / "src").rglob("*.py"))
    assert len(files) > 200
    assert not [file for file in files if re.search(r"\)[*+?]\+|\(\?>", file.read_text())]
