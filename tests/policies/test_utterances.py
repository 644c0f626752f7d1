"""Utterances of a dialogue, and windows of their words."""

import pytest

from confide.corpora.dialogues import Dialogue, Utterance, records
from confide.policies.utterances import spoken, utterances, windows
from confide.specs import MultiDogoSpec
from confide.types import CONVERSATION_END, CONVERSATION_START, MASK


def said(text):
    return [text[start:end].strip() for start, end in utterances(text)]


@pytest.mark.parametrize("control_tokens", [True, False])
def test_what_a_reader_put_around_utterances_is_left_out(control_tokens):
    lines = (
        "hi, a seat",
        "SYS or USR: which?",
        "<b> & <Airline>",
        f"my name is {MASK}",
        "4 < 5 > 3",
        "Ünïcode 12",
    )
    spec = MultiDogoSpec(reader="multidogo", control_tokens=control_tokens)
    turns = tuple(
        Utterance(role, line) for role, line in zip(3 * ["USR", "SYS"], lines, strict=True)
    )
    (record,) = records(spec, [Dialogue("d", "AIRLINE", turns, "train")], "here")
    assert (CONVERSATION_START in record.text and CONVERSATION_END in record.text) == control_tokens
    assert said(record.text) == [
        lines[0],
        "SYS or",
        "which?",
        *lines[2:],
    ]  # what looks like a speaker counts as one
    assert spoken(record.text) == " ".join(lines).replace("USR: ", "")


def test_text_without_markers_is_one_utterance_and_blank_text_is_none():
    assert said("a seat at 7:30, please") == ["a seat at 7:30, please"]
    assert [
        utterances(text)
        for text in ("", " \n ", f"{CONVERSATION_START} <AIRLINE> USR: {CONVERSATION_END}")
    ] == [
        [],
        [],
        [],
    ]


def test_windows_are_all_runs_of_words_of_an_utterance():
    text = "USR: one two  three four SYS: five  six USR:  SYS: a b c"
    found = [text[start:end] for start, end in windows(text, 3)]
    assert found == ["one two  three", "two  three four", "five  six", "a b c"]
    assert [text[start:end] for start, end in windows(text, 1)] == [
        "one",
        "two",
        "three",
        "four",
        "five",
        "six",
        "a",
        "b",
        "c",
    ]
