"""Points, findings and copies as columns, against the parser that reads them row by row."""

import json

import numpy as np
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from confide.errors import InputError
from confide.files import columns
from confide.files.columns import Unlike
from confide.files.io import Range
from confide.files.rows import Copy, Found, Join, point_of, read_rows

FIELDS = ("key", "text", "split", "domain", "owner", "gold")
texts = st.text(st.sampled_from('ab "\\/\n\té€😀<MASK>\x7f'), max_size=12)
names = st.text(st.sampled_from("abé:-/ "), max_size=6)


@st.composite
def points(draw):
    text = draw(texts)
    edges = sorted(draw(st.lists(st.integers(0, len(text)), max_size=4)))
    spans = [
        [start, end, draw(st.sampled_from(["name", "é", "a b"])), 1.0]
        for start, end in zip(edges[::2], edges[1::2], strict=False)
    ]
    return point_of(
        key=draw(names),
        text=text,
        split=draw(st.sampled_from(["train", "valid", "test"])),
        domain=draw(st.none() | names),
        owner=draw(st.none() | names),
        gold=spans,
        canary=draw(st.none() | st.sampled_from([0, 7, 123])),
    )


def lines(rows):
    return b"".join(orjson.dumps(row) + b"\n" for row in rows)


def keys_of(read):
    return read.keys_at(np.arange(len(read))).to_pylist()


def as_rows(read):
    """Points of columns as the parser gives them."""
    labels = [read.gold.names[number] for number in read.gold.label]
    spans = [[] for _ in range(len(read))]
    for line, start, end, label in zip(
        read.gold.line, read.gold.start.tolist(), read.gold.end.tolist(), labels, strict=True
    ):
        spans[line].append((start, end, label, 1.0))
    return [
        *zip(
            keys_of(read),
            read.texts.to_pylist(),
            [("train", "valid", "test")[index] for index in read.split],
            read.domain.to_list(),
            read.owner.to_list(),
            spans,
            strict=True,
        )
    ]


@settings(deadline=None, max_examples=150)
@given(st.lists(points(), max_size=5))
def test_columns_are_what_the_parser_reads(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("points") / "points.jsonl"
    path.write_bytes(lines(rows))
    read = columns.points(Range(path))
    assert as_rows(read) == list(read_rows(path, *FIELDS))
    assert read.canary.tolist() == ["canary" in row for row in rows]
    assert read.lengths.tolist() == [len(row["text"]) for row in rows]
    content = path.read_bytes()
    starts = [at for at in range(len(content)) if not at or content[at - 1 : at] == b"\n"]
    assert read.at.tolist() == starts


def test_characters_that_other_programs_escape_are_counted_as_such(tmp_path):
    rows = [row(0, text="😀é 12", gold=[[1, 2, "id", 1.0]]), row(1)]
    path = tmp_path / "points.jsonl"
    ascii_lines = [json.dumps(one, separators=(",", ":")) + "\n" for one in rows]
    path.write_text("".join(ascii_lines), encoding="ascii")
    read = columns.points(Range(path))
    assert read.lengths.tolist() == [5, 6]
    assert as_rows(read) == list(read_rows(path, *FIELDS))


def test_a_part_of_a_file_is_read_with_the_places_of_the_whole(tmp_path):
    path = tmp_path / "points.jsonl"
    path.write_bytes(lines([row(number) for number in range(3)]))
    size = len(path.read_bytes()) // 3
    read = columns.points(Range(path, size, 2 * size))
    assert keys_of(read) == ["d1:0"] and read.at.tolist() == [size]


def row(number, **changed):
    values = {"key": f"d{number}:0", "text": f"text {number}", "split": "train"}
    return point_of(**values | changed)


def test_some_points_are_read_by_the_bytes_at_which_they_begin(tmp_path):
    path = tmp_path / "points"
    rows = [row(number) for number in range(9)]
    path.write_bytes(lines(rows))
    shard = Range(path, len(lines(rows[:2])))
    starts = columns.points(shard).at
    read = columns.points_at(path, starts[[1, 4, 6]])
    assert keys_of(read) == ["d3:0", "d6:0", "d8:0"]
    assert read.texts.to_pylist() == ["text 3", "text 6", "text 8"]


@pytest.mark.parametrize("text", ["ab " * 200, "ab " * 100_000])
def test_long_lines_are_left_to_the_parser_where_a_stage_says_so(tmp_path, text):
    path = tmp_path / "points"
    path.write_bytes(lines([row(0, text=text), row(1, text=text)]))
    assert len(columns.points(Range(path))) == 2
    with pytest.raises(Unlike):
        columns.points(Range(path), columns.LONG)


@settings(deadline=None, max_examples=200)
@given(
    points(),
    st.integers(0, 10**6),
    st.sampled_from([*b'"\\,:[]{}019 \n-.eu', 0, 0xC3, 0xFF]),
    st.booleans(),
)
def test_a_line_with_a_wrong_byte_is_left_to_the_parser(tmp_path_factory, row, place, byte, insert):
    """Whatever columns read, the parser reads too, and the same."""
    content = bytearray(lines([row, row]))
    place %= len(content)
    content[place : place + (not insert)] = bytes([byte])
    path = tmp_path_factory.mktemp("points") / "points.jsonl"
    path.write_bytes(content)
    try:
        read = as_rows(columns.points(Range(path)))
    except Unlike:
        return
    assert read == list(read_rows(path, *FIELDS))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('"gold":[[0,2', '"gold":[[00,2'),
        ('"gold":[[0,2', '"gold":[[0,9'),
        ('"gold":[[0,2', '"gold":[[-1,2'),
        ('"gold":[[0,2', '"gold":[[2,0'),
        ('"gold":[[0,2', '"gold":[,[0,2'),
        (",1.0]]", ",1.5]]"),
        (",1.0]]", ",1.0],]"),
        (',1.0]],"canary"', ',1.0]]],"canary"'),
        (',"gold":[[0,2,"name",1.0]]', ',"gold":[]'),
        (',"gold":[[0,2,"name",1.0]]', "]"),
        ('"canary":7', '"canary":07'),
        ('"canary":7', '"canary":1.5'),
        ('"canary":7', '"canary":null'),
        ('"canary":7', '"canary":7,"gold":[]'),
        (',"canary":7', ',"canary":'),
        ('"domain":"a"', '"domain":null'),
        ('"domain":"a"', '"domain":"\\u0061"'),
        ('"domain":"a"', '"domain":"a","domain":"b"'),
        ('"domain":"a","owner":"b"', '"owner":"b","domain":"a"'),
        ('"owner":"b"', '"owner":"b'),
        ('"split":"train"', '"split":"tests"'),
        ('"key":"d:0"', '"key":"d\\u003a0"'),
        ('"text":"hi', '"text":"hi\\x'),
    ],
)
def test_what_is_not_as_we_write_it_is_no_column(tmp_path, before, after):
    gold = [[0, 2, "name", 1.0]]
    point = row(0, key="d:0", text="hi", domain="a", owner="b", gold=gold, canary=7)
    content = lines([point]).decode()
    assert before in content
    path = tmp_path / "points.jsonl"
    path.write_text(content)
    assert len(columns.points(Range(path))) == 1
    path.write_text(content.replace(before, after))
    with pytest.raises(Unlike):
        columns.points(Range(path))


