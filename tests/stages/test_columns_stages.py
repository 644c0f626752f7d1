"""Each data stage over points as `split` writes them, which are read as columns, against the same
points with their fields in another order, which are read row by row.
"""

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from confide.files import columns, shards
from confide.files.columns import Unlike
from confide.files.io import Range
from confide.files.rows import point_of
from confide.provenance.terms import digest_of_specs
from confide.specs import (
    CanarySpec,
    DedupSpec,
    NeighboursSpec,
    PartitionSpec,
    RecallSpec,
    RedactSpec,
)
from confide.stages.dedup import dedup
from confide.stages.neighbours import neighbours
from confide.stages.partition import partition
from confide.stages.plant import plant
from confide.stages.recall import recall
from confide.stages.redact import redact
from confide.text.tokenizer import save, train_bpe
from tests import beside
from tests.fills import key_for
from tests.terms import TEXT

TOKENIZER = train_bpe(["call me at 12 or 345, please", "my name's Ann Lee", "café 😀 ok"] * 5, 300)
REDACT = RedactSpec(
    policy={"kind": "regex", "patterns": {"number": r"\b\d+"}},
    conservative={"kind": "regex", "patterns": {"capital": "[A-Z]"}},
)
CANARIES = {
    "template": "my code is {3}",
    "count": 3,
    "copies": 2,
    "controls": 1,
    "seed": 4,
    "game": {"template": "code {2}!", "count": 4, "seed": 1},
    "inclusion": {"template": "my {2}", "count": 4, "seed": 2},
}
words = st.sampled_from(
    [
        *("call 12", "12 34", "Ann", "ok", "é7", 'say "8"', "a'b", "", "x  y"),
        *("<MASK>", "<MASK> <MASK>", "<MASK>\x0b<MASK>"),
    ]
)


@st.composite
def corpora(draw):
    rows = []
    for number, parts in enumerate(draw(st.lists(st.lists(words, max_size=3), max_size=14))):
        text = " ".join(parts)
        edges = sorted(draw(st.sets(st.integers(0, len(text)), max_size=4)))
        spans = zip(edges[::2], edges[1::2], strict=False)
        rows.append(
            point_of(
                key=f"d{number // 3}:{number % 3}",
                text=text,
                split=draw(st.sampled_from(["train", "train", "valid"])),
                domain=draw(st.sampled_from([None, "bank", "shop"])),
                owner=draw(st.sampled_from([None, "ann", "bob"])),
                gold=[[*span, draw(st.sampled_from(["code", "name"])), 1.0] for span in spans],
            )
        )
    return rows


def through(folder, rows, spec):
    """What every stage writes."""
    folder.mkdir()
    values = {}
    if isinstance(spec.fill, str):
        values["values"] = folder / "values"
        values["values"].write_text('[["call", "five", ""], ["", "six", "<MASK>"]]')
    at = {
        name: folder / name
        for name in ("points", "copies", "spans", "tokenizer", "original", "redacted")
    }
    at["points"].write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    save(TOKENIZER, at["tokenizer"])
    dedup(DedupSpec(), points=at["points"], output=at["copies"])
    redact(REDACT, points=at["points"], output=at["spans"])
    told = {"text": TEXT, "redact": REDACT, "reads": []}
    recall(RecallSpec(**told), points=at["points"], spans=at["spans"], output=folder / "recall")
    values |= key_for(spec.fill, folder)
    partition(spec, **at, **values, policies=digest_of_specs(REDACT))
    tested = NeighboursSpec(**told, partition=spec, sample=6)
    files = {"points": at["points"], "tokenizer": at["tokenizer"]}
    neighbours(tested, **files, output=folder / "neighbours")
    names = ("recall", "original", "redacted", "neighbours")
    said = {name: beside.read(folder / name) for name in ("copies", "spans")}
    return said | {name: (folder / name).read_bytes() for name in names}


def turned(rows):
    return [dict(reversed(row.items())) for row in rows]


@settings(deadline=None, max_examples=25)
@given(
    corpora(),
    st.sampled_from(["private", "all"]),
    st.booleans(),
    st.sampled_from([False, True, "public"]),
    st.sampled_from([300, 700, 1 << 20]),
)
def test_columns_and_rows_give_the_same_bytes(
    tmp_path_factory, rows, scope, merge_masks, fill, size
):
    folder = tmp_path_factory.mktemp("stages")
    spec = PartitionSpec(scope=scope, merge_masks=merge_masks, fill=fill)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shards, "SIZE", size)
        # one lot for both, which it would not be for files of other bytes
        patch.setattr("confide.stages.neighbours.lot_of", lambda points, seed: b"1")
        by_columns = through(folder / "columns", rows, spec)
        by_rows = through(folder / "rows", turned(rows), spec)
    assert by_columns == by_rows
    assert len(columns.points(Range(folder / "columns/points"))) == len(rows)
    if rows:
        with pytest.raises(Unlike):
            columns.points(Range(folder / "rows/points"))


@settings(deadline=None, max_examples=40)
@given(corpora(), st.sampled_from([300, 700, 1 << 20]))
def test_canaries_are_planted_in_the_same_places(tmp_path_factory, rows, size):
    if not any(row["split"] == "train" for row in rows):
        return
    folder = tmp_path_factory.mktemp("plant")
    spec = CanarySpec.model_validate(CANARIES)
    planted = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shards, "SIZE", size)
        for name, some in (("columns", rows), ("rows", turned(rows))):
            points = folder / name
            points.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in some))
            output = folder / f"{name}-planted"
            plant(spec, points=points, output=output, canaries=folder / f"{name}-canaries")
            planted.append([orjson.loads(line) for line in output.read_bytes().splitlines()])
    assert planted[0] == planted[1]
    assert [row for row in planted[0] if not row["key"].startswith(("canary-", "audit-"))] == rows
    assert sum("canary" in row for row in planted[0]) == 6
