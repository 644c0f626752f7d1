"""Put the shares of a partition together, which several jobs made, on several machines perhaps.

What it writes is, byte for byte, what one job would have written of all points.
"""

from collections.abc import Sequence
from pathlib import Path

from confide.data.gathering import Share, share_of, write_gathered
from confide.data.partition_files import SHARE
from confide.errors import InputError
from confide.files.shards import names_of_shares


def gather(
    *,
    originals: list[Path],
    redacteds: list[Path],
    owners: list[Path],
    original: Path,
    redacted: Path,
) -> None:
    """Write the original and the redacted view of all points.

    originals, redacteds, owners: what `confide partition` wrote of each share, in their order

    InputError if a file is corrupt, if the files of a share do not belong together, or if one share
    is missing, stands there twice, or was made of something else than the others.
    Memory: a few million entries, and the names of owners.
    """
    if not originals or not len(originals) == len(redacteds) == len(owners):
        counts = f"{len(originals)}, {len(redacteds)} and {len(owners)}"
        raise InputError(f"expected as many files of each kind, not {counts}", key="originals")
    files = zip(originals, redacteds, owners, strict=True)
    shares = [share_of(*of_share) for of_share in files]
    check_all(shares)
    write_gathered(shares, original, redacted)


def check_all(shares: Sequence[Share]) -> None:
    """InputError unless they are all shares that there are, in their order, of one whole."""
    _, _, of_first = shares[0].known_by.partition(" ")
    for share, expected in zip(shares, names_of_shares(len(shares)), strict=True):
        place, _, made_of = share.known_by.partition(" ")
        file = share.original.path
        if place != expected:
            message = f"expected the share {expected}"
            raise InputError(message, file=file, key=SHARE, value=place)
        if made_of != of_first:
            message = f"was not made of what {shares[0].original.path} was made of: make both again"
            raise InputError(message, file=file, key=SHARE)
