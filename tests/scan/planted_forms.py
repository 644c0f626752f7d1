"""A secret written in every way that the search sees through, by the names of the lists in
docs/scan.md.
"""

import base64
import bz2
import csv
import gzip
import io
import json
import lzma
import sqlite3
import struct
import unicodedata
import zipfile
import zlib
from collections.abc import Callable
from urllib.parse import quote

NAME = "Anna Karenina"
PLACE = "Ångström Straße"
SURNAME = "Жуковский"
CODE = "482913"
ASIDE = b"nothing to see\n%b\nnothing to see"


def file_of(text: str | bytes) -> bytes:
    """A text file with this in it."""
    return ASIDE % (text.encode() if isinstance(text, str) else text)


def gpt2(text: str) -> str:
    """The characters that GPT-2 writes the bytes of a text as, by its published rule (Radford et
    al. 2019).
    """
    printed = [
        *range(ord("!"), ord("~") + 1),
        *range(ord("¡"), ord("¬") + 1),
        *range(ord("®"), ord("ÿ") + 1),
    ]
    others = [byte for byte in range(256) if byte not in printed]
    letters = {byte: chr(byte) for byte in printed} | {
        byte: chr(256 + number) for number, byte in enumerate(others)
    }
    return "".join(letters[byte] for byte in text.encode())


def wide_letters(text: str) -> str:
    """Full-width forms of ASCII."""
    return "".join(
        chr(ord(letter) + 0xFEE0) if "!" <= letter <= "~" else "\u3000" for letter in text
    )


def rows_of(text: str, delimiter: str) -> str:
    """A table whose cells are words."""
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter, quoting=csv.QUOTE_ALL).writerows(
        [["first", "last"], text.split(" "), ["x", "y"]]
    )
    return out.getvalue()


def token_list(text: str) -> list[str]:
    """Pieces of two to five letters."""
    sizes = (2, 2, 3, 5, 4)
    found = []
    place = 0
    while place < len(text):
        size = sizes[len(found) % len(sizes)]
        found.append(text[place : place + size])
        place += size
    return found


