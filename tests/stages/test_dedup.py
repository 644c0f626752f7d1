"""Deduplication: which points are named, and that nothing about their text is written."""

import hashlib
import hmac

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from confide.errors import InputError
from confide.specs import DedupSpec
from confide.stages import dedup as stage
from confide.stages.dedup import copies, dedup


def write(path, rows):
    path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    return path


@given(st.lists(st.tuples(st.sampled_from(["a", "b", "c", "x <MASK>"]), st.sampled_from(["train", "valid"])), max_size=12))
def test_copies_are_what_a_quadratic_search_finds(points):
    rows = [(str(i), text, split) for i, (text, split) in enumerate(points)]
    expected = [
        key
        for i, (key, text, split) in enumerate(rows)
        if split == "train" and "<MASK>" not in text and any(t == text and s == "train" for _, t, s in rows[:i])
    ]
    assert list(copies(rows, lambda text: hashlib.sha1(text).digest())) == expected


@pytest.mark.parametrize("name", ["hmac-sha1", "sha1"])
def test_stage_writes_keys_only(tmp_path, capsys, name):
    texts = ["secret 1", "other", "secret 1", "secret 1"]
    points = write(tmp_path / "p.jsonl", [{"key": f"d:{i}", "text": t, "split": "train"} for i, t in enumerate(texts)])
    dedup(DedupSpec(digest=name), points=points, output=tmp_path / "copies.jsonl")
    assert (tmp_path / "copies.jsonl").read_bytes() == b'{"key":"d:2"}\n{"key":"d:3"}\n'
    errors = capsys.readouterr().err
    assert errors.count("\n") == (name == "sha1")
    assert "secret" not in errors.replace("short secrets", "")


def test_digest_is_hmac_sha1_under_the_drawn_key(monkeypatch):
    monkeypatch.setattr(stage.secrets, "token_bytes", lambda size: b"k" * size)
    assert stage.digest("hmac-sha1")(b"text") == hmac.digest(b"k" * 64, b"text", "sha1")
    assert stage.digest("sha1")(b"text") == hashlib.sha1(b"text").digest()


def test_two_keys_differ():
    assert stage.digest("hmac-sha1")(b"text") != stage.digest("hmac-sha1")(b"text")


def test_missing_field_is_named(tmp_path):
    points = write(tmp_path / "p.jsonl", [{"key": "d:0", "split": "train"}])
    with pytest.raises(InputError, match="text"):
        dedup(DedupSpec(), points=points, output=tmp_path / "copies.jsonl")
    assert not (tmp_path / "copies.jsonl").exists()
