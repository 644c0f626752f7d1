"""Vectors that are written and read in pieces, as one safetensors file.

Its bytes are those that safetensors itself would write, had it all at once. None has to fit into
memory: until the file is written, each vector lies in a file without a name in its folder, or each
piece goes where it belongs at once, where all lengths are known.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import orjson
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from confide.errors import InputError
from confide.files.io import atomic, readable
from confide.files.unnamed import Unnamed, write_whole

PIECE = 1 << 20  # entries that are read at once


class Place(NamedTuple):
    """Bytes of a file, from the first to that behind the last."""

    start: int
    end: int


class Columns:
    """The vectors of one file, by name and type, of any length."""

    def __init__(self, path: Path, types: Mapping[str, Any]):
        self.path = path
        self.types = types
        self.files = {name: Unnamed(path.parent) for name in types}

    def add(self, **pieces: np.ndarray) -> None:
        """Append to some of the vectors."""
        for name, piece in pieces.items():
            self.files[name].append(np.ascontiguousarray(piece, self.types[name]))

    def write(self, metadata: dict[str, str] | None = None) -> None:
        """Write the file, whole or not at all, once: the pieces are gone behind it."""
        lengths = {
            name: file.size // np.dtype(self.types[name]).itemsize
            for name, file in self.files.items()
        }
        header, places = layout(self.types, lengths, metadata)
        with atomic(self.path) as temporary, open(temporary, "wb") as out:
            out.write(header)
            for name in places:
                # closed behind its copy: the disk never holds all vectors twice
                self.files[name].move_to(out)


class Laid:
    """The vectors of one file whose lengths are known; by `laid`."""

    def __init__(self, path: Path, out: FileIO, types: Mapping[str, Any], places: dict[str, Place]):
        self.path = path
        self.out = out
        self.types = types
        self.left = places  # what is still to be written

    def add(self, **pieces: np.ndarray) -> None:
        """Append to some of the vectors; InputError where one grows longer than was said."""
        for name, piece in pieces.items():
            data = np.ascontiguousarray(piece, self.types[name])
            start, end = self.left[name]
            if data.nbytes > end - start:
                raise InputError("is longer than its parts said", file=self.path, key=name)
            self.out.seek(start)
            write_whole(self.out, data)
            self.left[name] = Place(start + data.nbytes, end)


@contextmanager
def laid(
    path: Path,
    types: Mapping[str, Any],
    lengths: Mapping[str, int],
    metadata: dict[str, str] | None = None,
) -> Iterator[Laid]:
    """A file to which vectors of these lengths are added, whole at the end or not there at all.

    InputError where one is shorter or longer in the end.
    """
    header, places = layout(types, lengths, metadata)
    with atomic(path) as temporary, open(temporary, "wb", buffering=0) as out:
        write_whole(out, header)
        vectors = Laid(path, out, types, places)
        yield vectors
        for name, place in vectors.left.items():
            if place.start != place.end:
                raise InputError("is shorter than its parts said", file=path, key=name)


class Stored:
    """The vectors of a file; by `stored`."""

    def __init__(
        self,
        path: Path,
        types: Mapping[str, Any],
        places: dict[str, Place],
        metadata: dict[str, str],
    ):
        self.path = path
        self.types = types
        self.places = places
        self.metadata = metadata
        self.lengths = {
            name: (place.end - place.start) // np.dtype(types[name]).itemsize
            for name, place in places.items()
        }

    def whole(self, name: str) -> np.ndarray:
        """A vector (L,)."""
        return self._read(name, first=0, count=self.lengths[name])

    def pieces(self, name: str) -> Iterator[np.ndarray]:
        """A vector in pieces, of PIECE entries but for the last one."""
        length = self.lengths[name]
        for first in range(0, length, PIECE):
            yield self._read(name, first=first, count=min(PIECE, length - first))

    def _read(self, name: str, first: int, count: int) -> np.ndarray:
        dtype = np.dtype(self.types[name])
        place = self.places[name].start + first * dtype.itemsize
        with readable(self.path), open(self.path, "rb") as file:
            vector = np.fromfile(file, dtype, count, offset=place)
        if len(vector) != count:
            raise InputError("was cut off while it was read", file=self.path, key=name)
        return vector


def stored(path: Path, types: Mapping[str, Any], optional: Mapping[str, Any]) -> Stored:
    """The vectors that `types` names, and those of `optional` that a file has.

    InputError if it cannot be read, is corrupt, or lacks one, or has one of another type.
    """
    with readable(path):
        try:
            with safe_open(path, "numpy") as file:  # checks the header against the file
                metadata = file.metadata() or {}
        except SafetensorError as error:
            message = f"corrupt safetensors file: {str(error)[:200]}"
            raise InputError(message, file=path) from None
        with open(path, "rb") as content:
            size = int.from_bytes(content.read(8), "little")
            fields = orjson.loads(content.read(size))
    types = dict(types) | {name: kind for name, kind in optional.items() if name in fields}
    expected = fields_of(types, None)
    places = {}
    for name, dtype in types.items():
        if name not in fields:
            raise InputError("missing array", file=path, key=name)
        field = fields[name]
        if field["dtype"] != expected[name]["dtype"] or len(field["shape"]) != 1:
            raise InputError(f"expected a vector of {np.dtype(dtype)}", file=path, key=name)
        start, end = field["data_offsets"]
        places[name] = Place(8 + size + start, 8 + size + end)
    return Stored(path, types, places, metadata)


def layout(
    types: Mapping[str, Any], lengths: Mapping[str, int], metadata: dict[str, str] | None
) -> tuple[bytes, dict[str, Place]]:
    """What stands before the vectors of a file, and where each one stands, in their order."""
    fields = fields_of(types, metadata)
    within = {}
    end = 0
    for name in fields:
        if name not in types:
            continue
        start, end = end, end + lengths[name] * np.dtype(types[name]).itemsize
        fields[name]["shape"] = [lengths[name]]
        fields[name]["data_offsets"] = [start, end]
        within[name] = Place(start, end)
    header = orjson.dumps(fields)
    header += b" " * (-len(header) % 8)
    before = 8 + len(header)
    places = {name: Place(before + start, before + end) for name, (start, end) in within.items()}
    return len(header).to_bytes(8, "little") + header, places


def fields_of(types: Mapping[str, Any], metadata: dict[str, str] | None) -> dict[str, Any]:
    """The header of a file whose vectors are empty: safetensors knows their order and types."""
    empty = save({name: np.empty(0, dtype) for name, dtype in types.items()}, metadata)
    return orjson.loads(empty[8:])
