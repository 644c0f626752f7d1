"""Findings and copies beside points, in files as the stages write them."""

from itertools import pairwise

from confide.files.io import dump_lines, read_jsonl
from confide.files.shards import shards
from confide.files.stretches import closing


def write(path, rows, points, by=""):
    """What is said of some points of a file; rows name the byte of their point, if in shards.

    by: digest of the settings of who says it, as the stage that reads it expects them
    """
    ranges = shards(points)
    blocks = [rows]
    if len(ranges) > 1:
        edges = [*(shard.start for shard in ranges), points.stat().st_size]
        blocks = [
            [row for row in rows if start <= row["at"] < end] for start, end in pairwise(edges)
        ]
    pieces = []
    for block, shard in zip(blocks, ranges, strict=True):
        said = dump_lines(block)
        pieces += [said, closing(shard, said, by)]
    path.write_bytes(b"".join(pieces))


def read(path):
    """What is said of points, but for the lines that close it."""
    return [row for row in read_jsonl(path) if "complete" not in row]
