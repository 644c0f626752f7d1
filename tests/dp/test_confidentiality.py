"""CRT Proposition 6 and Theorem 8.3: published numbers, limits, and a brute-force mixture."""

import math
from functools import lru_cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import binom

from confide.certify.confidentiality import (
    amplified,
    amplified_by_parts,
    bayesian_at,
    spend,
)
from confide.dp.accounting.bounds import clopper_pearson
from confide.dp.accounting.price import epsilon
from tests.releases import noised


def noisy(rate, sigma, count):
    return [noised(rate=rate, sigma=sigma, count=count)]


def renyi(releases):
    return lambda delta: epsilon(releases, delta, "add_or_remove", "rdp")


# published numbers
# --------------------------------------------------------------------------------------------------


def test_crt_notebook():
    assert amplified(1.712, 0.1) == pytest.approx(0.3743, abs=1e-4)
    assert bayesian_at(renyi(noisy(0.1, 2.42, 100)), 1e-5, 0.1) == pytest.approx(0.3744, abs=1.5e-3)


@lru_cache
def curve_of_one(rate, steps):
    sigma = brentq(lambda s: renyi(noisy(rate, s, steps))(8e-5) - 1.0, 0.5, 20)
    return renyi(noisy(rate, sigma, steps))


@pytest.mark.parametrize(("rate", "steps"), [(0.0256, 391), (0.1, 100), (0.01, 1000)])
def test_crt_figure_6(rate, steps):
    at = curve_of_one(rate, steps)
    assert bayesian_at(at, 8e-5, 0.1) == pytest.approx(0.116, abs=1e-3)
    assert bayesian_at(at, 8e-5, 0.1, divide=False) == pytest.approx(0.159, abs=5e-4)


def test_two_hundred_labelled_secrets():
    assert clopper_pearson(0, 200) == pytest.approx(0.0149, abs=5e-5)
    assert clopper_pearson(20, 200) == pytest.approx(0.142, abs=5e-4)
    assert amplified(1.0, clopper_pearson(20, 200)) == pytest.approx(0.218, abs=5e-4)


# oracles and limits
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("events", "trials"), [(0, 10), (3, 50), (20, 200), (9, 10)])
def test_clopper_pearson_inverts_the_binomial_tail(events, trials):
    assert binom.cdf(events, trials, clopper_pearson(events, trials, 0.9)) == pytest.approx(0.1)


def test_clopper_pearson_at_its_ends():
    assert clopper_pearson(0, 0) == clopper_pearson(7, 7) == 1.0
    with pytest.raises(ValueError):
        clopper_pearson(3, 2)


@given(st.floats(0, 8), st.floats(0, 0.3), st.floats(0, 1), st.integers(0, 2**32))
def test_proposition_6_holds_for_random_mechanisms(value, delta, gamma, seed):
    """Outputs of four kinds: q (missed) is within (value, delta) of r = p (caught); check the
    mixture in both directions.
    """
    random = np.random.default_rng(seed)
    p = random.dirichlet([0.5] * 4)
    q = random.dirichlet([0.5] * 4)
    excess = lambda a, b, e: np.maximum(0, a - math.exp(e) * b).sum()  # noqa: E731
    delta = max(excess(q, p, value), excess(p, q, value))
    mixture = (1 - gamma) * p + gamma * q
    claimed = amplified(value, gamma)
    reached = max(excess(mixture, p, claimed), excess(p, mixture, claimed))
    assert reached <= gamma * delta + 1e-12


def test_the_ends_of_gamma():
    assert amplified(3.0, 0.0) == amplified(math.inf, 0.0) == 0.0
    assert amplified(3.0, 1.0) == 3.0
    assert amplified(math.inf, 0.1) == math.inf


@pytest.mark.parametrize("gamma", [1e-12, 0.1, 0.9])
def test_no_overflow_and_no_step_where_the_formula_changes(gamma):
    assert amplified(5000.0, gamma) == pytest.approx(5000 + math.log(gamma))
    assert amplified(700 - 1e-9, gamma) == pytest.approx(amplified(700 + 1e-9, gamma), rel=1e-8)
    assert amplified(1e-15, gamma) == pytest.approx(gamma * 1e-15)


@given(st.floats(0, 2000), st.floats(0, 1), st.floats(0, 1))
def test_amplification_is_monotone_and_never_hurts(value, gamma, other):
    low, high = sorted((gamma, other))
    assert amplified(value, low) <= amplified(value, high) * (1 + 1e-12) <= value * (1 + 1e-9)


