"""Text in a PDF (ISO 32000-1): its strings, its streams unfolded, and what operators draw as text.

Strings are read as UTF-16 if they say so, else as Latin-1. Fonts whose codes are numbers of glyphs
are read by the table from codes to text that they carry (9.10.3). A PDF that says it is encrypted,
or whose streams are packed in another way than here, is an error, and so is one with a font of
numbered glyphs without such a table. Pixels are not read.
"""

import base64
import re
from collections.abc import Callable, Iterator

from confide.scan.unfolding import Budget, TooLarge, inflated

LARGEST = 1 << 26  # bytes of a PDF, and of one stream of it, unfolded
DICTIONARY = 1 << 12  # bytes before a stream in which its dictionary is looked for
STREAM = re.compile(rb"(?<!end)stream\r?\n")
END = b"endstream"
FILTER = re.compile(rb"/(?:Filter|F)\s*(\[[^\]]*\]|/\w+)")
NAME = re.compile(rb"/(\w+)")
IMAGE = re.compile(rb"/Subtype\s*/Image\b")
TABLE_OF_PLACES = re.compile(rb"/Type\s*/XRef\b")
PREDICTED = re.compile(rb"/Predictor\s+(?!1\b)\d")
NUMBERED = re.compile(rb"/Identity-[HV]\b")
PIXELS = (b"DCTDecode", b"DCT", b"JPXDecode", b"CCITTFaxDecode", b"CCF", b"JBIG2Decode")
# an escape outside of a string is one, too: else each would be read as the start of a string to the
# end
TOKEN = re.compile(
    rb"\((?P<text>[^()\\]*+(?:\\[\s\S][^()\\]*+)*)\)"
    rb"|<(?P<digits>[0-9A-Fa-f\s]*+)>|(?P<shift>[-+]?[0-9]*\.?[0-9]+)"
    rb"|(?P<other>\\[\s\S]|[^\s()<>\[\]\\]+|[\[\]])"
)
ESCAPE = re.compile(rb"\\([0-7]{1,3}|\r\n|[\s\S])")
MEANS = {
    b"n": b"\n",
    b"r": b"\r",
    b"t": b"\t",
    b"b": b" ",
    b"f": b" ",
    b"\n": b"",
    b"\r": b"",
    b"\r\n": b"",
}
# a shift between letters, in thousandths of the font's size, that a reader sees as a blank
GAP = -180.0
CODES = re.compile(rb"<([0-9A-Fa-f\s]*)>")
RANGE = re.compile(
    rb"<([0-9A-Fa-f\s]++)>\s*+<([0-9A-Fa-f\s]++)>\s*+(?:<([0-9A-Fa-f\s]++)>|\[([^\[\]]*+)\])"
)
MOST_CODES = 1 << 16


class Unreadable(Exception):
    """A PDF whose text cannot be had."""


def contents(data: bytes, budget: Budget) -> Iterator[bytes]:
    """The streams of a PDF, unfolded, without those of pixels.

    Then comes the text of those that draw with numbered glyphs.
    """
    if len(data) > LARGEST:
        raise TooLarge
    if re.search(rb"/Encrypt\b", data):
        raise Unreadable
    every = (content_of(head, body, budget) for head, body in streams(data))
    unfolded = [content for content in every if content is not None]
    if sum(map(len, unfolded)) > LARGEST:
        raise TooLarge
    yield from unfolded
    tables = list(filter(None, map(codes_of, unfolded)))
    if not tables and any(map(NUMBERED.search, [objects(data), *unfolded])):
        raise Unreadable
    drawing = [content for content in unfolded if b"TJ" in content or b"Tj" in content]
    for table in tables:
        for content in drawing:
            budget.spend(len(content))
            yield drawn(content, numbered(table))


def parts(data: bytes) -> Iterator[tuple[bytes, bytes | None]]:
    """What stands before each stream, and its body; last what stands after all, and None."""
    place = 0
    while match := STREAM.search(data, place):
        end = data.find(END, match.end())
        if end < 0:
            raise EOFError("cut short")
        yield data[place : match.start()], data[match.end() : end]
        place = end + len(END)
    yield data[place:], None


