"""Lower bounds on epsilon: closed forms, a published number, a convex programme, and mechanisms
whose epsilon is known.
"""

import math
from functools import cache

import numpy as np
import pytest
from scipy.optimize import brentq, minimize
from scipy.special import expit, ndtr, ndtri
from scipy.stats import binom

from confide.dp.accounting.audit_bounds import (
    attempts_of,
    best_lower,
    epsilon_lower,
    gdp_epsilon,
    gdp_epsilon_lower,
    gdp_refuted,
    guessed_true,
    mu_lower,
    numbers,
    p_value,
    parting,
    right_guesses,
)

SHARES = (1.0, 0.5, 0.25)
DELTA = 8e-5
RUNS = 2000
STEINKE = cache(epsilon_lower)
GDP = cache(gdp_epsilon_lower)


def guesses_of(scores, guesses):
    """Indices guessed True, the highest of scores (m,), and False, the lowest."""
    order = np.argsort(scores, kind="stable")
    high = int(guessed_true(parting(scores[order][None]), guesses, len(scores))[0])
    return order[len(order) - high :], order[: guesses - high]


def test_the_number_that_the_paper_prints():
    """Steinke et al. 2023, Appendix D: m = 1000, r = 100, v = 75, delta = 1e-4, 95 %: 0.673."""
    assert epsilon_lower(1000, 100, 75, 1e-4) == pytest.approx(0.673, abs=5e-4)


@pytest.mark.parametrize("epsilon", [0.0, 0.7, 3.0, 40.0])
@pytest.mark.parametrize(("guesses", "correct"), [(1, 1), (10, 6), (60, 58), (70, 70), (200, 0)])
def test_p_values_by_summation(epsilon, guesses, correct):
    law = binom(guesses, expit(epsilon))
    assert p_value(300, guesses, correct, epsilon) == pytest.approx(
        law.sf(correct - 1), rel=1e-9, abs=1e-300
    )
    gaps = [sum(law.pmf(k) for k in range(correct - i, correct)) / i for i in range(1, correct + 1)]
    expected = min(1.0, law.sf(correct - 1) + 2 * 300 * 1e-3 * max(gaps, default=0))
    assert p_value(300, guesses, correct, epsilon, 1e-3) == pytest.approx(
        expected, rel=1e-9, abs=1e-300
    )


@pytest.mark.parametrize("coins", [5, 40, 1000])
def test_all_right_without_delta_in_closed_form(coins):
    """(e^eps / (1 + e^eps))^m = 0.05."""
    expected = max(0.0, -math.log(0.05 ** (-1 / coins) - 1))
    assert epsilon_lower(coins, coins, coins, 0.0) == pytest.approx(expected, abs=2e-6)


def randomized_response(rng: np.random.Generator, coins: np.ndarray, epsilon: float) -> np.ndarray:
    """The coin, wrong with probability 1 / (1 + e^epsilon), and noise that only breaks ties."""
    return (coins ^ (rng.random(len(coins)) > expit(epsilon))) + 1e-3 * rng.random(len(coins))


def gaussian(rng: np.random.Generator, coins: np.ndarray, mu: float) -> np.ndarray:
    return coins * mu + rng.normal(size=len(coins))


def bounds_of(
    lower, mechanism, parameter, coins, runs=RUNS, delta=DELTA, shares=SHARES
) -> np.ndarray:
    rng = np.random.default_rng(0)
    found = []
    for _ in range(runs):
        flipped = rng.random(coins) < 0.5
        found.append(
            best_lower(lower, mechanism(rng, flipped, parameter), flipped, shares, delta)[0]
        )
    return np.array(found)


def most(runs: int) -> float:
    """5 %, and four standard errors."""
    return 0.05 + 4 * (0.05 * 0.95 / runs) ** 0.5


@pytest.mark.parametrize("epsilon", [0.0, 1.0, 3.0])
@pytest.mark.parametrize("coins", [30, 120])
def test_coverage_for_randomized_response(coins, epsilon):
    found = bounds_of(STEINKE, randomized_response, epsilon, coins)
    assert (found > epsilon).mean() <= most(RUNS)
    assert epsilon == 0 or coins < 100 or np.median(found) > 0.2


def test_nearly_tight_for_a_thousand_coins():
    found = bounds_of(STEINKE, randomized_response, 2.0, 1000, runs=500, shares=(1.0,), delta=0.0)
    assert (found > 2).mean() <= most(500) and 1.6 < np.median(found) < 2.0


@pytest.mark.parametrize(("mu", "coins"), [(0.0, 120), (0.7, 120), (2.0, 120), (2.0, 600)])
def test_coverage_for_the_gaussian_mechanism(mu, coins):
    """Both hold, at the epsilon that the closed form has at delta; that of Gaussian DP is the one
    that comes near.
    """
    truth = gdp_epsilon(mu, DELTA)
    runs = RUNS if coins < 200 else 300
    medians = []
    for lower in (STEINKE, GDP):
        found = bounds_of(lower, gaussian, mu, coins, runs)
        assert (found > truth).mean() <= most(runs)
        medians.append(np.median(found))
    assert mu < 2 or truth > medians[1] > 1.4 * medians[0] > 0


def blow_up_inverse(value: float, mu: float) -> float:
    return float(ndtr(ndtri(value) - mu))


SMALL = ((6, 6, 5, 0.5), (6, 6, 6, 1.0), (9, 5, 5, 0.5), (8, 7, 6, 0.2))


