"""One pass of an Aho-Corasick automaton over folded bytes, and the rules by which a match counts as a leak.

Rules: a match that begins or ends with a letter or digit must not stand within a longer run of them; separators stand where
the secret has some (in a long one anywhere, but that numbers side by side are chance); digits that are a part of a decimal
number are chance; base64 counts in its own case only.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from ahocorasick_rs import BytesAhoCorasick, Implementation

from confide.leaks.variants import RUN, SEPARATORS, Form, breaks, core, fold, patterns

BLOCK = 1 << 20  # bytes that are searched at once
CONTEXT = 32  # bytes on either side that the rules look at
STRETCH = 8  # bytes that a match may span per byte that folding keeps: four in UTF-32, and separators
LONG = 10  # characters of a secret that no chance arrangement of separators makes up
ALNUM = frozenset(b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
ESCAPE = re.compile(rb"(?:\\[abfnrtv]|\\x[0-9a-f]{2}|\\u[0-9a-f]{4}|%[0-9a-f]{2}|\x1b\[[0-9;]*m)\Z", re.IGNORECASE)
TABLE = re.compile(rb"[0-9]*[.\s][0-9.\s]*")  # numbers side by side
NUMBER = re.compile(rb"[0-9]+(?:\.[0-9]+)?")
NUMBER_BEFORE = re.compile(rb"[0-9](?:\.|[eE][+-])\Z")
NUMBER_AFTER = re.compile(rb"\.[0-9]")
KEPT = bytes(byte not in SEPARATORS for byte in range(256))
CHUNK = 4096


class Hit(NamedTuple):
    """A leak of the secret of this index, in this kind of variant."""

    secret: int
    kind: str


class Searcher:
    """Looks for all forms of some secrets; built once, then used for any number of streams."""

    def __init__(self, secrets: dict[int, str]):
        found = patterns(secrets)
        self.exact = {index: core(text).encode() for index, text in secrets.items()}
        self.forms = list(found.values())
        self.reach = STRETCH * max(map(len, found), default=0) + CONTEXT
        self.automaton = BytesAhoCorasick(list(found), implementation=Implementation.ContiguousNFA) if found else None

    def hits(self, pieces: Iterable[bytes]) -> Iterator[Hit]:
        """Leaks in a stream that is cut into pieces anywhere; memory is bounded by a few blocks and the longest piece."""
        tail, low = b"", 0  # what was searched before; a match that ends at or before `low` has been judged
        for block, last in blocks(pieces):
            data = tail + block
            high = len(data) if last else max(low, len(data) - CONTEXT)
            yield from self._between(data, low, high)
            start = max(0, high - self.reach - CONTEXT)
            tail, low = data[start:], high - start

    def _between(self, data: bytes, low: int, high: int) -> Iterator[Hit]:
        """Leaks that end after `low` and at or before `high`."""
        matches = self.automaton.find_matches_as_indexes(fold(data), overlapping=True) if self.automaton else []
        if not matches:
            return
        place = places(data)
        for number, start, end in matches:
            first, last = place(start), place(end - 1) + 1
            if low < last <= high and last - first <= STRETCH * (end - start) + CONTEXT:
                kinds = ((form.secret, self._kind(form, data, first, last)) for form in self.forms[number])
                hit = next((Hit(secret, kind) for secret, kind in kinds if kind), None)
                if hit:
                    yield hit

    def _kind(self, form: Form, data: bytes, first: int, last: int) -> str | None:
        """The variant that data[first:last] is of the form's secret, or None if that is chance."""
        window, before, after = data[first:last], data[max(0, first - CONTEXT) : first], data[last : last + CONTEXT]
        if form.kind == "hex" or (form.kind == "base64" and window.translate(None, SEPARATORS) == form.kept):
            return form.kind
        text = narrow(window)
        if text or form.kind == "wide":
            before, after = before.translate(None, b"\0"), after.translate(None, b"\0")
        if form.kind == "base64" or not alone(window, before, after):
            return None
        if form.kind in ("percent", "escaped"):
            return form.kind
        if form.kind == "wide":
            return "utf16" if 0 in window else "latin1"
        wide, text = text is not None, text or window
        if not (breaks(text) <= form.breaks or (len(form.kept) >= LONG and not TABLE.fullmatch(text))):
            return None
        exact = self.exact[form.secret]
        if NUMBER.fullmatch(text) and (part_of_number(before, after) or (b"." in text and text != exact)):
            return None
        if wide or form.kind == "reversed":
            return "utf16" if wide else "reversed"
        return "exact" if text == exact else "case" if RUN.findall(text) == RUN.findall(exact) else "separators"


def blocks(pieces: Iterable[bytes]) -> Iterator[tuple[bytes, bool]]:
    """The pieces joined to blocks of at least BLOCK bytes, each with whether it is the last."""
    waiting: list[bytes] = []
    size = 0
    for piece in pieces:
        if size >= BLOCK:
            yield b"".join(waiting), False
            waiting, size = [], 0
        waiting.append(piece)
        size += len(piece)
    yield b"".join(waiting), True


def places(data: bytes) -> Callable[[int], int]:
    """A function from the index of a byte that folding keeps to its place in the data."""
    kept = np.frombuffer(data.translate(KEPT) + bytes(-len(data) % CHUNK), bool).reshape(-1, CHUNK)
    ends = np.cumsum(np.count_nonzero(kept, axis=1))

    @lru_cache(maxsize=16)
    def within(chunk: int) -> np.ndarray:
        return np.flatnonzero(kept[chunk])

    def place(index: int) -> int:
        chunk = int(np.searchsorted(ends, index, side="right"))
        return chunk * CHUNK + int(within(chunk)[index - (ends[chunk - 1] if chunk else 0)])

    return place


def alone(window: bytes, before: bytes, after: bytes) -> bool:
    """Whether no letter or digit goes on beyond either end; one that closes an escape, as in \\n or %20, is none."""
    joined = window[0] in ALNUM and before[-1:] and before[-1] in ALNUM and not ESCAPE.search(before)
    return not joined and not (window[-1] in ALNUM and after[:1] and after[0] in ALNUM)


def narrow(window: bytes) -> bytes | None:
    """The text of a window in UTF-16 or UTF-32; None if it is in neither."""
    for width in (2, 4):
        text = window[::width]
        if 0 not in text and len(window) == width * (len(text) - 1) + 1 and window.count(0) == len(window) - len(text):
            return text
    return None


def part_of_number(before: bytes, after: bytes) -> bool:
    """Whether the digits between are the integer part, the fraction or the exponent of a number."""
    return bool(NUMBER_BEFORE.search(before) or NUMBER_AFTER.match(after))
