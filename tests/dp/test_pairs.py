"""Dominating pairs against scipy: losses, masses, thresholds and scales."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import logsumexp
from scipy.stats import binom, norm

from confide.dp.accounting.pairs import Pair, log_weights, loss, masses, outcomes, scale, threshold

PAIRS = [
    Pair(rate, sigma, group, replace)
    for rate in (1e-4, 0.03, 0.5, 1.0)
    for sigma in (0.2, 1.0, 20.0)
    for group, replace in ((1, False), (1, True), (2, False), (7, False))
]


def log_density(pair, x):
    """P's, by scipy."""
    weights = binom.logpmf(range(pair.group + 1), pair.group, pair.rate)
    return logsumexp(
        [weight + norm.logpdf(x, j, pair.sigma) for j, weight in enumerate(weights)], axis=0
    )


@pytest.mark.parametrize("pair", PAIRS)
def test_losses_and_masses_against_scipy(pair):
    low, high = outcomes(pair)
    x = np.linspace(max(low, -6 * pair.sigma), min(high, pair.group + 6 * pair.sigma), 41)
    below = log_density(pair, -x) if pair.replace else norm.logpdf(x, 0, pair.sigma)
    assert loss(pair, x) == pytest.approx(log_density(pair, x) - below, rel=1e-9, abs=1e-12)
    edges = np.concatenate([[-math.inf], x, [math.inf]])
    upper, lower = masses(pair, edges)
    weights = binom.pmf(range(pair.group + 1), pair.group, pair.rate)
    cdf = sum(weight * norm.cdf(edges, j, pair.sigma) for j, weight in enumerate(weights))
    mirrored = sum(weight * norm.sf(-edges, j, pair.sigma) for j, weight in enumerate(weights))
    assert upper == pytest.approx(np.diff(cdf), abs=1e-14)
    assert lower == pytest.approx(
        np.diff(mirrored if pair.replace else norm.cdf(edges, 0, pair.sigma)), abs=1e-14
    )
    assert upper.sum() == pytest.approx(1, abs=1e-14) and lower.sum() == pytest.approx(1, abs=1e-14)


def test_small_masses_are_exact():
    edges = np.array([-math.inf, -30.0, -20.0, 20.0, 30.0, math.inf])
    upper, _ = masses(Pair(1.0, 1.0), edges)  # N(1, 1)
    exact = norm.cdf(-21), norm.sf(19)
    assert (upper[1], upper[3]) == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("pair", PAIRS)
def test_thresholds_invert_the_loss(pair):
    low, high = loss(pair, np.array(outcomes(pair)))
    losses = np.linspace(low, high, 1001)[1:-1]
    again = loss(pair, threshold(pair, losses))
    assert (
        np.abs(again - losses).max() <= 1e-12 * max(1, high)
        and (np.diff(threshold(pair, losses)) >= 0).all()
    )


@pytest.mark.parametrize("pair", [Pair(0.2, 1.0), Pair(0.01, 0.4, 3), Pair(0.5, 2.0, 1, True)])
def test_the_scale_against_quadrature(pair):
    low, high = outcomes(pair)
    moments = [
        quad(
            lambda x, k=k: math.exp(log_density(pair, x)) * loss(pair, np.array([x]))[0] ** k,
            low,
            high,
            limit=500,
            points=(0, 1),
        )[0]
        for k in (1, 2)
    ]
    assert scale(pair)[1] == pytest.approx(math.sqrt(moments[1] - moments[0] ** 2), rel=1e-3)
    assert scale(pair)[0] == pytest.approx(np.diff(loss(pair, np.array([low, high])))[0])


def test_log_weights_are_the_binomial():
    for group, rate in ((1, 0.3), (32, 1e-4), (5, 1.0)):
        found = np.array(log_weights(Pair(rate, 1.0, group)))
        assert np.exp(found) == pytest.approx(binom.pmf(range(group + 1), group, rate), rel=1e-10)
        assert logsumexp(found) == pytest.approx(0, abs=1e-12)
