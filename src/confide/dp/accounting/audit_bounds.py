"""Lower bounds on epsilon from one training run, from guesses of coins that were flipped before it.

m fair coins decide independently what m records are (planted or not; a secret or <MASK>). Who sees
the trained model guesses r of them, fixed in number beforehand, and v guesses are right. `p_value`
and `epsilon_lower` refute (epsilon, delta)-DP: Steinke, Nasr and Jagielski 2023, Theorem 5.2 and
Appendix D. `gdp_refuted`, `mu_lower` and `gdp_epsilon_lower` refute Gaussian DP, a stronger claim,
so that they reach further: Mahloujifar, Melis and Chaudhuri 2024, Algorithm 3. Neither assumes
anything about the guesses. Scores alone say nothing: `right_guesses` turns them into guesses
without looking at the coins. What refutes a claim that is made at many epsilons at once is in
dp/accounting/tradeoff.py.
"""

import math
from collections.abc import Callable, Sequence
from operator import itemgetter

import numpy as np
from scipy.special import betainc, log_expit, ndtr, ndtri

from confide.dp.accounting.bisection import Condition, bracket, narrowed
from confide.dp.accounting.pairs import log_ways

TOLERANCE = 1e-6  # of epsilon and mu
# of the coins: an audit says how many of so many guesses were right
SHARES = (1.0, 0.75, 0.5, 0.35, 0.25, 0.15, 0.1, 0.05)
# (coins, guesses, correct, delta, level) -> epsilon
Lower = Callable[[int, int, int, float, float], float]


def p_value(coins: int, guesses: int, correct: int, epsilon: float, delta: float = 0.0) -> float:
    """Upper bound on the chance of `correct` right guesses or more under (epsilon, delta)-DP.

    P[W >= v] + 2 m delta max_i P[v - i <= W < v] / i, with W binomial(r, e^epsilon / (1 +
    e^epsilon)).
    """
    if not 0 <= correct <= guesses <= coins:
        raise ValueError(f"Expected 0 <= {correct=} <= {guesses=} <= {coins=}")
    if correct == 0:
        return 1.0
    right = log_expit(epsilon)
    wrong = log_expit(-epsilon)
    tail = float(betainc(correct, guesses - correct + 1, math.exp(right)))
    below = np.arange(correct - 1, -1, -1)  # v - 1, v - 2, ..., 0
    mass = np.exp(log_ways(guesses, below) + below * right + (guesses - below) * wrong).cumsum()
    return min(1.0, tail + 2 * coins * delta * float((mass / np.arange(1, correct + 1)).max()))


def epsilon_lower(
    coins: int, guesses: int, correct: int, delta: float, level: float = 0.05
) -> float:
    """Largest epsilon whose (epsilon, delta)-DP is refuted at this level; 0 if none is.

    Guarantees: of mechanisms that are (epsilon, delta)-DP with respect to each coin, at most a
    share `level` gets more than epsilon, if the number of guesses does not depend on the coins.
    """
    return _largest(lambda epsilon: p_value(coins, guesses, correct, epsilon, delta) >= level)


def refuted(
    least: Callable[[float], float], coins: int, guesses: int, correct: int, level: float = 0.05
) -> bool:
    """Whether `correct` right guesses or more have a probability below `level` if a claim is true.

    least: the claim of each coin, as the inverse blow-up F of its trade-off curve: the least
    probability that an event of some probability can have once the coin is turned over. Suppose the
    probability were `level`. right = sum over j >= i of p_j j / m and wrong = sum of p_j (r - j) /
    m are the probabilities that a random coin is guessed, rightly or wrongly, and at least i are
    right in all. Turning over a wrongly guessed coin makes it right, so wrong[i] >= F(right[i +
    1]): down to i = 0 this asks for more than the whole probability r / m.
    """
    if not 0 <= correct <= guesses <= coins:
        raise ValueError(f"Expected 0 <= {correct=} <= {guesses=} <= {coins=}")
    right = level * correct / coins
    wrong = level * (guesses - correct) / coins
    for i in range(correct - 1, -1, -1):
        after = least(right)
        if after <= wrong:  # then neither changes any more
            break
        right = min(1.0, right + i / (guesses - i) * (after - wrong))
        wrong = after
    return right + wrong > guesses / coins


def gdp_refuted(coins: int, guesses: int, correct: int, mu: float, level: float = 0.05) -> bool:
    """Whether `correct` right guesses or more have a probability below `level` under mu-GDP."""
    return refuted(lambda share: float(ndtr(ndtri(share) - mu)), coins, guesses, correct, level)


def mu_lower(coins: int, guesses: int, correct: int, level: float = 0.05) -> float:
    """Largest mu whose Gaussian DP is refuted at this level; 0 if none is."""
    return _largest(lambda mu: not gdp_refuted(coins, guesses, correct, mu, level))


