"""Compressed data, read a piece at a time and never without bound.

A small file may hold an endless one.
"""

import io
import zlib
from collections.abc import Iterator
from typing import Protocol

ALWAYS = 1 << 30  # bytes that any file may unfold to, every reading of them counted
TIMES = 100  # and so many times its own size
PIECE = 1 << 20
READ = 1 << 16  # compressed bytes that are read at once


class File(Protocol):
    """Bytes that can be read from any place."""

    def read(self, size: int = -1, /) -> bytes: ...

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int: ...

    def tell(self) -> int: ...

    def close(self) -> None: ...


class TooLarge(Exception):
    """What was found in a file is larger than a search goes into."""


class Budget:
    """Bytes that may still be unfolded from one file, over all that is nested in it."""

    def __init__(self, size: int):
        self.left = ALWAYS + TIMES * size

    def spend(self, count: int) -> None:
        """Take bytes off; TooLarge where there are not so many."""
        self.left -= count
        if self.left < 0:
            raise TooLarge


class Seekable(io.RawIOBase):
    """What all files here can do."""

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True


class Unfolding(Seekable):
    """What a container holds, of which a budget is paid."""

    def __init__(self, content: File, budget: Budget):
        super().__init__()
        self.content = content
        self.budget = budget

    def read(self, size: int = -1) -> bytes:
        data = self.content.read(size)
        self.budget.spend(len(data))
        return data

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return self.content.seek(offset, whence)


class Inflating(Seekable):
    """The content of a file that is one zlib stream. It seeks by beginning anew."""

    def __init__(self, file: File):
        super().__init__()
        self.file = file
        self._begin()

    @staticmethod
    def fits(head: bytes) -> bool:
        """Whether a file that begins like this is a zlib stream.

        Its two bytes of a header say so, and the next unfold.
        """
        if len(head) < 8 or head[0] != 0x78 or (head[0] << 8 | head[1]) % 31:
            return False
        try:
            return bool(zlib.decompressobj().decompress(head, PIECE))
        except zlib.error:
            return False  # a text that begins with "x^"

    def _begin(self) -> None:
        self.file.seek(0)
        self.machine = zlib.decompressobj()
        self.waiting = b""
        self.place = 0

    def read(self, size: int = -1) -> bytes:
        content = bytearray()
        while (size < 0 or len(content) < size) and not self.machine.eof:
            if not self.waiting:
                self.waiting = self.file.read(READ)
                if not self.waiting:
                    raise EOFError("cut short")
            most = PIECE if size < 0 else size - len(content)
            content += self.machine.decompress(self.waiting, most)
            self.waiting = self.machine.unconsumed_tail
        self.place += len(content)
        return bytes(content)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        if whence == io.SEEK_END:
            while self.read(PIECE):
                pass
        target = offset if whence == io.SEEK_SET else self.place + offset
        if target < self.place:
            self._begin()
        while self.place < target and self.read(min(PIECE, target - self.place)):
            pass
        return self.place


def inflated(data: bytes, budget: Budget) -> Iterator[bytes]:
    """A complete zlib stream, a piece at a time."""
    machine = zlib.decompressobj()
    while not machine.eof:
        piece = machine.decompress(data, PIECE)
        data = machine.unconsumed_tail
        if not piece and not data and not machine.eof:
            raise EOFError("cut short")
        budget.spend(len(piece))
        yield piece