def streams(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The dictionary and the body of each stream."""
    for before, body in parts(data):
        if body is not None:
            yield before[-DICTIONARY:].rpartition(b"obj")[2], body


def objects(data: bytes) -> bytes:
    """What stands outside of streams."""
    return b"\n".join(before for before, _ in parts(data))


def content_of(head: bytes, body: bytes, budget: Budget) -> bytes | None:
    """A stream's bytes without its filters; None if it is of pixels, or of places in the file."""
    if IMAGE.search(head) or TABLE_OF_PLACES.search(head):
        return None
    filters = FILTER.search(head)
    for name in NAME.findall(filters[1]) if filters else []:
        if name in PIXELS:
            return None
        if PREDICTED.search(head):
            raise Unreadable
        body = without(name, body, budget)
    return body


def without(name: bytes, body: bytes, budget: Budget) -> bytes:
    """A stream without one filter; Unreadable if that is of a kind not known here."""
    if name in (b"FlateDecode", b"Fl"):
        content = bytearray()
        for piece in inflated(body, budget):
            content += piece
            if len(content) > LARGEST:
                raise TooLarge
        return bytes(content)
    try:
        if name in (b"ASCIIHexDecode", b"AHx"):
            return unhex(body.partition(b">")[0])
        if name in (b"ASCII85Decode", b"A85"):
            return base64.a85decode(body.partition(b"~>")[0].strip().removeprefix(b"<~"))
    except ValueError:
        pass
    raise Unreadable


def drawn(content: bytes, text_of: Callable[[bytes], str] | None = None) -> bytes:
    """Strings as UTF-8; those of one operator joined, a blank where it leaves a gap.

    `text_of`: what the codes of a string stand for, if not for themselves.
    """
    text_of = text_of or string
    texts: list[str] = []
    for match in TOKEN.finditer(content):
        kind = match.lastgroup or "other"
        token = match[kind]
        if kind == "text":
            texts.append(text_of(ESCAPE.sub(meaning, token)))
        elif kind == "digits":
            texts.append(text_of(unhex(token)))
        elif kind == "shift":
            texts.append(" " if float(token) < GAP else "")
        else:
            texts.append("" if token in (b"[", b"]") else "\n")
    return "".join(texts).encode(errors="replace")


def meaning(escape: re.Match[bytes]) -> bytes:
    """What an escape within a string stands for."""
    if escape[1][0] in b"01234567":
        return bytes([int(escape[1], 8) & 0xFF])
    return MEANS.get(escape[1], escape[1])


def string(data: bytes) -> str:
    """The text of a string."""
    if data.startswith(b"\xfe\xff"):
        return utf_16(data[2:])
    return data.decode("latin-1")


def unhex(digits: bytes) -> bytes:
    """Bytes in hexadecimal digits; the last digit may be missing."""
    digits = b"".join(digits.split())
    try:
        return bytes.fromhex((digits + b"0" * (len(digits) % 2)).decode())
    except (ValueError, UnicodeDecodeError):
        return b""


def codes_of(table: bytes) -> dict[int, str]:
    """Code of two bytes -> text, of one font; nothing if there is no such table."""
    texts: dict[int, str] = {}
    for part in lists(table, b"bfchar"):
        codes = [unhex(code) for code in CODES.findall(part)]
        for code, drawn_as in zip(codes[::2], codes[1::2], strict=False):
            texts[int.from_bytes(code)] = utf_16(drawn_as)
    for part in lists(table, b"bfrange"):
        for first, last, start, listed in RANGE.findall(part):
            low = int.from_bytes(unhex(first))
            high = int.from_bytes(unhex(last))
            if not 0 <= high - low < MOST_CODES:
                raise Unreadable
            if start:
                text = utf_16(unhex(start))
                texts.update((low + more, after(text, more)) for more in range(high - low + 1))
            else:
                for more, code in enumerate(CODES.findall(listed)):
                    texts[low + more] = utf_16(unhex(code))
        if len(texts) > MOST_CODES:
            raise Unreadable
    return texts


def lists(table: bytes, kind: bytes) -> list[bytes]:
    """What stands between the words that begin and end a list of this kind."""
    return [part.partition(b"end" + kind)[0] for part in table.split(b"begin" + kind)[1:]]


def after(text: str, more: int) -> str:
    """A text whose last character is so many further on."""
    return text[:-1] + chr(min(ord(text[-1]) + more, 0x10FFFF)) if text else ""


def utf_16(data: bytes) -> str:
    """Text in UTF-16."""
    return data.decode("utf-16-be", errors="replace")


def numbered(table: dict[int, str]) -> Callable[[bytes], str]:
    """What strings stand for if their codes have two bytes and stand for these texts."""

    def text_of(codes: bytes) -> str:
        pairs = zip(codes[::2], codes[1::2], strict=False)
        return "".join(table.get(high << 8 | low, "\x01") for high, low in pairs)

    return text_of
