"""List later copies among the points of a share, as jobs on several machines found them.

What all shares write, one after the other, is what `confide dedup` writes.
"""

from collections.abc import Iterator
from pathlib import Path

from confide.data.copies import lines
from confide.files import shared_digests
from confide.files.buckets import within
from confide.files.io import state_of, write_pieces
from confide.files.shards import of_share, shards
from confide.files.stretches import closing


def copies(*, points: Path, digests: Path, repeats: list[Path], share: str, output: Path) -> None:
    """Write one line {"key", "at"} per later copy in the train split, in file order.

    A line closes what is said of each shard.

    digests: what `confide digests` wrote of this share; repeats: what `confide repeats` wrote of
    each share, in their order; share: such as 2-of-8

    InputError if a file is missing, not whole, or of other points or another key.
    """
    state = state_of(points)
    parts = shared_digests.together(repeats, kind="repeats", points=state)
    digested = shared_digests.read(digests, kind="digests", share=share, points=state)
    shared_digests.check_key(digested, parts[0])
    runs = digested.runs() + [run for part in parts for run in part.runs()]

    def pieces() -> Iterator[bytes]:
        for shard in of_share(shards(points), share):
            said = lines(within(runs, shard), shard)
            yield said + closing(shard, said)

    write_pieces(output, pieces())
