"""Which texts are drawn, and which files of marks are taken: never ones that somebody chose."""

import numpy as np
import pytest
from toy import POLICIES, begun, by_a_person, corpus, edited, finished

from confide.errors import InputError
from confide.reviews.draw import STRATA, Wanted, draw_sample, words_of
from confide.reviews.marks import Marks, load, marked, sample_of, save
from tests import beside

TEXTS = [
    *[f"my code is {100000 + n} and I am N{n}" for n in range(40)],
    *[f"room {n} please" for n in range(30)],
    *[f"thanks to {'x' * n} y" for n in range(1, 80)],
]


@pytest.fixture
def files(tmp_path):
    return corpus(tmp_path, TEXTS)


def test_strata_are_what_the_policies_say(files):
    sample = draw_sample(Wanted(40, 0, None), **files, policies=POLICIES)
    sizes = {name: one.texts for name, one in sample.counted.items()}
    assert sizes == dict(zip(STRATA, (40, 30, 79), strict=True))
    for text in sample.texts:
        assert text.stratum == (
            "found" if "code" in text.text else "near" if "room" in text.text else "nothing"
        )
    assert len({text.key for text in sample.texts}) == len(sample.texts) == 40
    assert sample.labels == ["code"]


def test_the_lot_hangs_on_the_text_the_policy_the_seed_and_the_number(files, tmp_path):
    def keys(files, *wanted):
        return [text.key for text in draw_sample(Wanted(*wanted), **files, policies=POLICIES).texts]

    first = keys(files, 40, 0, None)
    assert first == keys(files, 40, 0, None)
    assert first != keys(files, 40, 1, None)
    assert set(keys(files, 41, 0, None)) - set(first) and set(first) - set(keys(files, 41, 0, None))
    less_sure(files)
    assert first != keys(files, 40, 0, None)


def test_every_text_of_a_stratum_is_as_likely_as_any_other(files):
    counts = dict.fromkeys([f"d{n}:0" for n in range(len(TEXTS))], 0)
    for seed in range(60):
        for text in draw_sample(Wanted(30, seed, None), **files, policies=POLICIES).texts:
            counts[text.key] += 1
    found = np.array([counts[f"d{n}:0"] for n in range(40)])
    expected = found.sum() / 40
    assert abs(found - expected).max() < 5 * np.sqrt(expected)


def test_later_copies_other_splits_and_planted_points_are_not_drawn(tmp_path):
    files = corpus(tmp_path, ["N1 here", "N1 here", "N2 there", "N3"], {2: "test"})
    lines = files["points"].read_bytes().replace(b'"d3:0"', b'"canary-0-0:0"')
    files["points"].write_bytes(lines)
    beside.write(files["spans"], [], files["points"], POLICIES)
    beside.write(files["copies"], beside.read(files["copies"]), files["points"])
    assert [
        text.key for text in draw_sample(Wanted(10, 0, None), **files, policies=POLICIES).texts
    ] == ["d0:0"]


def test_what_was_masked_before_is_neither_found_nor_missed(tmp_path):
    """A cover, or capitals, find the masks of a text that was redacted before. Were these secrets
    that the policy found, one missed name beside nine masks would be one in ten.
    """
    files = corpus(tmp_path, [f"<MASK> of N{number}" for number in range(20)])
    findings = [
        {"key": f"d{number}:0", "spans": [[0, 6, "code", 1.0]], "conservative": True, "at": 0}
        for number in range(20)
    ]
    findings[0]["spans"] = [[1, 5, "code", 1.0]]
    findings[1]["spans"] = [[0, 9, "code", 1.0]]
    beside.write(files["spans"], findings, files["points"], POLICIES)
    sample = draw_sample(Wanted(20, 0, None), **files, policies=POLICIES)
    assert sum(len(text.found) for text in sample.texts) == 1
    assert {text.key: text.room(None) for text in sample.texts}["d1:0"] == 1
    one = next(text for text in sample.texts if not text.found)
    assert one.room(None) == 2 and marked(one, Marks(), 0, 6, "other") == Marks()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("O'Neil, 3rd", ["O", "Neil", "3rd"]),
        ("José\u2019s <b>", ["José", "s", "b"]),
        ("我叫李明 ok", ["我", "叫", "李", "明", "ok"]),
        ("... !", []),
        ("😀 a😀b", ["a", "b"]),
    ],
)
def test_words(text, words):
    assert [text[start:end] for start, end in words_of(text)] == words


def test_marks_are_of_whole_words_that_are_not_masked(files):
    text = next(
        one
        for one in draw_sample(Wanted(40, 0, None), **files, policies=POLICIES).texts
        if one.found
    )
    name = text.text.rindex("N")
    marks = marked(text, Marks(), name + 1, name + 2, "other")  # a part of the name
    assert [text.text[a:b] for a, b, _ in marks.missed] == [text.text[name:]]
    start, end, _ = text.found[0]
    assert marked(text, marks, start, end, "other") == marks  # masked already
    wider = marked(text, marks, name - 3, name + 1, "name")  # takes the place of what it overlaps
    assert len(wider.missed) == 1 and wider.missed[0][2] == "name"
    two = text._replace(text="123456 654321", found=((0, 6, "code"), (7, 13, "code")))
    assert marked(two, Marks(), 0, 13, "other") == Marks() and two.room(None) == 0
    assert text.room(None) == 7 and text.room(2) == 2  # all words but for the code


