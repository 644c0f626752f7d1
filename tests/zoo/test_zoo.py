"""Mutation testing of private training: checks pass on the project as it is, and every seeded fault
is noticed by one.

docs/zoo.md counts the faults by check; `python tests/zoo/table.py` writes it.
"""

import importlib
import re
from pathlib import Path

import pytest
from checks import CHECKS
from faults import FAULTS
from mutation import edit, noticed

from confide.dp.mechanism.sampling import poisson

PAGE = Path(__file__).parents[2] / "docs" / "zoo.md"
POISSON = "confide.dp.mechanism.sampling:poisson"
LAID_OUT = """
def total(values, kept=True):
    found = 0
    if (
        kept  # a comment
    ):
        found += (
            values["a"]
            + 4
        )
    return found
"""


@pytest.mark.parametrize("name", CHECKS)
def test_a_check_passes_without_a_fault(name: str) -> None:
    CHECKS[name]()


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_is_noticed(fault) -> None:
    with fault.inject():
        assert noticed(CHECKS[fault.by])


def test_every_check_is_needed() -> None:
    """Each of them but the audit is the one that a fault is held against."""
    assert set(CHECKS) - {fault.by for fault in FAULTS} == {
        "one_run_audit_stays_below_the_certificate"
    }
    assert len({fault.name for fault in FAULTS}) == len(FAULTS) >= 25


def test_the_audit_alone_refutes_training_without_noise_or_clipping() -> None:
    wrong = [
        fault
        for fault in FAULTS
        if fault.name in ("no noise", "no clipping", "noise divided twice")
    ]
    for fault in wrong:
        with fault.inject():
            assert noticed(CHECKS["one_run_audit_stays_below_the_certificate"]), fault.name
    assert len(wrong) == 3


def test_a_fault_ends_with_its_context() -> None:
    own = poisson.__code__
    with edit(
        POISSON, ("source.uniform(size) < sample_rate", "source.uniform(size) <= sample_rate")
    )():
        assert poisson.__code__ is not own
    assert poisson.__code__ is own


@pytest.mark.parametrize(
    "place, old, message",
    [
        (POISSON, "no_such_part", f"{POISSON} holds 0 times, not once: no_such_part"),
        (
            "confide.dp.mechanism.sampling:by_author",
            "authors",
            r"by_author holds [2-9] times, not once",
        ),
        (
            "confide.dp.mechanism.sampling:renamed",
            "size",
            "there is no .*sampling:renamed",
        ),
        ("confide.renamed:poisson", "size", "there is no confide.renamed:poisson"),
    ],
)
def test_a_fault_whose_code_is_gone_is_an_error_that_names_it(place, old, message) -> None:
    with pytest.raises(LookupError, match=message), edit(place, (old, "0"))():
        pass


def test_a_fault_depends_on_no_layout(tmp_path, monkeypatch) -> None:
    """Nor on quotes, comments, or the body of a statement whose head alone it changes."""
    (tmp_path / "laid_out.py").write_text(LAID_OUT)
    monkeypatch.syspath_prepend(tmp_path)
    total = importlib.import_module("laid_out").total
    place = "laid_out:total"
    assert total({"a": 3}) == 7
    with edit(place, ("values['a'] + 4", "values['a']"))():
        assert total({"a": 3}) == 3
    with edit(place, ("if kept: ...", "for kept in (1, 2): ..."))():
        assert total({"a": 3}) == 14
    with edit(place, ("found += values['a'] + 4", ""))():
        assert total({"a": 3}) == 0
    assert total({"a": 3}) == 7


def test_the_page_counts_these_faults_by_check() -> None:
    page = PAGE.read_text()
    rows = re.findall(r"^- `(\w+)`: (\d+)$", page, re.MULTILINE)
    assert [(name, int(count)) for name, count in rows] == [
        (name, sum(fault.by == name for fault in FAULTS)) for name in CHECKS
    ]
    assert f"All {len(FAULTS)} are noticed." in page
