"""The forms in which a secret may stand in a file, as patterns of folded bytes.

Folding lower-cases ASCII letters and drops separators and NUL bytes, in the patterns and in what is searched. So one
pattern stands for every case, for separators left out or changed, for UTF-16 and UTF-32, for base64 of both alphabets
(they differ in separators only) and for lines broken anywhere. What folding lets through too much, `search` sorts out.
"""

import base64
import html
import json
import re
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import quote, quote_plus

SEPARATORS = b" \t\r\n._-+/()\0"
LOWER = bytes.maketrans(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ", b"abcdefghijklmnopqrstuvwxyz")
RUN = re.compile(b"[" + re.escape(SEPARATORS) + b"]+")
CORE = 7  # characters of base64: what two of the three alignments leave of six bytes, their digits and letters compared exactly


class Form(NamedTuple):
    """One way to write one secret. `kept`: its bytes without separators; `breaks`: after how many of them one may stand."""

    secret: int
    kind: str  # text, reversed, base64, hex, percent, escaped, wide
    kept: bytes
    breaks: frozenset[int]


def fold(data: bytes) -> bytes:
    """Lower-case letters, no separators."""
    return data.translate(LOWER, SEPARATORS)


def core(text: str) -> str:
    """A secret without the separators around it."""
    return text.strip(SEPARATORS.decode())


def length(text: str) -> int:
    """Characters of a secret that are no separators."""
    return sum(character not in SEPARATORS.decode() for character in text)


def breaks(data: bytes) -> frozenset[int]:
    """After how many bytes that are no separators one stands: b"555-12 3" -> {3, 5}."""
    counts, total = [], 0
    for part in RUN.split(data)[:-1]:
        total += len(part)
        counts.append(total)
    return frozenset(counts)


def base64_core(data: bytes, shift: int) -> bytes:
    """The characters that `data` alone decides if `shift` bytes of a group of three stand before it."""
    return base64.b64encode(bytes(shift) + data)[(8 * shift + 5) // 6 : 8 * (shift + len(data)) // 6]


def spellings(text: str) -> Iterator[tuple[str, bytes]]:
    """Kind and bytes of every form of a secret; the commonest kind first, since equal patterns count once."""
    data = text.encode()
    cases = dict.fromkeys((text, text.lower(), text.upper(), text.casefold()))  # bytes fold ASCII only
    yield from (("text", case.encode()) for case in cases)
    yield from (("reversed", case[::-1].encode()) for case in cases)
    if not text.isascii():  # of ASCII, nothing but NUL bytes tells UTF-16 from UTF-8
        yield from (("wide", case.encode(code)) for case in cases for code in ("utf-16-le", "utf-16-be"))
    yield from (("base64", base64_core(data, shift)) for shift in range(3))
    yield "hex", data.hex().encode()
    yield "percent", quote(text, safe="").encode()
    yield "percent", quote_plus(text, safe="").encode()
    yield "escaped", json.dumps(text)[1:-1].encode()
    yield "escaped", json.dumps(text, ensure_ascii=False)[1:-1].encode()
    yield "escaped", html.escape(text).encode()
    yield "escaped", text.encode("ascii", "xmlcharrefreplace")
    yield "escaped", text.encode("unicode_escape")


def patterns(secrets: dict[int, str]) -> dict[bytes, list[Form]]:
    """Folded bytes -> what they may be, for secrets by index. Two secrets may share a pattern, and so two of its forms."""
    found: dict[bytes, list[Form]] = {}
    for index, text in secrets.items():
        text = core(text)
        shortest = min(length(text), CORE)
        for kind, data in spellings(text):
            pattern = fold(data)
            owners = found.setdefault(pattern, []) if len(pattern) >= (CORE if kind == "base64" else shortest) else None
            if owners is not None and all(form.secret != index for form in owners):
                owners.append(Form(index, kind, data.translate(None, SEPARATORS), breaks(data)))
    return found
