"""How alike two collections of texts are, by their words alone.

`divergence` is the Jensen-Shannon divergence of n-grams of words, in bits: 0 for equal shares, 1
where no n-gram is in both. `likeness` follows MAUVE (Pillutla et al. 2021): both collections are
quantised together by k-means, and the area under the frontier of the two divergences from their
mixtures is 1 for equal histograms and near 0 for disjoint ones. The published score quantises
hidden states of GPT-2. Here a text is its words and pairs of words, hashed: no model is asked, no
order beyond a pair and no meaning is seen, and the numbers are not those of papers.
"""

import re
import zlib
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

WORDS = re.compile(r"\w+|[^\w\s]")
WIDTH = 512  # numbers of an embedding
SCALE = 5.0  # of divergences, as published
MIXTURES = 25
ROUNDS = 30  # of k-means, at most


def words_of(text: str) -> list[str]:
    """Words and marks of punctuation, as they stand."""
    return WORDS.findall(text)


def grams(texts: Sequence[str], size: int) -> Counter[tuple[str, ...]]:
    """How often each run of so many words stands in the texts."""
    counts: Counter[tuple[str, ...]] = Counter()
    for text in texts:
        words = words_of(text)
        counts.update(zip(*(words[start:] for start in range(size)), strict=False))
    return counts


def divergence(first: Sequence[str], second: Sequence[str], size: int) -> float | None:
    """Jensen-Shannon divergence in bits of n-grams of `size` words; None where a side has none."""
    counts = [grams(texts, size) for texts in (first, second)]
    totals = [sum(count.values()) for count in counts]
    if not all(totals):
        return None
    names = list(counts[0] | counts[1])
    shares = np.array(
        [
            [count[name] / total for name in names]
            for count, total in zip(counts, totals, strict=True)
        ]
    )
    middle = shares.mean(0)
    return float(np.mean([divergence_from(share, middle) for share in shares]) / np.log(2))


def divergence_from(share: np.ndarray, other: np.ndarray) -> float:
    """Kullback-Leibler divergence in nats of shares (n,) from others, none of them 0 there."""
    there = share > 0
    return float((share[there] * np.log(share[there] / other[there])).sum())


def embedded(texts: Sequence[str]) -> np.ndarray:
    """Words and pairs of words of each text, hashed and of length 1: (N, WIDTH) float32."""
    vectors = np.zeros((len(texts), WIDTH), np.float32)
    for row, text in enumerate(texts):
        words = words_of(text.lower())
        for gram in (*words, *map(" ".join, pairwise(words))):
            number = zlib.crc32(gram.encode())
            vectors[row, number % WIDTH] += 1 if number & 1 << 31 else -1
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(lengths > 0, lengths, 1)


def clustered(vectors: np.ndarray, clusters: int, rng: np.random.Generator) -> np.ndarray:
    """The cluster (N,) of each vector (N, d), by k-means from random ones of them."""
    centres = vectors[rng.choice(len(vectors), min(clusters, len(vectors)), replace=False)]
    chosen = np.full(len(vectors), -1)
    for _ in range(ROUNDS):
        nearest = ((centres**2).sum(1) - 2 * vectors @ centres.T).argmin(1)
        if (nearest == chosen).all():
            break
        chosen = nearest
        for number in np.unique(chosen):
            centres[number] = vectors[chosen == number].mean(0)
    return chosen


def likeness(
    first: Sequence[str], second: Sequence[str], clusters: int, rng: np.random.Generator
) -> float | None:
    """The area under the frontier, in [0, 1]; None where a side has no text."""
    if not first or not second:
        return None
    chosen = clustered(embedded([*first, *second]), clusters, rng)
    sides = (chosen[: len(first)], chosen[len(first) :])
    histograms = [np.bincount(side, minlength=clusters) / len(side) for side in sides]
    return area(*histograms)


def area(p: np.ndarray, q: np.ndarray) -> float:
    """Under the frontier of exp(-c KL(q | m)) over exp(-c KL(p | m)), m all mixtures of p and q."""
    places = [(0.0, 1.0)]
    for share in np.linspace(1e-6, 1 - 1e-6, MIXTURES):
        mixture = share * p + (1 - share) * q
        both = (divergence_from(p, mixture), divergence_from(q, mixture))
        places.append((float(np.exp(-SCALE * both[0])), float(np.exp(-SCALE * both[1]))))
    places.append((1.0, 0.0))
    x, y = np.array(sorted(places, key=lambda place: (place[0], -place[1]))).T
    return float(np.trapezoid(y, x))
