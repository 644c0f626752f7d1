"""What readers of multi-domain dialogues share: text and spans, splits, domains, sizes, secrets,
and points with owners.
"""

import re

import numpy as np
import pytest

from confide.corpora.archives import archive, normal_path
from confide.corpora.dialogues import Dialogue, Utterance, records
from confide.errors import InputError
from confide.specs import MultiDogoSpec, MultiWozSpec, SchemaGuidedSpec, Sizes, SplitSpec, parse
from confide.stages.split import split
from confide.types import SPLITS, Span
from tests.points import read_points

TALK = (
    Utterance(
        "USR",
        "I am Ann Lee",
        (
            Span(5, 12, "name"),
            Span(9, 12, "username"),
            Span(2, 6, "username"),
            Span(0, 12, "chatter"),
        ),
    ),
    Utterance("SYS", ""),
    Utterance("BOT", "pin 12 or 34?", (Span(4, 6, "ssn"), Span(10, 12, "ssn"))),
)


def spec(**more) -> MultiDogoSpec:
    return MultiDogoSpec(reader="multidogo", **more)


def talks(domain: str, count: int, split=None) -> list[Dialogue]:
    return [
        Dialogue(f"{domain}/{n:03}", domain, (Utterance("USR", f"{domain} {n}"),), split)
        for n in range(count)
    ]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({}, "<_soc_> <MEDIA> USR: I am Ann Lee <MEDIA> SYS: <MEDIA> BOT: pin 12 or 34? <_eoc_>"),
        ({"domain_tokens": False}, "<_soc_> USR: I am Ann Lee SYS: BOT: pin 12 or 34? <_eoc_>"),
        ({"control_tokens": False}, "USR: I am Ann Lee\nSYS:\nBOT: pin 12 or 34?"),
    ],
)
def test_text_of_a_dialogue_and_its_spans(options, text):
    """Overlapping slots are one secret with the label of the longest, whatever slots there are that
    are none.
    """
    (record,) = records(spec(**options), [Dialogue("media/a", "MEDIA", TALK, "valid")], "place")
    assert record.text == text
    assert [(s.label, text[s.start : s.end]) for s in record.spans] == [
        ("name", "am Ann Lee"),
        ("ssn", "12"),
        ("ssn", "34"),
    ]
    assert (record.doc, record.author, record.domain, record.split) == (
        "media/a",
        "media/a",
        "MEDIA",
        "valid",
    )


def test_drawn_splits_are_fifths_of_a_seeded_shuffle():
    """As published: the shuffled ids, first 20 % test, next 20 % valid; here for each domain by
    itself.
    """
    dialogues = talks("A", 104) + talks("B", 11)
    found = list(records(spec(), dialogues, "place"))
    assert found == list(records(spec(), dialogues[::-1], "place"))
    shuffled = [f"A/{n:03}" for n in np.random.default_rng(0).permutation(104)]
    places = {s: [r.doc for r in found if r.split == s and r.domain == "A"] for s in SPLITS}
    assert places == {"test": shuffled[:20], "valid": shuffled[20:40], "train": shuffled[40:]}
    assert [sum(r.split == s and r.domain == "B" for r in found) for s in SPLITS] == [7, 2, 2]
    alone = list(records(spec(domains=["a"]), dialogues, "place"))
    assert alone == [r for r in found if r.domain == "A"]
    other = {
        r.doc
        for r in records(spec(seed=1), dialogues, "place")
        if r.split == "test" and r.domain == "A"
    }
    assert len(other) == 20 and other != set(places["test"])
    with pytest.raises(InputError, match=r"valid \+ test = 1\.2: leaves nothing for train"):
        list(records(spec(valid=1, test=0.2), dialogues, "place"))


def test_records_come_by_split_then_domain_and_sizes_bound_both():
    dialogues = [
        one
        for s in ("test", "train", "valid")
        for d in ("B", "A")
        for one in talks(f"{d}", 3 if d == "A" else 1, s)
    ]
    found = [(r.split, r.domain) for r in records(spec(), dialogues, "place")]
    expected = [(s, d) for s in SPLITS for d in ("A", "A", "A", "B")]
    assert found == expected
    sizes = Sizes(train=2, valid=1, test=5)
    found = [
        (r.split, r.domain, r.doc)
        for r in records(spec(sizes=sizes, domains=["B", "A"]), dialogues, "place")
    ]
    assert [row[:2] for row in found] == [
        *[("train", "B"), ("train", "A"), ("train", "A"), ("valid", "B"), ("valid", "A")],
        *[("test", "B"), ("test", "A"), ("test", "A"), ("test", "A")],
    ]
    assert [row[2] for row in found[1:3]] == ["A/000", "A/001"]


