"""Between numpy and Arrow, which has texts in columns.

Arrow's own conversions load pandas, which takes longer than a stage takes for a small corpus.
"""

import ctypes
from collections.abc import Iterable, Sequence, Sized
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

# Bytes that a process keeps, once they are free again, for what it makes next.
KEPT = 32 << 20
MOST = np.iinfo(np.int32).max  # bytes of a column, whose edges have 32 bits
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # malloc.h


class Unlike(Exception):
    """Lines that columns cannot hold: in another form than ours, or too long together."""


@cache
def keep_freed() -> None:
    """Have glibc keep the memory that columns of one shard gave back, for those of the next.

    Else the system takes it back and fills it with zeros again, which takes as long as half of what
    is done with a shard. Elsewhere nothing changes.
    """
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):
        libc.mallopt(M_MMAP_THRESHOLD, KEPT)
        libc.mallopt(M_TRIM_THRESHOLD, KEPT)
        pa.set_memory_pool(pa.system_memory_pool())


def integers(values: np.ndarray) -> pa.Int64Array:
    """Numbers for Arrow."""
    content = pa.py_buffer(np.ascontiguousarray(values, np.int64))
    return pa.Array.from_buffers(pa.int64(), len(values), [None, content])


def booleans(values: np.ndarray) -> pa.BooleanArray:
    """Truth values for Arrow."""
    content = pa.py_buffer(np.packbits(values, bitorder="little"))
    return pa.Array.from_buffers(pa.bool_(), len(values), [None, content])


def texts(values: Sequence[str]) -> pa.StringArray:
    """Texts as a column."""
    return between(*encoded(values))


def encoded(values: Sequence[str]) -> tuple[bytes, np.ndarray]:
    """The UTF-8 of texts, one after the other, and between which bytes (N + 1,) each stands."""
    whole = "".join(values)
    parts: Iterable[Sized] = values if whole.isascii() else (value.encode() for value in values)
    edges = np.zeros(len(values) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, parts), np.int64, len(values)), out=edges[1:])
    return whole.encode(), edges


def binaries(values: Sequence[bytes]) -> pa.BinaryArray:
    """Bytes as a column."""
    edges = np.zeros(len(values) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, values), np.int64, len(values)), out=edges[1:])
    return binaries_between(b"".join(values), edges)


def binaries_between(content: bytes | np.ndarray, edges: np.ndarray) -> pa.BinaryArray:
    """Bytes that stand one after the other, between edges (N + 1,)."""
    buffers = [None, _buffer(edges), pa.py_buffer(content)]
    return pa.Array.from_buffers(pa.binary(), len(edges) - 1, buffers)


def runs_of(values: pa.BinaryArray, edges: np.ndarray) -> pa.BinaryArray:
    """Runs of consecutive values put together, those between edges (N + 1,)."""
    offsets = pa.py_buffer(_offsets(values)[edges])
    return pa.Array.from_buffers(pa.binary(), len(edges) - 1, [None, offsets, values.buffers()[2]])


def packed_integers(values: pa.BinaryArray) -> tuple[np.ndarray, np.ndarray]:
    """The int32 that are packed in values, one after the other, and how many each has (N,)."""
    offsets = _offsets(values) // np.int32().itemsize
    content = values.buffers()[2]
    last = int(offsets[-1])
    every = np.frombuffer(content or b"", np.int32, count=last)
    return every[offsets[0] :], np.diff(offsets)


def _offsets(values: pa.StringArray | pa.BinaryArray) -> np.ndarray:
    """(N + 1,) int32: between which bytes each stands."""
    return np.frombuffer(values.buffers()[1], np.int32)[values.offset :][: len(values) + 1]


def between(content: bytes, edges: np.ndarray) -> pa.StringArray:
    """Texts that stand in UTF-8 one after the other, between edges (N + 1,)."""
    return pa.StringArray.from_buffers(len(edges) - 1, _buffer(edges), pa.py_buffer(content))


def _buffer(edges: np.ndarray) -> pa.Buffer:
    """Edges as Arrow has them, none before the last; Unlike for one beyond MOST."""
    _check_size(int(edges[-1]))
    return pa.py_buffer(np.ascontiguousarray(edges, np.int32))


