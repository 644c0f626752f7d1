"""Finding what is alike in files of any size.

Digests go to buckets by their first bytes, so that like ones meet in one. A bucket that is too
large for memory is divided by the bytes that follow.

A bucket is a file without a name, which vanishes with the process, however that ends; on NFS what a
crashed machine had open may stay. Of what is alike in a shard only one goes to a bucket: no bucket
grows with how often the same thing stands in the corpus.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow.compute as pc

from confide.files import arrays
from confide.files.io import Range
from confide.files.shards import Result, scatter
from confide.files.unnamed import Unnamed

DIGEST = 20  # bytes
# Digests are of equal length, so the zeros that S leaves out do not matter.
KEYED = np.dtype([("digest", f"S{DIGEST}"), ("at", np.int64)])
SHARE = 64 << 20  # bytes of the corpus to a bucket
MOST = 128  # buckets: each is an open file
LARGEST = 32 << 20  # bytes of records that are looked at together

# Records KEYED of what is first in a shard, and at which bytes what repeats it begins.
Apart = tuple[np.ndarray, np.ndarray]


def keyed(digests: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Records KEYED of some digests (N,), and of the bytes (N,) at which something begins."""
    # bytes that are no strings, which numpy moves faster
    records = np.empty(len(at), [("digest", f"V{DIGEST}"), ("at", np.int64)])
    records["digest"] = digests.view(f"V{DIGEST}")
    records["at"] = at
    return records.view(KEYED)


class Part(NamedTuple):
    """Records that are looked at together: bytes of a file."""

    file: int  # its descriptor
    start: int
    end: int


class Buckets:
    """Records with a field "digest", in unnamed files, as many as a corpus of this size needs."""

    def __init__(self, folder: Path, size: int, dtype: np.dtype, *, multiple: int = 1):
        """multiple: the number of buckets is rounded up to a multiple of it."""
        needed = min(1 + size // SHARE, MOST)
        self.dtype = dtype
        self.files = [Unnamed(folder) for _ in range(-(-needed // multiple) * multiple)]
        self.divided = Unnamed(folder)

    def add(self, records: np.ndarray) -> None:
        """Append each record to the bucket of its digest."""
        parts = grouped(records, 0, len(self.files))
        for file, part in zip(self.files, parts, strict=True):
            file.append(part.tobytes())

    def wholes(self) -> list[Part]:
        """Each bucket."""
        return [Part(file.fileno(), 0, file.size) for file in self.files]

    def each(self, function: Callable[[np.ndarray], Result], threads: int) -> Iterator[Result]:
        """What a function makes of records, those of a digest together, a part of them at a time.

        No part is larger than LARGEST, but for records of one digest.
        """
        return scatter(lambda: lambda part: function(self.read(part)), self.parts(threads), threads)

    def read(self, part: Part) -> np.ndarray:
        """Records of a part, in the order in which they came."""
        return np.frombuffer(b"".join(blocks(part, self.dtype)), self.dtype)

    def parts(self, threads: int) -> list[Part]:
        """All records in parts: a bucket each, or several of a large one."""
        buckets = self.wholes()
        large = [bucket for bucket in buckets if bucket.end > LARGEST]
        starts = np.cumsum([0, *(bucket.end for bucket in large)]).tolist()
        small = [[bucket] for bucket in buckets if bucket.end <= LARGEST]
        divided = scatter(
            lambda: lambda place: self.divide(*place), zip(large, starts, strict=False), threads
        )
        return [part for parts in (*small, *divided) for part in parts]

    def divide(self, bucket: Part, start: int) -> list[Part]:
        """A bucket in parts of about half of LARGEST, which are written from a byte on."""
        count = 1 + 2 * bucket.end // LARGEST
        sizes = np.zeros(count, np.int64)
        for block in blocks(bucket, self.dtype):
            records = np.frombuffer(block, self.dtype)
            sizes += np.bincount(group_numbers(records, 1, count), minlength=count)
        edges = (start + self.dtype.itemsize * np.cumsum(np.append(0, sizes))).tolist()
        places = edges[:-1]
        for block in blocks(bucket, self.dtype):
            for number, group in enumerate(grouped(np.frombuffer(block, self.dtype), 1, count)):
                places[number] = self.divided.put(group.tobytes(), places[number])
        return [Part(self.divided.fileno(), *edge) for edge in pairwise(edges)]


def blocks(part: Part, dtype: np.dtype) -> Iterator[bytes]:
    """Records of a part as bytes, some at a time."""
    size = max(1, LARGEST // dtype.itemsize) * dtype.itemsize
    for place in range(part.start, part.end, size):
        yield os.pread(part.file, min(size, part.end - place), place)


def group_numbers(records: np.ndarray, level: int, count: int) -> np.ndarray:
    """(N,) which of `count` groups each record is in, by the four bytes of its digest at `level`.

    A bucket that is divided takes another level than the one by which it was filled.
    """
    words = np.ascontiguousarray(records["digest"]).view(np.uint32)
    return words[level :: DIGEST // 4] % count


def grouped(records: np.ndarray, level: int, count: int) -> list[np.ndarray]:
    """Records by their group, each in the order in which they came."""
    if count == 1:
        return [records]
    group = group_numbers(records, level, count).astype(np.uint16)  # which numpy sorts faster
    order = np.argsort(group, kind="stable")
    return np.split(records[order], np.searchsorted(group[order], range(1, count)))


class Offsets:
    """Ascending runs of byte offsets in an unnamed file.

    They are few, so that those of a stretch are found by bisection.
    """

    def __init__(self, folder: Path):
        self.file = Unnamed(folder)
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
        self.file.append(offsets.astype(np.int64).tobytes())

    def runs(self) -> list[np.ndarray]:
        """Each run, as it lies in the file."""
        if not self.edges[-1]:
            return []
        return np.split(np.memmap(self.file.file, np.int64, "r"), self.edges[1:-1])

    def gather(self, pieces: Iterable[np.ndarray]) -> None:
        """Append offsets that come in no order, in few runs."""
        waiting: list[np.ndarray] = []
        for piece in pieces:
            waiting.append(piece)
            if sum(offsets.nbytes for offsets in waiting) > LARGEST:
                self.extend(np.sort(np.concatenate(waiting)))
                waiting.clear()
        self.extend(np.sort(np.concatenate([np.zeros(0, np.int64), *waiting])))

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
        offsets.extend(others)


def later_places(records: np.ndarray) -> np.ndarray:
    """Where all records, which are in order, stand but the first of each digest."""
    return later(records)["at"]


def places_of_alike(records: np.ndarray) -> np.ndarray:
    """Where all records stand whose digest begins with the same eight bytes as that of another."""
    words = np.ndarray(len(records), np.int64, records, 0, records.strides)
    ascending = np.sort(words)
    repeated = ascending[1:][ascending[1:] == ascending[:-1]]
    is_repeated = pc.is_in(arrays.integers(words), arrays.integers(repeated))
    return records["at"][arrays.from_booleans(is_repeated)]


def later(records: np.ndarray) -> np.ndarray:
    """All records but the first of each digest, in their order."""
    digests, _ = arrays.numbered(records["digest"])
    is_first = np.diff(np.maximum.accumulate(digests), prepend=-1) > 0
    return records[~is_first]
