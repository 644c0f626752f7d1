"""Readers of the published corpora: on small files of the same format, and on the real ones where a
mirror is at hand.
"""

import os
from collections import Counter
from pathlib import Path

import pytest

from confide.corpora.dialog_files import gold
from confide.corpora.dialog_files import read as read_dialogues
from confide.corpora.wikitext import read as read_wikitext
from confide.errors import InputError
from confide.files.io import write_jsonl
from confide.specs import DialogFilesSpec, FetchSpec, Sizes, WikiTextSpec
from confide.stages.fetch import fetch

MIRROR = os.environ.get("CONFIDE_MIRROR")
needs_mirror = pytest.mark.skipif(not MIRROR, reason="CONFIDE_MIRROR is not set")

DIALOGUE = """SYS: Hello, I am the bot. How can I help?
USR: What's up? Where is it?
SYS: Please provide your full name.
USR: {name}
SYS: Could you please confirm your shipping address?
USR: {second}
SYS: The tracking number is 0UOKFRS1GA. Anything else?
USR: {third}
SYS: Bye."""


def found(name, second, third="That's it. Thanks!"):
    text = DIALOGUE.format(name=name, second=second, third=third)
    return [(span.label, text[span.start : span.end]) for span in gold(text)]


@pytest.mark.parametrize(
    ("turn", "name"),
    [
        ("Ada Byron", "Ada Byron"),
        ("Ada Byron.", "Ada Byron"),
        ("I am Ada Byron.", "Ada Byron"),
        ("My name's Ada O'Neil.", "Ada O'Neil"),
        ("Yep - I'm Ada Byron.", "Ada Byron"),
        ("Yes, Ada Byron.", "Ada Byron"),
    ],
)
def test_name_is_the_answer_to_the_name_question(turn, name):
    assert found(turn, "no") == [("name", name), ("tracking", "0UOKFRS1GA")]


@pytest.mark.parametrize(
    ("turn", "expected"),
    [
        ("Sure, it is 123-45678-9012", [("order", "123-45678-9012")]),
        ("8328368263 is my number.", [("phone", "8328368263")]),
        ("You can reach me at 832.836.8263.", [("phone", "832.836.8263")]),
        (
            "Yea sure, 2241 Moor Viaduct Brownview, OK 28304.",
            [("address", "2241 Moor Viaduct Brownview, OK 28304")],
        ),
        ("PSC 1060, Box 7657 APO AE 88720.", [("address", "PSC 1060, Box 7657 APO AE 88720")]),
        ("Unit 1060 Box 7657 DPO AA 88720", [("address", "Unit 1060 Box 7657 DPO AA 88720")]),
        ("It's 123-45678-9012. My name's Bo Li.", [("order", "123-45678-9012"), ("name", "Bo Li")]),
        ("Bo Li.", [("name", "Bo Li")]),
        ("Yes, that is right.", []),
    ],
)
def test_other_slots_are_told_by_their_shape(turn, expected):
    assert found("Ada Byron.", turn) == [
        ("name", "Ada Byron"),
        *expected,
        ("tracking", "0UOKFRS1GA"),
    ]
    assert found("Ada Byron.", "no", turn) == [
        ("name", "Ada Byron"),
        ("tracking", "0UOKFRS1GA"),
        *expected,
    ]


def test_two_slots_in_one_turn():
    assert found("Ada Byron Yes, 366-68323-3594.", "no")[:2] == [
        ("name", "Ada Byron"),
        ("order", "366-68323-3594"),
    ]


def raw_dialogues(folder, counts):
    text = DIALOGUE.format(name="Ada Byron", second="no", third="no") + "\n"
    rows = [
        {"path": f"{split}/dial-{n}.txt", "text": text}
        for split, count in counts.items()
        for n in range(count)
    ]
    write_jsonl(folder / "raw.jsonl", rows)
    return folder / "raw.jsonl"


def test_sizes_take_the_first_of_each_split(tmp_path):
    raw = raw_dialogues(tmp_path, {"train": 4, "valid": 3, "test": 2})
    spec = DialogFilesSpec(reader="dialog_files", sizes=Sizes(train=2, valid=1, test=2))
    records = list(read_dialogues(spec, raw))
    assert [r.doc for r in records] == [
        "train/dial-0",
        "train/dial-1",
        "valid/dial-0",
        "test/dial-0",
        "test/dial-1",
    ]
    assert not records[0].text.endswith("\n")
    assert len(list(read_dialogues(DialogFilesSpec(reader="dialog_files"), raw))) == 9
    with pytest.raises(InputError, match=r"sizes.test = 5"):
        list(
            read_dialogues(
                DialogFilesSpec(reader="dialog_files", sizes=Sizes(train=2, valid=1, test=5)), raw
            )
        )


def test_wrong_raw_file_is_refused(tmp_path):
    write_jsonl(tmp_path / "raw.jsonl", [{"key": "x"}])
    for read, spec in (
        (read_dialogues, DialogFilesSpec(reader="dialog_files")),
        (read_wikitext, WikiTextSpec(reader="wikitext")),
    ):
        with pytest.raises(InputError, match="raw"):
            list(read(spec, None))
        with pytest.raises(InputError, match="not a fetched archive"):
            list(read(spec, tmp_path / "raw.jsonl"))


