"""Points of many documents at once, against the function that cuts one document after the other."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from confide.files import arrays
from confide.files.io import dump_lines
from confide.specs import SplitSpec
from confide.stages.split import Cutting, points
from confide.text import turns
from confide.text.documents import Documents
from confide.types import Record, Span

CORPUS = {"reader": "lines", "path": "x.jsonl"}


@st.composite
def records(draw):
    text = draw(st.text(st.sampled_from('ab  1\n\n."\\\té'), max_size=30))
    edges = sorted(draw(st.lists(st.integers(0, len(text)), max_size=6, unique=True)))
    spans = [
        Span(
            start,
            end,
            draw(st.sampled_from(["name", 'a"b', "é"])),
            draw(st.just(1.0) | st.just(0.5)),
        )
        for start, end in zip(edges[::2], edges[1::2], strict=False)
    ]
    return Record(
        text,
        draw(st.sampled_from(["doc-1", "line-7", 'd"é', "d2"])),
        author=draw(st.none() | st.sampled_from(["ann", 'a"n'])),
        domain=draw(st.none() | st.just("bank")),
        spans=tuple(draw(st.permutations(spans))),
        split=draw(st.sampled_from(["train", "valid"])),
    )


@settings(deadline=None, max_examples=200)
@given(
    st.lists(records(), max_size=6),
    st.sampled_from(["turn", "dialogue", "sentence"]),
    st.sets(st.sampled_from(["doc-1", "d2"])),
    st.sampled_from([1, 20, turns.RUN]),
    st.sampled_from([60, 150, arrays.MOST]),
)
def test_points_are_those_of_each_document(some, point, names, run, most):
    spec = SplitSpec(corpus=CORPUS, point=point)
    returning = [record.doc in names for record in some]
    counts = {}
    seen = Counter()
    expected = [b""]
    for record, returns in zip(some, returning, strict=True):
        if returns:
            expected += [replace(record, spans=tuple(sorted(record.spans))), b""]
        else:
            expected[-1] += dump_lines(points(spec, record, counts, seen))
    cutting = Cutting(spec, Documents.of(some), np.array(returning, bool))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(turns, "RUN", run)
        patch.setattr(arrays, "MOST", most)
        assert cutting.written() == expected
    docs = Counter(record.doc for record in some)
    again = {name for name in counts if docs[name] > 1}
    assert {name: cutting.counts[name] for name in again} == {name: counts[name] for name in again}
    assert +cutting.seen == +seen


@given(st.lists(records(), max_size=6), st.integers(1, 40))
def test_runs_are_all_documents_in_order(some, size):
    there = Documents.of(some)
    runs = list(there.runs(size))
    assert [record for run in runs for record in run.records()] == list(there.records())
    assert all(sum(len(text) + 1 for text in run.texts[:-1]) < size + 1 for run in runs)
