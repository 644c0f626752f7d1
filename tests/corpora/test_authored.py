"""Readers of texts by many authors: who is kept, splits within each author, and what each format's
errors say.
"""

import os
from collections import Counter

import pytest

from confide.corpora.authored import Sample, paragraphs, records
from confide.corpora.reddit import read as read_reddit
from confide.corpora.speeches import lines, speeches
from confide.corpora.speeches import read as read_speeches
from confide.errors import InputError
from confide.files.io import write_jsonl
from confide.specs import FetchSpec, RedditSpec, SpeechesSpec
from confide.stages.fetch import fetch

MIRROR = os.environ.get("CONFIDE_MIRROR")
needs_mirror = pytest.mark.skipif(not MIRROR, reason="CONFIDE_MIRROR is not set")


def spec(**options):
    return RedditSpec(reader="reddit", path="unused", **options)


def kept(counts, least=2, **options):
    """Records of authors with so many documents each, mixed."""
    samples = [
        Sample(author, f"{author}{n}", f"text {n}")
        for n in range(max(counts.values()))
        for author in counts
        if n < counts[author]
    ]
    return list(records(spec(**options), least, lambda: iter(samples), "place"))


def test_shares_hold_within_each_author():
    found = kept({"a": 100, "b": 50, "c": 7, "d": 2}, valid=0.2, test=0.3)
    counts = Counter((record.author, record.split) for record in found)
    assert [counts["a", name] for name in ("train", "valid", "test")] == [50, 20, 30]
    assert [counts["b", name] for name in ("train", "valid", "test")] == [25, 10, 15]
    assert [counts["c", name] for name in ("train", "valid", "test")] == [4, 1, 2]
    assert [counts["d", name] for name in ("train", "valid", "test")] == [
        1,
        0,
        1,
    ]  # train and test before valid
    assert [record.doc for record in found[:4]] == ["a0", "b0", "c0", "d0"]  # in file order


def test_the_split_is_seeded_and_depends_on_no_other_author():
    alone, together = (
        {r.doc: r.split for r in kept(counts) if r.author == "a"}
        for counts in ({"a": 90}, {"a": 90, "b": 30})
    )
    assert alone == together != {r.doc: r.split for r in kept({"a": 90}, seed=1)}
    assert (
        0 < sum(split == "test" for doc, split in alone.items() if int(doc[1:]) < 45) < 18
    )  # not the first nor the last ones


def test_who_is_left_out():
    counts = {"a": 5, "b": 9, "c": 1, "d": 9, "e": 30}
    assert {record.author for record in kept(counts)} == {"a", "b", "d", "e"}
    assert {record.author for record in kept(counts, least=6)} == {"b", "d", "e"}
    assert {record.author for record in kept(counts, authors=2)} == {
        "b",
        "e",
    }  # of equals the first by name
    most = kept(counts, most=4)
    assert Counter(record.author for record in most) == {"a": 4, "b": 4, "d": 4, "e": 4}
    assert {record.doc for record in most if record.author == "e"} == {"e0", "e1", "e2", "e3"}


@pytest.mark.parametrize(
    ("counts", "options", "message"),
    [
        (
            {"secret@name": 1, "b": 1},
            {},
            "place: least = 2: no author has so many documents: there are 2, the most of one is 1",
        ),
        ({"a": 9}, {"least": 10}, "place: least = 10: no author"),
        ({"a": 9}, {"valid": 0.5, "test": 0.5}, r"valid \+ test = 1.0: leaves nothing"),
    ],
)
def test_nobody_left_is_an_error_without_a_name(counts, options, message):
    with pytest.raises(InputError, match=message) as caught:
        kept(counts, **options)
    assert "secret" not in str(caught.value)


def test_no_author_at_all():
    with pytest.raises(InputError, match="place: no text with an author"):
        list(records(spec(), 2, lambda: iter(()), "place"))


def test_paragraphs_join_broken_lines():
    assert paragraphs("\n a b \nc\n\n \n d\te\r\n\r\nf\n") == "a b c\nd e\nf" and paragraphs(
        " \n"
    ) == "" == paragraphs("")


# Speeches
# --------------------------------------------------------------------------------------------------

PLAY = """First Citizen:
Before we proceed, hear me.
Speak: no?

All:

MARCIUS:
Thanks. What's the matter, you
dissentious rogues!
"""


