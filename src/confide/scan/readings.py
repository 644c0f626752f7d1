"""What bytes say to a reader who knows Unicode, escapes and byte-level tokens.

Escapes are those of JSON, Python, C, URLs and HTML. Byte-level tokens are GPT-2's: every byte of
UTF-8 is written as one printable character, a space as Ġ (Radford et al. 2019, `bytes_to_unicode`).
Everything ends in `plain`, as secrets do.
"""

import html
import re
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

import numpy as np

from confide.scan.plain import OTHERS, SEPARATORS, plain

ROUNDS = 2  # escapes within escapes: JSON in JSON, an entity in a URL
SHORTEST_RUN = 6  # characters that text among other bytes has at least, unless a secret is shorter
BORDER = "\x01"  # stands between runs of text: neither a letter nor a separator
ESCAPED = re.compile(
    r"[\\%&](?:"
    r"(?<=\\)(?:u[0-9a-fA-F]{4}(?:\\u[0-9a-fA-F]{4})*|U[0-9a-fA-F]{8}"
    r"|x[0-9a-fA-F]{2}(?:\\x[0-9a-fA-F]{2})*|[abfnrtv\"'/\\])"
    r"|(?<=%)[0-9a-fA-F]{2}(?:%[0-9a-fA-F]{2})*"
    r"|(?<=&)(?:\#[0-9]{1,7}|\#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});"
    r")"
)
CONTROLS = frozenset("abfnrtv")
# letters that bytes without a letter of their own are written as, and Latin-1
TOKENS = re.compile("[¡-ń]")
# bytes that are written as the character of this number
PRINTED = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
UNPRINTED = [byte for byte in range(0x100) if byte not in PRINTED]
BYTE_OF = {0x100 + number: byte for number, byte in enumerate(UNPRINTED)}
FOLLOWS = 5
# bytes of a character that begins with this one, for ASCII as in text; FOLLOWS for one that goes
# on; or 0
PARTS = np.zeros(256, np.uint8)
PARTS[[*b"\t\r\n", *range(0x20, 0x7F)]] = 1
PARTS[0x80:0xC0] = FOLLOWS
PARTS[0xC2:0xE0] = 2
PARTS[0xE0:0xF0] = 3
PARTS[0xF0:0xF5] = 4
COUNTED = np.array([byte not in SEPARATORS and byte & 0xC0 != 0x80 for byte in range(256)])
OPENING = np.array([byte >= 0x80 or byte in b"\\%&" for byte in range(256)])


class Reading(NamedTuple):
    """How bytes were read, and the text as UTF-8 that came of it."""

    kind: str  # unicode, escaped, tokens
    data: bytes


def readings(data: bytes, shortest: int = SHORTEST_RUN) -> Iterator[Reading]:
    """All readings of some bytes that differ from them, and none of bytes that say nothing else.

    `shortest`: how many characters, without separators, a run of text among other bytes has at
    least.
    """
    ascii_only = data.isascii()
    if ascii_only and not (b"\\" in data or b"%" in data or b"&" in data):
        return
    text = data.decode("ascii") if ascii_only else text_in(data, shortest)
    if not ascii_only:
        yield from of_text("unicode", text)
    for _ in range(ROUNDS):
        text = BORDER.join(part for part in map(resolved, text.split(BORDER)) if part)
        if not text:
            return
        yield Reading("escaped", plain(text).encode(errors="replace"))
        yield from tokens(text)


def resolved(part: str) -> str:
    """A run of text with its escapes resolved; nothing if it has none."""
    text = ESCAPED.sub(lambda match: unescaped(match[0]), part)
    return "" if text == part else text


def of_text(kind: str, text: str) -> Iterator[Reading]:
    """A text that is not all ASCII, as it is compared, and as byte-level tokens."""
    if not text.isascii():
        yield Reading(kind, plain(text).encode(errors="replace"))
        yield from tokens(text)


def tokens(text: str) -> Iterator[Reading]:
    """A text whose characters stand for bytes, if some can.

    Bytes of UTF-8 beyond ASCII are all written beyond ASCII.
    """
    if TOKENS.search(text):
        spelled = OTHERS.sub(lambda match: of_tokens(match[0]), text)
        yield Reading("tokens", plain(spelled).encode(errors="replace"))


