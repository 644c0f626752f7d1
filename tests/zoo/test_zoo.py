"""Mutation testing of private training: checks pass on the project as it is, and every seeded fault
is noticed by one.

docs/zoo.md has the whole table, fault by check; `python tests/zoo/table.py` writes it.
"""

import re
from pathlib import Path

import pytest
from checks import CHECKS
from faults import FAULTS
from mutation import edit, noticed

from confide.dp.mechanism.sampling import poisson

PAGE = Path(__file__).parents[2] / "docs" / "zoo.md"


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


def test_a_fault_ends_with_its_context_and_an_old_one_is_an_error() -> None:
    own = poisson.__code__
    with edit(poisson, ("< sample_rate", "<= sample_rate"))():
        assert poisson.__code__ is not own
    assert poisson.__code__ is own
    with (
        pytest.raises(LookupError, match="out of date: poisson"),
        edit(poisson, ("no such text", ""))(),
    ):
        pass


def test_the_page_lists_these_faults_and_checks() -> None:
    page = PAGE.read_text()
    assert re.findall(r"^\| \*\*(.+?)\*\*", page, re.MULTILINE) == [fault.name for fault in FAULTS]
    assert re.findall(r"^\| [A-Z]+ \| `(\w+)`", page, re.MULTILINE) == list(CHECKS)
