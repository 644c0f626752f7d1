"""Claims as curves: the closed form of Gaussian noise, what a finite part may lose, and how often
the truth is refuted.
"""

import math

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri

from confide.dp.accounting.audit_bounds import gdp_epsilon, gdp_refuted, refuted, right_guesses
from confide.dp.accounting.audit_power import TIMES, mu_of, power
from confide.dp.accounting.calibration import calibrate
from confide.dp.accounting.curves import FREE, Mechanism, gaussian_curve, pld_curve
from confide.dp.accounting.tradeoff import (
    epsilon_lower,
    family,
    fewest,
    points_of,
    trade_off,
)

DELTA = 8e-5
RATE = 0.0256
STEPS = 391


def dpsgd(epsilon, relation="replace_one"):
    """(the pairs that a certificate claims, its noise multiplier) of DP-SGD with that epsilon."""
    sigma = calibrate(epsilon, DELTA, RATE, STEPS, relation)
    return (
        (epsilon, DELTA),
        *points_of(pld_curve((Mechanism(RATE, sigma, STEPS),), relation)),
    ), sigma


@pytest.mark.parametrize("mu", [0.1, 0.8, 2.0, 5.0])
def test_the_curve_of_gaussian_noise_in_closed_form(mu):
    """Never above it, which would claim more than was certified, and hardly below."""
    claim = trade_off(points_of(gaussian_curve(mu)))
    for share in (1e-4, 0.003, 0.02, 0.2, 0.5, 0.9, 0.999):
        exact = float(ndtr(ndtri(share) - mu))
        assert exact - 0.01 <= claim.least(share) <= exact + 1e-12
    starts = np.array(claim.starts)
    assert np.all(np.diff(starts) > 0) and np.all(np.diff(claim.slopes) > 0)


def test_pure_privacy_and_none_at_all():
    claim = trade_off(((1.0, 0.0),))
    for share in (0.01, 0.3, 0.7, 0.9):
        assert claim.least(share) == pytest.approx(
            max(share / math.e, 1 - math.e * (1 - share)), abs=1e-12
        )
    nothing = trade_off(points_of(FREE))
    assert points_of(FREE) == ((0.0, 0.0),) and nothing.least(0.3) == pytest.approx(0.3)
    assert (
        trade_off(((700.0, 0.0), (1.0, 1.0))).least(0.9) == 0.0
    )  # says nothing, and does not overflow


@pytest.mark.parametrize("mu", [0.4, 1.0, 2.0])
@pytest.mark.parametrize(("coins", "guesses"), [(160, 56), (120, 120), (1000, 150)])
def test_refutes_what_the_closed_form_refutes(mu, coins, guesses):
    """At most one right guess later: the finite curve is a little weaker a claim."""
    claim = trade_off(points_of(gaussian_curve(mu)))
    exact = next((c for c in range(guesses + 1) if gdp_refuted(coins, guesses, c, mu)), guesses + 1)
    assert exact <= fewest(claim, coins, guesses, 0.05) <= exact + 1
    assert [refuted(claim.least, coins, guesses, c) for c in (0, guesses // 2)] == [False, False]


def test_the_family_is_ordered_and_holds_the_claim():
    points, _ = dpsgd(3.0)
    assert family(points, 3.0) == points and family(((0.0, 0.0),), 0.7) == ((0.7, 0.0),)
    curves = [trade_off(family(points, epsilon)) for epsilon in (0.5, 3.0, 6.0)]
    for share in (0.01, 0.1, 0.5, 0.9):
        values = [curve.least(share) for curve in curves]
        assert values == sorted(values, reverse=True) and values[0] > values[-1]


@pytest.mark.parametrize("own", [0.0, 3.0])
def test_more_evidence_never_lowers_a_bound(own):
    points = dpsgd(own)[0] if own else ((0.0, 0.0),)
    found = [epsilon_lower(points, 160, 56, correct) for correct in range(20, 57, 4)]
    assert found[0] == 0 and np.all(np.diff(found) >= 0) and found[-1] > max(own, 1)
    needed = fewest(trade_off(points), 160, 56, 0.05)
    assert (
        epsilon_lower(points, 160, 56, needed) >= own > epsilon_lower(points, 160, 56, needed - 1)
        or own == 0
    )
    for counts in ((5, 6, 3), (5, 4, 5)):
        with pytest.raises(ValueError, match="correct"):
            refuted(trade_off(points).least, *counts)


def noised_updates(rng, coins, sigma, games):
    """What a coin's record leaves in DP-SGD's updates, of which the attacker sees all:
    log-likelihood ratios (games, coins).
    """
    flips = rng.random((games, coins)) < 0.5
    total = np.zeros(flips.shape)
    for _ in range(STEPS):
        seen = np.where(flips, 1.0, -1.0) * (rng.random(flips.shape) < RATE) + sigma * rng.normal(
            size=flips.shape
        )
        ratio = [
            np.logaddexp(math.log1p(-RATE), math.log(RATE) + (2 * x - 1) / (2 * sigma**2))
            for x in (seen, -seen)
        ]
        total += ratio[0] - ratio[1]
    return total, flips


def test_true_certificates_are_rarely_refuted():
    """Of 1,000 trainings at most one in twenty, give or take four errors: at epsilon 3, and at 0
    without any leak.
    """
    rng = np.random.default_rng(0)
    most = 0.05 + 4 * (0.05 * 0.95 / 1000) ** 0.5
    points, sigma = dpsgd(3.0)
    chance = power(points, 3.0, DELTA, 80)
    scores, flips = noised_updates(rng, 80, sigma, 1000)
    assert (right_guesses(scores, flips, [chance.guesses]) >= chance.fewest).mean() <= most
    nothing = power(((0.0, DELTA), (0.0, 0.0)), 0.0, DELTA, 80)
    flips = rng.random((1000, 80)) < 0.5
    share = (
        right_guesses(rng.normal(size=flips.shape), flips, [nothing.guesses]) >= nothing.fewest
    ).mean()
    assert 0.005 < share <= most


def test_chances_to_ring_are_simulated_and_not_those_of_an_attacker_who_is_always_right():
    points, _ = dpsgd(3.0)
    found = power(points, 3.0, DELTA, 160)
    assert found == power(points, 3.0, DELTA, 160) and found.fewest <= found.guesses
    assert (
        0.15
        < found.rings[0]
        < 0.45
        < 0.85
        < found.rings[1]
        < found.rings[2]
        == pytest.approx(1, abs=0.01)
    )
    more = power(points, 3.0, DELTA, 1000)
    assert (
        all(high >= low for high, low in zip(more.rings, found.rings, strict=True))
        and more.rings[0] > 0.8
    )
    few = power(points, 3.0, DELTA, 12)
    assert few.rings[-1] < 0.5 and power(points, 3.0, DELTA, 1).rings == (0.0,) * len(TIMES)


def test_gaussian_noise_of_a_given_epsilon():
    for epsilon in (0.5, 3.0, 40.0):
        mu = mu_of(epsilon, DELTA)
        assert mu == pytest.approx(
            brentq(lambda mu, e=epsilon: gdp_epsilon(mu, DELTA) - e, 1e-3, 40), rel=1e-4
        )
