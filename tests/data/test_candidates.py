"""Secrets that may be drawn, found in one pass, against a draw of all."""

from collections import Counter

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from confide.data import gold_columns
from confide.data.gold_columns import candidates, limits, read
from confide.data.neighbours import Kind, draw, quotas, secrets_of
from confide.files import shards as shards_of

kinds = st.builds(Kind, st.booleans(), st.sampled_from("abcd"))


@given(
    st.lists(st.lists(st.tuples(kinds, st.integers(0, 60)), max_size=4), max_size=5),
    st.integers(0, 50),
)
def test_limits_are_no_less_than_what_is_allotted_in_the_end(steps, places):
    counts = Counter()
    for number, step in enumerate(steps, 1):
        counts.update(dict(step))
        most = limits(counts, places)
        final = counts.copy()
        for later in steps[number:]:
            final.update(dict(later))
        for planted in (False, True):
            some = {kind: count for kind, count in final.items() if kind.planted == planted}
            allotted = quotas(some, places)
            assert all(allotted[kind] <= most[kind] for kind in allotted if kind in most)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("form", ["columns", "rows", "both"])
@pytest.mark.parametrize("places", [0, 3, 20, 500])
def test_what_is_drawn_of_candidates_is_what_is_drawn_of_all(
    tmp_path, monkeypatch, form, places, threads
):
    monkeypatch.setattr(shards_of, "SIZE", 2000)
    monkeypatch.setattr(gold_columns, "SPARE", 5)
    rows = []
    for number in range(120):
        label = "ab"[number % 7 == 0]
        doc = f"canary-{number}-0" if number % 11 == 0 else f"d{number}"
        row = {
            "key": f"{doc}:0",
            "text": f"call {number % 9} now",
            "doc": doc,
            "split": "train" if number % 5 else "test",
            "domain": None,
            "owner": None,
            "gold": [[5, 6, label, 1.0], [7, 10, "word", 1.0]],
            "canary": None,
        }
        turned = form == "rows" or (form == "both" and number > 60)
        rows.append(dict(reversed(row.items())) if turned else row)
    path = tmp_path / "points.jsonl"
    path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    ranges = shards_of.shards(path)
    assert len(ranges) > 5
    counts, some = candidates(ranges, None, places, lot=b"3", threads=threads)
    every = list(secrets_of(read(path)))
    assert counts == Counter(secret.kind for secret in every)
    wanted = {}
    for planted in (False, True):
        of_these = {kind: count for kind, count in counts.items() if kind.planted == planted}
        wanted |= quotas(of_these, places)
    assert draw(some, wanted, b"3") == draw(every, wanted, b"3")
