"""Points: cut by every rule, gold spans with them; slow oracles work character by character."""

import string

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from confide.errors import InputError
from confide.specs import LinesSpec, SplitSpec, parse
from confide.stages.split import CUTS, pieces, split
from confide.types import Record, Span
from tests.points import read_points

POINTS = tuple(CUTS)


def cut(text, point, window=3, spans=()):
    return list(pieces(Record(text, "d", spans=tuple(spans), split="train"), point, window))


def texts(text, point, window=3):
    return [piece for piece, _ in cut(text, point, window)]


def run(tmp_path, rows, point="turn", **options):
    path = tmp_path / ("corpus.jsonl" if isinstance(rows, list) else "corpus.txt")
    if isinstance(rows, list):
        path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    else:
        path.write_text(rows)
    corpus = LinesSpec(reader="lines", path=str(path), **options)
    split(SplitSpec(corpus=corpus, point=point), output=tmp_path / "points.jsonl")
    return read_points(tmp_path / "points.jsonl")


def test_fields_of_a_point(tmp_path):
    rows = [
        {
            "text": "Hi Ann\n\n 42 \n",
            "doc": "d",
            "author": "w",
            "domain": "x",
            "split": "train",
            "spans": [[3, 6, "name"]],
        }
    ]
    assert run(tmp_path, rows) == [
        {
            "key": "d:0",
            "text": "Hi Ann",
            "doc": "d",
            "split": "train",
            "domain": "x",
            "owner": "w",
            "gold": [[3, 6, "name", 1.0]],
            "canary": None,
        },
        {
            "key": "d:1",
            "text": "42",
            "doc": "d",
            "split": "train",
            "domain": "x",
            "owner": "w",
            "gold": [],
            "canary": None,
        },
    ]


def test_keys_are_unique_where_a_document_comes_back(tmp_path):
    rows = [
        {"text": "a\nb", "doc": "d"},
        {"text": "c"},
        {"text": "e\nf", "doc": "d"},
        {"text": "g", "doc": "line-2"},
    ]
    keys = [row["key"] for row in run(tmp_path, rows, valid=0, test=0)]
    assert keys == ["d:0", "d:1", "line-2:0", "d:2", "d:3", "doc-line-2:0"]


def test_documents_are_whole(tmp_path):
    rows = [{"text": "a\nb", "doc": f"d{n % 50}"} for n in range(200)]
    found = {}
    for row in run(tmp_path, rows, valid=0.3, test=0.3):
        assert found.setdefault(row["doc"], row["split"]) == row["split"]
    assert set(found.values()) == {"train", "valid", "test"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("Dr. No met Mr. Smith. They left.", ["Dr. No met Mr. Smith.", "They left."]),
        (
            "It costs 3.14 dollars. He paid 1,000.50 of them.",
            ["It costs 3.14 dollars.", "He paid 1,000.50 of them."],
        ),
        ("He was born in 1984. She was not.", ["He was born in 1984.", "She was not."]),
        ("Number 12. 5 more.", ["Number 12. 5 more."]),
        (
            "See No. 38 and fig. 2 there. No. That is not it.",
            ["See No. 38 and fig. 2 there.", "No.", "That is not it."],
        ),
        ("1. Open it. 2. Close it.", ["1. Open it.", "2. Close it."]),
        ("J. R. Hartley wrote it. It sold.", ["J. R. Hartley wrote it.", "It sold."]),
        (
            "The U.S. Army, e.g. Bravo, came. It went.",
            ["The U.S. Army, e.g. Bravo, came.", "It went."],
        ),
        ('She said "Go." Then she left.', ['She said "Go."', "Then she left."]),
        ("Really?! Yes... Maybe. ok", ["Really?!", "Yes...", "Maybe. ok"]),
        ("Call 333.444.5555. Or 1234567890.", ["Call 333.444.5555.", "Or 1234567890."]),
        ("a known lobster . It is closely related . H. americanus is 0 @.@ 7 m . ", None),
        ("one line\nanother line", ["one line", "another line"]),
        ("今日は。元気？はい", ["今日は。", "元気？", "はい"]),
        ("no end", ["no end"]),
    ],
)
def test_sentences(text, expected):
    if expected is None:
        expected = ["a known lobster .", "It is closely related .", "H. americanus is 0 @.@ 7 m ."]
    assert texts(text, "sentence") == expected


def test_window_has_so_many_words_and_keeps_its_gaps():
    assert texts(" a  b\nc d\te f  g ", "window", 3) == ["a  b\nc", "d\te f", "g"]


def test_dialogue_is_the_document():
    assert texts("\nSYS: a\n\nUSR: b\n", "dialogue") == ["SYS: a\n\nUSR: b"]


ALPHABET = st.text(alphabet="ab1. \n!?,A\"'é😀\u00a0", max_size=60)
SPANS = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 9)), max_size=6)


