"""Find what repeats in a share of the buckets, among digests that several jobs made."""

from pathlib import Path

import numpy as np

from confide.files import shared_digests
from confide.files.buckets import Offsets, later
from confide.files.io import size_of
from confide.files.shards import places_of_share


def repeats(*, points: Path, digests: list[Path], share: str, output: Path) -> None:
    """Write where points begin whose text stands before, in another share.

    digests: what `confide digests` wrote of each share, in their order; share: such as 2-of-8

    InputError if a file is missing, not whole, or of other points or another key.
    Memory: one bucket.
    """
    size = size_of(points)
    parts = shared_digests.together(digests, points=size)
    found = Offsets(output.parent)
    for number in places_of_share(len(parts[0].head.buckets), share):
        records = np.concatenate([part.bucket(number) for part in parts])
        found.extend(later(records)["at"])
    key = parts[0].head.key
    shared_digests.write(output, share=share, points=size, key=key, offsets=found)
