"""List later copies of training texts (CRT Algorithm 1), of which the first is kept.

Only keys of points are written.
"""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
from msgspec.json import Decoder

from confide.files import arrays, buckets, columns
from confide.files.buckets import Apart, Offsets, repeats
from confide.files.io import Range, dump_lines, read_lines, write_pieces
from confide.files.rows import Copy, located_rows
from confide.files.shards import scatter, shards
from confide.output.escaping import warn
from confide.specs import DedupSpec
from confide.text.deduplication import apart, digests
from confide.text.digests import digest

WARNING = (
    "dedup: warning: plain SHA-1 digests of short secrets can be guessed by enumeration; "
    "hmac-sha1 is the safe choice"
)


def dedup(spec: DedupSpec, *, points: Path, output: Path, threads: int = 1) -> None:
    """Write one line {"key", "at"} per later copy in the train split, in file order.

    "at" is the byte at which its line begins.

    Guarantees: the key of the digests exists only in memory; no text is written, and digests under
    that key only in files without a name while the stage runs.
    """
    if spec.digest == "sha1":
        warn(WARNING)
    digested = digest(spec.digest)
    ranges = shards(points)
    later = repeats(partial(_records, digested), ranges, output.parent, threads)
    write_pieces(output, scatter(lambda: partial(_keys, later), ranges, threads))


def _records(digested: Callable[[bytes], bytes], shard: Range) -> Apart:
    """Where texts stand first in a shard, and where again, with their digests."""
    try:
        points = columns.points(shard, columns.LONG)
    except columns.Unlike:
        return buckets.apart(partial(_digests, digested), shard)
    return apart(points, points.train, digested)


def _digests(digested: Callable[[bytes], bytes], shard: Range) -> Iterator[tuple[int, bytes]]:
    rows = located_rows(shard, "key", "text", "split")
    return digests(((at, text, split) for at, (_, text, split) in rows), digested)


def _keys(later: Offsets, shard: Range) -> bytes:
    """Lines of the output for a shard of the points; only the lines of copies are looked at."""
    copied = later.within(shard)
    if not len(copied):
        return b""
    try:
        return _written(columns.read(shard), copied - shard.start, copied)
    except columns.Unlike:
        decode = Decoder(Copy).decode
        among = frozenset(copied.tolist())
        lines = ((at, line) for at, line in read_lines(shard) if at in among)
        return dump_lines({"key": decode(line).key, "at": at} for at, line in lines)


def _written(raw: bytes, starts: np.ndarray, at: np.ndarray) -> bytes:
    """Lines of the output for some lines that begin with their keys; Unlike for others."""
    keys = columns.first_strings(raw, starts, b'{"key":"')
    return arrays.lines('{"key":"', keys, '","at":', arrays.digits(at), "}\n")