def zipped(text: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.txt", text)
    return out.getvalue()


def database(text: str) -> bytes:
    memory = sqlite3.connect(":memory:")
    memory.execute("create table notes (note text)")
    memory.execute("insert into notes values (?)", (text,))
    memory.commit()
    return memory.serialize()


def png(kind: bytes, body: bytes) -> bytes:
    chunks = [(b"IHDR", bytes(13)), (kind, body), (b"IEND", b"")]
    coded = (
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(coded)


def stream(number: int, body: bytes, head: bytes = b"", packed: bool = True) -> bytes:
    """An object of a PDF that is a stream."""
    body, filters = (zlib.compress(body), b"/Filter /FlateDecode") if packed else (body, b"")
    return b"%d 0 obj\n<< /Length %d %b %b >>\nstream\n%b\nendstream\nendobj\n" % (
        number,
        len(body),
        head,
        filters,
        body,
    )


def pdf(*objects: bytes) -> bytes:
    """As much of a PDF as a reader of its streams needs."""
    return (
        b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n"
        + b"".join(objects)
        + b"trailer\n<< /Root 1 0 R >>\n%%EOF\n"
    )


def kerned(text: str) -> bytes:
    """An operator that draws a text in three pieces, with a gap for its blank."""
    first, last = text.split(" ")
    return f"BT /F1 12 Tf [({first[:2]}) 15 ({first[2:]}) -333 ({last})] TJ ET".encode()


def numbered(text: str) -> list[bytes]:
    """A stream that draws with numbers of glyphs, and the font's table of what these stand for."""
    glyphs = {letter: 3 + place for place, letter in enumerate(dict.fromkeys(text))}
    drawn = (
        b"BT /F1 12 Tf <%b> Tj ET" % "".join(f"{glyphs[letter]:04x}" for letter in text).encode()
    )
    pairs = "\n".join(
        f"<{glyph:04X}> <{letter.encode('utf-16-be').hex()}>" for letter, glyph in glyphs.items()
    )
    table = f"begincmap\n{len(glyphs)} beginbfchar\n{pairs}\nendbfchar\nendcmap".encode()
    font = b"9 0 obj\n<< /Type /Font /Subtype /Type0 /Encoding /Identity-H >>\nendobj\n"
    return [stream(2, drawn), stream(3, table), font]


def entities(text: str) -> str:
    return "".join(f"&#{ord(letter)};" for letter in text)


Planted = dict[
    str, list[tuple[str, Callable[[str], bytes]]]
]  # row of the table -> secrets and the files with them

SEEN: Planted = {
    "as it stands": [(text, file_of) for text in (NAME, PLACE, SURNAME, CODE)],
    "another case": [(text, lambda text: file_of(text.upper())) for text in (NAME, SURNAME, PLACE)],
    "other separators, or none": [
        (NAME, lambda text: file_of(text.replace(" ", "_"))),
        (NAME, lambda text: file_of(text.replace(" ", "\r\n   "))),
        (NAME, lambda text: file_of(text.replace(" ", ""))),
    ],
    "backwards": [(text, lambda text: file_of(text[::-1])) for text in (NAME, SURNAME, CODE)],
    "without accents": [
        (PLACE, lambda text: file_of("Angstrom Strasse")),
        ("Angstrom", lambda text: file_of("Ångström")),
    ],
    "UTF-16 and UTF-32": [
        *(
            (NAME, lambda text, code=code: text.encode(code))
            for code in ("utf-16", "utf-16-le", "utf-16-be", "utf-32")
        ),
        *(
            (SURNAME, lambda text, code=code: text.encode(code))
            for code in ("utf-16", "utf-16-le", "utf-16-be")
        ),
        (PLACE, lambda text: unicodedata.normalize("NFD", text).encode("utf-16")),
    ],
    "Latin-1": [(PLACE, lambda text: file_of(text.encode("latin-1")))],
    "decomposed and full-width characters": [
        *(
            (text, lambda text: file_of(unicodedata.normalize("NFD", text)))
            for text in (PLACE, SURNAME)
        ),
        (unicodedata.normalize("NFD", PLACE), lambda text: file_of(PLACE)),
        *((text, lambda text: file_of(wide_letters(text))) for text in (NAME, CODE)),
        ("Ångström", lambda text: file_of("Å" + text[1:])),  # the sign of the unit
    ],
    "typographic dashes, spaces and quotes": [
        *(
            (NAME, lambda text, space=space: file_of(text.replace(" ", space)))
            for space in "\u00a0\u2009\u3000\u202f\u2003"
        ),
        *(
            ("Smith-Jones 12", lambda text, dash=dash: file_of(text.replace("-", dash)))
            for dash in "\u2010\u2011\u2013\u2014\u2212"
        ),
        *(
            ("Rosie O'Brien", lambda text, mark=mark: file_of(text.replace("'", mark)))
            for mark in "\u2019\u02bc\u2032`"
        ),
        ("555-123-4567", lambda text: file_of(text.replace("-", "\u2011"))),
        ("Rosie O\u2019Brien", lambda text: file_of("Rosie O'Brien")),
    ],
    "zero-width characters and soft hyphens": [
        *(
            (text, lambda text, mark=mark: file_of(mark.join(text)))
            for text in (NAME, CODE)
            for mark in "\u200b\u200d\u2060\u00ad\ufeff"
        ),
        (SURNAME, lambda text: file_of("\u00ad".join(text))),
    ],
    "HTML entities in any file": [
        *(
            (text, lambda text: file_of(f"# Page\n\n{entities(text)} *and*"))
            for text in (NAME, SURNAME, CODE)
        ),
        (PLACE, lambda text: file_of("&Aring;ngstr&ouml;m&nbsp;Stra&szlig;e")),
        (NAME, lambda text: file_of("Anna&#x20;Kar&#x65;nina")),
    ],
    "escapes of JSON, Python and C": [
        *((text, lambda text: file_of(json.dumps({"a": text}))) for text in (PLACE, SURNAME)),
        *((text, lambda text: file_of(ascii(text))) for text in (PLACE, SURNAME)),
        (SURNAME, lambda text: file_of(json.dumps(json.dumps([text])))),
        (SURNAME, lambda text: file_of(repr(text.encode()))),
        (NAME, lambda text: file_of("".join(f"\\x{ord(letter):02x}" for letter in text))),
        (NAME, lambda text: file_of("Anna\\nKarenina")),
    ],
    "percent-encoding": [
        *((text, lambda text: file_of("?q=" + quote(text))) for text in (NAME, PLACE, SURNAME)),
        (NAME, lambda text: file_of("".join(f"%{ord(letter):02X}" for letter in text))),
    ],
    "base64": [
        *(
            (text, lambda text, lead=lead: base64.b64encode(lead + text.encode()))
            for text in (NAME, SURNAME)
            for lead in (b"", b"a", b"ab")
        ),
        (NAME, lambda text: base64.urlsafe_b64encode(b"/results/" + text.encode() + b"?")),
    ],
    "base64 of UTF-16": [
        (text, lambda text, code=code, lead=lead: base64.b64encode((lead + text).encode(code)))
        for text in (NAME, SURNAME, CODE)
        for code in ("utf-16-le", "utf-16-be")
        for lead in ("", "a", "ab")
    ],
    "hexadecimal digits": [
        *((text, lambda text: file_of(text.encode().hex())) for text in (NAME, SURNAME, CODE)),
        *((NAME, lambda text, mark=mark: file_of(text.encode().hex(mark))) for mark in ": -"),
    ],
    "byte-level tokens": [
        *(
            (
                text,
                lambda text: json.dumps(
                    {"vocab": {gpt2(f" {text}"): 1, "x": 2}}, ensure_ascii=False
                ).encode(),
            )
            for text in (NAME, PLACE, SURNAME)
        ),
        *(
            (text, lambda text: json.dumps({"vocab": {gpt2(text): 1, "x": 2}}).encode())
            for text in (NAME, PLACE, SURNAME)
        ),
    ],
    "SentencePiece's spaces": [
        (text, lambda text: file_of("▁" + text.replace(" ", "▁")))
        for text in (NAME, PLACE, SURNAME)
    ],
    "lists of tokens": [
        *(
            (text, lambda text: json.dumps(["<s>", *token_list(text), "."]).encode())
            for text in (NAME, SURNAME)
        ),
        *(
            (text, lambda text: json.dumps(["<s>", *map(gpt2, text), "."]).encode())
            for text in (NAME, SURNAME)
        ),
        ("Petrow", lambda text: file_of("['Pe', 'trow', '.']")),
        (NAME, lambda text: file_of(json.dumps(json.dumps(token_list(text))))),
    ],
    "columns of CSV and TSV": [
        *((NAME, lambda text, mark=mark: rows_of(text, mark).encode()) for mark in ",;\t|"),
        (NAME, lambda text: file_of(text.replace(" ", ","))),
        ("555-123-4567", lambda text: file_of('"555","123","4567"')),
    ],
    "Markdown": [
        (NAME, lambda text: file_of("**Anna** **Karenina**")),
        (NAME, lambda text: file_of("_Anna_ `Karenina`")),
        (NAME, lambda text: file_of("| ~~Anna~~ | *Kare*nina |")),
        (CODE, lambda text: file_of(f"the code is **{text}**")),
    ],
    "gzip, bzip2, xz and zlib": [
        (text, lambda text, pack=pack: pack(file_of(text)))
        for text in (NAME, CODE)
        for pack in (gzip.compress, bz2.compress, lzma.compress, zlib.compress)
    ],
    "ZIP, and what is built on it": [(text, zipped) for text in (NAME, SURNAME)],
    "SQLite": [(text, database) for text in (NAME, SURNAME)],
    "text of PNG": [
        (NAME, lambda text: png(b"tEXt", b"Title\0" + text.encode())),
        (NAME, lambda text: png(b"zTXt", b"Title\0\0" + zlib.compress(text.encode()))),
        (SURNAME, lambda text: png(b"iTXt", b"Title\0\0\0ru\0\0" + text.encode())),
        (SURNAME, lambda text: png(b"iTXt", b"Title\0\1\0ru\0\0" + zlib.compress(text.encode()))),
        (
            NAME,
            lambda text: png(
                b"iCCP",
                b"profile\0\0" + zlib.compress(b"\0\0desc\0\0\0\x0e" + text.encode() + b"\0"),
            ),
        ),
    ],
    "PDF": [
        (NAME, lambda text: pdf(stream(2, file_of(text)))),
        (NAME, lambda text: pdf(stream(2, kerned(text)))),
        (NAME, lambda text: pdf(stream(2, kerned(text), packed=False))),
        (NAME, lambda text: pdf(stream(2, b"BT (Anna) Tj 0 -14 Td (Karen\\151na) Tj ET"))),
        (
            NAME,
            lambda text: pdf(
                stream(
                    2,
                    base64.a85encode(zlib.compress(kerned(text))) + b"~>",
                    b"/Filter [/ASCII85Decode /FlateDecode]",
                    packed=False,
                )
            ),
        ),
        (
            SURNAME,
            lambda text: pdf(
                b"5 0 obj\n<< /Title <FEFF%b> >>\nendobj\n"
                % text.encode("utf-16-be").hex().encode()
            ),
        ),
        *((text, lambda text: pdf(*numbered(text))) for text in (NAME, SURNAME)),
    ],
    "HTML and SVG": [
        (NAME, lambda text: b"<html><p>An<b>na</b>&nbsp;Karenina</p></html>"),
        (SURNAME, lambda text: f"<svg><text>{entities(text)}</text></svg>".encode()),
        (
            NAME,
            lambda text: (
                b'<img src="data:text/plain;base64,'
                + base64.b64encode(zlib.compress(file_of(text)))
                + b'">'
            ),
        ),
    ],
}
