"""List later copies of training texts (CRT Algorithm 1), of which the first is kept.

Only keys of points are written.
"""

from functools import partial
from pathlib import Path

from confide.data.copies import WARNING, lines, records
from confide.files.buckets import Offsets, repeats
from confide.files.io import Range, write_pieces
from confide.files.shards import scatter, shards
from confide.files.stretches import closing
from confide.output.escaping import warn
from confide.specs import DedupSpec
from confide.text.digests import digest


def dedup(spec: DedupSpec, *, points: Path, output: Path, threads: int = 1) -> None:
    """Write one line {"key", "at"} per later copy in the train split, in file order.

    "at" is the byte at which its line begins. A line closes what is said of each shard.

    Guarantees: the key of the digests exists only in memory; no text is written, and digests under
    that key only in files without a name while the stage runs.
    """
    if spec.digest == "sha1":
        warn(WARNING)
    ranges = shards(points)
    later = repeats(partial(records, digest(spec.digest)), ranges, output.parent, threads)
    write_pieces(output, scatter(lambda: partial(later_lines, later), ranges, threads))


def later_lines(later: Offsets, shard: Range) -> bytes:
    """Lines of the output for a shard of the points."""
    said = lines(later.within(shard), shard)
    return said + closing(shard, said)