def less_sure(files):
    """Findings of a policy that is less sure of one."""
    findings = beside.read(files["spans"])
    next(row for row in findings if row["spans"])["spans"][0][3] = 0.5
    beside.write(files["spans"], findings, files["points"], POLICIES)


def renamed(files):
    """The same texts, of which one is of another document."""
    before = files["points"].read_bytes()
    assert b'"doc":"d0"' in before
    files["points"].write_bytes(before.replace(b'"doc":"d0"', b'"doc":"e0"', 1))
    for name, by in (("spans", POLICIES), ("copies", "")):
        beside.write(files[name], beside.read(files[name]), files["points"], by)


def test_a_file_holds_offsets_and_no_text(files, tmp_path):
    path = tmp_path / "review.json"
    review, sample = finished(files, path)
    assert load(path) == review and sample_of(review, path, **files, policies=POLICIES) == sample
    content = path.read_text()
    for text in sample.texts:
        assert text.text not in content and text.key not in content
    assert "N1" not in content


def test_a_review_of_other_text_or_another_policy_is_refused(files, tmp_path):
    path = tmp_path / "review.json"
    review, _ = finished(files, path)
    for name, change in (("points", renamed), ("spans", less_sure)):
        before = {file: file.read_bytes() for file in files.values()}
        change(files)
        with pytest.raises(
            InputError, match=rf"review.json: {name}: is not the digest of .*{name}"
        ):
            sample_of(review, path, **files, policies=POLICIES)
        for file, content in before.items():
            file.write_bytes(content)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 2}, "version = 2: is not 1"),
        ({"by": "a; b"}, "by: String should match"),
        ({"size": 9}, "size: Input should be greater"),
        ({"size": True}, "size: Input should be a valid integer"),
        ({"chosen": ["d1:0"]}, "chosen: unknown key"),
        ({"labels": ["code", "name"]}, "labels: expected each label once, 'other' among them"),
        ({"labels": ["code", "other", "other"]}, "labels: expected each label once"),
        ({"labels": ["other", "any label"]}, "labels: expected each label once"),
        ({"labels": ["name", "other"]}, "labels = 'code': lacks a label of the policy"),
        ({"marks": []}, "marks = 0: expected 40"),
        ({"seed": 1}, "marks"),
        ({"most": 0}, "most: Input should be greater"),
    ],
)
def test_a_file_that_was_edited_is_refused(files, tmp_path, change, message):
    path = tmp_path / "review.json"
    finished(files, path)
    edited(path, **change)
    with pytest.raises(InputError, match=message):
        sample_of(load(path), path, **files, policies=POLICIES)


@pytest.mark.parametrize(
    ("marks", "message"),
    [
        ({"missed": [[0, 2, "invented"]]}, "has a label that was not set before the first mark"),
        ({"missed": [[0, 1, "other"]]}, "does not begin and end with a word"),
        ({"missed": [[0, 99, "other"]]}, "reach beyond the text"),
        ({"missed": [[3, 7, "other"], [0, 2, "other"]]}, "overlap, are out of order"),
        ({"missed": [[0, 2, "other"], [0, 2, "name"]]}, "overlap"),
        ({"missed": [[11, 17, "other"]]}, "lies in what is masked already"),
        ({"vain": [1]}, "vain names no span"),
        ({"vain": [0, 0]}, "vain names no span, or one twice"),
        ({"missed": [[0, 2, "other"], [3, 7, "other"], [22, 23, "other"]]}, "more than `most`"),
        ({"missed": [["a", 2, "other"]]}, r"marks.\d+.missed.0.0: Input should be a valid integer"),
        ({"text": "N1"}, r"marks.\d+.text: unknown key"),
    ],
)
def test_marks_that_no_person_could_have_made_are_refused(files, tmp_path, marks, message):
    path = tmp_path / "review.json"
    review, sample = begun(files, most=2)
    place = next(n for n, text in enumerate(sample.texts) if text.found)
    every = [None] * len(review.marks)
    save(path, review)
    edited(path, marks=[marks if n == place else None for n in range(len(every))])
    with pytest.raises(InputError, match=message) as error:
        sample_of(load(path), path, **files, policies=POLICIES)
    assert f"marks.{place}" in str(error.value) and sample.texts[place].text not in str(error.value)


def test_a_person_who_knows_is_taken_at_their_word(files, tmp_path):
    review, sample = finished(files, tmp_path / "review.json")
    assert review.reviewed == 40
    for text, marks in zip(sample.texts, review.marks, strict=True):
        assert [text.text[a:b] for a, b, _ in marks.missed] == [
            word for word in text.text.split() if word.startswith("N")
        ]
        assert marks == by_a_person(text)
