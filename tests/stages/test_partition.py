"""The partition against a slow oracle: one point at a time, character by character, through the
backend's offsets.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers.pre_tokenizers import ByteLevel

from confide.data import partitioning
from confide.data.partition_files import load_partition
from confide.data.partitioning import fill_of
from confide.errors import InputError
from confide.files.io import write_jsonl
from confide.policies import redacted_text
from confide.specs import PartitionSpec
from confide.stages.fill_key import fill_key
from confide.stages.partition import partition
from confide.text.fakes import value_of
from confide.text.tokenizer import from_vocab, packed, save, train_bpe
from confide.types import MASK, Span
from tests import beside
from tests.fills import KEY, key_for

TOKENIZER = train_bpe(["call me at 12 or 345, please", "my name's Ann Lee", "café 😀 ok"] * 5, 300)


def point(index, text, split="train", gold=(), domain=None, owner=None):
    gold = [[start, end, "x", 1.0] for start, end in gold]
    return {
        "key": f"d:{index}",
        "text": text,
        "split": split,
        "domain": domain,
        "owner": owner,
        "gold": gold,
    }


def finding(index, *spans, conservative=True):
    return {
        "key": f"d:{index}",
        "spans": [[*span, "x", 1.0] for span in spans],
        "conservative": conservative,
    }


def run(folder, points, copies=(), findings=(), **spec):
    folder.mkdir(exist_ok=True)
    write_jsonl(folder / "p", points)
    beside.write(folder / "c", [{"key": f"d:{index}"} for index in copies], folder / "p")
    beside.write(folder / "s", findings, folder / "p")
    save(TOKENIZER, folder / "t")
    places = {
        "points": "p",
        "copies": "c",
        "spans": "s",
        "tokenizer": "t",
        "original": "o",
        "redacted": "r",
    }
    paths = {name: folder / file for name, file in places.items()}
    asked = PartitionSpec(**spec)
    partition(asked, **paths, **key_for(asked.fill, folder), policies="")
    return load_partition(folder / "o", folder / "r")


texts = st.lists(
    st.sampled_from([MASK, "é", "😀", "12 ", "345", " Ann", "call me ", "o'clock", " "]), max_size=6
).map("".join)


@st.composite
def marked_texts(draw):
    text = draw(texts)
    place = st.integers(0, len(text))
    ranges = st.lists(st.tuples(place, place).map(lambda pair: (min(pair), max(pair))), max_size=3)
    return text, draw(ranges), draw(ranges), draw(st.booleans())


@given(st.lists(marked_texts(), max_size=7))
def test_views_and_marks_are_what_one_point_at_a_time_gives(tmp_path_factory, cases):
    points = [point(index, text, gold=gold) for index, (text, _, gold, _) in enumerate(cases)]
    findings = [
        finding(i, *spans, conservative=fires)
        for i, (_, spans, _, fires) in enumerate(cases)
        if spans or fires
    ]
    result = run(tmp_path_factory.mktemp("p"), points, (), findings)
    for view in (result.original, result.redacted):
        assert len(view) == len(cases)
    for index, (text, spans, gold, fires) in enumerate(cases):
        ids, offsets = TOKENIZER.encode_batch([text])[0]
        here = slice(result.original.starts[index], result.original.starts[index + 1])

        def touches(ranges, offsets=offsets):
            return [
                any(start < end and start < b and a < end for start, end in ranges)
                for a, b in offsets
            ]  # not by empty ones

        assert result.original[index].tolist() == ids
        flagged = np.array(touches(spans), bool) | (np.array(ids) == TOKENIZER.mask_id)
        assert result.original.private[here].tolist() == flagged.tolist()
        assert result.secret[here].tolist() == touches(gold)
        shown = redacted_text(text, [Span(*span, "x") for span in spans])
        assert result.redacted[index].tolist() == TOKENIZER.encode_batch([shown])[0][0]
        assert result.private[index] == (bool(spans) or fires or MASK in text)
        assert result.copy[index] == (shown == MASK)
    assert (result.redacted.private == (result.redacted.ids == TOKENIZER.mask_id)).all()


PIECES = [
    MASK,
    "é",
    "1",
    " ",
    "\n",
    "\r\n",
    "\t",
    "a",
    "'s",
    "?",
    "\n\n",
    "call",
    "\x1c",
    "\u2028",
    "USR:",
]


@pytest.mark.parametrize("control", [(), ("USR:",), ("a\nb",)])
@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
def test_lines_are_tokenized_as_the_whole_text_is(control, text):
    """Whatever the limit, which is 3 characters here: line by line where that is the same, from the
    cache or not.
    """
    tokenizer = train_bpe(["call\n call 1\n\na's a? é"] * 5, 300, control)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(partitioning, "CACHE_LENGTH", 3)
        encode = partitioning.remembering(tokenizer)
        for case in (text, "a\nb" + text, text + "?\na"):
            assert encode(case) == encode(case) == packed(tokenizer.encode_batch([case])[0][0])


def test_batches_do_not_show(tmp_path, monkeypatch):
    points = [
        point(
            i,
            f"call 1{i} é" * (i % 3),
            domain="ab"[i % 2],
            owner=str(i % 4),
            gold=[(0, 2)] * (i % 3 > 0),
        )
        for i in range(50)
    ]
    findings = [finding(i, (5, 7)) for i in range(1, 50, 3)]
    run(tmp_path / "one", points, (), findings)
    monkeypatch.setattr(partitioning, "BATCH", 7)
    run(tmp_path / "many", points, (), findings)
    for name in "or":
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "many" / name).read_bytes()


SAME = [point(i, "call me at 12", gold=[(11, 13)]) for i in range(3)] + [
    point(i, "hello there") for i in range(3, 6)
]
NOTICED = [finding(i, conservative=True) for i in range(3)]


@pytest.mark.parametrize(
    "spec, masked",
    [
        ({}, [1, 2]),
        ({"scope": "all"}, [1, 2, 4, 5]),
        ({"dedup": False}, []),
        ({"dedup": False, "scope": "all"}, []),
    ],
)
def test_which_copies_are_masked(tmp_path, spec, masked):
    result = run(tmp_path, SAME, [1, 2, 4, 5], NOTICED, **spec)
    assert np.flatnonzero(result.copy).tolist() == masked
    for index in range(6):
        whole = [TOKENIZER.mask_id] if index in masked else TOKENIZER.encode(SAME[index]["text"])
        assert result.original[index].tolist() == result.redacted[index].tolist() == whole
    assert np.flatnonzero(result.private).tolist() == sorted({0, 1, 2, *masked})
    assert result.original.private.sum() == len(masked)
    assert result.secret.sum() == 2 * (3 - len({1, 2} & set(masked)))


def test_adjoining_masks_are_one_if_asked_whether_found_or_in_the_raw_text(tmp_path):
    found = point(0, "at Ann 12, 7")
    raw = point(1, "at <MASK> 12, 7")
    spans = [finding(0, (3, 6), (7, 9), (11, 12)), finding(1, (10, 12), (14, 15))]
    apart, merged = (
        run(tmp_path / str(flag), [found, raw], (), spans, merge_masks=flag)
        for flag in (False, True)
    )
    for result, masks in ((apart, 3), (merged, 2)):
        assert result.redacted[0].tolist() == result.redacted[1].tolist()
        assert result.redacted[0].tolist().count(TOKENIZER.mask_id) == masks


def test_made_up_values_stand_where_masks_would_and_tell_nothing_of_what_was_there(tmp_path):
    found = [point(0, "my name is Ann Lee, ok"), point(1, "7"), point(2, "hello <MASK> 12")]
    raw = [point(0, "my name is <MASK>, ok"), point(1, "<MASK>"), point(2, "hello <MASK> 12")]
    spans = [finding(0, (11, 18)), finding(1, (0, 1)), finding(2, (13, 15))]
    filled = run(tmp_path / "filled", found, (), spans, fill=True)
    texts = [TOKENIZER.decode(filled.redacted[index]) for index in range(3)]
    assert texts[0] == f"my name is {value_of('name', KEY, found[0]['key'])}, ok"
    assert texts[1] == "<MASK>" and filled.copy.tolist() == [False, True, False]
    assert texts[2].count("<MASK>") == 0
    assert not filled.redacted.private[: filled.redacted.starts[1]].any()
    assert filled.original[0].tolist() == TOKENIZER.encode("my name is Ann Lee, ok")
    run(tmp_path / "raw", raw, (), [finding(2, (13, 15))], fill=True)
    left = [(tmp_path / name / "r").read_bytes() for name in ("filled", "raw")]
    assert left[0] == left[1]


def test_whoever_has_no_key_cannot_make_values_again(tmp_path):
    """Else names of points could be tried until the values fit, and what is real told from them."""
    masked = "my name is <MASK>, and call <MASK>"
    texts = set()
    for number in range(2):
        fill_key(output=tmp_path / str(number))
        fill = fill_of(PartitionSpec(fill=True), None, tmp_path / str(number))
        texts.add(fill(masked, "d:0"))
        assert fill(masked, "d:0") in texts
    assert len(texts) == 2


@pytest.mark.parametrize("content", ["", "ab", f"{KEY}0", KEY.upper()])
def test_a_key_is_there_and_whole(tmp_path, content):
    with pytest.raises(InputError, match="fill_key = True: is missing, which fill asks for"):
        fill_of(PartitionSpec(fill=True), None, None)
    (tmp_path / "key").write_text(content)
    with pytest.raises(InputError, match="holds no key of 64 hexadecimal digits") as failure:
        fill_of(PartitionSpec(fill=True), None, tmp_path / "key")
    assert not content or content not in str(failure.value).replace(str(tmp_path), "")
    with pytest.raises(InputError, match="fill_key = False: is not what fill asks for"):
        fill_of(PartitionSpec(), None, tmp_path / "key")


def test_split_domain_and_owner(tmp_path):
    points = [
        point(0, "a", "valid", domain="x", owner="u"),
        point(1, "b", "test"),
        point(2, "c", domain="y", owner="v"),
        point(3, "d", domain="x", owner="v"),
    ]
    result = run(tmp_path, points)
    assert result.split.tolist() == [1, 2, 0, 0]
    assert result.domain.tolist() == [0, -1, 1, 0]
    assert result.domains == ("x", "y")
    assert result.owner.tolist() == [0, -1, 1, 1]
    assert b"owner-name" not in (tmp_path / "r").read_bytes()


@pytest.mark.parametrize("as_columns", [True, False])
def test_a_vocabulary_that_leaves_bytes_out_is_refused(tmp_path, monkeypatch, as_columns):
    """Its tokens stand elsewhere than their places say: a secret's would be taken for others."""
    row = point(0, "pin 12 ok")
    if as_columns:
        places = ("key", "text", "doc", "split", "domain", "owner", "gold", "canary")
        row = {name: (row | {"doc": "d", "canary": None})[name] for name in places}
    for blank in (True, False):
        letters = sorted(ByteLevel.alphabet() if blank else {*ByteLevel.alphabet()} - {"Ġ"})
        table = {letter: number for number, letter in enumerate([*letters, "<|endoftext|>"])}
        monkeypatch.setitem(globals(), "TOKENIZER", from_vocab(table, [], source="vocab"))
        if blank:
            view = run(tmp_path, [row], findings=[finding(0, (4, 6))]).original
            assert np.flatnonzero(view.private).tolist() == [4, 5]
        else:
            with pytest.raises(InputError, match="leaves something of a text out"):
                run(tmp_path, [row], findings=[finding(0, (4, 6))])


def test_no_points_at_all(tmp_path):
    assert len(run(tmp_path, []).original) == 0


@pytest.mark.parametrize(
    "points, copies, findings, named",
    [
        (SAME, [9], [], "c: d:9"),  # of no point
        (SAME, [2, 1], [], "c: d:1"),  # out of order
        (SAME, [], [finding(7, (0, 1))], "s: d:7"),
        (SAME, [], [finding(0, (0, 99))], "s: d:0"),  # beyond the text
        ([point(0, "ab", gold=[(1, 5)])], [], [], "p:1: gold"),
        ([point(0, "a", "valid")], [0], [], "c: d:0"),  # only training points are copies
        ([point(0, "<MASK>")], [0], [], "c: d:0"),
        ([point(0, "a", "other")], [], [], "p: d:0"),
        ([{"key": "d:0"}], [], [], "p:1: text"),
    ],
)
def test_files_that_do_not_belong_together_are_refused(tmp_path, points, copies, findings, named):
    with pytest.raises(InputError, match=named):
        run(tmp_path, points, copies, findings)
    assert not (tmp_path / "o").exists()
    assert not (tmp_path / "r").exists()
