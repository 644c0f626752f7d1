"""The forms in which a secret may stand in a file, as patterns of folded bytes.

Both sides are made alike before they are compared: characters by `plain`, then bytes by `fold`,
which lower-cases ASCII letters and drops separators and NUL bytes. So one pattern stands for every
case, for separators left out or changed, for UTF-16 and UTF-32, for base64 of both alphabets (they
differ in separators only), for hexadecimal digits with colons and for lines broken anywhere. What
folding lets through too much, `search` sorts out.
"""

import base64
import re
from collections.abc import Iterator
from typing import NamedTuple

from confide.scan.plain import SEPARATORS, plain

LOWER = bytes(range(256)).lower()
LONG = 10  # characters of a secret that no chance arrangement of separators makes up
RUN = re.compile(b"[" + re.escape(SEPARATORS) + b"]+")
# separators that people write numbers with: others stand between numbers
IN_NUMBERS = b" \t\r\n._-+/()\0"
# characters of base64: what two of the three alignments leave of six bytes, their digits and
# letters compared exactly
CORE = 7
WHOLE = 5  # a secret of which separators leave fewer bytes is looked for as it stands
UTF_16 = ("utf-16-le", "utf-16-be")


class Form(NamedTuple):
    """One way to write one secret."""

    secret: int
    kind: str  # text, reversed, base64, hex, wide
    bare: bytes  # without separators
    breaks: frozenset[int]  # after how many of the bytes kept a separator may stand

    @property
    def short_number(self) -> bool:
        """Whether it is of a few digits alone, which stand side by side in many a list."""
        return self.bare.isdigit() and len(self.bare) < LONG


def fold(data: bytes) -> bytes:
    """Lower-case letters, no separators."""
    return data.translate(LOWER, SEPARATORS)


def core(text: str) -> str:
    """A secret without the separators around it."""
    return text.strip(SEPARATORS.decode())


def length(text: str) -> int:
    """Characters of a secret that no number is written with beside its digits: "12-34" has four."""
    return sum(character not in IN_NUMBERS.decode() for character in plain(text))


def breaks(data: bytes) -> frozenset[int]:
    """After how many bytes that are no separators one stands: b"555-12 3" -> {3, 5}."""
    counts = []
    total = 0
    for part in RUN.split(data)[:-1]:
        total += len(part)
        counts.append(total)
    return frozenset(counts)


def base64_core(data: bytes, shift: int) -> bytes:
    """The characters that `data` alone decides if `shift` bytes of three stand before it."""
    coded = base64.b64encode(bytes(shift) + data)
    return coded[(8 * shift + 5) // 6 : 8 * (shift + len(data)) // 6]


def spellings(text: str) -> list[tuple[str, bytes]]:
    """Kind and bytes of every form of a secret.

    The commonest kind comes first, since equal patterns count once.
    """
    text = core(text)
    shown = core(plain(text))
    forms = [("text", shown.encode()), ("reversed", shown[::-1].encode())]
    if not text.isascii():  # of ASCII, nothing but NUL bytes tells UTF-16 from UTF-8
        # bytes fold ASCII only
        cases = dict.fromkeys((text, text.lower(), text.upper(), text.casefold()))
        forms += [("wide", case.encode(code)) for case in cases for code in UTF_16]
    for code in ("utf-8", *UTF_16):
        forms += [("base64", base64_core(text.encode(code), shift)) for shift in range(3)]
    forms.append(("hex", text.encode().hex().encode()))
    return forms


def is_literal(text: str) -> bool:
    """Whether a secret is looked for as it stands, because separators are most of it."""
    return len(fold(plain(text).encode())) < min(length(text), WHOLE)


def patterns(text: str) -> Iterator[tuple[bytes, int]]:
    """Folded bytes of a secret's forms, each once, with its place among its spellings.

    What is too short to tell is left out.
    """
    shortest = min(length(text), WHOLE)
    seen = set()
    for place, (kind, data) in enumerate(spellings(text)):
        pattern = fold(data)
        if pattern not in seen and len(pattern) >= (CORE if kind == "base64" else shortest):
            seen.add(pattern)
            yield pattern, place


def form_of(secret: int, text: str, place: int) -> Form:
    """The form at this place among a secret's spellings."""
    kind, data = spellings(text)[place]
    return Form(secret, kind, data.translate(None, SEPARATORS), breaks(data))
