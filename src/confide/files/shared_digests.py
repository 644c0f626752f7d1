"""Digests that several jobs made of one file of points, and what they found to be repeated.

A job that takes a share of the points writes its digests, ordered by bucket; a job that takes a
share of the buckets reads these of all shares. Both files begin with a line of JSON: which share of
which points it is, a fingerprint of the key of the digests, which of the two it is, how much
follows, and by which sums it is known to be what was written.
"""

import hashlib
import os
from collections.abc import Iterable
from itertools import chain, pairwise
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from msgspec import DecodeError, Struct
from msgspec.json import decode, encode

from confide.errors import InputError
from confide.files.buckets import KEYED, Buckets, Offsets, blocks
from confide.files.io import readable, write_pieces
from confide.files.shards import names_of_shares

OFFSET = np.dtype(np.int64)
Kind = Literal["digests", "repeats"]


class Head(Struct, forbid_unknown_fields=True):
    """What a file says of itself."""

    kind: Kind
    share: str  # such as 2-of-8
    points: str  # the state of their file
    key: str  # fingerprint of the key, in hexadecimal
    buckets: list[int]  # where each bucket ends, in records
    runs: list[int]  # where each ascending run of offsets ends, in offsets
    sums: list[str]  # `sum_of` each bucket, and of each run


class DigestFile(NamedTuple):
    """A file, and where its numbers begin."""

    path: Path
    head: Head
    begin: int

    def bucket(self, number: int) -> np.ndarray:
        """Records KEYED of one bucket, in the order in which their points stand."""
        first, end = (0, *self.head.buckets)[number : number + 2]
        begin = self.begin + first * KEYED.itemsize
        return self._numbers(KEYED, begin, end - first, self.head.sums[number])

    @property
    def begin_of_runs(self) -> int:
        """The byte at which offsets begin."""
        return self.begin + KEYED.itemsize * (self.head.buckets[-1] if self.head.buckets else 0)

    def runs(self) -> list[np.ndarray]:
        """Ascending runs of byte offsets of points that repeat others."""
        edges = pairwise((0, *self.head.runs))
        sums = self.head.sums[len(self.head.buckets) :]
        return [
            self._numbers(OFFSET, self.begin_of_runs + first * OFFSET.itemsize, end - first, known)
            for (first, end), known in zip(edges, sums, strict=True)
        ]

    def _numbers(self, dtype: np.dtype, begin: int, count: int, known: str) -> np.ndarray:
        """Numbers that begin at a byte; InputError where they are not what was written."""
        if not count:
            return np.zeros(0, dtype)
        numbers = np.memmap(self.path, dtype, "r", begin, (count,))
        if sum_of([numbers.view(np.uint8).data]) != known:
            raise InputError("is damaged: make it again", file=self.path)
        return numbers


def write(
    path: Path,
    *,
    share: str,
    points: str,
    key: str,
    offsets: Offsets,
    buckets: Buckets | None = None,
) -> None:
    """Write a file, whole or not at all: of digests, or without buckets of what repeats.

    points: state of the file of points; key: a fingerprint of it.
    """
    wholes = [] if buckets is None else buckets.wholes()
    ends = np.cumsum([whole.end // KEYED.itemsize for whole in wholes], dtype=int).tolist()
    kind: Kind = "repeats" if buckets is None else "digests"
    runs = offsets.runs()
    ends_of_runs = np.cumsum([len(run) for run in runs], dtype=int).tolist()
    sums = [sum_of(blocks(whole, KEYED)) for whole in wholes]
    sums += [sum_of([run.tobytes()]) for run in runs]
    head = Head(
        kind=kind,
        share=share,
        points=points,
        key=key,
        buckets=ends,
        runs=ends_of_runs,
        sums=sums,
    )
    line = encode(head) + b"\n"
    records = (block for whole in wholes for block in blocks(whole, KEYED))
    write_pieces(path, chain([line], records, (run.tobytes() for run in runs)))


def read(path: Path, *, kind: Kind, share: str, points: str) -> DigestFile:
    """A file of a kind that `write` wrote of a share of a file of points in this state.

    InputError if it is not one, not whole, or another's.
    """
    with readable(path), open(path, "rb") as file:
        line = file.readline()
        size = file.seek(0, os.SEEK_END)
    try:
        head = decode(line, type=Head)
    except (DecodeError, UnicodeDecodeError):
        raise InputError("is no file of digests", file=path) from None
    part = DigestFile(path, head, len(line))
    for ends in (head.buckets, head.runs):
        if ends != sorted(ends) or min(ends, default=0) < 0:
            raise InputError("is no file of digests", file=path)
    if len(head.sums) != len(head.buckets) + len(head.runs):
        raise InputError("is no file of digests", file=path)
    whole = part.begin_of_runs + OFFSET.itemsize * (head.runs[-1] if head.runs else 0)
    if size != whole:
        raise InputError(f"has {size} bytes and not {whole}: it is not whole", file=path)
    if head.kind != kind:
        raise InputError(f"expected a file of {kind}", file=path, key="kind", value=head.kind)
    if head.share != share:
        raise InputError("expected another share", file=path, key="share", value=share)
    if head.points != points:
        raise InputError("belongs to other points: make it again", file=path)
    return part


def sum_of(pieces: Iterable[bytes | memoryview]) -> str:
    """BLAKE2b of some bytes, in hexadecimal."""
    digest = hashlib.blake2b(digest_size=16)
    for piece in pieces:
        digest.update(piece)
    return digest.hexdigest()


def together(paths: list[Path], *, kind: Kind, points: str) -> list[DigestFile]:
    """The files of a kind of all shares, in their order.

    points: state of the file of points. InputError if one is missing or another's, or if they were
    not made with one key.
    """
    if not paths:
        raise InputError("expected a file of each share", key=kind)
    parts = [
        read(path, kind=kind, share=share, points=points)
        for path, share in zip(paths, names_of_shares(len(paths)), strict=True)
    ]
    for part in parts:
        check_key(part, parts[0])
        if len(part.head.buckets) != len(parts[0].head.buckets):
            raise InputError(f"has other buckets than {parts[0].path}", file=part.path)
    return parts


def check_key(part: DigestFile, other: DigestFile) -> None:
    """InputError where equal texts have different digests."""
    if part.head.key != other.head.key:
        message = f"was not made with the key of {other.path}: make both again"
        raise InputError(message, file=part.path)