def test_spending_delta_adds_up():
    assert spend(1e-5, 0.1) == pytest.approx(1e-4)
    assert 0.1 * spend(1e-5, 0.1, 4e-6) + 4e-6 == pytest.approx(1e-5)
    assert spend(1e-5, 0.0) == spend(0.2, 0.1) == 1.0
    assert spend(1e-5, 0.1, 1e-5) == spend(1e-5, 0.1, 1e-4) == 0.0


def test_bayesian_at_a_total_delta():
    at = lambda delta: -math.log(delta)  # noqa: E731
    assert bayesian_at(at, 1e-5, 0.1, 2e-5) == math.inf  # delta2 alone exceeds delta
    assert bayesian_at(at, 1e-5, 0.1, 1e-5) == bayesian_at(at, 1e-5, 0.0, 2e-5) == math.inf
    assert bayesian_at(at, 1e-5, 0.0, 1e-5) == 0.0
    assert (
        bayesian_at(lambda _: math.inf, 0.2, 0.1) == 0.0
    )  # redaction alone: missed less often than delta
    assert bayesian_at(lambda _: math.inf, 0.05, 0.1) == math.inf
    assert bayesian_at(at, 1e-5, 0.1) == pytest.approx(amplified(-math.log(1e-4), 0.1))
    assert bayesian_at(at, 1e-5, 0.1, 4e-6) == pytest.approx(amplified(-math.log(6e-5), 0.1))
    assert bayesian_at(at, 1e-5, 0.1, divide=False) == pytest.approx(
        amplified(-math.log(1e-5), 0.1)
    )
    # without dividing, delta2 still has to fit: 1e-5 * 0.9 + 4e-6 would not
    assert bayesian_at(at, 1e-5, 0.9, 4e-6, divide=False) == pytest.approx(
        amplified(-math.log(6e-6 / 0.9), 0.9)
    )


@pytest.mark.parametrize("gamma", [-0.1, 1.1, math.nan])
def test_gamma_must_be_a_probability(gamma):
    with pytest.raises(ValueError, match="gamma"):
        amplified(1.0, gamma)
    with pytest.raises(ValueError, match="epsilon"):
        amplified(-1.0, 0.1)


# secrets that cost different epsilons
# ---------------------------------------------------------------------------------


@given(st.floats(0, 0.5), st.floats(0, 0.5), st.floats(0, 4), st.floats(0, 8), st.floats(0, 0.2))
def test_parts_bound_the_mixture_both_ways(first, second, small, large, delta):
    """Three outcomes by hand: nothing changes, a part of epsilon `small`, a part of epsilon
    `large`; each has its own delta.
    """
    base = np.array([0.5, 0.25, 0.25])

    def worst(value):
        """A law that is (value, delta)-close to `base` both ways and as far from it as two outcomes
        allow.
        """
        up = min(0.5, 0.25 * math.exp(value) + delta)
        return np.array([0.5, up, 0.5 - up])

    mixture = (1 - first - second) * base + first * worst(small) + second * worst(large)
    epsilon_of = {}
    parts = ((first, small), (second, large))
    for part in (
        small,
        large,
    ):  # what each part really has, so that the premise of the bound is met
        law = worst(part)
        gaps = [excess(law, base, math.exp(part)), excess(base, law, math.exp(part))]
        epsilon_of[part] = max(gaps)
    most = max(epsilon_of.values())
    bound = amplified_by_parts(parts)
    allowed = (first + second) * most + 1e-12
    assert (
        excess(mixture, base, math.exp(bound)) <= allowed
        and excess(base, mixture, math.exp(bound)) <= allowed
    )


def excess(one, other, factor):
    """The delta at which one law is within the factor of another."""
    return float(np.maximum(one - factor * other, 0).sum())


@given(st.floats(0, 1), st.floats(0, 30))
def test_one_part_is_the_usual_amplification(gamma, value):
    assert amplified_by_parts([(gamma, value)]) == pytest.approx(
        amplified(value, gamma), abs=1e-9, rel=1e-9
    )


def test_parts_add_up_and_do_not_overflow():
    assert amplified_by_parts([(0.1, 2.0), (0.2, 2.0)]) == pytest.approx(amplified(2.0, 0.3))
    assert amplified_by_parts([(0.0, 1e9), (0.2, 1.0)]) == pytest.approx(amplified(1.0, 0.2))
    assert amplified_by_parts([(0.5, 5000.0), (0.5, 1.0)]) == pytest.approx(5000 + math.log(0.5))
    assert amplified_by_parts([(0.5, math.inf)]) == math.inf
    assert amplified_by_parts([]) == 0
    with pytest.raises(ValueError, match="sum of the shares"):
        amplified_by_parts([(0.7, 1.0), (0.7, 1.0)])
