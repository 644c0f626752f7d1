"""Redaction spans: only flagged points have a line, misses apply to the policy alone, and failures
make text private.
"""

import orjson
import pytest

from confide.errors import InputError
from confide.policies import POLICIES
from confide.specs import RedactSpec
from confide.stages.redact import redact
from tests import beside

LETTERS = {"kind": "regex", "patterns": {"letter": "[a-z]"}}
DIGITS = {"kind": "regex", "patterns": {"number": r"\d+"}}
CAPITALS = {"kind": "regex", "patterns": {"capital": r"[A-Z]"}}


def run(tmp_path, texts, **spec):
    points = tmp_path / "p.jsonl"
    points.write_bytes(
        b"".join(orjson.dumps({"key": f"d:{i}", "text": t}) + b"\n" for i, t in enumerate(texts))
    )
    redact(
        RedactSpec(**{"policy": DIGITS, "conservative": CAPITALS} | spec),
        points=points,
        output=tmp_path / "s.jsonl",
    )
    rows = beside.read(tmp_path / "s.jsonl")
    for row in rows:
        assert points.read_bytes()[row.pop("at") :].startswith(b'{"key":"%s"' % row["key"].encode())
    return rows


def test_lines_in_file_order_for_flagged_points_only(tmp_path):
    long = "x" * 300 + " 7"
    assert run(tmp_path, ["a 12 b 3", "none", "B", "C 4", "none", "a 12 b 3", long]) == [
        {
            "key": "d:0",
            "spans": [[2, 4, "number", 1.0], [7, 8, "number", 1.0]],
            "conservative": False,
        },
        {"key": "d:2", "spans": [], "conservative": True},
        {"key": "d:3", "spans": [[2, 3, "number", 1.0]], "conservative": True},
        {
            "key": "d:5",
            "spans": [[2, 4, "number", 1.0], [7, 8, "number", 1.0]],
            "conservative": False,
        },
        {"key": "d:6", "spans": [[301, 302, "number", 1.0]], "conservative": False},
    ]


def test_missed_secrets_keep_the_conservative_hit(tmp_path):
    assert run(tmp_path, ["a 12", "B 3"], miss_rate=1.0) == [
        {"key": "d:1", "spans": [], "conservative": True}
    ]


def test_everything_as_conservative_policy_makes_all_points_private(tmp_path):
    rows = run(tmp_path, ["a", "", "b 1"], conservative={"kind": "everything"})
    assert [(row["key"], row["conservative"]) for row in rows] == [
        ("d:0", True),
        ("d:1", True),
        ("d:2", True),
    ]


@pytest.mark.parametrize("broken", ["policy", "conservative"])
def test_a_policy_that_fails_makes_the_text_private_and_is_counted(
    tmp_path, monkeypatch, capsys, broken
):
    def fails(text):
        if "bad" in text:
            raise RuntimeError(text)
        return []

    kinds = {"policy": "regex", "conservative": "everything"}
    monkeypatch.setitem(POLICIES, kinds[broken], lambda spec: fails)
    other = "conservative" if broken == "policy" else "policy"
    quiet = {"kind": "everything"} if kinds[broken] == "everything" else LETTERS
    monkeypatch.setitem(POLICIES, kinds[other], lambda spec: lambda text: [])
    spec = {broken: quiet, other: DIGITS if kinds[other] == "regex" else {"kind": "everything"}}
    rows = run(tmp_path, ["good", "bad secret", "bad secret"], **spec)
    assert [row["key"] for row in rows] == ["d:1", "d:2"]
    whole = [[0, len("bad secret"), "failed", 1.0]] if broken == "policy" else []
    assert all(row["conservative"] and row["failed"] and row["spans"] == whole for row in rows)
    errors = capsys.readouterr().err
    assert "2 points" in errors
    assert "secret" not in errors


def test_missing_field_is_named(tmp_path):
    (tmp_path / "p.jsonl").write_text('{"key": "d:0"}\n')
    with pytest.raises(InputError, match="text"):
        redact(
            RedactSpec(policy=DIGITS, conservative=CAPITALS),
            points=tmp_path / "p.jsonl",
            output=tmp_path / "s",
        )
