"""Merging, union and redaction against a character-by-character oracle."""

import itertools
import re

from hypothesis import given
from hypothesis import strategies as st

from confide.policies.spans import masks, merge, merged_masks, redacted_text, union
from confide.types import MASK, Span

ranges = st.lists(
    st.tuples(st.integers(0, 12), st.integers(0, 12)).map(
        lambda pair: Span(min(pair), max(pair), "x")
    )
)


@given(ranges)
def test_merge_covers_the_same_characters_once(spans):
    merged = merge(spans)
    assert {i for s in spans for i in range(s.start, s.end)} == {
        i for s in merged for i in range(s.start, s.end)
    }
    assert all(s.start < s.end for s in merged)
    assert all(first.end <= second.start for first, second in itertools.pairwise(merged))


def test_merge_keeps_touching_spans_apart_and_joins_overlapping_ones():
    touching = [Span(0, 2, "a", 0.5), Span(2, 4, "b", 0.9)]
    assert merge(touching) == touching
    assert merge([Span(0, 3, "a", 0.5), Span(2, 4, "b", 0.9)]) == [Span(0, 4, "a", 0.9)]


@given(st.text("abé<MASK> ", max_size=12), ranges)
def test_redacted_text_replaces_runs_of_covered_characters(text, spans):
    spans = [Span(min(s.start, len(text)), min(s.end, len(text)), "x") for s in spans]
    covered = {i for s in [*spans, *masks(text)] for i in range(s.start, s.end)}
    marked = "".join("\0" if i in covered else character for i, character in enumerate(text))
    assert redacted_text(text, spans) == re.sub("\0+", MASK, marked)


def test_a_secret_masked_by_hand_and_one_found_leave_the_same_text():
    assert (
        redacted_text("call 12 now", [Span(5, 7, "n")])
        == redacted_text("call <MASK> now", [])
        == "call <MASK> now"
    )
    assert redacted_text("1234", [Span(0, 2, "a"), Span(2, 4, "b")]) == MASK
    assert redacted_text("<MASK>34", [Span(6, 8, "b")]) == MASK


def test_masks_apart_by_white_space_alone_are_one_on_demand():
    assert (
        merged_masks("at <MASK> \n<MASK><MASK> in <MASK>, <MASK>") == "at <MASK> in <MASK>, <MASK>"
    )
    assert merged_masks("none") == "none"


def test_union_flags_what_either_flags():
    policy = union(lambda text: [Span(3, 5, "b")], lambda text: [Span(0, 1, "a"), Span(4, 6, "c")])
    assert policy("abcdefg") == [Span(0, 1, "a"), Span(3, 6, "b")]
