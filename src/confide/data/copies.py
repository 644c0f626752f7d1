"""Which points are later copies of others: digests of a shard's texts, and the lines that name it.

Both are the same whether one job looks for copies or several share the search.
"""

import sys
from collections.abc import Container

import numpy as np
import pyarrow as pa
from msgspec.json import Decoder

from confide.files import arrays, columns
from confide.files.buckets import Apart, Offsets
from confide.files.io import Range, dump_lines, read_lines
from confide.files.rows import Copy, located_rows
from confide.text.deduplication import apart, can_be_copy, content, contents_apart
from confide.text.fingerprints import Fingerprints

WARNING = (
    "dedup: warning: plain SHA-1 digests of short secrets can be guessed by enumeration; "
    "hmac-sha1 is the safe choice"
)


def records(fingerprints: Fingerprints, shard: Range) -> Apart:
    """Where texts stand first in a shard, and where again, with their fingerprints."""
    try:
        points = columns.points(shard, columns.LONG)
    except columns.Unlike:
        return _by_rows(fingerprints, shard, range(shard.start, sys.maxsize))
    return apart(points, points.train, fingerprints)


def records_at(fingerprints: Fingerprints, suspects: Offsets, shard: Range) -> Apart:
    """The same of those of its points that begin at some bytes and can be copies."""
    at = suspects.within(shard)
    try:
        points = columns.points_at(shard.path, at)
    except columns.Unlike:
        return _by_rows(fingerprints, shard, frozenset(at.tolist()))
    return contents_apart(at, points.texts.cast(pa.binary()), fingerprints)


def _by_rows(fingerprints: Fingerprints, shard: Range, chosen: Container[int]) -> Apart:
    """The same of points that begin at chosen bytes, row by row."""
    found = {
        at: content(text, answers)
        for at, (_, text, split, answers) in located_rows(shard, "key", "text", "split", "answers")
        if at in chosen and can_be_copy(text, split)
    }
    at = np.fromiter(found, np.int64, len(found))
    return contents_apart(at, arrays.binaries(list(found.values())), fingerprints)


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
    keys = columns.opening_strings(raw, starts, b'{"key":"')
    return arrays.lines(keys, '","at":', arrays.digits(at), "}\n")
