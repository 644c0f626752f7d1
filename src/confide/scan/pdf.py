"""Text in a PDF (ISO 32000-1): its strings, its streams unfolded, and what operators draw as text.

Strings are read as UTF-16 if they say so, else as Latin-1. Fonts whose codes are numbers of glyphs
are read by the table from codes to text that they carry (9.10.3). A PDF that says it is encrypted,
or whose streams are packed in another way than here, is an error, and so is one with a font of
numbered glyphs without such a table. Pixels are not read.
"""

import base64
import re
from collections.abc import Iterator

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
    rb"\((?P<text>[^()\\]*+(?:\\[\s\S][^()\\]*+)*)\)|<(?P<digits>[0-9A-Fa-f\s]*+)>|(?P<shift>[-+]?[0-9]*\.?[0-9]+)"
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
GAP = (
    -180.0
)  # a shift between letters, in thousandths of the font's size, that a reader sees as a blank
CODES = re.compile(rb"<([0-9A-Fa-f\s]*)>")
RANGE = re.compile(
    rb"<([0-9A-Fa-f\s]++)>\s*+<([0-9A-Fa-f\s]++)>\s*+(?:<([0-9A-Fa-f\s]++)>|\[([^\[\]]*+)\])"
)
MOST_CODES = 1 << 16


class Unreadable(Exception):
    """A PDF whose text cannot be had."""


def contents(data: bytes, budget: Budget) -> Iterator[bytes]:
    """The streams of a PDF, unfolded, without those of pixels, and the text of those that draw with
    numbered glyphs.
    """
    if len(data) > LARGEST:
        raise TooLarge
    if re.search(rb"/Encrypt\b", data):
        raise Unreadable
    unfolded = [
        content
        for head, body in streams(data)
        if (content := content_of(head, body, budget)) is not None
    ]
    if sum(map(len, unfolded)) > LARGEST:
        raise TooLarge
    yield from unfolded
    tables = [
        table for content in unfolded if b"beginbf" in content and (table := codes_of(content))
    ]
    numbered = NUMBERED.search(objects(data)) or any(
        NUMBERED.search(content) for content in unfolded
    )
    if numbered and not tables:
        raise Unreadable
    drawing = [content for content in unfolded if b"TJ" in content or b"Tj" in content]
    for table in tables:
        for content in drawing:
            budget.spend(len(content))
            yield numbered_text(content, table)


