"""Samplers against the distribution that the accountant assumes."""

import numpy as np
import torch
from scipy import stats

from confide.dp.randomness import Stream
from confide.dp.sampling import generator, poisson, shuffled


def test_poisson_batch_sizes_are_binomial() -> None:
    source = Stream(0, "private batches")
    sizes = np.array([len(poisson(200, 0.05, source)) for _ in range(4000)])
    expected = stats.binom(200, 0.05)
    edges = np.arange(4, 18)
    observed = np.array([(sizes <= 4).sum(), *[(sizes == k).sum() for k in edges[1:-1]], (sizes >= 17).sum()])
    weights = np.array([expected.cdf(4), *[expected.pmf(k) for k in edges[1:-1]], expected.sf(16)])
    assert stats.chisquare(observed, weights / weights.sum() * len(sizes)).pvalue > 1e-3


def test_poisson_positions_are_uniform_and_independent() -> None:
    source = Stream(1, "private batches")
    hits = torch.zeros(50, dtype=torch.float64)
    together = 0
    for _ in range(4000):
        chosen = poisson(50, 0.1, source)
        hits[chosen] += 1
        together += int((chosen == 3).any() and (chosen == 4).any())
    assert stats.chisquare(hits.numpy()).pvalue > 1e-3
    assert abs(together / 4000 - 0.01) < 4 * np.sqrt(0.01 * 0.99 / 4000)


def test_poisson_may_be_empty() -> None:
    assert len(poisson(10, 1e-9, Stream(0, "x"))) == 0
    assert len(poisson(10, 1.0, Stream(0, "x"))) == 10


def test_epoch_holds_every_point_once() -> None:
    batches = shuffled(torch.arange(23) % 7, 5, generator(0, "public batches"))
    assert sorted(len(batch) for batch in batches) == [3, 5, 5, 5, 5]
    assert sorted(torch.cat(batches).tolist()) == list(range(23))


def test_companions_are_of_similar_length_but_change_from_epoch_to_epoch() -> None:
    source, lengths = generator(0, "public batches"), torch.randint(1, 60, (1000,), generator=generator(1, "lengths"))
    first, second = shuffled(lengths, 10, source), shuffled(lengths, 10, source)
    padding = sum(float((lengths[batch].max() - lengths[batch]).sum()) for batch in first)
    assert padding < 0.2 * float(lengths.sum())
    assert {frozenset(batch.tolist()) for batch in first}.isdisjoint({frozenset(batch.tolist()) for batch in second})
