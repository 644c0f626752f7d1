"""Files without a name, for what may not fit into memory: they are gone as soon as nobody has them
open.

A disk that is full for a moment takes some of what it is given and says no more than how much. What
is written here is written whole, or refused.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from typing import BinaryIO

import numpy as np

from confide.errors import InputError


class Unnamed:
    """A file for writing and reading in a folder, which is made if it is not there."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.size = 0  # bytes that were appended
        with self._held():
            self.file = _opened(folder)

    @contextmanager
    def _held(self) -> Iterator[None]:
        """InputError where the disk does not hold it."""
        try:
            yield
        except OSError as error:
            reason = error.strerror or error
            raise InputError(f"cannot hold temporary files: {reason}", file=self.folder) from error

    def fileno(self) -> int:
        """Its descriptor."""
        return self.file.fileno()

    def append(self, data: bytes | np.ndarray) -> None:
        """Write all bytes of some data behind what was appended before."""
        with self._held():
            self.size += write_whole(self.file, data)

    def put(self, data: bytes, place: int) -> int:
        """Write all bytes of some data from a byte of the file on; the byte behind them."""
        left = memoryview(data)
        with self._held():
            while left:
                count = os.pwrite(self.fileno(), left, place)
                left = left[count:]
                place += count
        return place

    def move_to(self, out: BinaryIO) -> None:
        """Copy it into another file, and let go of it."""
        with self.file as written:
            written.seek(0)
            shutil.copyfileobj(written, out, 1 << 20)


def _opened(folder: Path) -> FileIO:
    folder.mkdir(parents=True, exist_ok=True)
    return tempfile.TemporaryFile(dir=folder, buffering=0)


def write_whole(file: FileIO, data: bytes | np.ndarray) -> int:
    """Write all bytes of some data, and say how many: the system takes as many as it likes."""
    left = memoryview(data) if isinstance(data, bytes) else data.view(np.uint8).data
    size = len(left)
    while len(left):
        left = left[file.write(left) :]
    return size
