"""Authors as the units of noisy updates (user-level DP-SGD, McMahan et al. 2018).

A noisy step draws a Poisson sample of authors, each at the ledger's rate however many points are
his. One who is drawn gives one vector: the mean of the gradients of his points, or of `most` of
them drawn anew each time, clipped as a whole. Every training point needs an author: as units of
their own, points of nobody would make a claim about all points of a person false for whoever wrote
them without being named.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from confide.dp.mechanism.randomness import Stream
from confide.errors import InputError
from confide.specs import TrainSpec
from confide.types import POOLS, Partition, PoolName

TOGETHER = 4  # points of an author up to which his norm costs less than a pass of his own


def protects_authors(spec: TrainSpec) -> bool:
    """Whether noisy steps draw, clip and hide authors instead of points."""
    return spec.privacy is not None and spec.privacy.unit == "author"


def authors_of(partition: Partition) -> dict[PoolName, list[np.ndarray]]:
    """For each pool the points (n,) int64 of each author who has some there.

    InputError if a training point has no author.
    """
    nameless = int((partition.owner[partition.pool("all")] < 0).sum())
    if nameless:
        named = "needs an author of every training point"
        message = f"{named}, and {nameless} have none (planted ones never do)"
        raise InputError(message, key="privacy.unit", value="author")
    by_pool: dict[PoolName, list[np.ndarray]] = {}
    for name in POOLS:
        points = partition.pool(name)
        points = points[np.argsort(partition.owner[points], kind="stable")]
        edges = np.flatnonzero(np.diff(partition.owner[points])) + 1
        by_pool[name] = np.split(points, edges) if len(points) else []
    return by_pool


def drawn(
    authors: Sequence[np.ndarray], chosen: Tensor, most: int | None, source: Stream
) -> list[np.ndarray]:
    """The points that each of the chosen authors (n,) gives.

    That is all, or `most` of them, uniform without replacement.
    Guarantees: what an author gives depends on his points and on randomness that nobody sees, never
    on those of others.
    """
    points_of_each = []
    for points in (authors[author] for author in chosen.tolist()):
        if most is not None and len(points) > most:
            points = points[source.uniform(len(points)).argsort()[:most].numpy()]
        points_of_each.append(points)
    return points_of_each


def packed(
    authors: Sequence[np.ndarray],
    lengths: np.ndarray,
    size: int | Callable[[int], int],
    part: slice = slice(None),
) -> Iterator[tuple[np.ndarray, Tensor]]:
    """Points (B,) of whole authors, and whose they are (B,), numbered from 0.

    They are at most `size`, unless one author has more: a number of points, or what makes one of
    the tokens of the longest of them, begin token included. Authors of few points come together,
    those with as many points of similar lengths (N,), since the clipper pads both. Others come
    alone: the norm of k points of length L without a pass of their own takes the inner products of
    k L positions. part: of these authors, in that order.
    """
    fits = size if callable(size) else lambda _: size
    waiting: list[np.ndarray] = []
    longest = 0
    for points in sorted(authors, key=lambda points: (len(points), int(lengths[points].max())))[
        part
    ]:
        width = int(lengths[points].max()) + 1
        together = sum(map(len, waiting)) + len(points)
        if waiting and (len(points) > TOGETHER or together > fits(max(longest, width))):
            yield _joined(waiting)
            waiting = []
            longest = 0
        waiting.append(points)
        longest = max(longest, width)
    if waiting:
        yield _joined(waiting)


def _joined(authors: list[np.ndarray]) -> tuple[np.ndarray, Tensor]:
    sizes = torch.tensor([len(points) for points in authors])
    return np.concatenate(authors), torch.arange(len(authors)).repeat_interleave(sizes)
