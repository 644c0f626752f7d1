"""Divergence and likeness of texts against naive sums, scipy, and what the ends must be."""

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy.spatial.distance import jensenshannon

from confide.text.likeness import area, clustered, divergence, embedded, likeness

ONE = ["the order is late", "the code is late", "where is my order?"]
OTHER = ["the order is here", "my code is late, thanks"]


def naive(first: list[str], second: list[str], size: int) -> float:
    """Jensen-Shannon divergence by a loop over n-grams of words that spaces part."""

    def shares(texts: list[str]) -> dict[str, float]:
        counts: dict[str, float] = {}
        for text in texts:
            words = text.replace("?", " ?").replace(",", " ,").split()
            for start in range(len(words) - size + 1):
                key = " ".join(words[start : start + size])
                counts[key] = counts.get(key, 0) + 1
        total = sum(counts.values())
        return {key: count / total for key, count in counts.items()}

    p = shares(first)
    q = shares(second)
    keys = sorted(p | q)
    return jensenshannon([p.get(k, 0) for k in keys], [q.get(k, 0) for k in keys], base=2) ** 2


@pytest.mark.parametrize("size", [1, 2, 3])
def test_divergence_is_that_of_a_loop_and_scipy(size: int) -> None:
    assert divergence(ONE, OTHER, size) == pytest.approx(naive(ONE, OTHER, size), abs=1e-12)


def test_divergence_has_its_ends() -> None:
    assert divergence(ONE, ONE[::-1], 2) == pytest.approx(0, abs=1e-12)
    assert divergence(["a b c"], ["d e f"], 1) == pytest.approx(1)
    assert divergence(["word"], ONE, 2) is None


def test_the_frontier_is_that_of_a_sum_over_mixtures() -> None:
    p = np.array([0.5, 0.5, 0.0])
    q = np.array([0.1, 0.4, 0.5])
    places = [(0.0, 1.0), (1.0, 0.0)]
    for share in np.linspace(1e-6, 1 - 1e-6, 25):
        both = []
        for side in (p, q):
            loss = 0.0
            for one, a, b in zip(side, p, q, strict=True):
                if one > 0:
                    loss += one * math.log(one / (share * a + (1 - share) * b))
            both.append(math.exp(-5 * loss))
        places.append((both[0], both[1]))
    places.sort(key=lambda place: (place[0], -place[1]))
    expected = 0.0
    for (x, y), (next_x, next_y) in pairwise(places):
        expected += (next_x - x) * (y + next_y) / 2
    assert area(p, q) == pytest.approx(expected, abs=1e-12)
    assert area(p, p) == pytest.approx(1)
    assert area(np.array([1.0, 0.0]), np.array([0.0, 1.0])) < 0.01


def test_a_text_is_like_itself_and_not_like_other_words() -> None:
    rng = np.random.default_rng(0)
    words = [f"w{n}" for n in range(200)]
    texts = [" ".join(rng.choice(words[:100], 8)) for _ in range(300)]
    others = [" ".join(rng.choice(words[100:], 8)) for _ in range(300)]
    assert likeness(texts, texts, 10, rng) == pytest.approx(1)
    again = [" ".join(rng.choice(words[:100], 8)) for _ in range(300)]
    near = likeness(texts, again, 10, rng)
    far = likeness(texts, others, 10, rng)
    assert near is not None and far is not None and far < 0.5 < 0.8 < near
    assert likeness(texts, [], 10, rng) is None


def test_embeddings_have_length_one_and_clusters_part_what_is_apart() -> None:
    vectors = embedded(["a a a", "a a", "b", ""])
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 1, 1, 0])
    points = np.array([[0.0, 0.0], [0.1, 0.0], [5.0, 5.0], [5.1, 5.0]])
    one, two, three, four = clustered(points, 2, np.random.default_rng(3))
    assert one == two != three == four
