"""The search itself, and the rules by which a match is a leak.

There is one pass over folded bytes, and one over what they say to a reader (`readings`).
Rules: a match that begins or ends with a letter or digit must not stand within a longer run of
them; separators stand where the secret has some, or between the strings of a list (in a long one
anywhere, but that numbers side by side are chance); digits that are a part of a decimal number are
chance; base64 counts in its own case only.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from confide.scan.index import Index
from confide.scan.plain import SEPARATORS, plain
from confide.scan.readings import readings
from confide.scan.variants import (
    IN_NUMBERS,
    LONG,
    RUN,
    Form,
    breaks,
    core,
    fold,
    form_of,
    is_literal,
    length,
    patterns,
)

BLOCK = 1 << 20  # bytes that are searched at once
CONTEXT = 32  # bytes on either side that the rules look at
# bytes that a match may span per byte that folding keeps: four in UTF-32, and separators
STRETCH = 8
FORMS = 32  # numbers that each secret has for its forms; there are at most 20
ESCAPE = re.compile(
    rb"(?:\\[abfnrtv]|\\x[0-9a-f]{2}|\\u[0-9a-f]{4}|%[0-9a-f]{2}|\x1b\[[0-9;]*m)\Z", re.IGNORECASE
)
# numbers side by side
TABLE = re.compile(rb"""[0-9]*[.\s,;:|"'*`~\[\]\\][0-9.\s,;:|"'*`~\[\]\\]*""")
NUMBER = re.compile(rb"[0-9]+(?:\.[0-9]+)?")
NUMBER_BEFORE = re.compile(rb"[0-9](?:\.|[eE][+-])\Z")
NUMBER_AFTER = re.compile(rb"\.[0-9]")
# from one string of a list to the next
NEXT_STRING = re.compile(rb"""[ _]?\\?["']\s*,\s*\\?["'][ _]?""")
KEPT = bytes(byte not in SEPARATORS for byte in range(256))
CHUNK = 4096


class Hit(NamedTuple):
    """A leak of the secret of this index, in this kind of variant."""

    secret: int
    kind: str


class Searcher:
    """Looks for all forms of some secrets; built once, then used for any number of streams."""

    def __init__(self, secrets: dict[int, str]):
        self.secrets = list(secrets)
        self.texts = list(secrets.values())
        self.index = Index(self._patterns())
        self.literal = Index(self._literals())
        self.patterns = len(self.index) + len(self.literal)
        self.shortest = max(1, min((length(text) for text in self.texts), default=CONTEXT))
        self.reach = STRETCH * max(self.index.longest, self.literal.longest) + CONTEXT
        self.form = lru_cache(maxsize=1 << 12)(self._form)

    def _patterns(self) -> Iterator[tuple[bytes, int]]:
        for number, text in enumerate(self.texts):
            if not is_literal(text):
                for pattern, place in patterns(text):
                    yield pattern, number * FORMS + place

    def _literals(self) -> Iterator[tuple[bytes, int]]:
        for number, text in enumerate(self.texts):
            if is_literal(text):
                yield core(text).encode(), number

    def _form(self, owner: int) -> Form:
        number, place = divmod(owner, FORMS)
        return form_of(number, self.texts[number], place)

    def hits(self, pieces: Iterable[bytes]) -> Iterator[Hit]:
        """Leaks in a stream that is cut into pieces anywhere.

        Memory is bounded by a few blocks and the longest piece. What only a reading of the bytes
        shows is told once for each secret.
        """
        if not self.patterns:
            for _ in pieces:  # whoever hands over a stream counts on its being read
                pass
            return
        shown: set[int] = set()
        tail = b""  # what was searched before
        low = 0  # a match that ends at or before has been judged
        first = True
        for block, last in blocks(pieces):
            data = tail + block
            high = len(data) if last else max(low, len(data) - CONTEXT)
            for number, kind in self._between(data, low, high):
                shown.add(number)
                yield Hit(self.secrets[number], kind)
            for reading in readings(data, self.shortest):
                text = reading.data
                for number, kind in self._between(text, 0, len(text), opens=first, closes=last):
                    if number not in shown:
                        shown.add(number)
                        coded = kind in ("base64", "hex")
                        yield Hit(self.secrets[number], kind if coded else reading.kind)
            start = max(0, high - self.reach - CONTEXT)
            tail = data[start:]
            low = high - start
            first = False

    def _between(
        self, data: bytes, low: int, high: int, *, opens: bool = True, closes: bool = True
    ) -> Iterator[tuple[int, str]]:
        """Leaks that end after `low` and at or before `high`: number of the secret, and kind.

        What stands at the very start counts if the data `opens` a stream, and at the very end if it
        `closes` one.
        """

        def judged(first: int, last: int) -> bool:
            return low < last <= high and (first > 0 or opens) and (last < len(data) or closes)

        if len(self.literal):
            for number, first, last in self.literal.matches(data):
                if judged(first, last) and core(self.texts[number]).encode() == data[first:last]:
                    yield number, "exact"
        folded = fold(data)
        matches = self.index.matches(folded)
        if not matches:
            return
        place = places(data)
        for owner, start, end in matches:
            first = place(start)
            last = place(end - 1) + 1
            if not judged(first, last) or last - first > STRETCH * (end - start) + CONTEXT:
                continue
            form = self.form(owner)
            if fold(form.bare) == folded[start:end]:
                kind = self._kind(form, data, first, last)
                if kind is not None:
                    yield form.secret, kind

    def _kind(self, form: Form, data: bytes, first: int, last: int) -> str | None:
        """The variant that data[first:last] is of the form's secret, or None if that is chance."""
        window = data[first:last]
        before = data[max(0, first - CONTEXT) : first]
        after = data[last : last + CONTEXT]
        as_it_stands = window.translate(None, SEPARATORS) == form.bare
        if form.kind == "hex" or (form.kind == "base64" and as_it_stands):
            return form.kind
        wide = narrow(window)
        if wide or form.kind == "wide":
            before = before.translate(None, b"\0")
            after = after.translate(None, b"\0")
        if form.kind == "base64" or not alone(window, before, after):
            return None
        if form.kind == "wide":
            return "utf16" if 0 in window else "latin1"
        return self._spelling(form, wide or window, before, after, wide=bool(wide))

    def _spelling(
        self, form: Form, text: bytes, before: bytes, after: bytes, *, wide: bool
    ) -> str | None:
        """How text spells a form's secret between what stands around it, or None if by chance."""
        secret = core(self.texts[form.secret])
        exact = secret.encode()
        if not separated(form, text) and (len(form.bare) < LONG or TABLE.fullmatch(text)):
            return None
        # a number with other signs between its digits, such as commas and colons, is several
        if form.short_number and form.kind == "text":
            others = plain(secret).encode().translate(None, IN_NUMBERS)
            if text.translate(None, IN_NUMBERS) != others:
                return None
        decimal = part_of_number(before, after) or (b"." in text and text != exact)
        if decimal and NUMBER.fullmatch(text):
            return None
        if wide:
            return "utf16"
        if form.kind == "reversed":
            return "reversed"
        if text == exact:
            return "exact"
        if not secret.isascii():
            return "unaccented"
        return "case" if RUN.findall(text) == RUN.findall(exact) else "separators"


def blocks(pieces: Iterable[bytes]) -> Iterator[tuple[bytes, bool]]:
    """The pieces joined to blocks of at least BLOCK bytes, each with whether it is the last."""
    waiting: list[bytes] = []
    size = 0
    for piece in pieces:
        if size >= BLOCK:
            yield b"".join(waiting), False
            waiting = []
            size = 0
        waiting.append(piece)
        size += len(piece)
    yield b"".join(waiting), True


def places(data: bytes) -> Callable[[int], int]:
    """A function from the index of a byte that folding keeps to its place in the data."""
    is_kept = np.frombuffer(data.translate(KEPT) + bytes(-len(data) % CHUNK), bool).reshape(
        -1, CHUNK
    )
    ends = np.cumsum(np.count_nonzero(is_kept, axis=1))

    @lru_cache(maxsize=16)
    def within(chunk: int) -> np.ndarray:
        return np.flatnonzero(is_kept[chunk])

    def place(index: int) -> int:
        chunk = int(np.searchsorted(ends, index, side="right"))
        return chunk * CHUNK + int(within(chunk)[index - (ends[chunk - 1] if chunk else 0)])

    return place


def separated(form: Form, text: bytes) -> bool:
    """Whether separators stand where the form has some; letters may also be strings of a list."""
    if breaks(text) <= form.breaks:
        return True
    if form.bare.isdigit():
        return False
    position = 0
    last = 0
    for run in RUN.finditer(text):
        position += run.start() - last
        last = run.end()
        if position not in form.breaks and not NEXT_STRING.fullmatch(run[0]):
            return False
    return True


def alone(window: bytes, before: bytes, after: bytes) -> bool:
    """Whether no letter or digit goes on beyond either end.

    One that closes an escape, as in \\n or %20, is none.
    """
    begins = window[:1].isalnum() and before[-1:].isalnum() and not ESCAPE.search(before)
    return not begins and not (window[-1:].isalnum() and after[:1].isalnum())


def narrow(window: bytes) -> bytes | None:
    """The text of a window in UTF-16 or UTF-32; None if it is in neither."""
    for width in (2, 4):
        text = window[::width]
        whole = len(window) == width * (len(text) - 1) + 1
        if whole and 0 not in text and window.count(0) == len(window) - len(text):
            return text
    return None


def part_of_number(before: bytes, after: bytes) -> bool:
    """Whether the digits between are the integer part, the fraction or the exponent of a number."""
    return bool(NUMBER_BEFORE.search(before) or NUMBER_AFTER.match(after))
