"""What a file holds beside its raw bytes.

Those are members of archives, compressed and drawn text, values of SQLite and text of pages.
Everything is a stream of pieces, so that memory stays bounded. Containers are opened within
containers, three deep, and a file may unfold to so much and no more. What looks like a container
but cannot be opened is an error: a file that was not searched must not pass as clean.
"""

import bz2
import codecs
import gzip
import io
import lzma
import sqlite3
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from confide.errors import InputError
from confide.files.folders import walk
from confide.files.io import is_temporary
from confide.scan import markup, pdf, png
from confide.scan.unfolding import Budget, File, Inflating, TooLarge, Unfolding

Pieces = Iterator[bytes]

PIECE = 1 << 20
HEAD = 1 << 10  # bytes by which a kind of file is known; a PDF may begin with others
DEPTH = 3  # an image in a page in an archive
COMPRESSED: dict[bytes, Callable[..., File]] = {
    b"\x1f\x8b\x08": gzip.open,
    b"BZh91AY&SY": bz2.open,
    b"\xfd7zXZ\0": lzma.open,
}
ZIP = b"PK\x03\x04"
SQLITE = b"SQLite format 3\0"
PDF = b"%PDF-"
UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
BROKEN = (
    EOFError,
    OSError,
    RuntimeError,  # a member that is encrypted, or packed in a way that zipfile does not know
    TooLarge,
    pdf.Unreadable,
    lzma.LZMAError,
    sqlite3.Error,
    zipfile.BadZipFile,
    zlib.error,
)


@contextmanager
def searchable(path: str | Path, shown: Callable[[Path], str] = str) -> Iterator[None]:
    """Turn what goes wrong while a file is read into an InputError that names it, no content.

    shown: what the error calls the file.
    """
    try:
        yield
    except BROKEN as error:
        damage = f"is damaged, encrypted, nested too deep or too large ({type(error).__name__})"
        reason = getattr(error, "strerror", None) or damage
        if is_temporary(path):
            reason += "; if no process is writing it, one that was killed has left it: delete it"
        raise InputError(f"cannot be searched: {reason}", file=shown(Path(path))) from None


def files_of(paths: list[Path], shown: Callable[[Path], str] = str) -> list[Path]:
    """Files, and those below folders, sorted, each once.

    InputError for what is missing, unreadable or no regular file. `shown`: what errors call a file.
    """
    files: set[Path] = set()
    for path in paths:
        with searchable(path, shown):
            if path.is_dir():
                for folder, _, names in walk(path):
                    files.update(Path(folder, name) for name in names)
            else:
                files.add(path)
    for path in sorted(files):
        with searchable(path, shown):
            if not stat.S_ISREG(path.stat().st_mode):
                raise InputError("cannot be searched: is no regular file", file=shown(path))
    return sorted(files)


def streams(path: Path) -> Iterator[Pieces]:
    """The raw bytes of a file first, then everything that they hold in another form.

    Each must be read before the next.
    """
    with open(path, "rb") as file:
        yield from views(file, 0, Budget(path.stat().st_size))
        file.seek(0)
        if file.read(len(SQLITE)) == SQLITE:
            yield values(path)


def views(file: File, depth: int, budget: Budget) -> Iterator[Pieces]:
    """Streams of an open file that can seek."""
    head = file.read(HEAD)
    yield png.besides_pixels(file) if head.startswith(png.START) else pieces(file)
    for content in compressed(file, head):
        with closing(content):
            yield from inside(Unfolding(content, budget), depth, budget)
    if head.startswith(ZIP):
        with zipfile.ZipFile(file) as archive:
            for member in archive.infolist():
                with archive.open(member) as unpacked:
                    yield from inside(Unfolding(unpacked, budget), depth, budget)
    if head.startswith(png.START):
        yield png.texts(file, budget)
    if head.startswith(UTF_16):
        yield decoded(pieces(file))
    if PDF in head:
        yield from in_pdf(file, depth, budget)
    if head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"<"):
        yield from (view(pieces(file)) for view in markup.VIEWS)
        for data in markup.embedded(pieces(file)):
            yield from inside(io.BytesIO(data), depth, budget)


def inside(content: File, depth: int, budget: Budget) -> Iterator[Pieces]:
    """Streams of something that was found in a file; an error where it is nested too deep."""
    if depth >= DEPTH:
        raise zipfile.BadZipFile("nested too deep")
    yield from views(content, depth + 1, budget)


def compressed(file: File, head: bytes) -> Iterator[File]:
    """The content of a file that is compressed as a whole."""
    for magic, opener in COMPRESSED.items():
        if head.startswith(magic):
            file.seek(0)
            yield opener(file)
    if Inflating.fits(head):
        yield Inflating(file)


def in_pdf(file: File, depth: int, budget: Budget) -> Iterator[Pieces]:
    """Streams of a PDF, what they hold, and the text that it draws."""
    file.seek(0)
    data = file.read(pdf.LARGEST + 1)
    for content in pdf.contents(data, budget):
        yield from inside(io.BytesIO(content), depth, budget)
        yield iter([pdf.drawn(content)])
    yield iter([pdf.drawn(pdf.objects(data))])


def decoded(pieces: Pieces) -> Pieces:
    """UTF-16 with a byte order mark as UTF-8."""
    for text in codecs.iterdecode(pieces, "utf-16", errors="replace"):
        yield text.encode(errors="replace")


def pieces(file: File) -> Pieces:
    """All bytes of a file."""
    file.seek(0)
    while piece := file.read(PIECE):
        yield piece


def values(path: Path) -> Pieces:
    """Text, blobs and integers of all tables of a database, whose pages may cut them in two.

    The file is not touched.
    """
    address = f"{path.resolve().as_uri()}?mode=ro&immutable=1"
    with closing(sqlite3.connect(address, uri=True)) as database:
        database.text_factory = bytes
        tables = database.execute(
            "select name from sqlite_master where type = 'table' and rootpage > 0"
        ).fetchall()
        for (table,) in tables:
            quoted = table.decode().replace('"', '""')
            for row in database.execute(f'select * from "{quoted}"'):
                for value in row:
                    if isinstance(value, bytes | int):
                        yield (b"%d\n" if isinstance(value, int) else b"%b\n") % value
