"""What is said of a shard of the points is found beside it, whole or not at all."""

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from confide.errors import InputError
from confide.files import shards
from confide.files.io import Range, dump_lines, read_jsonl, read_lines
from confide.files.stretches import Beside, closing

BY = "0" * 64  # of settings


@st.composite
def files(draw):
    """Lines of points, of which of them something is said, and how many bytes a shard has."""
    lines = draw(st.lists(st.sampled_from([b"", b"a", b"b" * 9]), min_size=1, max_size=12))
    some = draw(st.sets(st.integers(0, len(lines) - 1)))
    return lines, some, draw(st.integers(1, 30))


def written(folder, lines, some, size):
    """The points, what is said of them, and their shards."""
    points = folder / "points"
    points.write_bytes(b"".join(line + b"\n" for line in lines))
    edges = [0, *accumulate(len(line) + 1 for line in lines)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shards, "SIZE", size)
        ranges = shards.shards(points)
    said = {at for number, at in enumerate(edges[:-1]) if number in some}
    blocks = []
    for shard in ranges:
        there = [{"at": at} for at, _ in read_lines(shard) if at in said]
        blocks.append(dump_lines(there) + closing(shard, dump_lines(there), BY))
    beside = folder / "said"
    beside.write_bytes(b"".join(blocks))
    return said, beside, ranges, blocks


@given(files())
def test_a_stretch_is_what_was_said_of_its_shard(tmp_path_factory, case):
    said, beside, ranges, _ = written(tmp_path_factory.mktemp("t"), *case)
    for shard in ranges:
        found = [row["at"] for row in read_jsonl(Beside(beside, BY).of(shard))]
        assert found == [at for at, _ in read_lines(shard) if at in said]


@given(files(), st.data())
def test_a_shard_whose_end_is_lost_is_refused(tmp_path_factory, case, data):
    """Wherever one share of the file, or the whole, was cut off."""
    _, beside, ranges, blocks = written(tmp_path_factory.mktemp("t"), *case)
    which = data.draw(st.sampled_from([number for number, block in enumerate(blocks) if block]))
    kept = data.draw(st.integers(0, len(blocks[which]) - 1))
    ends = blocks[which].splitlines(keepends=True)[:-1]
    at_a_line = data.draw(st.integers(0, len(ends)))
    for rest in (blocks[which][:kept], b"".join(ends[:at_a_line])):
        beside.write_bytes(b"".join([*blocks[:which], rest, *blocks[which + 1 :]]))
        with pytest.raises(InputError):
            for shard in ranges:
                list(read_jsonl(Beside(beside, BY).of(shard)))


def test_what_was_said_of_other_points_is_refused(tmp_path):
    points = tmp_path / "points"
    points.write_bytes(b"one\ntwo\n")
    beside = tmp_path / "said"
    said = dump_lines([{"at": 0}])
    beside.write_bytes(said + closing(Range(points, 0), said))
    assert Beside(beside).of(Range(points, 0)) == Range(beside, 0, len(said))
    points.write_bytes(b"one\ntwo\nthree\n")
    with pytest.raises(InputError, match="bytes 0 to 14 of .*points; make it again"):
        Beside(beside).of(Range(points, 0))
    points.write_bytes(b"one\nTWO\n")  # as long as before
    with pytest.raises(InputError, match="bytes 0 to 8 of .*points; make it again"):
        Beside(beside).of(Range(points, 0))


@given(files(), st.data())
def test_what_was_changed_is_refused(tmp_path_factory, case, data):
    """A line less, whichever, or one of another shard in its place, or settings that differ."""
    _, beside, ranges, _ = written(tmp_path_factory.mktemp("t"), *case)
    lines = beside.read_bytes().splitlines(keepends=True)
    with pytest.raises(InputError, match="another policy"):
        Beside(beside, "other").of(ranges[0])
    lost = data.draw(st.integers(0, len(lines) - 1))
    beside.write_bytes(b"".join([*lines[:lost], *lines[lost + 1 :]]))
    with pytest.raises(InputError):
        for shard in ranges:
            list(read_jsonl(Beside(beside, BY).of(shard)))


def test_of_no_points_nothing_is_said(tmp_path):
    points = tmp_path / "points"
    points.write_bytes(b"")
    assert closing(Range(points, 0), b"") == b""
    assert list(read_jsonl(Beside(points).of(Range(points, 0)))) == []
