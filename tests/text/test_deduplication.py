"""Deduplication: which points are named as copies, and by which digests."""

import hashlib
import hmac

from hypothesis import given
from hypothesis import strategies as st

from confide.text import digests
from confide.text.deduplication import copies
from confide.text.digests import digest


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a", "b", "c", "x <MASK>"]),
            st.sampled_from(["train", "valid"]),
            st.sampled_from([None, [], [(0, 1)]]),
        ),
        max_size=12,
    )
)
def test_copies_are_what_a_quadratic_search_finds(points):
    rows = [(str(i), *point) for i, point in enumerate(points)]
    expected = [
        key
        for i, (key, text, split, answers) in enumerate(rows)
        if split == "train"
        and "<MASK>" not in text
        and any(row[1:] == (text, "train", answers) for row in rows[:i])
    ]
    assert list(copies(rows, lambda text: hashlib.sha1(text).digest())) == expected


def test_digest_is_hmac_sha1_under_the_drawn_key(monkeypatch):
    monkeypatch.setattr(digests.secrets, "token_bytes", lambda size: b"k" * size)
    assert digest("hmac-sha1")(b"text") == hmac.digest(b"k" * 64, b"text", "sha1")
    assert digest("sha1")(b"text") == hashlib.sha1(b"text").digest()


def test_two_keys_differ():
    assert digest("hmac-sha1")(b"text") != digest("hmac-sha1")(b"text")
