"""Points with their authors by number, as the partition numbers them.

That is in the order in which they first stand in points.jsonl. Names are needed to match planted
canaries with their authors, and are never written.
"""

from pathlib import Path
from typing import NamedTuple

from confide.files.rows import read_rows


class Sample(NamedTuple):
    """A point as the attacks on authors read it."""

    text: str
    split: str
    author: int  # -1: none
    canary: int | None


def read_samples(points: Path) -> tuple[list[Sample], dict[str, int]]:
    """All points in order, and the number of each author by name.

    InputError where a field is missing.
    """
    numbers: dict[str, int] = {}
    samples = []
    for text, split, owner, canary in read_rows(points, "text", "split", "owner", "canary"):
        author = -1 if owner is None else numbers.setdefault(owner, len(numbers))
        samples.append(Sample(text, split, author, canary))
    return samples, numbers
