"""Fingerprints in columns, against the sums that they are made of, one text at a time."""

import hashlib

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from confide.text import fingerprints
from confide.text.fingerprints import LANES, LONGEST, WORDS, each, fresh

SIZES = [0, 1, 3, 4, 5, 7, 8, 9, 63, 64, 65, 129, LONGEST - 1, LONGEST]
texts = st.lists(
    st.one_of(
        st.binary(max_size=20),
        st.sampled_from(SIZES).flatmap(lambda size: st.binary(min_size=size, max_size=size)),
    ),
    max_size=12,
)


def expected(text: bytes, key: bytes, count: int) -> bytes:
    """The fingerprint of a text, of so many lanes, in Python's own numbers."""
    random = hashlib.shake_256(key).digest(count * (WORDS + 2) * 8)
    numbers = [int.from_bytes(random[at : at + 8], "little") for at in range(0, len(random), 8)]
    factors = [numbers[at : at + count] for at in range(0, len(numbers), count)]
    words = [int.from_bytes(text[at : at + 4], "little") for at in range(0, len(text), 4)]
    lanes = []
    for lane in range(count):
        total = factors[-1][lane] + factors[-2][lane] * len(text)
        total += sum(factors[place][lane] * word for place, word in enumerate(words))
        lanes.append((total % 2**64 >> 32).to_bytes(4, "little"))
    return b"".join(lanes)


@given(texts, st.integers(1, LANES))
def test_columns_have_the_fingerprints_of_texts_one_by_one(some, lanes):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fingerprints.secrets, "token_bytes", lambda size: b"k" * size)
        of_columns = fresh(lanes)
    found = of_columns(pa.array([b"before", *some], pa.binary()).slice(1))
    assert found.tolist() == [expected(text, b"k" * 64, lanes).rstrip(b"\0") for text in some]


@given(
    texts,
    st.lists(st.binary(min_size=LONGEST + 1, max_size=LONGEST + 3), max_size=3),
    st.sampled_from([2, LANES]),
)
def test_texts_are_alike_where_their_fingerprints_are(short, long, lanes):
    some = [*short, *long, *(text + b"\0" for text in short), *(b"\0" + text for text in long)]
    found = fresh(lanes)(pa.array(some, pa.binary())).tolist()
    assert [found.index(one) for one in found] == [some.index(text) for text in some]


def test_two_keys_have_nothing_in_common():
    column = pa.array([b"", b"a", b"b" * 600], pa.binary())
    assert not set(fresh()(column).tolist()) & set(fresh()(column).tolist())


def test_every_bit_tells_two_texts_apart_under_half_of_the_keys():
    """Of texts that differ in a bit, in every place of a fingerprint."""
    keys = 1000
    column = pa.array([b"a parcel for Ann", b"a parcel for Anf"], pa.binary())
    found = np.stack([fresh()(column) for _ in range(keys)]).view(np.uint8).reshape(keys, 2, -1)
    different = np.unpackbits(found[:, 0] ^ found[:, 1], axis=1)
    spread = np.abs(different.mean(0) - 0.5) / (0.5 / np.sqrt(keys))
    assert spread.max() < 6


def test_digests_are_fingerprints_too():
    found = each(lambda text: hashlib.sha1(text).digest())(pa.array([b"a", b""], pa.binary()))
    assert found.tolist() == [hashlib.sha1(b"a").digest(), hashlib.sha1(b"").digest()]
