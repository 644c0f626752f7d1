"""Text of HTML, SVG and XML as a reader sees it.

Entities are resolved, tags taken out, and letters that were drawn one by one joined. matplotlib
draws text as glyphs, `<use xlink:href="#DejaVuSans-14"/>`, numbered by code point (before 3.11) or
by place in the font: they spell the text even where its comments are gone. What is embedded as a
data URI is decoded. Streams are cut where a tag begins.
"""

import binascii
import html
import re
from collections.abc import Callable, Iterator
from functools import partial
from urllib.parse import unquote_to_bytes

Pieces = Iterator[bytes]

INLINE = (
    b"a|abbr|b|big|cite|code|em|font|i|ins|kbd|mark|q|s|samp|small|span|strong|sub|sup|textPath"
    b"|tspan|tt|u|var|wbr"
)
# A tag ends before the next one begins: without that, a run of "<" would be read once for each of
# them.
JOINED = re.compile(rb"</tspan>\s++(?=<tspan)|</?(?:" + INLINE + rb")(?:\s[^<>]*)?>", re.IGNORECASE)
TAG = re.compile(rb"<[^<>]*>")
# one letter an element
SINGLE = re.compile(rb"(?:<text[^<>]*>\S</text>\s*(?:</?g\b[^<>]*>\s*)*){2,}")
BLANK_OR_TAG = re.compile(rb"<[^<>]*>|\s+")
GLYPH = re.compile(rb"<use\b[^<>]*href=\"#[^\"<>]*-([0-9a-f]{1,4})\"[^<>]*>|(</g>)")
SPACE = 3  # place of the blank in the usual order of glyphs; the rest of ASCII follows
DATA = re.compile(rb"data:[^\"'<>,\s]{0,200};base64,([A-Za-z0-9+/=%_\s-]+)")


def cut(pieces: Pieces) -> Pieces:
    """All bytes, in pieces that begin with a tag: tags are whole, and so are data URIs."""
    rest = b""
    for piece in pieces:
        rest += piece
        place = rest.rfind(b"<")
        if place > 0:
            yield rest[:place]
            rest = rest[place:]
    yield rest


def resolved(text: bytes) -> bytes:
    """Entities such as &#233; and &amp; as the characters that they stand for."""
    if b"&" not in text:
        return text
    return html.unescape(text.decode(errors="replace")).encode(errors="replace")


def unescaped(pieces: Pieces) -> Pieces:
    """Everything, attributes among it, with entities resolved."""
    return map(resolved, cut(pieces))


def stripped(pieces: Pieces) -> Pieces:
    """Text without tags: those within a line leave nothing behind, others a line break."""
    for piece in cut(pieces):
        piece = SINGLE.sub(lambda run: b"\n" + BLANK_OR_TAG.sub(b"", run[0]) + b"\n", piece)
        yield resolved(TAG.sub(b"\n", JOINED.sub(b"", piece)))


def glyphs(pieces: Pieces, shift: int = 0) -> Pieces:
    """Text that is drawn as references to glyphs, a group a line.

    `shift`: from their numbers to code points.
    """
    for piece in cut(pieces):
        letters = (
            b"\n" if match[2] else chr(int(match[1], 16) + shift).encode()
            for match in GLYPH.finditer(piece)
        )
        yield b"".join(letters)


def embedded(pieces: Pieces) -> Pieces:
    """Contents of base64 data URIs; what does not decode is none."""
    for piece in cut(pieces):
        for match in DATA.finditer(piece):
            coded = unquote_to_bytes(match[1]).translate(bytes.maketrans(b"-_", b"+/"), b" \t\r\n=")
            try:
                yield binascii.a2b_base64(coded + b"=" * (-len(coded) % 4))
            except binascii.Error:
                continue


VIEWS: tuple[Callable[[Pieces], Pieces], ...] = (
    unescaped,
    stripped,
    glyphs,
    partial(glyphs, shift=ord(" ") - SPACE),
)
