"""What is counted of a user's corpus, against corpora small enough to count by hand and a naive
neighbour test.
"""

import json
import re
from pathlib import Path

import pytest

from confide.advisor.choices import doubtful, policies, presets
from confide.advisor.survey import UNITS, corpus_of, masked_words, points_of, presets_of
from confide.commands.example import example, lines
from confide.corpora import read_own as read
from confide.policies import policy, redacted_text
from confide.specs import LinesSpec
from confide.stages.split import pieces
from confide.types import MASK, Span


def spec_of(tmp_path: Path, rows: list[dict]) -> LinesSpec:
    path = tmp_path / "corpus.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return LinesSpec(reader="lines", path=str(path))


def test_a_corpus_counted_by_hand(tmp_path):
    spec = spec_of(
        tmp_path,
        [
            {
                "text": "One line. Two sentences.\nAnother line.",
                "doc": "a",
                "author": "x",
                "domain": "d",
                "split": "train",
            },
            {"text": "One line. Two sentences.\n", "doc": "a", "author": "x", "split": "train"},
            {
                "text": "Call Ann.\nBell now",
                "split": "test",
                "spans": [[5, 14, "name"], [15, 18, "word"]],
            },
            {"text": "Call Ann", "split": "train", "spans": [[5, 8, "name"]]},
        ],
    )
    found = corpus_of(spec)
    assert (found.documents, found.lines, found.words) == (3, 4, 6 + 4 + 4 + 2)
    assert found.authors == {"x"} and found.nameless == 2 and found.domains == {"d"}
    assert found.labels() == {"name": 2, "word": 1} and found.labels("train")["name"] == 1
    assert {unit: dict(found.points[unit]) for unit in UNITS} == {
        "turn": {"train": 4, "test": 2},
        "sentence": {"train": 6, "test": 2},
        "dialogue": {"train": 3, "test": 1},
    }
    assert {unit: found.cut[unit] for unit in UNITS} == {"turn": 1, "sentence": 1, "dialogue": 0}
    points = points_of(spec, found, "turn", policies(), doubtful())
    assert sorted(points.lengths) == [2, 2, 4, 4] and points.copies == 1
    assert (
        points.sampled == 4
        and points.sampled_words == 12
        and points.held_out == {"name": 2, "word": 1}
    )


def test_texts_with_a_mask_are_no_copies(tmp_path):
    spec = spec_of(
        tmp_path,
        [{"text": f"Call {MASK}", "split": "train"}] * 3 + [{"text": "Bye", "split": "train"}] * 3,
    )
    assert points_of(spec, corpus_of(spec), "turn", {}, doubtful()).copies == 2


def test_hidden_secrets_are_those_that_leave_no_trace(tmp_path):
    """The naive test: mask the secret in the raw text, redact both, compare."""
    path = tmp_path / "corpus.jsonl"
    example(path, dialogues=80)
    spec = LinesSpec(reader="lines", path=str(path), valid=0.2, test=0.3)
    points = points_of(spec, corpus_of(spec), "turn", policies(), doubtful())
    assert points.held_out.total() > 60
    for name, asked in policies().items():
        find = policy(asked)
        hidden = 0
        masked = 0
        private = 0
        for record in read(spec):
            for text, gold in pieces(record, "turn", 0):
                redacted = redacted_text(text, find(text))
                if record.split == "train":
                    private += redacted != text
                    struck = list(text)
                    for span in find(text):
                        struck[span.start : span.end] = re.sub(r"\w", "\0", text[slice(*span[:2])])
                    masked += sum("\0" in word for word in "".join(struck).split(" "))
                    continue
                for start, end, *_ in gold:
                    other = text[:start] + MASK + text[end:]
                    hidden += redacted_text(other, find(other)) == redacted
        found = points.effects[name]
        assert (found.hidden.total(), found.private, found.masked) == (hidden, private, masked)
    assert 0 < points.effects["identifiers"].hidden.total() < points.effects["names"].hidden.total()


