"""Splitting a file of lines in shards: the points are those of one pass from one end to the
other.
"""

import hashlib

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from confide.corpora import lines, read_own
from confide.errors import InputError
from confide.files import shards
from confide.specs import LinesSpec, SplitSpec
from confide.stages.split import points, split
from confide.text.fingerprints import each

ROW = st.fixed_dictionaries(
    {"text": st.sampled_from(["a\nb", "é 😀", "", "one. Two", "\n", "x" * 30])},
    optional={
        "doc": st.sampled_from([None, "d", "e", "f", "line-2"]),
        "author": st.sampled_from([None, "u", "v", "w"]),
        "domain": st.sampled_from([None, "x"]),
    },
)


def spec_of(path, point="turn"):
    return SplitSpec(
        corpus=LinesSpec(reader="lines", path=str(path), valid=0.3, test=0.3), point=point
    )


def oracle(spec):
    """Points of one pass; None where nothing is left to train on."""
    counts = {}
    seen = lines.defaultdict(int)
    rows = []
    for record in read_own(spec.corpus):
        rows += points(spec, record, counts, seen)
    return rows if seen["train"] else None


def run(spec, output, threads=1):
    try:
        split(spec, output=output, threads=threads)
    except InputError as error:
        assert "train split" in str(error) or "no text" in str(error)
        return None
    return [orjson.loads(line) for line in output.read_bytes().splitlines()]


@settings(max_examples=150)
@given(
    st.lists(ROW, min_size=1, max_size=25),
    st.sampled_from(["\n", "\r\n", "\n\n"]),
    st.sampled_from(["", "\ufeff"]),
    st.sampled_from([1, 60, 300]),
)
def test_shards_of_lines_do_not_show(tmp_path_factory, rows, end, bom, size):
    folder = tmp_path_factory.mktemp("l")
    path = folder / "corpus.jsonl"
    path.write_bytes(bom.encode() + b"".join(orjson.dumps(row) + end.encode() for row in rows))
    expected = oracle(spec_of(path))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shards, "SIZE", size)
        found = run(spec_of(path), folder / "points")
    assert orjson.dumps(found) == orjson.dumps(expected)


@pytest.mark.parametrize("zeros", [0, 1, 3])  # that digests end in
def test_splits_that_lines_name_hold_across_shards(tmp_path, monkeypatch, zeros):
    """A document's split stands on its last line, in another shard than its first; another document
    is whole in one.
    """
    ending_so = each(lambda name: hashlib.sha1(name).digest()[zeros:] + bytes(zeros))
    monkeypatch.setattr(lines, "fresh", lambda: ending_so)
    path = tmp_path / "corpus.jsonl"
    rows = [{"text": f"t{n}", "doc": "far" if n % 50 == 0 else f"n{n // 3}"} for n in range(200)]
    rows[150]["split"], rows[7]["split"] = "test", "valid"
    path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    monkeypatch.setattr(shards, "SIZE", 400)
    found = {row["text"]: row for row in run(spec_of(path), tmp_path / "points", threads=3)}
    assert [found[f"t{n}"]["split"] for n in (0, 50, 100, 150)] == ["test"] * 4
    assert [found[f"t{n}"]["key"] for n in (0, 50, 100, 150)] == [f"far:{n}" for n in range(4)]
    assert [found[f"t{n}"]["split"] for n in (6, 7, 8)] == ["valid"] * 3
    rows[199] = {"text": "t", "doc": "far", "split": "train"}
    path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    with pytest.raises(InputError, match=r"corpus.jsonl:200: split: .* another split"):
        split(spec_of(path), output=tmp_path / "points2", threads=2)


def test_a_document_is_known_however_its_key_is_written(tmp_path, monkeypatch):
    path = tmp_path / "corpus.jsonl"
    path.write_bytes(
        b'{"text": "one", "doc": "d"}\n' * 5 + b'{"text": "two", "\\u0064oc": "\\u0064"}\n' * 5
    )
    monkeypatch.setattr(shards, "SIZE", 40)
    spec = SplitSpec(
        corpus=LinesSpec(reader="lines", path=str(path), valid=0, test=0), point="turn"
    )
    assert [row["key"] for row in run(spec, tmp_path / "points")] == [f"d:{n}" for n in range(10)]


@pytest.mark.parametrize("suffix", ["jsonl", "txt"])
def test_the_number_of_processes_does_not_show_in_points(tmp_path, monkeypatch, suffix):
    texts = [f"Line {hashlib.sha1(bytes([n % 97])).hexdigest()} é" for n in range(300)]
    named = [
        {"text": text, "doc": f"d{n // 4}", "author": f"u{n // 8}"} for n, text in enumerate(texts)
    ]
    content = (
        [orjson.dumps(row) for row in named]
        if suffix == "jsonl"
        else [text.encode() for text in texts]
    )
    path = tmp_path / f"corpus.{suffix}"
    path.write_bytes(b"\r\n".join([*content[:100], b"", *content[100:]]))
    split(spec_of(path), output=tmp_path / "whole")
    monkeypatch.setattr(shards, "SIZE", 1000)
    split(spec_of(path), output=tmp_path / "parts", threads=3)
    assert (tmp_path / "whole").read_bytes() == (tmp_path / "parts").read_bytes()
    assert {file.name for file in tmp_path.iterdir()} == {path.name, "whole", "parts"}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    "line",
    [
        b'{"text": "hunter2"',
        b'{"doc": "d", "text": 3}',
        b'{"text": "hunter2", "doc": "a", "spans": 3}',
    ],
)
def test_a_malformed_line_of_a_later_shard_is_named(tmp_path, monkeypatch, threads, line):
    path = tmp_path / "corpus.jsonl"
    path.write_bytes(b'{"text": "fine"}\n\n' * 100 + line + b"\n" + b'{"text": "fine"}\n' * 50)
    monkeypatch.setattr(shards, "SIZE", 300)
    with pytest.raises(InputError, match=r"corpus.jsonl:201: ") as caught:
        split(spec_of(path), output=tmp_path / "points", threads=threads)
    assert "hunter2" not in str(caught.value)
    assert {file.name for file in tmp_path.iterdir()} == {"corpus.jsonl"}
