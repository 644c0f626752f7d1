"""Text in a PNG: what stands beside its pixels, and what its chunks hold compressed."""

import struct
from collections.abc import Iterator
from itertools import chain

from confide.scan.unfolding import Budget, File, TooLarge, inflated

Pieces = Iterator[bytes]

START = b"\x89PNG\r\n\x1a\n"
PIECE = 1 << 20
LARGEST = 1 << 26  # bytes of a chunk that holds no pixels


def chunks(file: File) -> Iterator[tuple[bytes, bytes, bytes]]:
    """Header, kind and body, checksum included, of each chunk of a PNG up to its end.

    Pixels are passed over.
    """
    file.seek(len(START))
    kind = b""
    while kind != b"IEND":
        header = file.read(8)
        if len(header) < 8:
            raise EOFError("cut short")
        size, kind = struct.unpack(">I4s", header)
        if kind == b"IDAT":
            skip(file, size + 4)
            yield header, kind, b""
        elif size > LARGEST:
            raise TooLarge
        else:
            yield header, kind, file.read(size + 4)


def skip(file: File, size: int) -> None:
    """Read so many bytes, or what there is of them, and drop them."""
    while size > 0 and (piece := file.read(min(size, PIECE))):
        size -= len(piece)


def besides_pixels(file: File) -> Pieces:
    """All bytes of a PNG but its pixels.

    Compressed runs of these spell numbers such as 333333 by chance.
    """
    yield START
    for header, kind, body in chunks(file):
        yield header + (b"\n" if kind == b"IDAT" else body)
    while piece := file.read(PIECE):
        yield piece


def texts(file: File, budget: Budget) -> Pieces:
    """Compressed text of zTXt, iTXt and iCCP chunks; the raw bytes show tEXt as it is."""
    for _, kind, body in chunks(file):
        _, _, rest = body[:-4].partition(b"\0")  # after the keyword: method, or flag and method
        if kind in (b"zTXt", b"iCCP"):
            yield from chain(inflated(rest[1:], budget), [b"\n"])
        elif kind == b"iTXt" and rest[:1] == b"\1":
            yield from chain(inflated(rest[2:].split(b"\0", 2)[2], budget), [b"\n"])