def test_a_word_is_masked_whatever_stands_around_what_was_struck_out():
    text = "Write to anna@x.org, or order ORD-2024; thanks"
    spans = [Span(9, 19, "email"), Span(34, 38, "number")]
    assert [text[span.start : span.end] for span in spans] == ["anna@x.org", "2024"]
    assert masked_words(text, spans) == 2
    assert masked_words("Anna Karenina, said", [Span(0, 13, "name")]) == 2
    assert masked_words(text, [Span(19, 20, "comma")]) == masked_words(text, []) == 0


def test_the_sample_is_spread_over_the_corpus(tmp_path, monkeypatch):
    monkeypatch.setattr("confide.advisor.survey.SAMPLE", 10)
    spec = spec_of(tmp_path, [{"text": f"text {number}", "split": "train"} for number in range(35)])
    points = points_of(spec, corpus_of(spec), "turn", policies(), doubtful())
    assert (
        points.sampled == 9
        and len(points.lengths) == 35
        and points.effects["identifiers"].private == 9
    )


def test_what_is_hidden_is_tried_until_so_much_was_read(tmp_path, monkeypatch):
    """A policy reads the whole text again for each secret in it."""
    text = "call 555-0101 or 555-0102"  # 25 characters, 3 times: without a mask, and with each
    gold = [[5, 13, "phone"], [17, 25, "phone"]]
    rows = [{"text": text, "spans": gold, "split": "valid"} for _ in range(9)]
    spec = spec_of(tmp_path, [{"text": "hello", "split": "train"}, *rows])
    for most, texts in ((10**6, 9), (76, 2), (75, 1)):
        monkeypatch.setattr("confide.advisor.survey.MOST_READ", most)
        points = points_of(spec, corpus_of(spec), "turn", policies(), doubtful())
        assert points.held_out == {"phone": 2 * texts} and points.read == 75 * texts


def test_the_example_is_a_corpus_of_the_users_form(tmp_path):
    path = tmp_path / "new/corpus.jsonl"
    example(path, dialogues=30, seed=1)
    records = list(read(LinesSpec(reader="lines", path=str(path))))
    rows = list(lines(30, 1))
    assert [record.text for record in records] == [row["text"] for row in rows] and len(
        records
    ) == 30
    assert {record.split for record in records} == {"train", "valid", "test"}
    assert [[list(span[:3]) for span in record.spans] for record in records] == [
        row["spans"] for row in rows
    ]
    assert all(row["text"][start:end].strip() for row in rows for start, end, _ in row["spans"])
    assert list(lines(30, 1)) != list(lines(30, 2))
    with pytest.raises(ValueError, match="is not overwritten"):
        example(path)


def test_presets_counted_by_hand(tmp_path):
    spec = spec_of(
        tmp_path,
        [
            {"text": "Mail a@b.org, b@c.org\nto 12", "split": "train", "spans": [[5, 12, "mail"]]},
            {"text": "Mail c@d.org", "split": "test", "spans": [[5, 12, "mail"], [0, 4, "word"]]},
            {"text": "Hello", "split": "test", "spans": [[0, 5, "name"]]},
        ],
    )
    found = presets_of(spec, corpus_of(spec), "turn", presets())
    assert (found.sampled, found.whole, found.held_out) == (4, True, 3)
    assert found.characters == len("Mail a@b.org, b@c.org" + "to 12" + "Mail c@d.org" + "Hello")
    email, number, card = (found.hits[name] for name in ("email", "number", "card"))
    assert (email.points, email.spans, email.covered) == (2, {"email": 3}, {"mail": 1})
    assert (number.points, number.covered) == (1, {}) and not card.points
    only = presets_of(spec, corpus_of(spec), "turn", presets(), ["name"])
    assert only.held_out == 1 and not only.hits["email"].covered
    points = points_of(spec, corpus_of(spec), "turn", policies(), doubtful(), ["mail"])
    assert points.held_out == {"mail": 1}


def test_presets_are_tried_on_a_sample_of_a_large_corpus(tmp_path, monkeypatch):
    monkeypatch.setattr("confide.advisor.survey.PRESET_SAMPLE", 10)
    spec = spec_of(tmp_path, [{"text": f"text {number}", "split": "train"} for number in range(35)])
    found = presets_of(spec, corpus_of(spec), "turn", presets())
    assert found.sampled == found.hits["number"].points == 9 and not found.whole
