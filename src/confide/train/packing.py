"""Points laid end to end and cut into chunks of so many tokens, which training reads (Kabra and
Elenberg 2023, Appendix C.1).

Files of a partition hold points, packed or not: the neighbour test and evaluation are the same for
both, and a training job packs its train split as it reads it. Points of a domain stand in file
order with an end token between two; chunks never mix domains. The paper drops what does not fill a
last chunk, which here is a shorter chunk. A chunk is read like a point, after a begin token and up
to an end token, so that at a cut the model is also taught an end that no text has. What chunks mean
for claims stands in `certify/chunk_claims.py`.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from confide.errors import InputError
from confide.methods import METHODS
from confide.specs import PrivacySpec, RecipeSpec, TrainSpec
from confide.types import SPLITS, Packing, Partition, Step, View, ViewName

MIXED = "a chunk would mix public and private points"
NOTHING = np.zeros(0, np.int64)  # places of a point without tokens
Places = list[
    np.ndarray
]  # of each point: where its tokens stand in the ids of a view; -1: the end token


def pack(spec: TrainSpec, partition: Partition, end: int) -> tuple[Partition, Packing | None]:
    """The partition as a training job reads it, and what its ledger says of its chunks, if any.

    InputError where it cannot be packed.
    Guarantees: chunks of a view that alone is read, and their number, are a function of that view's
    points and their domains.
    """
    if spec.pack is None:
        return partition, None
    steps = METHODS[spec.method].kinds(spec.recipe)
    if (why := obstacle(steps, spec.recipe, spec.privacy)) is not None:
        raise InputError(f"cannot be: {why}", key="pack", value=spec.pack)
    if not partition.private[partition.pool("all")].all():
        message = "needs every training point private (conservative policy: everything): " + MIXED
        raise InputError(message, key="pack", value=spec.pack)
    views: list[ViewName] = sorted({step.view for step in steps}) if spec.redact else ["original"]
    chunks, most = packed(partition, spec.pack, end, views)
    return chunks, Packing(tokens=spec.pack, most=most, views=" ".join(views))


def packed(
    partition: Partition, size: int, end: int, views: Iterable[ViewName]
) -> tuple[Partition, int]:
    """Chunks of `size` tokens, a begin token counted, for the points of the train split; in how
    many a point lies at most.

    The other points follow as they are. Each view is packed by its own tokens: the one with fewer
    chunks of a domain gets empty points after them, and a view that is not among `views` has
    nothing but empty points there.
    """
    train = partition.pool("all")
    rest = np.flatnonzero(partition.split != SPLITS.index("train"))
    places: dict[ViewName, Places] = {"original": [], "redacted": []}
    domains = []
    most = 1
    for domain in np.unique(partition.domain[train]):
        points = train[partition.domain[train] == domain]
        cut = {}
        for name in views:
            view = partition.view(name)
            cut[name] = chunks(view, points, size - 1)
            most = max(most, longest(np.diff(view.starts)[points], size - 1))
        count = max(map(len, cut.values()))
        domains += [domain] * count
        for name in places:
            of_domain = cut.get(name, [])
            places[name] += [*of_domain, *[NOTHING] * (count - len(of_domain))]
    for name in places:
        places[name] += spans(partition.view(name), rest)

    def joined(values: np.ndarray, of_chunks: Any) -> np.ndarray:
        """Values of the chunks, then those of the other points."""
        return np.concatenate([np.full(len(domains), of_chunks, values.dtype), values[rest]])

    first = partition.original
    second = partition.redacted
    packed_partition = replace(
        partition,
        original=laid(first, places["original"], end),
        redacted=laid(second, places["redacted"], end),
        secret=marks(partition.secret, places["original"]),
        private=joined(partition.private, True),
        copy=joined(partition.copy, False),
        split=joined(partition.split, SPLITS.index("train")),
        domain=np.concatenate([np.array(domains, np.int32), partition.domain[rest]]),
        owner=joined(partition.owner, -1),
    )
    return packed_partition, most


def chunks(view: View, points: np.ndarray, size: int) -> Places:
    """Places of the points' tokens with -1 between two points, in pieces of `size`; the end of the
    last is left to training.
    """
    ends = [np.array([-1])] * len(points)
    stream = np.concatenate(
        [part for pair in zip(spans(view, points), ends, strict=True) for part in pair]
    )[:-1]
    return [stream[start : start + size] for start in range(0, max(1, len(stream)), size)]


def spans(view: View, points: np.ndarray) -> Places:
    """Places of each point's tokens."""
    return [np.arange(view.starts[point], view.starts[point + 1]) for point in points]


def longest(lengths: np.ndarray, size: int) -> int:
    """In how many chunks of `size` a point of the stream lies at most, given the lengths (n,) of
    all, at least 1.
    """
    starts = np.cumsum(lengths + 1) - lengths - 1
    some = lengths > 0
    return int(((starts + lengths - 1) // size - starts // size + 1)[some].max(initial=1))


def laid(view: View, places: Places, end: int) -> View:
    """The view's tokens at these places, point by point."""
    flat = np.concatenate([NOTHING, *places])
    starts = np.concatenate([[0], np.cumsum([len(place) for place in places])]).astype(np.int64)
    return View(
        np.append(view.ids, np.int32(end))[flat], starts, marks(view.private, places)
    )  # -1 is what was appended


def marks(mask: np.ndarray, places: Places) -> np.ndarray:
    """A token mask (T,) of the view at these places; end tokens are not marked."""
    return np.append(mask, False)[np.concatenate([NOTHING, *places])]


def obstacle(steps: Iterable[Step], recipe: RecipeSpec, privacy: PrivacySpec | None) -> str | None:
    """Why such steps cannot read chunks; None if they can."""
    if privacy is not None and privacy.unit == "author":
        return "a chunk is of many authors, so noise cannot protect one (privacy.unit: author)"
    if recipe.batching == "author" or any(step.regulariser != "none" for step in steps):
        return "a chunk is of many authors, which batches or regularisers tell apart"
    if any(step.tells_apart for step in steps):
        return "a method that tells the tokens of a point apart needs whole points"
    return None