def of_tokens(run: str) -> str:
    """The text of characters, none of them ASCII, that stand for bytes."""
    return run.translate(BYTE_OF).encode("latin-1", errors="replace").decode(errors="replace")


def unescaped(escape: str) -> str:
    """What one escape stands for, or several of one kind in a row.

    An unknown name stands for itself.
    """
    if escape[0] == "&":
        return html.unescape(escape)
    if escape[0] == "%":
        return of_bytes(unquote_to_bytes(escape))
    if escape[1] == "u":
        return bytes.fromhex(escape.replace("\\u", "")).decode("utf-16-be", errors="replace")
    if escape[1] == "U":
        return bytes.fromhex(escape[2:]).decode("utf-32-be", errors="replace")
    if escape[1] == "x":
        return of_bytes(bytes.fromhex(escape.replace("\\x", "")))
    return " " if escape[1] in CONTROLS else escape[1]


def of_bytes(data: bytes) -> str:
    """Bytes that were escaped: of UTF-8, or else of Latin-1."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")


def text_in(data: bytes, shortest: int) -> str:
    """Everything as text if it is UTF-8, else the runs of text in it.

    Characters that are cut at either end are left out.
    """
    try:
        return whole(data).decode()
    except UnicodeDecodeError:
        return runs(data, shortest)


def whole(data: bytes) -> bytes:
    """Bytes without a character that is cut at their start, and one at their end."""
    first = 0
    while first < min(3, len(data)) and data[first] & 0xC0 == 0x80:
        first += 1
    last = len(data)
    for back in range(1, min(4, last - first) + 1):
        lead = data[last - back]
        if lead >= 0xC0:
            size = 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
            return data[first : last - back] if back < size else data[first:last]
        if lead < 0x80:
            break
    return data[first:last]


def runs(data: bytes, shortest: int) -> str:
    """Runs of UTF-8 text that is more than ASCII, with at least so many characters.

    Numbers of a model hardly make any.
    """
    units = np.frombuffer(data, np.uint8)
    parts = np.frombuffer(data.translate(PARTS.tobytes()), np.uint8)
    count = len(units)
    good = np.zeros(count + 3, bool)
    follows = np.zeros(count + 3, bool)
    np.equal(parts, 1, out=good[:count])
    np.equal(parts, FOLLOWS, out=follows[:count])
    twice = follows[1 : count + 1] & follows[2 : count + 2]
    for size, next_ones in ((2, follows[1 : count + 1]), (3, twice), (4, twice & follows[3:])):
        leads = parts == size
        leads &= next_ones
        for step in range(size):
            good[step : step + count] |= leads
    long = good[:count]
    step = 1
    # places where a run of `step` bytes begins, doubled until it is long enough
    while step < shortest:
        further = min(step, shortest - step)
        long = long[:-further] & long[further:]
        step += further
    places = np.flatnonzero(long)
    if not len(places):
        return ""
    apart = np.diff(places) > shortest
    firsts = places[np.append(True, apart)]
    lasts = places[np.append(apart, True)] + shortest
    says = telling(units, firsts, lasts, shortest)
    spans = zip(firsts[says].tolist(), lasts[says].tolist(), strict=True)
    text = BORDER.join(data[first:last].decode(errors="replace") for first, last in spans)
    return (BORDER if firsts[0] else "") + text + (BORDER if lasts[-1] < count else "")


def telling(units: np.ndarray, firsts: np.ndarray, lasts: np.ndarray, shortest: int) -> np.ndarray:
    """Which runs tell something.

    They have so many characters that are no separators, and one that is not ASCII or may begin an
    escape.
    """
    sizes = lasts - firsts
    begins = np.cumsum(sizes) - sizes
    inside = units[np.repeat(firsts - begins, sizes) + np.arange(sizes.sum())]
    characters = np.add.reduceat(COUNTED[inside], begins, dtype=np.int32)
    return (characters >= shortest) & np.logical_or.reduceat(OPENING[inside], begins)
