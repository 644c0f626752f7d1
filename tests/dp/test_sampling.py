"""Samplers against the distribution that the accountant assumes."""

import numpy as np
import torch
from scipy import stats

from confide.dp.mechanism.randomness import Stream
from confide.dp.mechanism.sampling import by_author, generator, poisson, shuffled


def test_poisson_batch_sizes_are_binomial() -> None:
    source = Stream(0, "private batches")
    sizes = np.array([len(poisson(200, 0.05, source)) for _ in range(4000)])
    expected = stats.binom(200, 0.05)
    edges = np.arange(4, 18)
    observed = np.array(
        [(sizes <= 4).sum(), *[(sizes == k).sum() for k in edges[1:-1]], (sizes >= 17).sum()]
    )
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
    source = generator(0, "public batches")
    lengths = torch.randint(1, 60, (1000,), generator=generator(1, "lengths"))
    first = shuffled(lengths, 10, source)
    second = shuffled(lengths, 10, source)
    padding = sum(float((lengths[batch].max() - lengths[batch]).sum()) for batch in first)
    assert padding < 0.2 * float(lengths.sum())
    assert {frozenset(batch.tolist()) for batch in first}.isdisjoint(
        {frozenset(batch.tolist()) for batch in second}
    )


def test_batches_by_author_are_of_one_author_as_far_as_they_go() -> None:
    counts = [23, 4, 11, 40, 1]
    size = 5
    authors = torch.repeat_interleave(torch.tensor([-1, 0, 3, 7, 9]), torch.tensor(counts))
    authors = authors[torch.randperm(len(authors), generator=generator(2, "order"))]
    source = generator(0, "public batches")
    lengths = torch.randint(1, 60, (len(authors),), generator=generator(1, "lengths"))
    first = by_author(lengths, authors, size, source)
    second = by_author(lengths, authors, size, source)
    for batches in (first, second):
        assert sorted(torch.cat(batches).tolist()) == list(range(79))
        assert sorted(len(batch) for batch in batches) == [
            4,
            *[size] * 15,
        ]  # no more batches than without authors
        pure = [
            batch
            for batch in batches
            if len(batch) == size and len(set(authors[batch].tolist())) == 1
        ]
        assert len(pure) >= sum(count // size for count in counts)
    assert {frozenset(batch.tolist()) for batch in first} != {
        frozenset(batch.tolist()) for batch in second
    }
    order = [int(authors[batch[0]]) for batch in first]
    assert order != sorted(order)
    alone = by_author(lengths, torch.full_like(authors, 3), size, source)
    assert sum(
        float((lengths[batch].max() - lengths[batch]).sum()) for batch in alone
    ) < 0.2 * float(lengths.sum())
