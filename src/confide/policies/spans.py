"""What a policy is, and the arithmetic of its spans.

There are merging, union, and the collapsed redaction of CRT Algorithm 1. A policy maps a text to
its sensitive character ranges. Claims need policies that judge a range by the range alone (CRT
section 3.2); nothing here looks at more than one text.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import Any

from confide.types import MASK, Span

ADJOINING = re.compile(rf"{MASK}(?:\s*{MASK})+")
Range = tuple[int, int]  # half-open, in characters
Policy = Callable[[str], list[Span]]  # sorted, non-overlapping spans of one text


def merge(spans: Iterable[Span]) -> list[Span]:
    """Sorted spans in which overlapping ones are one (label of the first, highest score).

    Empty ones are dropped. Spans that only touch stay apart, so that each keeps its label;
    `redacted_text` hides them behind one mask.
    """
    merged: list[Span] = []
    for span in sorted(spans, key=lambda span: (span.start, -span.end)):
        if span.end <= span.start:
            continue
        if merged and span.start < merged[-1].end:
            last = merged[-1]
            merged[-1] = last._replace(
                end=max(last.end, span.end), score=max(last.score, span.score)
            )
        else:
            merged.append(span)
    return merged


def union(*policies: Policy) -> Policy:
    """The policy that flags what any of these flags."""
    return lambda text: merge(span for policy in policies for span in policy(text))


def masks(text: str) -> list[Span]:
    """The places where the text itself reads <MASK>."""
    return [Span(*match.span(), MASK) for match in re.finditer(MASK, text)]


def covered(start: int, end: int, spans: Iterable[Sequence[Any]]) -> bool:
    """Whether spans, sorted by start, cover every character from start to end."""
    for first, last, *_ in spans:
        if first > start:
            break
        start = max(start, last)
    return start >= end


def is_within(start: int, end: int, runs: Sequence[Range]) -> bool:
    """Whether one of some runs, in order and apart, holds every character from start to end: the
    same as `covered` of the spans that they are made of, without a look at all of them.
    """
    at = bisect_right(runs, start, key=itemgetter(0)) - 1
    return start >= end or (at >= 0 and end <= runs[at][1])


def shows(text: str, start: int, end: int, spans: Iterable[Sequence[Any]]) -> bool:
    """Whether more than white space of a range lies in none of some spans, sorted by start: then it
    is read, however masks are merged.
    """
    for first, last, *_ in spans:
        if text[start : min(first, end)].strip():
            return True
        start = max(start, last)
    return bool(text[start:end].strip())


def merged_masks(text: str) -> str:
    """The text with masks that only white space separates as one, whoever put them there."""
    return ADJOINING.sub(MASK, text)


def redacted_text(text: str, spans: Iterable[Sequence[Any]]) -> str:
    """The text with each run of touching or overlapping spans as one <MASK>.

    A literal <MASK> counts as such a span.

    Guarantees: neither the length nor the number of adjoining secrets shows, so a secret that was
    masked in the raw text and one that the policy found leave the same result.
    """
    parts: list[str] = []
    position = 0
    for start, end in hidden(text, spans):
        parts += (text[position:start], MASK)
        position = end
    parts.append(text[position:])
    return "".join(parts)


def hidden(text: str, spans: Iterable[Sequence[Any]]) -> list[Range]:
    """The runs of touching or overlapping spans, a literal <MASK> among them, in order."""
    return runs_of([*spans, *masks(text)] if MASK in text else spans)


def runs_of(spans: Iterable[Sequence[Any]]) -> list[Range]:
    """The runs of touching or overlapping spans, in order."""
    runs: list[Range] = []
    for start, end in sorted([(span[0], span[1]) for span in spans if span[0] < span[1]]):
        if runs and start <= runs[-1][1]:
            runs[-1] = (runs[-1][0], max(runs[-1][1], end))
        else:
            runs.append((start, end))
    return runs


def adjoined(text: str, ranges: Iterable[Range]) -> list[Range]:
    """Ranges of a text, in order, of which those that only white space separates are one, as their
    masks are in `merged_masks`.
    """
    joined: list[Range] = []
    for start, end in ranges:
        if joined and not text[joined[-1][1] : start].strip():
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    return joined


def moved(ranges: Iterable[Sequence[int]], replaced: Sequence[Range]) -> list[Range]:
    """Ranges of a text as ranges of the text in which others, in order, became <MASK>.

    A mask is in a range if a character of what it hides was.
    """
    starts = [start for start, _ in replaced]
    ends = [end for _, end in replaced]
    shifts = [0]
    for start, end in replaced:
        shifts.append(shifts[-1] + len(MASK) - (end - start))

    def first(place: int) -> int:
        """Where a range begins: at the mask that hides its first character, if one does."""
        before = bisect_right(ends, place)
        within = before < len(starts) and starts[before] < place
        return (starts[before] if within else place) + shifts[before]

    def last(place: int) -> int:
        """Where a range ends: behind the mask that hides its last character, if one does."""
        before = bisect_left(starts, place)
        within = before > 0 and place < ends[before - 1]
        return (ends[before - 1] if within else place) + shifts[before]

    return [(first(start), last(end)) for start, end in ranges if start < end]


def merged_ranges(text: str, ranges: Iterable[Sequence[int]]) -> list[Range]:
    """Ranges of a text as ranges of `merged_masks` of it."""
    return moved(ranges, [match.span() for match in ADJOINING.finditer(text)])
