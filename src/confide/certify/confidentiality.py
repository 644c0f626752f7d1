"""What a secret costs that is drawn at random: CRT Proposition 6 and Theorem 8.3.

A policy misses a share gamma of the secrets, so that only these are in danger. What cannot hold
makes epsilon infinite, never silently finite. The other propositions and parts of Theorem 8 are in
`certify.claims`.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np


def amplified(epsilon: float, gamma: float) -> float:
    """Epsilon of Proposition 6, log(1 + gamma (exp(epsilon) - 1)), without overflow.

    It is 0 at gamma = 0 whatever epsilon.
    """
    check_fraction("gamma", gamma)
    if epsilon < 0:
        raise ValueError(f"Expected {epsilon=} >= 0")
    if gamma in (0, 1) or epsilon == math.inf:
        return 0.0 if gamma == 0 else epsilon
    if epsilon < 700:  # expm1 overflows soon after
        return math.log1p(gamma * math.expm1(epsilon))
    return max(0.0, float(np.logaddexp(math.log1p(-gamma), math.log(gamma) + epsilon)))


def amplified_by_parts(parts: Sequence[tuple[float, float]]) -> float:
    """Proposition 6 for parts of the secrets that cost different epsilons: (share, epsilon) each.

    The rest costs nothing. With P the law of the model where the secret is masked and Q_i where a
    secret of part i is not, the model's law is (1 - sum g_i) P + sum g_i Q_i. From Q_i(S) <= e^e_i
    P(S) + d follows log(1 + sum g_i (e^e_i - 1)) at delta = d sum g_i; from P(S) <= e^e_i Q_i(S) +
    d follows no more than that in the other direction, for 1/x is convex. So every part is to be
    read at the same d = delta / sum g_i.
    """
    total = sum(share for share, _ in parts)
    check_fraction("the sum of the shares", total)
    terms = [math.log1p(-total)] if total < 1 else []
    terms += [math.log(share) + epsilon for share, epsilon in parts if share > 0]
    return max(0.0, float(np.logaddexp.reduce(terms)))


def spend(delta: float, gamma: float, delta2: float = 0.0) -> float:
    """The delta d at which to read the mechanism, so that gamma d + delta2 is `delta` in all.

    It is at most 1, and 0 if delta2 leaves nothing. delta2: the share of the secrets that the
    conservative policy misses as well.
    """
    check_fraction("gamma", gamma)
    left = delta - delta2
    if left <= 0:
        return 0.0
    return 1.0 if left >= gamma else left / gamma


def bayesian_at(
    epsilon_at: Callable[[float], float],
    delta: float,
    gamma: float,
    delta2: float = 0.0,
    *,
    divide: bool = True,
) -> float:
    """Bayesian epsilon at `delta` in all (Theorem 8.3), from the mechanism's epsilon at any delta.

    divide: read the mechanism at (delta - delta2) / gamma, else at no more than delta.
    """
    if delta2 > delta:
        return math.inf
    available = 1.0 if gamma == 0 else spend(delta, gamma, delta2)
    # nothing is missed, or missing altogether is no more likely than delta allows
    if gamma == 0 or available >= 1:
        return 0.0
    if available == 0:
        return math.inf
    return amplified(epsilon_at(available if divide else min(delta, available)), gamma)


def caught_only(epsilon_at: Callable[[float], float], delta: float, gamma: float) -> float:
    """Bayesian epsilon at `delta` in all where a missed secret is not protected.

    A caught one costs the mechanism's epsilon. What may go wrong for a share gamma of the secrets
    goes into delta: (1 - gamma) d + gamma = delta gives the d to read at.
    """
    check_fraction("gamma", gamma)
    return math.inf if delta <= gamma else epsilon_at((delta - gamma) / (1 - gamma))


def check_fraction(name: str, value: float) -> None:
    """ValueError unless a probability."""
    if not 0 <= value <= 1:
        raise ValueError(f"Expected {name} = {value} in [0, 1]")
