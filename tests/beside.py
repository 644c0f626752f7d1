"""Findings and copies beside points, in files as the stages write them."""

from itertools import pairwise

from confide.files.io import dump_lines, read_jsonl
from confide.files.shards import shards
from confide.files.stretches import closing


def write(path, rows, points):
    """What is said of some points of a file; rows name the byte of their point, if in shards."""
    ranges = shards(points)
    blocks = [rows]
    if len(ranges) > 1:
        edges = [*(shard.start for shard in ranges), points.stat().st_size]
        blocks = [
            [row for row in rows if start <= row["at"] < end] for start, end in pairwise(edges)
        ]
    parts = zip(blocks, ranges, strict=True)
    path.write_bytes(b"".join(dump_lines(block) + closing(shard) for block, shard in parts))


def read(path):
    """What is said of points, but for the lines that close it."""
    return [row for row in read_jsonl(path) if "complete" not in row]
