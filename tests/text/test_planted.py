"""Planted points are known by their documents' names, and no others are taken for planted."""

import pytest

from confide.text.planted import audit_doc, canary_doc, is_planted


@pytest.mark.parametrize(
    "doc",
    [canary_doc(0, 19), canary_doc(12, 0), audit_doc("secret", 3), audit_doc("inclusion", 239)],
)
def test_names_of_planted_documents_are_known(doc):
    assert is_planted(doc)


@pytest.mark.parametrize(
    "doc", ["canary-islands", "audit-2024", "audit-trail-", "canary-1-2-3", "my canary-1-2", ""]
)
def test_a_users_documents_are_not_taken_for_planted(doc):
    assert not is_planted(doc)
