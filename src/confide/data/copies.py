"""Which points are later copies of others: digests of a shard's texts, and the lines that name it.

Both are the same whether one job looks for copies or several share the search.
"""

from collections.abc import Callable, Iterator

import numpy as np
from msgspec.json import Decoder

from confide.files import arrays, buckets, columns
from confide.files.buckets import Apart
from confide.files.io import Range, dump_lines, read_lines
from confide.files.rows import Copy, located_rows
from confide.text.deduplication import apart, digests

WARNING = (
    "dedup: warning: plain SHA-1 digests of short secrets can be guessed by enumeration; "
    "hmac-sha1 is the safe choice"
)


def records(digested: Callable[[bytes], bytes], shard: Range) -> Apart:
    """Where texts stand first in a shard, and where again, with their digests."""
    try:
        points = columns.points(shard, columns.LONG)
    except columns.Unlike:
        return buckets.apart(lambda part: _digests(digested, part), shard)
    return apart(points, points.train, digested)


def _digests(digested: Callable[[bytes], bytes], shard: Range) -> Iterator[tuple[int, bytes]]:
    rows = located_rows(shard, "key", "text", "split", "answers")
    return digests(((at, text, split, turns) for at, (_, text, split, turns) in rows), digested)


def lines(copied: np.ndarray, shard: Range) -> bytes:
    """One line {"key", "at"} for each copy (K,) of a shard, by the bytes at which they begin.

    Only the lines of copies are looked at.
    """
    if not len(copied):
        return b""
    try:
        return _written(columns.read(shard), copied - shard.start, copied)
    except columns.Unlike:
        decode = Decoder(Copy).decode
        among = frozenset(copied.tolist())
        found = ((at, line) for at, line in read_lines(shard) if at in among)
        return dump_lines({"key": decode(line).key, "at": at} for at, line in found)


def _written(raw: bytes, starts: np.ndarray, at: np.ndarray) -> bytes:
    """Lines of the output for some lines that begin with their keys; Unlike for others."""
    keys = columns.first_strings(raw, starts, b'{"key":"')
    return arrays.lines('{"key":"', keys, '","at":', arrays.digits(at), "}\n")