def streams(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The dictionary and the body of each stream."""
    place = 0
    while match := STREAM.search(data, place):
        end = data.find(END, match.end())
        if end < 0:
            raise EOFError("cut short")
        before = data[max(place, match.start() - DICTIONARY) : match.start()]
        yield (
            before[before.rfind(b"obj") + 3 :] if b"obj" in before else before,
            data[match.end() : end],
        )
        place = end + len(END)


def objects(data: bytes) -> bytes:
    """What stands outside of streams."""
    found = []
    place = 0
    while match := STREAM.search(data, place):
        found.append(data[place : match.start()])
        end = data.find(END, match.end())
        if end < 0:
            raise EOFError("cut short")
        place = end + len(END)
    return b"\n".join([*found, data[place:]])


def content_of(head: bytes, body: bytes, budget: Budget) -> bytes | None:
    """A stream's bytes without its filters; None if it is of pixels, or of places in the file."""
    if IMAGE.search(head) or TABLE_OF_PLACES.search(head):
        return None
    found = FILTER.search(head)
    for name in NAME.findall(found[1]) if found else []:
        if name in PIXELS:
            return None
        if PREDICTED.search(head):
            raise Unreadable
        body = without(name, body, budget)
    return body


def without(name: bytes, body: bytes, budget: Budget) -> bytes:
    """A stream without one filter; Unreadable if that is of a kind not known here."""
    if name in (b"FlateDecode", b"Fl"):
        found = bytearray()
        for piece in inflated(body, budget):
            found += piece
            if len(found) > LARGEST:
                raise TooLarge
        return bytes(found)
    try:
        if name in (b"ASCIIHexDecode", b"AHx"):
            return unhex(body.partition(b">")[0])
        if name in (b"ASCII85Decode", b"A85"):
            return base64.a85decode(body.partition(b"~>")[0].strip().removeprefix(b"<~"))
    except ValueError:
        pass
    raise Unreadable


def drawn(content: bytes) -> bytes:
    """Strings as UTF-8; those of one operator joined, a blank where it leaves a gap."""
    found: list[str] = []
    for match in TOKEN.finditer(content):
        if (text := match["text"]) is not None:
            found.append(string(ESCAPE.sub(meaning, text)))
        elif (digits := match["digits"]) is not None:
            found.append(string(unhex(digits)))
        elif match["shift"] is not None:
            found.append(" " if float(match["shift"]) < GAP else "")
        else:
            found.append("" if match["other"] in (b"[", b"]") else "\n")
    return "".join(found).encode(errors="replace")


def meaning(escape: re.Match[bytes]) -> bytes:
    """What an escape within a string stands for."""
    if escape[1][0] in b"01234567":
        return bytes([int(escape[1], 8) & 0xFF])
    return MEANS.get(escape[1], escape[1])


def string(data: bytes) -> str:
    """The text of a string."""
    if data.startswith(b"\xfe\xff"):
        return data[2:].decode("utf-16-be", errors="replace")
    return data.decode("latin-1")


def unhex(digits: bytes) -> bytes:
    """Bytes in hexadecimal digits; the last digit may be missing."""
    digits = b"".join(digits.split())
    try:
        return bytes.fromhex((digits + b"0" * (len(digits) % 2)).decode())
    except (ValueError, UnicodeDecodeError):
        return b""


def codes_of(table: bytes) -> dict[int, str]:
    """Code of two bytes -> text, of one font."""
    found: dict[int, str] = {}
    for part in parts(table, b"bfchar"):
        codes = [unhex(code) for code in CODES.findall(part)]
        found.update(
            (int.from_bytes(code), utf_16(text))
            for code, text in zip(codes[::2], codes[1::2], strict=False)
        )
    for part in parts(table, b"bfrange"):
        for first, last, start, listed in RANGE.findall(part):
            low = int.from_bytes(unhex(first))
            high = int.from_bytes(unhex(last))
            if not 0 <= high - low < MOST_CODES:
                raise Unreadable
            if start:
                text = utf_16(unhex(start))
                found.update((low + more, after(text, more)) for more in range(high - low + 1))
            else:
                found.update(
                    (low + more, utf_16(unhex(code)))
                    for more, code in enumerate(CODES.findall(listed))
                )
        if len(found) > MOST_CODES:
            raise Unreadable
    return found


def parts(table: bytes, kind: bytes) -> list[bytes]:
    """What stands between the words that begin and end a list of this kind."""
    return [part.partition(b"end" + kind)[0] for part in table.split(b"begin" + kind)[1:]]


def after(text: str, more: int) -> str:
    """A text whose last character is so many further on."""
    return text[:-1] + chr(min(ord(text[-1]) + more, 0x10FFFF)) if text else ""


def utf_16(data: bytes) -> str:
    """Text in UTF-16."""
    return data.decode("utf-16-be", errors="replace")


def numbered_text(content: bytes, table: dict[int, str]) -> bytes:
    """What a stream draws if its codes have two bytes and stand for these texts."""
    found: list[str] = []
    for match in TOKEN.finditer(content):
        if (text := match["text"]) is not None:
            codes = ESCAPE.sub(meaning, text)
        elif (digits := match["digits"]) is not None:
            codes = unhex(digits)
        elif match["shift"] is not None:
            found.append(" " if float(match["shift"]) < GAP else "")
            continue
        else:
            found.append("" if match["other"] in (b"[", b"]") else "\n")
            continue
        pairs = zip(codes[::2], codes[1::2], strict=False)
        found.extend(table.get(high << 8 | low, "\x01") for high, low in pairs)
    return "".join(found).encode(errors="replace")
