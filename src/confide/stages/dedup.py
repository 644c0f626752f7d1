"""List later copies of training texts (CRT Algorithm 1), of which the first is kept.

Only keys of points are written.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

from confide.data.copies import WARNING, lines, records, records_at
from confide.files.buckets import (
    KEYED,
    Buckets,
    Offsets,
    later_places,
    places_of_alike,
    sort,
)
from confide.files.io import Range, size_of, write_pieces
from confide.files.shards import scatter, shards
from confide.files.stretches import closing
from confide.output.escaping import warn
from confide.specs import DedupSpec
from confide.text import fingerprints
from confide.text.digests import digest

# Shards that are put together for the few suspects in them: how many shards, and suspects, at most.
SHARDS = 8
FEW = 32768


def dedup(spec: DedupSpec, *, points: Path, output: Path, threads: int = 1) -> None:
    """Write one line {"key", "at"} per later copy in the train split, in file order.

    "at" is the byte at which its line begins. A line closes what is said of each shard.

    Guarantees: the key of the digests exists only in memory; no text is written, and digests under
    that key only in files without a name while the stage runs.
    """
    if spec.digest == "sha1":
        warn(WARNING)
    ranges = shards(points)
    later = later_copies(spec, ranges, output.parent, threads)
    write_pieces(output, scatter(lambda: partial(later_lines, later), ranges, threads))


def later_copies(spec: DedupSpec, ranges: Sequence[Range], folder: Path, threads: int) -> Offsets:
    """Where later copies begin.

    SHA-1 decides, which is slow: it is asked about texts alone that have a fingerprint in common
    with one of another shard.
    """
    later = Offsets(folder)
    size = size_of(ranges[0].path)
    alike = Buckets(folder, size, KEYED)
    sort(
        partial(records, fingerprints.fresh(lanes=2)), ranges, threads, buckets=alike, offsets=later
    )
    suspects = Offsets(folder)
    suspects.gather(alike.each(places_of_alike, threads))
    digested = fingerprints.each(digest(spec.digest))
    same = Buckets(folder, size, KEYED)
    of_suspects = partial(records_at, digested, suspects)
    parts = adjoining(ranges, suspects)
    sort(of_suspects, parts, threads, buckets=same, offsets=later)
    later.gather(same.each(later_places, threads))
    return later


def adjoining(ranges: Iterable[Range], suspects: Offsets) -> list[Range]:
    """Up to SHARDS shards that adjoin put together, where no more than FEW suspects lie in them.

    Reading lines as columns takes a while, however few they are.
    """
    parts: list[Range] = []
    shards_of_part = suspects_of_part = 0
    for shard in ranges:
        here = len(suspects.within(shard))
        if parts and shards_of_part < SHARDS and suspects_of_part + here <= FEW:
            parts[-1] = parts[-1]._replace(end=shard.end)
        else:
            parts.append(shard)
            shards_of_part = suspects_of_part = 0
        shards_of_part += 1
        suspects_of_part += here
    return parts


def later_lines(later: Offsets, shard: Range) -> bytes:
    """Lines of the output for a shard of the points."""
    said = lines(later.within(shard), shard)
    return said + closing(shard, said)