@settings(deadline=None, max_examples=150)
@given(
    st.lists(st.tuples(names, st.integers(0, 10**12), st.booleans()), max_size=4),
    st.none() | st.tuples(st.integers(0, 10**6), st.sampled_from(b'",:[]{}019 ttf')),
)
def test_findings_and_copies_are_what_the_parser_reads(tmp_path_factory, rows, fault):
    folder = tmp_path_factory.mktemp("found")
    spans = [[3, 4, "x", 1.0], [5, 17, "é", 1.0]]
    found = [
        {"key": key, "spans": spans[: at % 3], "conservative": fires, "at": at}
        for key, at, fires in rows
    ]
    copied = [{"key": key, "at": at} for key, at, _ in rows]
    for kind, row_kind, written in (("found", Found, found), ("copy", Copy, copied)):
        content = bytearray(lines(written))
        if fault and content:
            content[fault[0] % len(content)] = fault[1]
        path = folder / f"{kind}.jsonl"
        path.write_bytes(content)
        try:
            read = columns.findings if kind == "found" else columns.copies
            these = read(Range(path))
        except Unlike:
            assert fault
            continue
        expected = _all(row_kind, path)
        assert these.keys.to_pylist() == [row.key for row in expected]
        assert these.at.tolist() == list(read_rows(path, "at"))
        if kind == "found":
            assert these.conservative.tolist() == [row.conservative for row in expected]
            assert these.spans.counts.tolist() == [len(row.spans) for row in expected]
            assert list(zip(these.spans.start, these.spans.end, strict=True)) == [
                (start, end) for row in expected for start, end, _, _ in row.spans
            ]


def _all(kind, path):
    join = Join(kind, path)
    found = []
    while join.row is not None:
        found.append(join.take(join.key))
    return found


@given(st.lists(st.text(st.sampled_from('ab:1\\"é'), max_size=20) | st.just("a" * 300), max_size=5))
def test_what_lines_begin_with(keys):
    raw = lines({"key": key, "at": 1} for key in keys)
    starts = columns.line_starts(raw)
    if any(len(key) > 256 or "\\" in key or '"' in key for key in keys):
        with pytest.raises(Unlike):
            columns.opening_strings(raw, starts, b'{"key":"')
    else:
        strings = columns.opening_strings(raw, starts, b'{"key":"')
        assert strings.to_pylist() == [f'{{"key":"{key}' for key in keys]


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        columns.points(Range(tmp_path / "none.jsonl"))