def test_what_is_asked_for_and_not_there_is_named():
    dialogues = [
        Dialogue("media/a", "MEDIA", TALK, "train"),
        *talks("BANKS", 2, "test"),
        *talks("BANKS", 1, "train"),
    ]
    assert len(list(records(spec(), dialogues, "place"))) == 4  # nobody asked for MEDIA in valid
    for options, message in (
        ({"domains": ["media", "pets"]}, "place: domains = 'PETS': unknown: one of BANKS, MEDIA"),
        (
            {"domains": ["BANKS"]},
            (
                "place: domains = 'BANKS': has no dialogues in valid: 1 in train, 0 in valid, "
                "2 in test"
            ),
        ),
        (
            {"secrets": ["nam"]},
            "place: secrets = 'nam': no slot fits: chatter, name, ssn, username",
        ),
    ):
        with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
            list(records(spec(**options), dialogues, "place"))
    (record,) = records(spec(secrets=["*name"]), dialogues[:1], "place")
    assert [span.label for span in record.spans] == ["name"]
    (record,) = records(spec(secrets=[]), dialogues[:1], "place")
    assert not record.spans


def test_a_path_takes_the_place_of_the_archive():
    for kind, reader in ((MultiDogoSpec, "multidogo"), (SchemaGuidedSpec, "sgd")):
        assert kind(reader=reader).archive == reader
        own = kind(reader=reader, path="data/own/x")
        assert own.archive is None and parse(kind, own.model_dump()) == own
    with pytest.raises(InputError, match="path"):
        parse(MultiWozSpec, {"reader": "multiwoz22"})


@pytest.mark.parametrize(
    ("name", "member", "path"),
    [
        ("multidogo", "multidogo/media/dev.tsv", "media/dev.tsv"),
        (
            "multidogo",
            "repo-1a2b/data/paper_splits/splits_annotated_at_turn_level/media/dev.tsv",
            "media/dev.tsv",
        ),
        (
            "multidogo",
            "repo-1a2b/data/paper_splits/splits_annotated_at_sentence_level/media/dev.tsv",
            None,
        ),
        (
            "multidogo",
            "repo-1a2b/data/paper_splits/splits_annotated_at_turn_level/finance/dev.tsv",
            None,
        ),
        ("multidogo", "repo-1a2b/data/unannotated/media.tsv", None),
        ("sgd", "sgd/train/dialogues_043.json", "train/dialogues_043.json"),
        ("sgd", "repo-1a2b/dev/dialogues_005.json", "dev/dialogues_005.json"),
        *(
            ("sgd", f"repo-1a2b/{name}.json", None)
            for name in ("train/dialogues_037", "train/dialogues_044", "dev/dialogues_006")
        ),
        *(
            ("sgd", f"repo-1a2b/{name}.json", None)
            for name in ("test/dialogues_001", "train/schema", "sgd_x/data/v1/dev/schema")
        ),
    ],
)
def test_members_of_a_mirror_and_of_the_publisher_have_one_path(name, member, path):
    assert normal_path(archive(name), member) == path


def test_a_dialogue_is_a_point_with_domain_and_owner(tmp_path):
    folder = tmp_path / "raw"
    folder.mkdir()
    header = "conversationId\tturnNumber\tutteranceId\tutterance\tauthorRole\n"
    rows = [
        f"c{n}-1\t{turn}\tu\thi {n}\t{who}\n"
        for n in range(5)
        for turn, who in enumerate(("customer", "agent"))
    ]
    (folder / "airline.tsv").write_text(header + "".join(rows))
    corpus = MultiDogoSpec(reader="multidogo", part="unannotated", path=str(folder))
    split(SplitSpec(corpus=corpus, point="dialogue"), output=tmp_path / "points", raw=folder)
    points = read_points(tmp_path / "points")
    assert [point["split"] for point in points] == ["train"] * 3 + ["valid", "test"]
    assert {(point["domain"], point["key"] == f"{point['owner']}:0") for point in points} == {
        ("AIRLINE", True)
    }
    assert sorted(point["text"] for point in points) == [
        f"<_soc_> <AIRLINE> USR: hi {n} <AIRLINE> SYS: hi {n} <_eoc_>" for n in range(5)
    ]
    split(SplitSpec(corpus=corpus, point="turn"), output=tmp_path / "turns", raw=folder)
    assert read_points(tmp_path / "turns") == points  # a dialogue is one line


def test_two_corpora_share_a_source_without_a_dialogue_in_common():
    """`skip` leaves out of each split and domain what `sizes` of the other corpus takes."""
    dialogues = talks("A", 50) + talks("B", 40)
    sizes = Sizes(train=10, valid=3, test=2)
    first, second = (
        list(records(spec(sizes=sizes, **more), dialogues, "place"))
        for more in ({}, {"skip": sizes})
    )
    whole = list(records(spec(), dialogues, "place"))
    for domain in "AB":
        for name, size in (("train", 10), ("valid", 3), ("test", 2)):
            found = [
                [r.doc for r in some if (r.domain, r.split) == (domain, name)]
                for some in (first, second, whole)
            ]
            assert (
                found[0] + found[1] == found[2][: 2 * size]
                and len(set(found[0] + found[1])) == 2 * size
            )
