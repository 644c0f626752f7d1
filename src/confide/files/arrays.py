"""Between numpy and Arrow, which has texts in columns.

Arrow's own conversions load pandas, which takes longer than a stage takes for a small corpus.
"""

import ctypes
from collections.abc import Sequence
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

# Bytes that a process keeps, once they are free again, for what it makes next.
KEPT = 32 << 20
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # malloc.h


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
    encoded = [value.encode() for value in values]
    edges = np.zeros(len(encoded) + 1, np.int32)
    np.cumsum(np.fromiter(map(len, encoded), np.int32, len(encoded)), out=edges[1:])
    content = pa.py_buffer(b"".join(encoded))
    return pa.StringArray.from_buffers(len(encoded), pa.py_buffer(edges), content)


def slices(raw: bytes, start: np.ndarray, end: np.ndarray) -> pa.StringArray:
    """Texts that stand in UTF-8 from some bytes to others, none before the end of the last."""
    edges = np.empty(2 * len(start) + 1, np.int32)
    edges[:-1:2] = start
    edges[1::2] = end
    edges[-1] = end[-1] if len(end) else 0
    alternate = pa.StringArray.from_buffers(2 * len(start), pa.py_buffer(edges), pa.py_buffer(raw))
    return alternate.take(integers(np.arange(0, 2 * len(start), 2)))


def runs(starts: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Places of runs of consecutive ones, which begin at some places and are so long (n,)."""
    before = np.cumsum(counts) - counts
    return np.arange(int(counts.sum())) + np.repeat(starts - before, counts)


def content_of(values: pa.StringArray) -> tuple[bytes, np.ndarray]:
    """The UTF-8 of texts, one after the other, and between which bytes (N + 1,) each stands."""
    edges = np.frombuffer(values.buffers()[1], np.int32)[values.offset :][: len(values) + 1]
    content = values.buffers()[2]
    return b"" if content is None else content.to_pybytes(), edges.astype(np.int64)


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
    offsets = pa.py_buffer(np.ascontiguousarray(edges, np.int32))
    return pa.ListArray.from_buffers(kind, len(edges) - 1, [None, offsets], children=[values])


def joined(*parts: str | pa.Array) -> tuple[bytes, np.ndarray]:
    """Texts put together, one after the other: columns, and what stands in each of them.

    Also the bytes (N + 1,) between which each stands.
    """
    columns = [text(part) if isinstance(part, str) else part for part in parts]
    whole = pc.binary_join_element_wise(*columns, text(""))
    edges = np.frombuffer(whole.buffers()[1], np.int32)[: len(whole) + 1]
    content = whole.buffers()[2] if len(whole) else pa.py_buffer(b"")
    return memoryview(content)[: edges[-1]].tobytes(), edges


def lines(*parts: str | pa.Array) -> bytes:
    """The same texts alone."""
    return joined(*parts)[0]
