"""What is looked up near a place of a text is what a look at all of the text finds."""

import re

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from confide.policies import covered, is_within, runs_of
from confide.policies.cover import EDGE
from confide.reviews.draw import is_between
from confide.text.masked import cuts_a_mask, is_masked
from confide.text.turns import _lines
from confide.text.utf8 import ByteCount
from confide.types import MASK

PIECES = st.lists(st.sampled_from([MASK, "<", "MASK", ">", "<MA", "SK>", " ", "\n", "a", "é"]))
PLACES = st.lists(st.integers(0, 40), min_size=2, max_size=9)


@given(PIECES.map("".join), PLACES)
def test_masks_at_the_edges_of_a_range(text: str, places: list[int]) -> None:
    start, end = sorted(min(place, len(text)) for place in places[:2])
    rest = text.replace(MASK, " " * len(MASK))[start:end]
    assert is_masked(text, start, end) == (not rest.strip() and bool(text[start:end].strip()))
    masks = [match.span() for match in re.finditer(MASK, text)]
    assert cuts_a_mask(text, start, end) == any(
        first < edge < last for first, last in masks for edge in (start, end)
    )


@given(st.text("aé😀\n"), PLACES)
def test_bytes_before_a_character(text: str, places: list[int]) -> None:
    counted = ByteCount(text)
    for place in places:
        place = min(place, len(text))
        assert counted.before(place) == len(text[:place].encode())


def pairs(places: list[int]) -> list[tuple[int, int]]:
    """Ranges of consecutive places."""
    return [(first, last) for first, last in zip(places[::2], places[1::2], strict=False)]


@given(PLACES, PLACES)
def test_ranges_of_which_some_hold_another(places: list[int], others: list[int]) -> None:
    spans = sorted((min(pair), max(pair)) for pair in pairs(others))
    words = pairs(sorted({*others}))
    for first, last in pairs(places):
        start, end = min(first, last), max(first, last)
        assert is_within(start, end, runs_of(spans)) == covered(start, end, spans)
        between = any(begin < last and finish > first for begin, finish in words)
        assert is_between(words, first, last) == between


@given(st.text(" ab\n"))
def test_lines_without_the_spaces_around_them(text: str) -> None:
    start, end = _lines(text.encode())
    found = [text[first:last] for first, last in np.stack([start, end], 1).tolist()]
    assert found == [line.strip(" ") for line in text.split("\n") if line.strip(" ")]


@given(st.text("a-_ .é1"))
def test_punctuation_around_a_word(word: str) -> None:
    assert EDGE.sub("", word) == re.sub(r"^[\W_]+|[\W_]+$", "", word)
