"""The miss-rate wrapper: nested, deterministic per string, and of the right size."""

import itertools

import pytest
from scipy.stats import binomtest

from confide.policies import with_misses
from confide.policies.misses import missing
from confide.types import Span


def whole(text):
    return [Span(0, len(text), "x")]


def test_ends_of_the_range():
    assert with_misses(whole, 0.0, 1) is whole
    assert all(
        with_misses(whole, 1.0, seed)(f"secret {i}") == [] for seed in range(3) for i in range(200)
    )


def test_missed_sets_are_nested_in_gamma():
    texts = [f"secret {i}" for i in range(500)]
    sets = [
        {text for text in texts if missing(gamma, 3)(text)} for gamma in (0.0, 0.1, 0.3, 0.7, 1.0)
    ]
    assert all(small <= large for small, large in itertools.pairwise(sets))
    assert sets[0] == set()
    assert sets[-1] == set(texts)


@pytest.mark.parametrize("gamma", [0.02, 0.5, 0.9])
def test_share_missed_is_gamma(gamma):
    missed = sum(missing(gamma, 7)(f"secret {i}") for i in range(20_000))
    assert binomtest(missed, 20_000, gamma).pvalue > 1e-6


def test_a_secret_is_missed_everywhere_or_nowhere_and_by_seed():
    numbers = [f"{i:03d}" for i in range(300)]
    policy = with_misses(lambda text: [Span(2, 5, "a"), Span(8, 11, "b")], 0.5, 0)
    for number in numbers:
        assert len(policy(f"x {number} y {number}")) in (0, 2)
    assert {n for n in numbers if missing(0.5, 0)(n)} != {n for n in numbers if missing(0.5, 1)(n)}