def gdp_epsilon_lower(
    coins: int, guesses: int, correct: int, delta: float, level: float = 0.05
) -> float:
    """Epsilon at `delta` of the largest mu that is refuted.

    Guarantees: as for `epsilon_lower`, but for mechanisms that are mu-GDP. One that is (epsilon,
    delta)-DP and no more can exceed it, so compare it with a certificate of Gaussian noise only.
    """
    return gdp_epsilon(mu_lower(coins, guesses, correct, level), delta)


def gdp_epsilon(mu: float, delta: float) -> float:
    """Epsilon of a mu-GDP mechanism at `delta`."""
    from confide.dp.accounting.curves import gaussian_curve
    from confide.dp.accounting.price import Bound, solve  # loads the accountants

    return solve(Bound(gaussian_curve(mu)), delta) if mu > 0 else 0.0


def guessed_true(below: np.ndarray, guesses: int, coins: int) -> np.ndarray:
    """How many of the guesses are True where `below` (n,) scores are held for False."""
    return np.round(guesses * (1 - below / coins)).astype(int)


def parting(ascending: np.ndarray) -> np.ndarray:
    """How many (n,) of the sorted scores (n, m) to hold for False.

    That is where two groups part best (least variance within them). At most sqrt(m) from the
    middle: fair coins seldom fall further from it (two standard deviations).
    """
    count = ascending.shape[1]
    middle = count // 2
    reach = math.isqrt(count)
    near = sorted(
        range(max(1, middle - reach), min(count, middle + reach + 1)),
        key=lambda below: abs(below - middle),
    )
    if not near:
        return np.zeros(len(ascending), dtype=int)
    below = np.array(near)
    sums = ascending.cumsum(1)
    first = sums[:, below - 1]
    total = sums[:, -1:]
    gap = (total - first) / (count - below) - first / below
    return below[(below * (count - below) * gap**2).argmax(1)]


def right_guesses(scores: np.ndarray, coins: np.ndarray, tried: Sequence[int]) -> np.ndarray:
    """How many guesses are right, (n, k), for k numbers of guesses in n games.

    Scores and coins are (n, m). The highest scores are guessed True and the lowest False, as many
    of each as `parting` has above and below; among equal scores their order decides.
    """
    order = np.argsort(scores, axis=1, kind="stable")
    heads = np.take_along_axis(coins, order, axis=1).cumsum(1)
    nobody = np.zeros((len(heads), 1), dtype=heads.dtype)
    heads = np.concatenate([nobody, heads], axis=1)  # among the i lowest scores
    below = parting(np.take_along_axis(scores, order, axis=1))
    count = scores.shape[1]
    rows = np.arange(len(scores))
    right = []
    for guesses in tried:
        high = guessed_true(below, guesses, count)
        low = guesses - high
        right.append(heads[:, -1] - heads[rows, count - high] + low - heads[rows, low])
    return np.stack(right, axis=1)


def numbers(coins: int, shares: Sequence[float]) -> list[int]:
    """How many guesses to make for each share of the coins; without repetition and none of 0."""
    return list(dict.fromkeys(number for share in shares if (number := int(share * coins))))


def attempts_of(
    scores: np.ndarray, coins: np.ndarray, shares: Sequence[float] = SHARES
) -> list[tuple[int, int]]:
    """(guesses, right ones) for each share of the coins that is guessed; scores and coins (m,)."""
    tried = numbers(len(coins), shares)
    if not tried:
        return []
    right = right_guesses(scores[None], coins[None], tried)[0].tolist()
    return list(zip(tried, right, strict=True))


def best_lower(
    lower: Lower,
    scores: np.ndarray,
    coins: np.ndarray,
    shares: tuple[float, ...],
    delta: float,
    level: float = 0.05,
) -> tuple[float, int, int]:
    """(epsilon, guesses, correct) of the largest lower bound over some numbers of guesses.

    Scores and coins are (m,).
    Guarantees: holds as if only one number had been tried, since each gets an equal part of the
    level (Bonferroni).
    """
    tried = attempts_of(scores, coins, shares)
    part = level / max(1, len(tried))
    bounds = [
        (lower(len(coins), guesses, correct, delta, part), guesses, correct)
        for guesses, correct in tried
    ]
    return max(bounds, key=itemgetter(0), default=(0.0, 0, 0))


def _largest(stands: Condition) -> float:
    """From where on a claim stands, from below; 0 if it always does.

    A claim is weaker the larger its parameter.
    """
    if stands(0.0):
        return 0.0
    low, _ = narrowed(stands, *bracket(stands), close=lambda low, high: high - low <= TOLERANCE)
    return low
