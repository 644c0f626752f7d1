"""The deduplication stage: it writes keys, and nothing about any text."""

import orjson
import pytest

from confide.errors import InputError
from confide.files.io import Range
from confide.files.stretches import closing
from confide.specs import DedupSpec
from confide.stages.dedup import dedup
from tests import beside


def write(path, rows):
    path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    return path


@pytest.mark.parametrize("name", ["hmac-sha1", "sha1"])
def test_stage_writes_keys_only(tmp_path, capsys, name):
    texts = ["secret 1", "other", "secret 1", "secret 1"]
    points = write(
        tmp_path / "p.jsonl",
        [{"key": f"d:{i}", "text": t, "split": "train"} for i, t in enumerate(texts)],
    )
    dedup(DedupSpec(digest=name), points=points, output=tmp_path / "copies.jsonl")
    places = [points.read_bytes().index(b'{"key":"d:%d"' % copy) for copy in (2, 3)]
    said = b'{"key":"d:2","at":%d}\n{"key":"d:3","at":%d}\n' % (*places,)
    assert (tmp_path / "copies.jsonl").read_bytes() == said + closing(Range(points, 0), said)
    errors = capsys.readouterr().err
    assert errors.count("\n") == (name == "sha1")
    assert "secret" not in errors.replace("short secrets", "")


@pytest.mark.parametrize("missing", ["key", "text"])
def test_missing_field_is_named(tmp_path, missing):
    row = {"key": "d:0", "text": "a", "split": "train"}
    del row[missing]
    points = write(tmp_path / "p.jsonl", [row])
    with pytest.raises(InputError, match=missing):
        dedup(DedupSpec(), points=points, output=tmp_path / "copies.jsonl")
    assert not (tmp_path / "copies.jsonl").exists()


def test_fields_that_are_not_its_own_may_hold_anything(tmp_path):
    """A number that no float holds, and bytes that are no UTF-8: what only other stages read is
    theirs to refuse.
    """
    rows = [
        b'{"key": "%d", "text": "a", "split": "train", "gold": %b}' % one
        for one in enumerate((b"1e999", b'"\xff"'))
    ]
    (tmp_path / "p.jsonl").write_bytes(b"\n".join(rows))
    dedup(DedupSpec(), points=tmp_path / "p.jsonl", output=tmp_path / "copies.jsonl")
    assert beside.read(tmp_path / "copies.jsonl") == [{"key": "1", "at": len(rows[0]) + 1}]
