"""Tokenize the points and part them into public and private (CRT Algorithm 1, D_pub and D_pri; A.6-4 and A.6-5).

Points, copies and spans are read side by side; `confide.partitioning` says what becomes of each point.
"""

from pathlib import Path

from confide.data import Join, read_rows, write_partition
from confide.partitioning import Raw, build, rows
from confide.specs import PartitionSpec
from confide.tokenizer import load


def partition(
    spec: PartitionSpec, *, points: Path, copies: Path, spans: Path, tokenizer: Path, original: Path, redacted: Path
) -> None:
    """Write the original and the redacted view; InputError if copies or spans do not belong to the points.

    Guarantees: the redacted file depends on the redacted texts alone. Masking, in the raw text, a secret that the
    policy finds leaves it the same byte for byte; one that only the conservative policy notices changes one point,
    which is private on both sides.
    """
    joined = rows(spec, read_rows(points, *Raw._fields), Join(copies), Join(spans), points)
    write_partition(build(load(tokenizer), joined), original, redacted)