def disjoint(text, drawn):
    spans = []
    last = 0
    for start, length in sorted(drawn):
        if start >= last and start + length <= len(text):
            spans.append(Span(start, start + length, f"l{len(spans)}"))
            last = start + length
    return spans


@settings(max_examples=300)
@given(ALPHABET, SPANS, st.sampled_from(POINTS))
def test_points_cover_the_text_and_spans_keep_their_characters(text, drawn, point):
    """Oracle: every non-blank character is in exactly one point, in order, with the label it
    had.
    """
    spans = disjoint(text, drawn)
    labels = [
        next((s.label for s in spans if s.start <= i < s.end), None) for i in range(len(text))
    ]
    wanted = [(c, label) for c, label in zip(text, labels, strict=True) if not c.isspace()]
    found = []
    for piece, gold in cut(text, point, 2, spans):
        assert piece and piece == piece.strip()
        assert all(0 <= s.start < s.end <= len(piece) for s in gold)
        inside = [
            next((s.label for s in gold if s.start <= i < s.end), None) for i in range(len(piece))
        ]
        found += [(c, label) for c, label in zip(piece, inside, strict=True) if not c.isspace()]
    assert found == wanted


@settings(max_examples=200)
@given(ALPHABET, st.sampled_from(POINTS))
def test_spans_do_not_change_where_the_text_is_cut(text, point):
    spans = [Span(0, 1, "x")] if text else []
    assert [piece for piece, _ in cut(text, point, 2, spans)] == texts(text, point, 2)


@settings(max_examples=200)
@given(st.text(alphabet=string.digits + ".,- aA", max_size=40))
def test_sentences_never_cut_a_number(text):
    joined = " ".join(texts(text, "sentence")).split()
    assert joined == text.split()  # no word is divided, so no number is


def test_straddling_span_is_cut_into_both():
    (one, two) = cut("ab cd\nef gh", "turn", spans=[Span(3, 8, "x")])
    assert one == ("ab cd", (Span(3, 5, "x"),)) and two == ("ef gh", (Span(0, 2, "x"),))


@pytest.mark.parametrize("extra", ["", "é"])  # that is cut line by line, and not many at once
def test_parts_of_a_span_that_are_nothing_but_masks_are_no_secrets(tmp_path, extra):
    text = f"to Ann\n<MASK>\n<MASK> St\nbye{extra}"
    rows = [{"text": text, "doc": "d", "split": "train", "spans": [[3, 24, "address"]]}]
    gold = [point["gold"] for point in run(tmp_path, rows)]
    assert [[span[:3] for span in spans] for spans in gold] == [
        [[3, 6, "address"]],
        [],
        [[0, 9, "address"]],
        [],
    ]


@pytest.mark.parametrize(
    "text",
    [
        "." * 200_000,
        '."' * 100_000,
        "a. " * 70_000,
        ". " * 100_000,
        "!" + " " * 200_000,
        "1" * 200_000,
    ],
)
@pytest.mark.parametrize("point", POINTS)
def test_hostile_text_takes_linear_time(text, point):
    assert "".join("".join(texts(text, point)).split()) == "".join(text.split())


def test_many_spans_in_one_document_take_linear_time():
    text = "ab\n" * 60_000
    found = cut(text, "turn", spans=[Span(i, i + 2, "x") for i in range(0, len(text), 3)])
    assert len(found) == 60_000 and all(gold == (Span(0, 2, "x"),) for _, gold in found)


def test_empty_corpus_and_empty_train_write_nothing(tmp_path):
    for rows, message in (
        ("\n\n", "no text"),
        ([{"text": " "}], "no text"),
        ([{"text": "a", "split": "test"}], "train split is empty"),
        ([{"text": "a"}, {"text": 5}], "expected a string"),
    ):
        with pytest.raises(InputError, match=message) as error:
            run(tmp_path, rows)
        assert "\n" not in str(error.value)
        assert not [path for path in tmp_path.iterdir() if "points" in path.name]


def test_simulator_splits_end_to_end(tmp_path):
    value = {
        "corpus": {"reader": "customersim", "sizes": {"train": 40, "valid": 5, "test": 5}},
        "point": "turn",
    }
    spec = parse(SplitSpec, value)
    split(spec, output=tmp_path / "points.jsonl")
    first = (tmp_path / "points.jsonl").read_bytes()
    split(spec, output=tmp_path / "points.jsonl")
    assert (tmp_path / "points.jsonl").read_bytes() == first
    rows = read_points(tmp_path / "points.jsonl")
    assert len({row["key"] for row in rows}) == len(rows) >= 50 * 6
    assert {row["split"] for row in rows} == {"train", "valid", "test"}
    assert all(
        row["text"].startswith(("SYS: ", "USR: ")) and "\n" not in row["text"] for row in rows
    )
