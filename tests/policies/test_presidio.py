"""Presidio as a policy: published test numbers are found, nothing is fetched, and a pattern that is
given up is a failure.
"""

import socket
import sys

import pytest
import spacy

from confide.data.redaction import failure, finder_of
from confide.errors import InputError
from confide.policies import batched, policy
from confide.specs import PresidioPolicySpec, RedactSpec

SPEC = PresidioPolicySpec(kind="presidio")
TEXT = "Zoë 🙂: ann@example.com, card 4111 1111 1111 1111 or GB29NWBK60161331926819"


def found(spec, text):
    return [(span.label, text[span.start : span.end]) for span in policy(spec)(text)]


@pytest.fixture
def installed():
    pytest.importorskip("presidio_analyzer")


def test_checksums_and_patterns_without_a_network(installed, monkeypatch):
    asked = []
    monkeypatch.setattr(socket, "getaddrinfo", lambda *where, **how: asked.append(where))
    expected = [
        ("EMAIL_ADDRESS", "ann@example.com"),
        ("CREDIT_CARD", "4111 1111 1111 1111"),
        ("IBAN_CODE", "GB29NWBK60161331926819"),
    ]
    assert found(SPEC, TEXT) == expected
    wrong = TEXT.replace(
        "4111 1111 1111 1111", "4111 1111 1111 1112"
    )  # the checksum no longer fits
    assert "CREDIT_CARD" not in dict(found(SPEC, wrong)) and not asked
    assert found(SPEC.model_copy(update={"entities": ["IBAN_CODE"]}), TEXT) == expected[2:]
    assert found(SPEC.model_copy(update={"threshold": 1.0}), TEXT) == []


def test_entities_of_a_pipeline(installed, tmp_path):
    nlp = spacy.blank("en")
    nlp.add_pipe("entity_ruler").add_patterns([{"label": "PERSON", "pattern": "Zoë"}])
    nlp.to_disk(tmp_path / "rules")
    spec = PresidioPolicySpec(kind="presidio", model=str(tmp_path / "rules"), entities=["PERSON"])
    assert found(spec, TEXT) == [("PERSON", "Zoë")]


def test_a_pattern_that_takes_too_long_makes_the_text_private(installed, monkeypatch):
    from presidio_analyzer import pattern_recognizer

    find = finder_of(
        RedactSpec(policy=SPEC, conservative={"kind": "regex", "patterns": {"x": "never"}})
    )
    assert find(TEXT)["spans"] and not find(TEXT)["conservative"]
    monkeypatch.setattr(pattern_recognizer, "REGEX_TIMEOUT_SECONDS", 1e-9)
    assert find(TEXT) == failure(TEXT)


def test_what_is_unknown_or_not_installed_is_one_line(installed, monkeypatch):
    with pytest.raises(InputError, match=r"entities = 'NOPE': is unknown: one of "):
        policy(SPEC.model_copy(update={"entities": ["NOPE"]}))
    monkeypatch.setitem(sys.modules, "presidio_analyzer", None)
    with pytest.raises(
        InputError, match=r"kind = 'presidio': is not installed: pip install 'confide\[presidio\]'"
    ):
        policy(SPEC)


def test_many_texts_at_once_are_judged_one_by_one(installed, tmp_path):
    nlp = spacy.blank("en")
    nlp.add_pipe("entity_ruler").add_patterns([{"label": "PERSON", "pattern": "Zoë"}])
    nlp.to_disk(tmp_path / "rules")
    spec = PresidioPolicySpec(kind="presidio", model=str(tmp_path / "rules"))
    texts = [TEXT, "", "nobody", TEXT[::-1], f"phone 212-555-0123, {TEXT}"] * 3
    assert batched(spec)(texts) == [policy(spec)(text) for text in texts]
