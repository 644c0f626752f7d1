"""Which points an update reads. Public and private streams have generators of their own.

Noisy updates: Poisson sampling, each point of the pool independently with probability q = B / |pool| (CRT footnote 3).
Exact updates: the pool in shuffled order, every point once per epoch.
"""

import hashlib

import torch
from torch import Tensor


def generator(seed: int, name: str, device: str = "cpu") -> torch.Generator:
    """An independent generator per purpose: streams of one seed never coincide."""
    digest = hashlib.sha256(f"{seed}/{name}".encode()).digest()
    return torch.Generator(device).manual_seed(int.from_bytes(digest[:8], "big") >> 1)


def poisson(size: int, sample_rate: float, source: torch.Generator) -> Tensor:
    """Positions (n,) int64 of a Poisson sample of range(size); may be empty.

    Guarantees: each position is in independently with probability sample_rate, as the accountant assumes.
    """
    return torch.nonzero(torch.rand(size, generator=source, dtype=torch.float64) < sample_rate).flatten()


def shuffled(size: int, batch_size: int, source: torch.Generator) -> list[Tensor]:
    """One epoch of batches over range(size), the last one possibly smaller."""
    return list(torch.randperm(size, generator=source).split(batch_size))
