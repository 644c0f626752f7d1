"""Authors by number, as the partition numbers them: in the order in which they first stand in
points.jsonl.

Names are needed to match planted canaries with their authors, and are never written.
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
    """All points in order, and the number of each author by name; InputError where a field is
    missing.
    """
    numbers: dict[str | None, int] = {None: -1}
    samples = [
        Sample(text, split, numbers.setdefault(owner, len(numbers) - 1), canary)
        for text, split, owner, canary in read_rows(points, "text", "split", "owner", "canary")
    ]
    return samples, {name: number for name, number in numbers.items() if name is not None}
