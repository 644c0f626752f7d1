"""Put the shares of a partition together, which several jobs made, on several machines perhaps.

What it writes is, byte for byte, what one job would have written of all points.
"""

from pathlib import Path

from confide.data.partition_files import load_partition, write_partitions
from confide.data.partitioning import Part, joined
from confide.errors import InputError
from confide.files.io import read_json


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

    InputError if a file is corrupt, or if the files of a share do not belong together.
    Memory: the largest share, and the names of owners.
    """
    if not originals or not len(originals) == len(redacteds) == len(owners):
        counts = f"{len(originals)}, {len(redacteds)} and {len(owners)}"
        raise InputError(f"expected as many files of each kind, not {counts}", key="originals")
    shares = zip(originals, redacteds, owners, strict=True)
    parts = (part_of(*files) for files in shares)
    write_partitions(joined(parts, {}), original, redacted)


def part_of(original: Path, redacted: Path, owners: Path) -> Part:
    """A share, with the names of its owners."""
    partition = load_partition(original, redacted)
    names = read_json(owners)
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise InputError("expected a list of names", file=owners)
    if len(partition.owner) and partition.owner.max() >= len(names):
        raise InputError(f"names {len(names)} owners, and the share has more", file=owners)
    return Part(partition, tuple(names))