def raw_wikitext(folder, splits):
    lines = "".join(f" \n = Head {n} = \n \n It was 19{n} , or 1 @,@ 000 ? \n" for n in range(10))
    write_jsonl(folder / "raw.jsonl", [{"path": f"{split}.txt", "text": lines} for split in splits])
    return folder / "raw.jsonl"


def test_wikitext_lines_and_digit_runs(tmp_path):
    raw = raw_wikitext(tmp_path, ("train", "valid", "test"))
    records = list(read_wikitext(WikiTextSpec(reader="wikitext", lines=5), raw))
    assert Counter(r.split for r in records) == {"train": 5, "valid": 5, "test": 5}
    assert records[1].text == "It was 190 , or 1 @,@ 000 ?"
    assert [(s.label, records[1].text[s.start : s.end]) for s in records[1].spans] == [
        ("number", n) for n in ("190", "1", "000")
    ]


def test_two_parts_of_wikitext_share_no_line(tmp_path):
    raw = raw_wikitext(tmp_path, ("train", "valid", "test"))
    whole = list(read_wikitext(WikiTextSpec(reader="wikitext"), raw))
    first = list(read_wikitext(WikiTextSpec(reader="wikitext", lines=8), raw))
    rest = list(read_wikitext(WikiTextSpec(reader="wikitext", skip=8), raw))
    assert sorted(first + rest, key=lambda record: record.doc) == sorted(
        whole, key=lambda record: record.doc
    )
    some = list(read_wikitext(WikiTextSpec(reader="wikitext", skip=8, lines=3), raw))
    assert some == [record for record in rest if int(record.doc.rpartition("-")[2]) < 11]
    assert list(read_wikitext(WikiTextSpec(reader="wikitext", skip=20), raw)) == []
    assert "skip" not in WikiTextSpec(reader="wikitext", lines=5).model_dump()


@pytest.mark.parametrize("splits", [("train", "valid", "test"), ("valid", "test")])
def test_wikitext_may_take_its_valid_split_from_the_training_lines(tmp_path, splits):
    """A mirror's valid split is short: behind `skip` nothing is left of it."""
    raw = raw_wikitext(tmp_path, splits)
    records = list(read_wikitext(WikiTextSpec(reader="wikitext", skip=4, lines=10, valid=0.2), raw))
    usual = list(read_wikitext(WikiTextSpec(reader="wikitext", skip=4, lines=10), raw))
    assert Counter(r.split for r in records) == {"train": 8, "valid": 2, "test": 10}
    assert [r.doc for r in records if r.split == "valid"] == ["train/line-12", "train/line-13"]
    of_train = [r.text for r in usual if r.split == "train"]
    assert [r.text for r in records if r.split != "test"] == of_train
    assert "valid" not in WikiTextSpec(reader="wikitext", lines=5).model_dump()


def test_wikitext_without_train_divides_valid(tmp_path):
    records = list(
        read_wikitext(WikiTextSpec(reader="wikitext"), raw_wikitext(tmp_path, ("valid", "test")))
    )
    assert Counter(r.split for r in records) == {"train": 18, "valid": 2, "test": 20}
    assert len({r.doc for r in records}) == 40
    with pytest.raises(InputError, match=r"no test\.txt"):
        list(read_wikitext(WikiTextSpec(reader="wikitext"), raw_wikitext(tmp_path, ("valid",))))


@pytest.fixture(scope="module")
def mirrored(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mirror")
    for name in ("customersim", "wikitext-2"):
        fetch(FetchSpec(archive=name), output=folder / f"{name}.jsonl")
    return folder


@needs_mirror
def test_real_dialogues_have_their_secrets(mirrored: Path):
    records = list(
        read_dialogues(DialogFilesSpec(reader="dialog_files"), mirrored / "customersim.jsonl")
    )
    assert Counter(r.split for r in records) == {"train": 10_000, "valid": 1000, "test": 1000}
    slots = Counter(label for r in records for label in {s.label for s in r.spans})
    assert slots["name"] >= 11_990 and slots["tracking"] >= 11_990
    assert slots["phone"] + slots["order"] + slots["address"] >= 11_990
    names = {
        s: {r.text[p.start : p.end] for r in records if r.split == s for p in r.spans[:1]}
        for s in ("train", "test")
    }
    assert abs(len(names["train"]) - 7863) < 40  # published count
    assert abs(len(names["test"] & names["train"]) / len(names["test"]) - 0.365) < 0.02
    assert not any(character.isdigit() for r in records[:2000] for character in outside(r))


def outside(record):
    covered = {i for span in record.spans for i in range(span.start, span.end)}
    return [character for i, character in enumerate(record.text) if i not in covered]


@needs_mirror
def test_real_wikitext_digit_share(mirrored: Path):
    """2.8 % of the BPE tokens are digits (Shi et al. 2021); the share of digit runs among words is
    near it.
    """
    records = list(read_wikitext(WikiTextSpec(reader="wikitext"), mirrored / "wikitext-2.jsonl"))
    words = sum(len(r.text.split()) for r in records)
    assert 0.02 < sum(len(r.spans) for r in records) / words < 0.04