def test_a_play_by_hand():
    found = list(speeches(PLAY, 3))
    assert [(sample.author, sample.doc) for sample in found] == [
        ("First Citizen", "speech-0"),
        ("MARCIUS", "speech-2"),
    ]
    assert [sample.text for sample in found] == [
        "Before we proceed, hear me.\nSpeak: no?",
        "Thanks.\nWhat's the matter, you dissentious rogues!",
    ]
    assert list(lines("A b. C d! E f g? H.", 4)) == ["A b. C d!", "E f g? H."]
    assert list(lines("One two three four five. Six.", 2)) == ["One two three four five.", "Six."]


def test_an_archive_without_plays(tmp_path):
    write_jsonl(tmp_path / "raw", [{"path": "other.txt", "text": PLAY}])
    with pytest.raises(InputError, match=r"raw: holds no input.txt"):
        list(read_speeches(SpeechesSpec(reader="speeches"), tmp_path / "raw"))


@needs_mirror
def test_the_published_plays(tmp_path):
    fetch(FetchSpec(archive="tinyshakespeare"), output=tmp_path / "raw")
    found = list(read_speeches(SpeechesSpec(reader="speeches"), tmp_path / "raw"))
    authors = Counter(record.author for record in found)
    assert len(authors) == 20 and min(authors.values()) == 89 and authors["ROMEO"] == 160
    splits = Counter((record.author, record.split) for record in found)
    assert all(
        abs(splits[author, "test"] / count - 0.2) < 0.01 for author, count in authors.items()
    )
    assert {record.split for record in found if record.author == "ROMEO"} == {
        "train",
        "valid",
        "test",
    }
    pieces = [line for record in found for line in record.text.split("\n")]
    assert len(pieces) > len(found) and sum(
        len(piece.split()) > 40 for piece in pieces
    ) < 0.2 * len(pieces)
    assert all(piece == piece.strip() and piece for piece in pieces)


# Reddit
# --------------------------------------------------------------------------------------------------


def posts(path, *rows, tail=""):
    base = {
        "id": "x",
        "subreddit": "s",
        "subreddit_id": "t",
        "body": "raw",
        "content": "c",
        "summary": "tl",
    }
    write_jsonl(path, [base | row for row in rows])
    with open(path, "a") as file:
        file.write(tail)
    return RedditSpec(reader="reddit", path=str(path), least=2)


def test_posts_by_hand(tmp_path):
    rows = [
        {"author": name, "normalizedBody": f"one {n}\nstill one\n\ntwo"}
        for n, name in enumerate(["ann", "[deleted]", "bob", "ann", "ann"])
    ]
    rows.append({"author": "bob", "normalizedBody": " \n"})  # has no text
    job = posts(
        tmp_path / "posts.json", *rows, {"author": None, "normalizedBody": "x"}, tail="\n\n"
    )
    found = list(read_reddit(job))
    assert [(record.author, record.doc) for record in found] == [
        ("ann", "post-1"),
        ("ann", "post-4"),
        ("ann", "post-5"),
    ]
    assert found[1].text == "one 3 still one\ntwo" and {record.split for record in found} == {
        "train",
        "test",
    }
    assert next(read_reddit(job.model_copy(update={"text": "summary"}))).text == "tl"


@pytest.mark.parametrize(
    ("tail", "message"),
    [
        (
            '{"author": "a", "normalizedBody": "top sec',
            r"posts.json:3: malformed JSON",
        ),
        ('{"author": "a", "body": "x"}', r"posts.json:3: normalizedBody: is missing"),
        ('{"normalizedBody": "x"}', r"posts.json:3: author: is missing"),
        ('{"author": 3, "normalizedBody": "x"}', r"posts.json:3: author: expected a string"),
        ('["top sec"]', r"posts.json:3: expected a JSON object"),
    ],
)
def test_broken_lines_are_named_without_their_text(tmp_path, tail, message):
    job = posts(
        tmp_path / "posts.json", *[{"author": "ann", "normalizedBody": "x"}] * 2, tail=tail + "\n"
    )
    with pytest.raises(InputError, match=message) as caught:
        list(read_reddit(job))
    assert "top sec" not in str(caught.value)


def test_a_missing_file(tmp_path):
    with pytest.raises(InputError, match="nosuch: cannot be read: No such file"):
        list(read_reddit(RedditSpec(reader="reddit", path=str(tmp_path / "nosuch"))))
