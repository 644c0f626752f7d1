"""Find what repeats in a share of the buckets, among digests that several jobs made."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from confide.files import shared_digests
from confide.files.buckets import KEYED, Buckets, Offsets, later_places
from confide.files.io import state_of
from confide.files.shards import places_of_share
from confide.files.shared_digests import DigestFile


def repeats(*, points: Path, digests: list[Path], share: str, output: Path) -> None:
    """Write where points begin whose text stands before, in another share.

    digests: what `confide digests` wrote of each share, in their order; share: such as 2-of-8

    InputError if a file is missing, not whole, or of other points or another key.
    Memory: part of a bucket.
    """
    state = state_of(points)
    parts = shared_digests.together(digests, kind="digests", points=state)
    numbers = places_of_share(len(parts[0].head.buckets), share)
    offsets = Offsets(output.parent)
    offsets.gather(places for number in numbers for places in again(parts, number, output.parent))
    key = parts[0].head.key
    shared_digests.write(output, share=share, points=state, key=key, offsets=offsets)


def again(parts: list[DigestFile], number: int, folder: Path) -> Iterator[np.ndarray]:
    """Where points begin whose digests, of one bucket, stand before."""
    bucket = Buckets(folder, 0, KEYED)
    for part in parts:
        bucket.add(part.bucket(number))
    yield from bucket.each(later_places, threads=1)
