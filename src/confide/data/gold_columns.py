"""What the neighbour test reads of a corpus, from columns: gold secrets, and points like theirs.

It reads all of a corpus to look at a sample, first for the hashes by which secrets are drawn, then
for the texts of those that are. Shards that are not as our stages write them are read
row by row, by the functions of `neighbours.py`, which say what is to be found.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from confide.data.neighbours import Kind, Secret, hash_of, keyed_by, place_of, secrets_of
from confide.data.occurrences import planted
from confide.data.partitioning import Raw
from confide.files import arrays, columns
from confide.files.columns import Points, Spans, Unlike
from confide.files.io import Range
from confide.files.rows import read_rows
from confide.files.shards import scatter
from confide.types import SPLITS


@dataclass(frozen=True)
class Gold:
    """Gold secrets of the training points of a shard, in file order: columns (G,)."""

    points: Points
    spans: Spans
    line: np.ndarray  # the point of each
    kind: np.ndarray  # of kinds
    kinds: list[Kind]

    def hashes(self, seed: int) -> np.ndarray:
        """(G,) uint64: keyed hashes of their places, by which they are drawn."""
        places = pc.binary_join_element_wise(
            arrays.digits(self.spans.start),
            arrays.digits(self.spans.end),
            self.points.keys.take(arrays.integers(self.line)),
            arrays.text(" "),
        )
        keyed = keyed_by(seed)
        digests = [place_of(keyed, place) for place in places.cast(pa.binary()).to_pylist()]
        return np.frombuffer(b"".join(digests), ">u8").astype(np.uint64)

    def secrets(self, chosen: np.ndarray) -> Iterator[Secret]:
        """Those at some places."""
        of_points = arrays.integers(self.line[chosen])
        return map(
            Secret,
            self.points.keys.take(of_points).to_pylist(),
            self.points.texts.take(of_points).to_pylist(),
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
    same_line = line[1:] == line[:-1]
    if (gold.start >= gold.end).any() or (same_line & (gold.start[1:] < gold.end[:-1])).any():
        raise Unlike
    names = gold.names
    number = gold.label
    is_planted = planted(points)[line]
    wanted = np.array([labels is None or name in labels for name in names], bool)
    chosen = points.train[line] & (is_planted | wanted[number])
    kinds = [Kind(*pair) for pair in ((False, name) for name in names)]
    kinds += [Kind(True, name) for name in names]
    kind = number + len(names) * is_planted
    return Gold(points, gold.where(chosen), line[chosen], kind[chosen], kinds)


@dataclass
class Census:
    """How many secrets there are of each kind, and the least hashes of their places."""

    most: int  # hashes that are kept of each kind
    counts: Counter[Kind] = field(default_factory=Counter)
    least: dict[Kind, np.ndarray] = field(default_factory=dict)  # uint64, ascending
    # by shard, of which kinds it has secrets, and the least of their hashes
    first: list[dict[Kind, np.uint64]] = field(default_factory=list)

    def add(self, hashes: Mapping[Kind, np.ndarray]) -> None:
        """Count a shard, of which these are the hashes."""
        self.counts.update({kind: len(some) for kind, some in hashes.items()})
        self.first.append({kind: some.min() for kind, some in hashes.items()})
        for kind, some in hashes.items():
            known = self.least.get(kind, np.zeros(0, np.uint64))
            self.least[kind] = np.sort(np.concatenate([known, some]))[: self.most]

    def limits(self, wanted: Mapping[Kind, int]) -> dict[Kind, np.uint64]:
        """The largest hash of those that `draw` draws, of each kind of which some are wanted."""
        return {kind: self.least[kind][count - 1] for kind, count in wanted.items() if count}

    def shards(self, shards: Sequence[Range], limits: Mapping[Kind, np.uint64]) -> list[Range]:
        """Those that have a secret whose hash is within the limits."""
        return [
            shard
            for shard, first in zip(shards, self.first, strict=True)
            if any(least <= limits[kind] for kind, least in first.items() if kind in limits)
        ]


def census(
    shards: Sequence[Range], labels: Collection[str] | None, most: int, seed: int, threads: int
) -> Census:
    """Count the secrets of all shards, of which at most so many of a kind are to be drawn."""
    found = Census(most)
    for hashes in scatter(lambda: partial(hashes_in, labels, seed), shards, threads):
        found.add(hashes)
    return found


def hashes_in(labels: Collection[str] | None, seed: int, shard: Range) -> dict[Kind, np.ndarray]:
    """Hashes, uint64, of the secrets of each kind that a shard has."""
    try:
        gold = gold_of(shard, labels)
    except Unlike:
        keyed = keyed_by(seed)
        by_kind: dict[Kind, list[int]] = defaultdict(list)
        for secret in chosen(secrets_of(read(shard)), labels):
            by_kind[secret.kind].append(hash_of(keyed, secret))
        return {kind: np.array(some, np.uint64) for kind, some in by_kind.items()}
    hashes = gold.hashes(seed)
    each = {kind: hashes[gold.kind == number] for number, kind in enumerate(gold.kinds)}
    return {kind: some for kind, some in each.items() if len(some)}


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


def likely(
    shards: Sequence[Range],
    labels: Collection[str] | None,
    limits: Mapping[Kind, np.uint64],
    seed: int,
    threads: int,
) -> Iterator[Secret]:
    """Secrets in file order, among them all whose hashes are within the limit of their kind."""
    for some in scatter(lambda: partial(within, labels, limits, seed), shards, threads):
        yield from some


def within(
    labels: Collection[str] | None, limits: Mapping[Kind, np.uint64], seed: int, shard: Range
) -> list[Secret]:
    """The same of one shard; of one that is not as our stages write them, all of its secrets."""
    try:
        gold = gold_of(shard, labels)
    except Unlike:
        return list(chosen(secrets_of(read(shard)), labels))
    hashes = gold.hashes(seed)
    may = np.zeros(len(hashes), bool)
    for number, kind in enumerate(gold.kinds):
        if kind in limits:
            may |= (gold.kind == number) & (hashes <= limits[kind])
    return list(gold.secrets(np.flatnonzero(may)))


def alike(shards: Sequence[Range], texts: Collection[str], threads: int) -> Iterator[Raw]:
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
    places = arrays.integers(np.flatnonzero(found & points.train))
    return list(_raws(points, places))


def _raws(points: Points, places: pa.Int64Array) -> Iterator[Raw]:
    """Points without their gold spans."""
    keys = points.keys.take(places).to_pylist()
    texts = points.texts.take(places).to_pylist()
    which = arrays.from_integers(places)
    domains = points.domain.of_lines(which).to_list()
    owners = points.owner.of_lines(which).to_list()
    for key, text, domain, owner in zip(keys, texts, domains, owners, strict=True):
        yield Raw(key, text, SPLITS[0], domain, owner, [])
