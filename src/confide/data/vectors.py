"""Vectors that come in pieces, as one safetensors file.

Its bytes are those that safetensors itself would write, had it all at once. Until the file is
written, each vector lies in a file without a name in its folder, so that none has to fit into
memory.
"""

import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from safetensors.numpy import save

from confide.files.io import atomic, unnamed


class Columns:
    """The vectors of one file, by name and type."""

    def __init__(self, path: Path, types: dict[str, Any]):
        self.path = path
        self.types = types
        self.files = {name: unnamed(path.parent) for name in types}

    def add(self, **pieces: np.ndarray) -> None:
        """Append to some of the vectors."""
        for name, piece in pieces.items():
            self.files[name].write(np.ascontiguousarray(piece, self.types[name]).data)

    def write(self, metadata: dict[str, str] | None = None) -> None:
        """Write the file, whole or not at all, once: the pieces are gone behind it."""
        empty = save({name: np.empty(0, dtype) for name, dtype in self.types.items()}, metadata)
        # safetensors knows in which order vectors stand
        fields = orjson.loads(empty[8:])
        place = 0
        order = [name for name in fields if name in self.types]
        for name in order:
            size = os.fstat(self.files[name].fileno()).st_size
            fields[name]["shape"] = [size // np.dtype(self.types[name]).itemsize]
            fields[name]["data_offsets"] = [place, place := place + size]
        header = orjson.dumps(fields)
        header += b" " * (-len(header) % 8)
        with atomic(self.path) as temporary, open(temporary, "wb") as out:
            out.write(len(header).to_bytes(8, "little") + header)
            for name in order:
                # closed behind its copy: the disk never holds all vectors twice
                with self.files[name] as pieces:
                    pieces.seek(0)
                    shutil.copyfileobj(pieces, out, 1 << 20)
