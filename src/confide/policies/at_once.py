"""Spans of many texts at once, where they are surely those that `re` finds in each.

RE2 looks for all patterns of a table in one pass over many texts and marks what it finds. It is
asked for patterns alone that mean the same to it (`screen.spanning`), and of texts of ASCII: as
`re` does, it then takes the first match, and of those that begin at one place the one that is
listed first.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from confide.policies.screen import Unknown, spanning

if TYPE_CHECKING:
    import pyarrow as pa

OPEN = 2  # a byte before each match
CLOSE = 3  # and one behind what each of the patterns has of it
MOST = 9  # patterns, as many as RE2 can name


@dataclass(frozen=True)
class Matches:
    """What is found in some texts, in order: columns (M,)."""

    text: np.ndarray  # number of the text
    start: np.ndarray  # in characters
    end: np.ndarray
    label: np.ndarray  # number of the pattern


def at_once(patterns: list[str]) -> Callable[["pa.StringArray"], Matches] | None:
    """A function that finds patterns in texts that are `plain`.

    None where it is not known to find what `re` finds.
    """
    from pyarrow import ArrowInvalid

    from confide.files import arrays

    if not 0 < len(patterns) <= MOST:
        return None
    try:
        expression = "|".join(f"({spanning(pattern)})" for pattern in patterns)
        _marked(expression, len(patterns), arrays.texts([""]))
    except (Unknown, ArrowInvalid):
        return None

    def find(texts: "pa.StringArray") -> Matches:
        _, edges = arrays.content_of(texts)
        whole, ends = arrays.content_of(_marked(expression, len(patterns), texts))
        content = np.frombuffer(whole, np.uint8)[ends[0] : ends[-1]]
        return _matches(content, edges - edges[0], len(patterns))

    return find


def plain(texts: "pa.StringArray") -> np.ndarray:
    """(N,) bool: texts that can be looked at here, of ASCII and without the bytes of marks."""
    import pyarrow.compute as pc

    from confide.files import arrays

    return ~arrays.from_booleans(pc.match_substring_regex(texts, r"[^\x00-\x7F]|[\x02\x03]"))


def _marked(expression: str, count: int, texts: "pa.StringArray") -> "pa.StringArray":
    """Texts with marks around matches: OPEN, and each group, all but one empty, with CLOSE."""
    import pyarrow.compute as pc

    groups = "".join(f"\\{number}{chr(CLOSE)}" for number in range(1, count + 1))
    return pc.replace_substring_regex(texts, expression, chr(OPEN) + groups)


def _matches(whole: np.ndarray, edges: np.ndarray, count: int) -> Matches:
    """Where marks stand in texts that had these edges (N + 1,) before they were marked."""
    marks = np.flatnonzero((whole == OPEN) | (whole == CLOSE)).reshape(-1, count + 1)
    number = np.arange(len(marks))
    start = marks[:, 0] - number * (count + 1)
    sizes = np.diff(marks, axis=1) - 1
    text = np.searchsorted(edges, start, side="right") - 1
    first = start - edges[text]
    return Matches(text, first, first + sizes.sum(axis=1), sizes.argmax(axis=1))
