"""Which points an update reads. Public and private streams have generators of their own.

Noisy updates: Poisson sampling, each point of the pool independently with probability q = B /
|pool| (CRT footnote 3). Exact updates: every point once per epoch, in shuffled batches of similar
length (ordinary training; nothing is claimed of it).
"""

import numpy as np
import torch
from torch import Tensor

from confide.dp.mechanism.randomness import Stream, key_of

BUCKET = 8


def generator(seed: int, name: str, device: str = "cpu") -> torch.Generator:
    """An independent generator of torch's per purpose, for what needs no secrecy."""
    return torch.Generator(device).manual_seed(int.from_bytes(key_of(seed, name)[:8], "big") >> 1)


def poisson(size: int, sample_rate: float, source: Stream) -> Tensor:
    """Positions (n,) int64 of a Poisson sample of range(size); may be empty.

    Guarantees: each position is in independently with probability sample_rate, as the accountant
    assumes.
    """
    return torch.nonzero(source.uniform(size) < sample_rate).flatten()


def dealt(size: int, groups: int, source: Stream) -> Tensor:
    """The group (size,) int64 of each of range(size), the same as often as it is asked for.

    Guarantees: each is drawn by itself, uniformly, so that one unit more or less moves no other.
    """
    place = source.place
    chosen = (source.uniform(size) * groups).long()
    source.place = place
    return chosen


def shuffled(lengths: Tensor, batch_size: int, source: torch.Generator) -> list[Tensor]:
    """One epoch of batches over range(len(lengths)), one of them possibly smaller.

    Companions are of similar length. Points are drawn at random into chunks of BUCKET batches; only
    within a chunk does length decide who goes with whom.
    """
    order = torch.randperm(len(lengths), generator=source)
    chunks = (
        chunk[lengths[chunk].argsort(stable=True)] for chunk in order.split(BUCKET * batch_size)
    )
    batches = [batch for chunk in chunks for batch in chunk.split(batch_size)]
    return [batches[i] for i in torch.randperm(len(batches), generator=source)]


def by_appearance(authors: Tensor) -> Tensor:
    """Numbers (n,) of the same authors, in the order in which they first appear."""
    _, first, numbers = np.unique(authors, return_index=True, return_inverse=True)
    return torch.from_numpy(first.argsort().argsort()[numbers])


def by_author(
    lengths: Tensor, authors: Tensor, batch_size: int, source: torch.Generator
) -> list[Tensor]:
    """One epoch of batches, of which every full one that an author has points for is his alone.

    authors (n,): whose each point is, by any number: who has a smaller one decides nothing, since
    numbers count points of other pools, too. What is left of the authors, less than a batch each,
    is cut into batches author by author.
    """
    batches = []
    rest = []
    authors = by_appearance(authors)
    points = torch.randperm(len(authors), generator=source)
    points = points[authors[points].argsort(stable=True)]
    groups = points.split(authors.unique(return_counts=True)[1].tolist())
    for place in torch.randperm(len(groups), generator=source):
        whole, left = groups[place].tensor_split([len(groups[place]) // batch_size * batch_size])
        if len(whole):
            batches += [whole[batch] for batch in shuffled(lengths[whole], batch_size, source)]
        rest.append(left)
    batches += [batch for batch in torch.cat(rest).split(batch_size) if len(batch)]
    return [batches[i] for i in torch.randperm(len(batches), generator=source)]