@pytest.mark.parametrize(("coins", "guesses", "correct", "mu"), SMALL)
def test_recursion_solves_the_convex_programme(coins, guesses, correct, mu):
    """The most probability that P[W >= v] can have under the constraints of Mahloujifar et al.
    2024, by a general solver.
    """
    right = np.arange(guesses + 1) / coins
    wrong = np.arange(guesses, -1, -1) / coins
    constraints = [{"type": "eq", "fun": lambda p: p.sum() - 1}] + [
        {
            "type": "ineq",
            "fun": lambda p, i=i: (
                wrong[i:] @ p[i:] - blow_up_inverse(max(right[i + 1 :] @ p[i + 1 :], 1e-12), mu)
            ),
        }
        for i in range(guesses)
    ]
    start = binom(guesses, 0.5).pmf(np.arange(guesses + 1))
    found = minimize(
        lambda p: -p[correct:].sum(),
        start,
        bounds=[(0, 1)] * (guesses + 1),
        constraints=constraints,
        options={"ftol": 1e-12},
    )
    level = brentq(
        lambda level: gdp_refuted(coins, guesses, correct, mu, level) - 0.5,
        1e-9,
        1 - 1e-9,
        xtol=1e-9,
    )
    assert found.success and level == pytest.approx(-found.fun, abs=1e-5)
    honest = binom(guesses, float(ndtr(mu / 2))).sf(
        correct - 1
    )  # every coin guessed from a Gaussian output of its own
    assert honest <= level + 1e-9


def test_more_evidence_never_lowers_a_bound():
    for lower in (epsilon_lower, gdp_epsilon_lower):
        assert np.all(
            np.diff([lower(100, 60, correct, DELTA) for correct in range(30, 61, 3)]) >= 0
        )
        assert np.all(
            np.diff([lower(100, 60, 55, DELTA, level) for level in (0.001, 0.01, 0.05, 0.2)]) > 0
        )
        assert np.all(
            np.diff([lower(100, 60, 55, delta) for delta in (1e-8, 1e-5, 1e-4, 1e-3)]) < 0
        )
        assert lower(100, 60, 30, DELTA) == 0 == lower(100, 60, 0, DELTA)
    assert (
        mu_lower(100, 60, 55) > mu_lower(1000, 60, 55) > 0
    )  # the same guesses among more coins say less


def test_guesses_do_not_look_at_coins():
    scores = np.array([5.0, 1.0, 4.9, 2.0, 2.0, 2.0, 2.0])
    for guesses, above, below in (
        (7, {0, 2}, {1, 3, 4, 5, 6}),
        (4, {0}, {1, 3, 4}),
        (1, set(), {1}),
    ):
        high, low = guesses_of(scores, guesses)
        assert set(high) == above and set(low) == below
    assert [len(guesses_of(np.zeros(10), 6)[side]) for side in (0, 1)] == [3, 3]
    steps = np.repeat([0.0, 1.0], [70, 30])
    rows = np.stack([steps, -steps[::-1], np.repeat([0.0, 1.0], [45, 55])])
    assert parting(rows).tolist() == [60, 40, 45]
    assert numbers(120, (1.0, 0.5, 0.5, 0.25, 0.0)) == [120, 60, 30]
    assert (
        numbers(7, (1.0, 0.2)) == [7, 1]
        and numbers(1, (0.9,)) == []
        and guesses_of(np.zeros(1), 1)[0].tolist() == [0]
    )


@pytest.mark.parametrize("count", [1, 7, 40, 161])
def test_many_games_at_once_are_judged_as_each_alone(count):
    rng = np.random.default_rng(count)
    coins = rng.random((20, count)) < 0.5
    scores = np.round(coins + rng.normal(size=coins.shape), 1)  # some are equal
    tried = numbers(count, SHARES)
    together = right_guesses(scores, coins, tried) if tried else np.zeros((20, 0))
    for row, own, flips in zip(together.tolist(), scores, coins, strict=True):
        alone = []
        for guesses in tried:
            high, low = guesses_of(own, guesses)
            assert len(high) + len(low) == guesses and not set(high) & set(low)
            alone.append(int(flips[high].sum() + (~flips[low]).sum()))
        assert row == alone and attempts_of(own, flips, SHARES) == list(
            zip(tried, alone, strict=True)
        )


def test_several_numbers_of_guesses_share_the_level():
    rng = np.random.default_rng(0)
    coins = np.arange(100) % 2 == 0
    known = np.where(coins, 1.0, -1.0) * (np.arange(100) < 30) + 1e-3 * rng.random(
        100
    )  # of 30 the coin is plain
    found, guesses, correct = best_lower(epsilon_lower, known, coins, SHARES, DELTA)
    assert guesses == correct == 25
    assert (
        found
        == epsilon_lower(100, guesses, correct, DELTA, 0.05 / 3)
        < epsilon_lower(100, guesses, correct, DELTA)
    )
    assert best_lower(epsilon_lower, coins * 1.0, coins, SHARES, DELTA)[1:] == (100, 100)
    assert best_lower(epsilon_lower, np.zeros(1), np.ones(1, bool), (0.5,), DELTA) == (0.0, 0, 0)


@pytest.mark.parametrize("counts", [(5, 6, 3), (5, 4, 5), (5, 4, -1)])
def test_impossible_counts_are_refused(counts):
    for function in (p_value, gdp_refuted):
        with pytest.raises(ValueError, match="correct"):
            function(*counts, 1.0)
