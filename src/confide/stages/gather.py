"""Put the shares of a partition together, which several jobs made, on several machines perhaps.

What it writes is, byte for byte, what one job would have written of all points.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from confide.data.partition_files import load_share, write_gathered
from confide.data.partitioning import Part, joined
from confide.errors import InputError
from confide.files.io import read_object


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
    Memory: the largest share, and the names of owners.
    """
    if not originals or not len(originals) == len(redacteds) == len(owners):
        counts = f"{len(originals)}, {len(redacteds)} and {len(owners)}"
        raise InputError(f"expected as many files of each kind, not {counts}", key="originals")
    shares = list(zip(originals, redacteds, owners, strict=True))
    write_gathered(
        joined(parts(shares), {}),
        originals=originals,
        redacteds=redacteds,
        original=original,
        redacted=redacted,
    )


def parts(shares: Sequence[tuple[Path, Path, Path]]) -> Iterator[Part]:
    """Each share, by its files; InputError unless they are all that there are, in their order."""
    of_first = ""  # what it was made of
    for number, (original, redacted, owners) in enumerate(shares, 1):
        part, share = part_of(original, redacted, owners)
        place, _, made_of = share.partition(" ")
        expected = f"{number}-of-{len(shares)}"
        if place != expected:
            message = f"expected the share {expected}"
            raise InputError(message, file=original, key="share", value=place)
        of_first = of_first or made_of
        if made_of != of_first:
            message = f"was not made of what {shares[0][0]} was made of: make both again"
            raise InputError(message, file=original, key="share")
        yield part
        del part  # before the next one is read


def part_of(original: Path, redacted: Path, owners: Path) -> tuple[Part, str]:
    """A share with the names of its owners, and what it is known by."""
    partition, share = load_share(original, redacted)
    said = read_object(owners, "owners", "share")
    if said["share"] != share:
        raise InputError(f"is of another share than {original}", file=owners, key="share")
    names = said["owners"]
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise InputError("expected a list of names", file=owners, key="owners")
    if len(partition.owner) and partition.owner.max() >= len(names):
        raise InputError(f"names {len(names)} owners, and the share has more", file=owners)
    return Part(partition, tuple(names)), share
