"""What the neighbour test reads of a corpus, from columns: gold secrets, and points like theirs.

It reads all of a corpus to look at a sample. Shards that are not as our stages write them are read
row by row, by the functions of `neighbours.py`, which say what is to be found.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from confide.data.neighbours import (
    Kind,
    Secret,
    draw,
    hash_of,
    keyed_by,
    place_of,
    quotas,
    secrets_of,
)
from confide.data.occurrences import check_gold_apart, planted
from confide.data.partitioning import Raw
from confide.files import arrays, columns
from confide.files.columns import Points, Spans, Unlike
from confide.files.io import Range
from confide.files.rows import read_rows
from confide.files.shards import scatter
from confide.types import SPLITS

SPARE = 1 << 12  # secrets that are held for nothing, so that they seldom have to be looked through


@dataclass(frozen=True)
class Gold:
    """Gold secrets of the training points of a shard, in file order: columns (G,)."""

    points: Points
    spans: Spans
    line: np.ndarray  # the point of each
    kind: np.ndarray  # of kinds
    kinds: list[Kind]

    def counts(self) -> Counter[Kind]:
        """How many there are of each kind."""
        sizes = np.bincount(self.kind, minlength=len(self.kinds)).tolist()
        return Counter({kind: size for kind, size in zip(self.kinds, sizes, strict=True) if size})

    def hashes(self, lot: bytes) -> np.ndarray:
        """(G,) uint64: keyed hashes of their places, by which they are drawn."""
        places = pc.binary_join_element_wise(
            arrays.digits(self.spans.start),
            arrays.digits(self.spans.end),
            self.points.keys_at(self.line),
            arrays.text(" "),
        )
        keyed = keyed_by(lot)
        digests = [place_of(keyed, place) for place in places.cast(pa.binary()).to_pylist()]
        return np.frombuffer(b"".join(digests), ">u8").astype(np.uint64)

    def secrets(self, chosen: np.ndarray) -> Iterator[Secret]:
        """Those at some places."""
        of_points = self.line[chosen]
        return map(
            Secret,
            self.points.keys_at(of_points).to_pylist(),
            self.points.texts_at(of_points).to_pylist(),
            self.spans.start[chosen].tolist(),
            self.spans.end[chosen].tolist(),
            [self.kinds[kind].label for kind in self.kind[chosen].tolist()],
        )


def gold_of(shard: Range, labels: Collection[str] | None) -> Gold:
    """Secrets of these labels, and planted ones; None: all. Unlike where two overlap."""
    points = columns.points(shard)
    gold = points.gold
    line = gold.line
    # neither empty ones nor one that is named twice
    check_gold_apart(points)
    names = gold.names
    number = gold.label
    is_planted = planted(points)[line]
    wanted = np.array([labels is None or name in labels for name in names], bool)
    chosen = points.train[line] & (is_planted | wanted[number])
    kinds = [Kind(*pair) for pair in ((False, name) for name in names)]
    kinds += [Kind(True, name) for name in names]
    kind = number + len(names) * is_planted
    return Gold(points, gold.where(chosen), line[chosen], kind[chosen], kinds)


def chosen(secrets: Iterable[Secret], labels: Collection[str] | None) -> Iterator[Secret]:
    """Secrets of these labels, and planted ones; None: all."""
    return (
        secret
        for secret in secrets
        if labels is None or secret.kind.planted or secret.label in labels
    )


def read(source: Path | Range) -> Iterator[Raw]:
    """Points, file order."""
    return map(Raw._make, read_rows(source, *Raw._fields))


class Found(NamedTuple):
    """Secrets of a shard: how many there are of each kind, and those that may be drawn."""

    counts: Counter[Kind]
    secrets: list[Secret]


# The largest hash of a secret of a kind that may still be drawn; of kinds without one all may be.
Bounds = dict[Kind, int]


def candidates(
    shards: Iterable[Range],
    labels: Collection[str] | None,
    places: int,
    lot: bytes,
    threads: int = 1,
) -> tuple[Counter[Kind], list[Secret]]:
    """How many secrets there are of each kind, and among some of them all that `draw` draws of all
    where it wants what `quotas` allots of so many places.

    One pass, by several processes, each of which is told what was found before it begins a shard.
    Memory: about twice as many secrets as there are places.
    """
    counts: Counter[Kind] = Counter()
    kept: list[Secret] = []
    bounds: Bounds = {}

    def told() -> Iterator[tuple[Range, Bounds]]:
        for shard in shards:
            yield shard, bounds

    for found in scatter(lambda: partial(within, labels, places, lot), told(), threads):
        counts.update(found.counts)
        kept += found.secrets
        most = limits(counts, places)
        if len(kept) > 2 * sum(most.values()) + SPARE:
            kept = draw(kept, most, lot)
            bounds = bounds_of(kept, most, lot)
    return counts, kept


def bounds_of(kept: Iterable[Secret], most: Mapping[Kind, int], lot: bytes) -> Bounds:
    """The largest hash of each kind of which as many are kept as can be drawn."""
    keyed = keyed_by(lot)
    hashes: dict[Kind, list[int]] = defaultdict(list)
    for secret in kept:
        hashes[secret.kind].append(hash_of(keyed, secret))
    return {kind: max(some) for kind, some in hashes.items() if len(some) == most[kind]}


def within(
    labels: Collection[str] | None, places: int, lot: bytes, task: tuple[Range, Bounds]
) -> Found:
    """Secrets of a shard whose hashes are within the bounds, of each kind at most one more than
    there are places.
    """
    shard, bounds = task
    try:
        gold = gold_of(shard, labels)
    except Unlike:
        secrets = list(chosen(secrets_of(read(shard)), labels))
        counts = Counter(secret.kind for secret in secrets)
        return Found(counts, draw(secrets, dict.fromkeys(counts, places + 1), lot))
    may = smallest(gold, gold.hashes(lot), places + 1, bounds)
    return Found(gold.counts(), list(gold.secrets(may)))


def limits(counts: Counter[Kind], places: int) -> dict[Kind, int]:
    """At least as many of each kind as `quotas` allots, however many are still to be counted.

    A kind is allotted most if it has no end and the others have no more than were counted.
    """
    most = {}
    for kind in counts:
        others = {other: count for other, count in counts.items() if other.planted == kind.planted}
        most[kind] = quotas(others | {kind: places + counts.total()}, places)[kind] + 1
    return most


def smallest(gold: Gold, hashes: np.ndarray, most: int, bounds: Bounds) -> np.ndarray:
    """Places of the secrets whose hashes are within the bounds, the smallest of each kind."""
    may = np.zeros(len(hashes), bool)
    for number, kind in enumerate(gold.kinds):
        places = np.flatnonzero(gold.kind == number)
        if kind in bounds:
            places = places[hashes[places] <= np.uint64(bounds[kind])]
        may[places[np.argsort(hashes[places], kind="stable")[:most]]] = True
    return np.flatnonzero(may)


def alike(shards: Iterable[Range], texts: Collection[str], threads: int = 1) -> Iterator[Raw]:
    """Training points with one of some texts, in file order, and others."""
    looked_for = arrays.texts(list(texts))
    for some in scatter(lambda: partial(with_texts, looked_for), shards, threads):
        yield from some


def with_texts(looked_for: pa.StringArray, shard: Range) -> list[Raw]:
    """The same of one shard."""
    try:
        points = columns.points(shard)
    except Unlike:
        return list(read(shard))
    found = arrays.from_booleans(pc.is_in(points.texts, looked_for))
    return list(_raws(points, np.flatnonzero(found & points.train)))


def _raws(points: Points, places: np.ndarray) -> Iterator[Raw]:
    """Points without their gold spans."""
    keys = points.keys_at(places).to_pylist()
    texts = points.texts_at(places).to_pylist()
    domains = points.domain.of_lines(places).to_list()
    owners = points.owner.of_lines(places).to_list()
    for key, text, domain, owner in zip(keys, texts, domains, owners, strict=True):
        yield Raw(key, text, SPLITS[0], domain, owner, [])
