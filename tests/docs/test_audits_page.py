"""docs/audits.md is what its template makes of the kept measurements."""

import importlib
import json

import pytest

from tests.project import ROOT


def test_the_page_is_that_of_its_template_and_of_what_was_measured(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")  # as for a program that is run there
    page = importlib.import_module("null_audits").page
    kept = json.loads((ROOT / "benchmarks/null_audits.json").read_bytes())["results"]
    assert (ROOT / "docs/audits.md").read_text() == page(kept)
