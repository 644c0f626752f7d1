"""Finding what is alike in files of any size.

Digests go to buckets by their first bytes, so that like ones meet in one.

A bucket is a file without a name, which vanishes with the process, however that ends. Of what is
alike in a shard only one goes to a bucket: no bucket grows with how often the same thing stands in
the corpus.
"""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from confide.files.io import Range, size_of, unnamed
from confide.files.shards import Result, scatter

DIGEST = 20  # bytes
# Digests are of equal length, so the zeros that S leaves out do not matter.
KEYED = np.dtype([("digest", f"S{DIGEST}"), ("at", np.int64)])
SHARE = 128 << 20  # bytes of the corpus to a bucket
MOST = 256  # buckets: each is an open file

# Of a shard: where something stands in it, and its digest, in order.
Look = Callable[[Any], Iterable[tuple[int, bytes]]]
# Records KEYED: first occurrences of digests, and later ones.
Apart = tuple[np.ndarray, np.ndarray]


class Buckets:
    """Records with a field "digest", in unnamed files, as many as a corpus of this size needs."""

    def __init__(self, folder: Path, size: int, dtype: np.dtype, *, multiple: int = 1):
        """multiple: of which their number is one."""
        needed = min(1 + size // SHARE, MOST)
        self.dtype = dtype
        self.files = [unnamed(folder) for _ in range(-(-needed // multiple) * multiple)]

    def add(self, records: np.ndarray) -> None:
        """Append each record to the bucket of its digest."""
        pairs = np.ascontiguousarray(records["digest"]).view(np.uint16)
        bucket = pairs[:: DIGEST // 2] % len(self.files)  # by two bytes of each digest
        order = np.argsort(bucket, kind="stable")
        parts = np.split(records[order], np.searchsorted(bucket[order], range(1, len(self.files))))
        for file, part in zip(self.files, parts, strict=True):
            file.write(part.tobytes())

    def read(self, index: int) -> np.ndarray:
        """All records of a bucket, in the order in which they came."""
        file = self.files[index].fileno()
        return np.frombuffer(os.pread(file, os.fstat(file).st_size, 0), self.dtype)

    def sizes(self) -> list[int]:
        """How many records each bucket has."""
        return [os.fstat(file.fileno()).st_size // self.dtype.itemsize for file in self.files]

    def each(self, function: Callable[[np.ndarray], Result], threads: int) -> Iterator[Result]:
        """What a function makes of the records of each bucket."""
        indices = range(len(self.files))
        return scatter(lambda: lambda index: function(self.read(index)), indices, threads)


class Offsets:
    """Ascending runs of byte offsets in an unnamed file.

    They are few, so that those of a stretch are found by bisection.
    """

    def __init__(self, folder: Path):
        self.file = unnamed(folder)
        self.edges = [0, 0]
        self.last = -1

    def extend(self, offsets: np.ndarray) -> None:
        """Append ascending offsets; they lengthen the last run if they follow upon it."""
        if not len(offsets):
            return
        if offsets[0] < self.last:
            self.edges.append(self.edges[-1])
        self.edges[-1] += len(offsets)
        self.last = offsets[-1]
        self.file.write(offsets.astype(np.int64).tobytes())

    def runs(self) -> list[np.ndarray]:
        """Each run, as it lies in the file."""
        if not self.edges[-1]:
            return []
        return np.split(np.memmap(self.file, np.int64, "r"), self.edges[1:-1])

    def within(self, shard: Range) -> np.ndarray:
        """Those that lie in a shard, ascending."""
        return within(self.runs(), shard)


def within(runs: Iterable[np.ndarray], shard: Range) -> np.ndarray:
    """Byte offsets, of ascending runs of them, that lie in a shard, ascending."""
    found = [np.zeros(0, np.int64)]
    for run in runs:
        low = np.searchsorted(run, shard.start)
        high = len(run) if shard.end is None else np.searchsorted(run, shard.end)
        found.append(run[low:high])
    return np.sort(np.concatenate(found))


def repeats(
    records: Callable[[Range], Apart], shards: Sequence[Range], folder: Path, threads: int
) -> Offsets:
    """Where all that stands in shards with a digest that was found before.

    `records`: of a shard, what `apart` gives.
    """
    buckets = Buckets(folder, size_of(shards[0].path), KEYED)
    offsets = Offsets(folder)
    sort(records, shards, threads, buckets=buckets, offsets=offsets)
    for others in buckets.each(later, threads):
        offsets.extend(others["at"])
    return offsets


def sort(
    records: Callable[[Range], Apart],
    shards: Sequence[Range],
    threads: int,
    *,
    buckets: Buckets,
    offsets: Offsets,
) -> None:
    """Put records of what is first in its shard into buckets, and where it repeats into offsets."""
    for first, others in scatter(lambda: records, shards, threads):
        buckets.add(first)
        offsets.extend(others["at"])


def apart(look: Look, shard: Any) -> Apart:
    """Records KEYED of a shard: first occurrences of digests, and later ones."""
    seen: set[bytes] = set()
    first = bytearray()
    others = bytearray()
    for at, digest in look(shard):
        size = len(seen)
        seen.add(digest)
        records = others if len(seen) == size else first
        records += digest
        records += at.to_bytes(8, sys.byteorder)
    return np.frombuffer(first, KEYED), np.frombuffer(others, KEYED)


def later(records: np.ndarray) -> np.ndarray:
    """All records, which are in order, but the first of each digest."""
    order = np.argsort(records["digest"], kind="stable")
    digests = records["digest"][order]
    return records[np.sort(order[1:][digests[1:] == digests[:-1]])]