def _check_size(size: int) -> None:
    """Unlike for more bytes, or values, than a column can have."""
    if size > MOST:
        raise Unlike(f"{size:,} bytes or values are too many for a column")


def slices(raw: bytes, start: np.ndarray, end: np.ndarray) -> pa.StringArray:
    """Texts that stand in UTF-8 from some bytes to others, none before the end of the last."""
    last = int(end[-1]) if len(end) else 0
    _check_size(last)
    edges = np.empty(2 * len(start) + 1, np.int32)
    edges[:-1:2] = start
    edges[1::2] = end
    edges[-1] = last
    alternate = pa.StringArray.from_buffers(2 * len(start), pa.py_buffer(edges), pa.py_buffer(raw))
    return alternate.take(integers(np.arange(0, 2 * len(start), 2)))


def taken(values: pa.StringArray, places: np.ndarray) -> pa.StringArray:
    """The texts at some places, each as often as it is asked for."""
    _check_size(int(np.diff(_offsets(values)).astype(np.int64)[places].sum()))
    return values.take(integers(places))


def runs(starts: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Places of runs of consecutive ones, which begin at some places and are so long (n,)."""
    before = np.cumsum(counts) - counts
    return np.arange(int(counts.sum())) + np.repeat(starts - before, counts)


def content_of(values: pa.StringArray) -> tuple[bytes, np.ndarray]:
    """The UTF-8 of texts, one after the other, and between which bytes (N + 1,) each stands."""
    content = values.buffers()[2]
    return b"" if content is None else content.to_pybytes(), _offsets(values).astype(np.int64)


def from_integers(values: pa.Array) -> np.ndarray:
    """Numbers of Arrow, none of them null."""
    kind = np.dtype(f"i{values.type.bit_width // 8}")
    return np.frombuffer(values.buffers()[1], kind)[values.offset : values.offset + len(values)]


def numbered(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Numbers (n,) int64 of byte strings of one length (n,), and the different ones, as they first
    appear.
    """
    content = np.ascontiguousarray(values)
    kind = pa.binary(content.itemsize)
    column = pa.Array.from_buffers(kind, len(content), [None, pa.py_buffer(content)])
    encoded = column.dictionary_encode()
    different = np.frombuffer(encoded.dictionary.buffers()[1], content.dtype)
    return from_integers(encoded.indices).astype(np.int64), different[: len(encoded.dictionary)]


def from_booleans(values: pa.BooleanArray) -> np.ndarray:
    """Truth values of Arrow, none of them null."""
    bits = np.frombuffer(values.buffers()[1], np.uint8)
    whole = np.unpackbits(bits, count=values.offset + len(values), bitorder="little")
    return whole[values.offset :].astype(bool)


def digits(values: np.ndarray) -> pa.StringArray:
    """Integers in decimal digits."""
    return pc.cast(integers(values), pa.string())


def text(value: str) -> pa.StringScalar:
    """A text that stands in each row."""
    return texts([value])[0]


def lists(edges: np.ndarray, values: pa.StringArray) -> pa.ListArray:
    """Lists of consecutive texts, between edges (N + 1,)."""
    kind = pa.list_(pa.string())
    buffers = [None, _buffer(edges)]
    return pa.ListArray.from_buffers(kind, len(edges) - 1, buffers, children=[values])


def joined(*parts: str | pa.Array) -> tuple[bytes, np.ndarray]:
    """Texts put together, one after the other: columns, and what stands in each of them.

    Also the bytes (N + 1,) between which each stands.
    """
    columns = [text(part) if isinstance(part, str) else part for part in parts]
    try:
        whole = pc.binary_join_element_wise(*columns, text(""))
    except pa.ArrowCapacityError as error:
        raise Unlike(str(error)) from None
    edges = np.frombuffer(whole.buffers()[1], np.int32)[: len(whole) + 1]
    content = whole.buffers()[2] if len(whole) else pa.py_buffer(b"")
    return memoryview(content)[: edges[-1]].tobytes(), edges


def lines(*parts: str | pa.Array) -> bytes:
    """Texts as `joined` puts them together, in UTF-8, without the places between them."""
    return joined(*parts)[0]
