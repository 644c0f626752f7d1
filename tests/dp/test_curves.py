"""Privacy curves against closed forms, quadrature, Monte Carlo and another implementation."""

import math

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent
from dp_accounting.rdp import RdpAccountant
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import norm

from confide.dp.accounting.curves import (
    Mechanism,
    fractional_moment,
    gaussian_curve,
    integer_moment,
    pld_curve,
    rdp_curve,
)
from confide.dp.accounting.price import RELATIONS, Bound, epsilon, solve
from tests.releases import noised


def noisy(rate, sigma, count):
    return [noised(rate=rate, sigma=sigma, count=count)]


def gaussian_epsilon(mu, delta):
    """Balle and Wang 2018, by root search on the textbook formula."""
    excess = lambda e: norm.cdf(mu / 2 - e / mu) - math.exp(e) * norm.cdf(-mu / 2 - e / mu) - delta  # noqa: E731
    return brentq(excess, 0, 60)


@pytest.mark.parametrize(("sigma", "steps"), [(1.0, 1), (3.0, 10), (20.0, 100)])
@pytest.mark.parametrize("relation", RELATIONS)
def test_without_sampling_it_is_the_gaussian_mechanism(sigma, steps, relation):
    mu = (2 if relation == "replace_one" else 1) * math.sqrt(steps) / sigma
    truth = gaussian_epsilon(mu, 1e-5)
    assert solve(Bound(gaussian_curve(mu)), 1e-5) == pytest.approx(truth, rel=1e-5)
    assert truth * (1 - 1e-6) <= epsilon(noisy(1.0, sigma, steps), 1e-5, relation) <= truth * 1.002


@pytest.mark.parametrize("mu", [0.001, 0.1, 1, 10, 49, 51, 1e3, 1e5])
def test_gaussian_curve_at_both_ends(mu):
    found = solve(Bound(gaussian_curve(mu)), 1e-5)
    tail = mu**2 / 2 + mu * norm.isf(1e-5)  # leaves out the subtracted term: never below
    assert 0 <= found <= tail * (1 + 1e-6)
    assert mu < 10 or found >= tail * 0.98


@pytest.mark.parametrize(("rate", "sigma"), [(0.1, 2.42), (0.0256, 0.6), (1e-4, 0.3), (0.5, 1.0)])
def test_renyi_divergence_at_integer_orders_against_dp_accounting(rate, sigma):
    for order in (2, 8, 63):
        theirs = (
            RdpAccountant([order])
            .compose(PoissonSampledDpEvent(rate, GaussianDpEvent(sigma)), 100)
            .get_epsilon(1e-5)
        )
        ours = solve(Bound(rdp_curve((Mechanism(rate, sigma, 100),), "improved", (order,))), 1e-5)
        assert ours == pytest.approx(theirs, rel=1e-6)


@pytest.mark.parametrize(("rate", "sigma"), [(0.1, 2.42), (0.0256, 0.6), (1e-3, 0.5), (0.5, 1.0)])
def test_fractional_moments_against_adaptive_quadrature(rate, sigma):
    # the series of dp_accounting drops signs here and lies 0.2 % above, or does not converge
    for order in (1.5, 3.3, 10.9):
        ratio = lambda z, order=order: (  # noqa: E731
            (1 - rate + rate * math.exp((2 * z - 1) / (2 * sigma**2))) ** order
            * norm.pdf(z, 0, sigma)
        )
        value = quad(
            ratio,
            -12 * sigma,
            order + 12 * sigma,
            limit=500,
            points=(0.0, order),
            epsabs=0,
            epsrel=1e-11,
        )[0]
        assert fractional_moment(rate, sigma, order) == pytest.approx(
            math.log(value), rel=1e-7, abs=1e-11
        )


@pytest.mark.parametrize(("rate", "sigma"), [(0.1, 2.42), (0.01, 0.3), (0.9, 0.05)])
def test_both_moment_formulas_agree_at_integer_orders(rate, sigma):
    for order in (2, 3, 7):
        assert fractional_moment(rate, sigma, order) == pytest.approx(
            integer_moment(rate, sigma, order), rel=1e-9, abs=1e-12
        )


def test_replacement_against_monte_carlo():
    rate = 0.2
    sigma = 1.0
    steps = 10
    count = 200_000
    random = np.random.default_rng(0)
    shift = (random.random((count, steps)) < rate).astype(float)
    seen = shift + sigma * random.standard_normal((count, steps))
    density = lambda x, mean: (1 - rate) * norm.pdf(x, 0, sigma) + rate * norm.pdf(x, mean, sigma)  # noqa: E731
    loss = np.log(density(seen, 1) / density(seen, -1)).sum(1)
    value = epsilon(noisy(rate, sigma, steps), 1e-2)
    excess = np.maximum(0, -np.expm1(value - loss))  # delta(epsilon) = E (1 - exp(epsilon - loss))+
    error = excess.std() / math.sqrt(count)
    assert excess.mean() == pytest.approx(1e-2, abs=4 * error)
    assert error < 3e-4


def test_the_mixture_bound_for_a_group_against_monte_carlo():
    rate = 0.2
    sigma = 1.0
    size = 3
    count = 400_000
    random = np.random.default_rng(1)
    seen = random.binomial(size, rate, count) + sigma * random.standard_normal(count)
    upper = sum(
        math.comb(size, j) * rate**j * (1 - rate) ** (size - j) * norm.pdf(seen, j, sigma)
        for j in range(size + 1)
    )
    loss = np.log(upper / norm.pdf(seen, 0, sigma))
    curve = pld_curve((Mechanism(rate, sigma, 1),), "zero_out", size)
    for value in (0.5, 1.0, 2.0):
        excess = np.maximum(0, -np.expm1(value - loss))
        assert excess.mean() == pytest.approx(
            math.exp(curve.log_delta(value)), abs=4 * excess.std() / math.sqrt(count)
        )
