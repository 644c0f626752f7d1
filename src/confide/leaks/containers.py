"""What a file holds beside its raw bytes: members of archives, compressed text of PNG, values of SQLite, text of HTML and SVG.

Everything is a stream of pieces, so that memory stays bounded. Containers are opened within containers, three deep. What
looks like one but cannot be opened is an error: a file that was not searched must not pass as clean.
"""

import bz2
import gzip
import io
import lzma
import os
import sqlite3
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from itertools import chain
from pathlib import Path
from typing import BinaryIO

from confide.errors import InputError
from confide.leaks import markup

Pieces = Iterator[bytes]

PIECE = 1 << 20
DEPTH = 3  # an image in a page in an archive
COMPRESSED: dict[bytes, Callable[[BinaryIO], BinaryIO]] = {
    b"\x1f\x8b\x08": gzip.open,
    b"BZh91AY&SY": bz2.open,
    b"\xfd7zXZ\0": lzma.open,
}
ZIP, PNG, SQLITE = b"PK\x03\x04", b"\x89PNG\r\n\x1a\n", b"SQLite format 3\0"
BROKEN = (
    EOFError,
    OSError,
    RuntimeError,  # a member that is encrypted, or packed in a way that zipfile does not know
    lzma.LZMAError,
    sqlite3.Error,
    zipfile.BadZipFile,
    zlib.error,
)


@contextmanager
def searchable(name: str) -> Iterator[None]:
    """Turn what goes wrong while a file is read or opened into an InputError that names it, never its content."""
    try:
        yield
    except BROKEN as error:
        reason = getattr(error, "strerror", None) or f"is damaged, encrypted or nested too deep ({type(error).__name__})"
        raise InputError(f"cannot be searched: {reason}", file=name) from None


def files_of(paths: list[Path]) -> list[Path]:
    """Files, and those below folders, sorted, each once. InputError for what is missing, unreadable or no regular file."""
    found: set[Path] = set()
    for path in paths:
        with searchable(str(path)):
            if path.is_dir():
                for folder, _, names in os.walk(path, onerror=_raise):
                    found.update(Path(folder, name) for name in names)
            else:
                found.add(path)
    for path in sorted(found):
        with searchable(str(path)):
            if not stat.S_ISREG(path.stat().st_mode):
                raise InputError("cannot be searched: is no regular file", file=path)
    return sorted(found)


def _raise(error: OSError) -> None:
    raise error


def streams(path: Path) -> Iterator[Pieces]:
    """The raw bytes of a file first, then everything that they hold in another form. Each must be read before the next."""
    with open(path, "rb") as file:
        yield from views(file, 0)
        file.seek(0)
        if file.read(len(SQLITE)) == SQLITE:
            yield values(path)


def views(file: BinaryIO, depth: int) -> Iterator[Pieces]:
    """Streams of an open file that can seek."""
    head = file.read(64)
    yield besides_pixels(file) if head.startswith(PNG) else pieces(file)
    for magic, opener in COMPRESSED.items():
        if head.startswith(magic):
            file.seek(0)
            with opener(file) as content:
                yield from inside(content, depth)
    if head.startswith(ZIP):
        with zipfile.ZipFile(file) as archive:
            for member in archive.infolist():
                with archive.open(member) as content:
                    yield from inside(content, depth)
    if head.startswith(PNG):
        yield png_texts(file)
    if head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"<"):
        yield from (view(pieces(file)) for view in markup.VIEWS)
        for data in markup.embedded(pieces(file)):
            yield from inside(io.BytesIO(data), depth)


def inside(content: BinaryIO, depth: int) -> Iterator[Pieces]:
    """Streams of something that was found in a file; an error where it is nested too deep."""
    if depth >= DEPTH:
        raise zipfile.BadZipFile("nested too deep")
    yield from views(content, depth + 1)


def pieces(file: BinaryIO) -> Pieces:
    """All bytes of a file."""
    file.seek(0)
    while piece := file.read(PIECE):
        yield piece


def inflated(data: bytes) -> Pieces:
    """A complete zlib stream, a piece at a time."""
    machine = zlib.decompressobj()
    while not machine.eof:
        piece = machine.decompress(data, PIECE)
        data = machine.unconsumed_tail
        if not piece and not data and not machine.eof:
            raise EOFError("cut short")
        yield piece


def chunks(file: BinaryIO) -> Iterator[tuple[bytes, bytes, bytes]]:
    """Header, kind and body, checksum included, of each chunk of a PNG up to its end."""
    file.seek(len(PNG))
    kind = b""
    while kind != b"IEND":
        header = file.read(8)
        if len(header) < 8:
            raise EOFError("cut short")
        size, kind = struct.unpack(">I4s", header)
        yield header, kind, file.read(size + 4)


def besides_pixels(file: BinaryIO) -> Pieces:
    """All bytes of a PNG but its pixels: compressed runs of these spell numbers such as 333333 by chance."""
    yield PNG
    for header, kind, body in chunks(file):
        yield header + (b"\n" if kind == b"IDAT" else body)
    while piece := file.read(PIECE):
        yield piece


def png_texts(file: BinaryIO) -> Pieces:
    """Compressed text of zTXt and iTXt chunks; the raw bytes show tEXt as it is."""
    for _, kind, body in chunks(file):
        _, _, rest = body[:-4].partition(b"\0")  # after the keyword: method, or flag and method
        if kind == b"zTXt":
            yield from chain(inflated(rest[1:]), [b"\n"])
        elif kind == b"iTXt" and rest[:1] == b"\1":
            yield from chain(inflated(rest[2:].split(b"\0", 2)[2]), [b"\n"])


def values(path: Path) -> Pieces:
    """Text, blobs and integers of all tables of a database: its pages may cut them in two. The file is not touched."""
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)) as database:
        database.text_factory = bytes
        tables = database.execute("select name from sqlite_master where type = 'table' and rootpage > 0").fetchall()
        for (table,) in tables:
            quoted = table.decode().replace('"', '""')
            for row in database.execute(f'select * from "{quoted}"'):
                found = [b"%d" % value if isinstance(value, int) else value for value in row if isinstance(value, bytes | int)]
                yield b"\n".join([*found, b""])
