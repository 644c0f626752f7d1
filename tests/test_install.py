"""What an installation needs: the pinned packages run on the oldest Python that the project promises."""

from importlib.metadata import distributions
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

OLDEST = "3.11.2"  # of Debian 12
PINNED = {
    canonicalize_name(line.partition("==")[0])
    for line in (Path(__file__).parents[1] / "constraints.txt").read_text().splitlines()
    if "==" in line
}
INSTALLED = {canonicalize_name(found.name): found.metadata["Requires-Python"] for found in distributions()}


@pytest.mark.parametrize("name", sorted(PINNED & INSTALLED.keys()))
def test_a_pinned_package_takes_the_oldest_python(name):
    assert SpecifierSet(INSTALLED[name] or "").contains(OLDEST)


def test_what_is_pinned_is_installed():
    assert len(PINNED & INSTALLED.keys()) > 150
