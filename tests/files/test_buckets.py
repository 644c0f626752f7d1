"""Buckets: what has one digest meets in one part, and no part is larger than memory allows."""

import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from confide.files import arrays, buckets
from confide.files.buckets import KEYED, Buckets, Offsets
from confide.files.io import Range


def records(count: int, different: int) -> np.ndarray:
    """Records KEYED, in order, of so many different digests."""
    digests = [hashlib.sha1(b"%d" % (number % different)).digest() for number in range(count)]
    return np.array(list(zip(digests, range(count), strict=True)), KEYED)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("size", [0, 2000, 10**9])
def test_parts_are_small_whatever_the_number_of_records(tmp_path, monkeypatch, threads, size):
    """However few buckets the size of the corpus led to expect."""
    monkeypatch.setattr(buckets, "SHARE", 1000)
    monkeypatch.setattr(buckets, "MOST", 4)
    monkeypatch.setattr(buckets, "LARGEST", 100 * KEYED.itemsize)
    every = records(6000, 2500)
    filled = Buckets(tmp_path, size, KEYED)
    assert len(filled.files) == (4 if size > 4000 else 1 + size // 1000)
    for shard in np.split(every, 7 * [0] + [1, 2, 2000]):
        filled.add(shard)
    parts = list(filled.each(lambda part: part, threads))
    assert sum(map(len, parts)) == len(every) and len(parts) > 100
    assert max(part.nbytes for part in parts) <= buckets.LARGEST
    of_digests = [set(part["digest"].tolist()) for part in parts]
    assert sum(map(len, of_digests)) == 2500
    assert all((np.diff(part["at"]) > 0).all() for part in parts)
    together = np.concatenate(parts)
    assert np.array_equal(np.sort(together, order="at"), every)
    assert list(tmp_path.iterdir()) == []


def test_records_of_one_digest_stay_together(tmp_path, monkeypatch):
    monkeypatch.setattr(buckets, "LARGEST", 3 * KEYED.itemsize)
    filled = Buckets(tmp_path, 0, KEYED)
    filled.add(records(50, 1))
    sizes = [len(part) for part in filled.each(lambda part: part, 1)]
    assert sum(sizes) == max(sizes) == 50


@given(st.lists(st.lists(st.integers(0, 50), max_size=5), max_size=6), st.sampled_from([0, 30]))
def test_offsets_are_gathered_in_ascending_runs(tmp_path_factory, pieces, largest):
    offsets = Offsets(tmp_path_factory.mktemp("t"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(buckets, "LARGEST", largest)
        offsets.gather(np.array(piece, np.int64) for piece in pieces)
    every = sorted(place for piece in pieces for place in piece)
    assert offsets.within(Range(tmp_path_factory.getbasetemp())).tolist() == every


@given(st.lists(st.binary(min_size=3, max_size=3), max_size=20))
def test_byte_strings_are_numbered_as_they_first_appear(values):
    numbers, different = arrays.numbered(np.array(values, "S3"))
    padded = [value.rstrip(b"\0") for value in values]
    assert different.tolist() == list(dict.fromkeys(padded))
    assert [different[number] for number in numbers] == padded
