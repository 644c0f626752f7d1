"""How likely an audit rings where a claim is false, by simulated games of an ideal attacker.

There are as many coins as were flipped. The attacker sees each coin through Gaussian noise of
exactly the epsilon in question, at the claim's delta, and nothing else is in his way. No attack on
a model that such noise protects does better, and most do far worse. How many of the coins are
guessed is settled here, too, before anybody looks at a guess: as many as ring most often.
"""

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from confide.dp.accounting.audit_bounds import SHARES, numbers, right_guesses
from confide.dp.accounting.bisection import bracket, narrowed
from confide.dp.accounting.curves import gaussian_curve
from confide.dp.accounting.tradeoff import NOTHING, Points, fewest, trade_off

TIMES = (2, 3, 5)  # the certified epsilon; 1 where that is 0
# times it, where the number of guesses is settled: of those that ring alike further off the one
# that sees more
CLOSE = 1.5
DRAWN = 1_000_000  # scores in all of one set of simulated games
GAMES = (50, 1000)  # at least, and at most


class Power(NamedTuple):
    """How an audit of a claim should guess, and what to expect of it.

    guesses: how many coins it should guess. rings: the chance to refute the claim at TIMES the
    epsilon.
    """

    guesses: int
    fewest: int  # right ones that refute the claim; guesses + 1: none
    rings: tuple[float, ...]


def base_of(epsilon: float) -> float:
    """What TIMES multiplies."""
    return epsilon if epsilon >= NOTHING else 1.0


def mu_of(epsilon: float, delta: float) -> float:
    """How far apart two means are, in standard deviations, whose noise has epsilon at delta."""

    def reached(mu: float) -> bool:
        return gaussian_curve(mu).log_delta(epsilon) >= math.log(delta)

    low, _ = narrowed(reached, *bracket(reached), close=lambda low, high: high - low <= 1e-6 * high)
    return low


@lru_cache(maxsize=256)
def power(points: Points, epsilon: float, delta: float, coins: int, level: float = 0.05) -> Power:
    """Of a claim of these points, one of which is (epsilon, delta), and an audit of so many coins.

    Guarantees: a function of its arguments alone, since the games are seeded.
    """
    claim = trade_off(points)
    tried = numbers(coins, SHARES)
    if not tried:
        return Power(0, 1, (0.0,) * len(TIMES))
    needed = np.array([fewest(claim, coins, guesses, level) for guesses in tried])
    games = min(GAMES[1], max(GAMES[0], DRAWN // coins))
    rng = np.random.default_rng(0)
    flips = rng.random((games, coins)) < 0.5
    noise = rng.normal(size=(games, coins))
    rings = []  # of each number of guesses, at each multiple
    for times in (CLOSE, *TIMES):
        scores = mu_of(times * base_of(epsilon), delta) * flips + noise
        rings.append((right_guesses(scores, flips, tried) >= needed).mean(0))
    rates = np.stack(rings, axis=1)
    best = int(rates.mean(1).argmax())
    return Power(tried[best], int(needed[best]), tuple(rates[best, 1:].tolist()))
