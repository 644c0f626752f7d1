"""Many byte strings, found all at once in a stream of bytes.

Memory hardly grows with their number. Of each string a digest of eight bytes is kept, and a
fingerprint of its head sets one bit of a table. At every place of what is searched the fingerprint
of the next few bytes is looked up in the table, by numpy for many places at once; the few places
that pass are held against digests. Whoever asks has to compare the strings themselves: a digest can
fit by chance.
"""

from array import array
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

STEP = 1 << 15  # places whose fingerprints are made at once: they fit into the cache of a core
WORD = 8  # bytes of a machine word: no head is longer
# strings of fewer bytes are few, and their heads would fit nearly everywhere: each length is looked
# up by itself
SHORT = 5
# 2^64 over the golden ratio: its products spread over the upper bits
FACTOR = np.uint64(0x9E3779B97F4A7C15)
SPARSE = 7  # bits of the table per string, as a power of two: one place in 128 passes by chance
# size of the table in bits, as powers of two
LEAST = 16
MOST = 25


class Match(NamedTuple):
    """Bytes first to last may be the string of this owner."""

    owner: int
    first: int
    last: int


class Heads(NamedTuple):
    """Strings that are looked up by the same number of their first bytes."""

    width: int
    keys: np.ndarray  # sorted heads, each once, as numbers
    starts: np.ndarray  # where the lengths of a head's strings begin in `lengths`
    lengths: np.ndarray
    table: np.ndarray  # bits, eight a byte
    shift: int


class Index:
    """Built once from strings and the number of each one's owner; then searched many times."""

    def __init__(self, strings: Iterable[tuple[bytes, int]]):
        digests = array("q")
        first_bytes = array("Q")
        lengths = array("I")
        owners = array("I")
        for string, owner in strings:
            digests.append(hash(string))
            first_bytes.append(int.from_bytes(string[:WORD], "little"))
            lengths.append(len(string))
            owners.append(owner)
        unsorted = np.frombuffer(digests, np.int64)
        order = np.argsort(unsorted, kind="stable")
        self.digests = unsorted[order]
        self.owners = np.frombuffer(owners, np.uint32)[order]
        del unsorted, digests, owners, order
        self.heads = list(
            heads(np.frombuffer(first_bytes, np.uint64), np.frombuffer(lengths, np.uint32))
        )
        self.longest = max(lengths, default=0)

    def __len__(self) -> int:
        return len(self.digests)

    def matches(self, data: bytes) -> list[Match]:
        """Where strings stand, and every owner of each; by their ends."""
        places = []
        lasts = []
        hashes = array("q")
        for head in self.heads:
            for place, group in candidates(head, data):
                for length in head.lengths[head.starts[group] : head.starts[group + 1]].tolist():
                    last = place + length
                    if last <= len(data):
                        places.append(place)
                        lasts.append(last)
                        hashes.append(hash(data[place:last]))
        digests = np.frombuffer(hashes, np.int64)
        lows = np.searchsorted(self.digests, digests, side="left").tolist()
        highs = np.searchsorted(self.digests, digests, side="right").tolist()
        matches = [
            Match(owner, place, last)
            for place, last, low, high in zip(places, lasts, lows, highs, strict=True)
            for owner in self.owners[low:high].tolist()
        ]
        return sorted(matches, key=lambda match: (match.last, match.first))


def heads(first_bytes: np.ndarray, lengths: np.ndarray) -> Iterator[Heads]:
    """Strings by the width of their heads: the length of the shortest, or a short one's own."""
    short = sorted(set(lengths[lengths < SHORT].tolist()))
    for length in short:
        yield head(first_bytes[lengths == length], lengths[lengths == length], length)
    long = lengths >= SHORT
    if long.any():
        yield head(first_bytes[long], lengths[long], min(WORD, int(lengths[long].min())))


def head(first_bytes: np.ndarray, lengths: np.ndarray, width: int) -> Heads:
    """The table of some strings' heads, and the lengths that go with each."""
    keys = first_bytes & mask(width)
    order = np.lexsort((lengths, keys))
    keys = keys[order]
    lengths = lengths[order]
    new_key = np.append(True, keys[1:] != keys[:-1])
    new_pair = new_key | np.append(True, lengths[1:] != lengths[:-1])
    keys = keys[new_pair]
    lengths = lengths[new_pair]
    new_key = new_key[new_pair]
    starts = np.append(np.flatnonzero(new_key), len(keys))
    keys = keys[new_key]
    size = min(MOST, max(LEAST, len(keys).bit_length() + SPARSE))
    return Heads(
        width,
        keys=keys,
        starts=starts,
        lengths=lengths,
        table=bits((keys * FACTOR) >> np.uint64(64 - size), 1 << size),
        shift=64 - size,
    )


def bits(places: np.ndarray, size: int) -> np.ndarray:
    """A table of so many bits, eight a byte, with those at some places set."""
    table = np.zeros(size, bool)
    table[places] = True
    return np.packbits(table, bitorder="little")


def mask(width: int) -> np.uint64:
    """A word whose first `width` bytes in memory are ones."""
    return np.uint64((1 << (8 * width)) - 1)


def candidates(head: Heads, data: bytes) -> Iterator[tuple[int, int]]:
    """Places where a string's head stands, each with the number of the head."""
    count = len(data) - head.width + 1
    padded = data + bytes(WORD)
    buffer = np.empty(STEP, np.uint64)
    bits = np.empty(STEP, np.uint64)
    for start in range(0, count, STEP):
        size = min(STEP, count - start)
        here = buffer[:size]
        places = bits[:size]
        keys = np.ndarray((size,), "<u8", padded, start, (1,))
        np.bitwise_and(keys, mask(head.width), out=here)
        np.multiply(here, FACTOR, out=here)
        np.right_shift(here, head.shift, out=here)
        np.right_shift(here, 3, out=places)
        octets = head.table[places.view(np.int64)]
        passed = np.flatnonzero(octets != 0)
        passed = passed[(octets[passed] >> (here[passed] & np.uint64(7)).astype(np.uint8)) & 1 != 0]
        if len(passed):
            wanted = keys[passed] & mask(head.width)
            groups = np.searchsorted(head.keys, wanted)
            groups[groups == len(head.keys)] = 0
            fits = head.keys[groups] == wanted
            yield from zip((passed[fits] + start).tolist(), groups[fits].tolist(), strict=True)
