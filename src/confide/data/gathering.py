"""Shares of a partition, put together piece by piece: none of them has to fit into memory."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from confide.data.partition_files import (
    BELOW_0,
    LEARNED,
    ORIGINAL,
    OUT_OF_RANGE,
    REDACTED,
    SHARE,
    UNCUT,
    both,
    domains_in,
    require,
    with_domains,
)
from confide.data.vectors import Laid, Stored, laid
from confide.errors import InputError
from confide.files.io import read_object
from confide.types import SPLITS


@dataclass(frozen=True)
class Share:
    """What one job made of its share of the points."""

    original: Stored
    redacted: Stored
    known_by: str  # its number, and what it was made of
    domains: tuple[str, ...]
    owners: tuple[str, ...]
    owners_file: Path


def share_of(original: Path, redacted: Path, owners: Path) -> Share:
    """A share by its files, whose vectors are as long as they have to be.

    InputError if one is corrupt or is of no share, or if they are of different shares.
    """
    first, second = both(original, redacted)
    require(SHARE in first.metadata, original, SHARE, "is no share of the points")
    known_by = first.metadata[SHARE]
    message = f"is of another share than {original}"
    require(second.metadata.get(SHARE) == known_by, redacted, SHARE, message)
    said = read_object(owners, "owners", SHARE)
    require(said[SHARE] == known_by, owners, SHARE, message)
    names = said["owners"]
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise InputError("expected a list of names", file=owners, key="owners")
    domains = domains_in(redacted, second.metadata)
    return Share(first, second, known_by, domains, tuple(names), owners)


def write_gathered(shares: Sequence[Share], original: Path, redacted: Path) -> None:
    """Write the original and the redacted view of all shares, which follow one another.

    Domains and owners are numbered by their first appearance in all of them. InputError where a
    share's vectors do not fit together.
    """
    firsts = [share.original for share in shares]
    seconds = [share.redacted for share in shares]
    more = LEARNED if "learned" in firsts[0].types else {}
    for file in firsts:
        is_alike = ("learned" in file.types) == ("learned" in more)
        require(is_alike, file.path, "learned", "is in some of the files alone")
    domains = numbered(name for share in shares for name in share.domains)
    owners = numbered(name for share in shares for name in share.owners)
    with (
        laid(original, ORIGINAL | more, added(firsts)) as ones,
        laid(redacted, REDACTED | more, added(seconds), with_domains(tuple(domains))) as twos,
    ):
        for target, files in ((ones, firsts), (twos, seconds)):
            target.add(starts=np.zeros(1, np.int64))
            tokens = 0
            for file in files:
                add_points(target, file, tokens)
                tokens += file.lengths["ids"]
        for share in shares:
            for name in ("private", "secret"):
                copy(name, share.original, ones)
            for name in ("private_tokens", "private", "copy"):
                copy(name, share.redacted, twos)
            for name in more:
                copy(name, share.original, ones)
                copy(name, share.redacted, twos)
            for piece in share.redacted.pieces("split"):
                require(piece.max() < len(SPLITS), share.redacted.path, "split", OUT_OF_RANGE)
                twos.add(split=piece)
            places = [domains[name] for name in share.domains]
            renumber("domain", share.redacted, twos, places, named_in=share.redacted.path)
            places = [owners[name] for name in share.owners]
            renumber("owner", share.redacted, twos, places, named_in=share.owners_file)


def numbered(names: Iterable[str]) -> dict[str, int]:
    """A number for each name, by its first appearance."""
    return {name: number for number, name in enumerate(dict.fromkeys(names))}


def added(files: Sequence[Stored]) -> dict[str, int]:
    """How long each vector becomes where those of several files follow one another."""
    lengths = {name: sum(file.lengths[name] for file in files) for name in files[0].lengths}
    lengths["starts"] -= len(files) - 1  # one begins where another ends
    return lengths


def add_points(target: Laid, file: Stored, tokens: int) -> None:
    """Add a view's token ids, and where its points end behind so many tokens of other shares."""
    for piece in file.pieces("ids"):
        require(piece.min() >= 0, file.path, "ids", BELOW_0)
        target.add(ids=piece)
    last = 0
    for number, piece in enumerate(file.pieces("starts")):
        ends = piece[1:] if number == 0 else piece
        first_is_0 = number > 0 or piece[0] == 0
        rises = not (np.diff(ends, prepend=last) < 0).any()
        require(bool(first_is_0 and rises), file.path, "starts", UNCUT)
        last = int(piece[-1])
        target.add(starts=ends + tokens)
    require(last == file.lengths["ids"], file.path, "starts", UNCUT)


def copy(name: str, file: Stored, target: Laid) -> None:
    """Add a vector as it is."""
    for piece in file.pieces(name):
        target.add(**{name: piece})


def renumber(name: str, file: Stored, target: Laid, numbers: list[int], named_in: Path) -> None:
    """Add a vector whose entries are places in `numbers`, or -1 for none, as these numbers.

    named_in: the file that has a name for each place
    """
    table = np.array([*numbers, -1], np.int32)
    for piece in file.pieces(name):
        require(piece.min() >= -1, file.path, name, OUT_OF_RANGE)
        message = f"there are {len(numbers)} names, and the share has more"
        require(piece.max() < len(numbers), named_in, name, message)
        target.add(**{name: table[piece]})
