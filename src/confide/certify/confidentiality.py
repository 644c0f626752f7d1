"""From differential privacy to confidentiality: CRT Propositions 5 to 7 and Theorem 8, with their
conditions as arguments.

A condition that does not hold makes the claim infinite, never silently finite. In Theorem 8.2 the
paper says that the policy "detects" a share of the secrets where it must say "misses"; here it
misses them.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from confide.dp.accounting.price import group_epsilon


class Guarantee(NamedTuple):
    """(epsilon, delta)-indistinguishability of training on the secrets and on <MASK> in their
    place.
    """

    epsilon: float
    delta: float


NONE = Guarantee(math.inf, 1.0)


def redaction(epsilon: float, delta: float, *, caught: bool) -> Guarantee:
    """Proposition 5 for one secret: nothing is left of it where the policy catches it.

    Guarantees: only for a policy whose findings elsewhere do not change when the secret is masked
    (context-free).
    """
    return Guarantee(0.0, 0.0) if caught else Guarantee(epsilon, delta)


def redaction_group(
    epsilon: float, delta: float, caught: Sequence[bool], *, paper: bool = False
) -> Guarantee:
    """Proposition 5 for a list of secrets: those missed add up; `paper`: its looser k exp(k e)
    delta.
    """
    return Guarantee(*group_epsilon(epsilon, delta, sum(not one for one in caught), paper=paper))


def amplified(epsilon: float, gamma: float) -> float:
    """log(1 + gamma (exp(epsilon) - 1)) of Proposition 6, without overflow; 0 at gamma = 0 whatever
    epsilon.
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
    """Proposition 6 for shares of the secrets that cost different epsilons, and a rest that costs
    nothing: (share, epsilon).

    With P the law of the model where the secret is masked and Q_i where a secret of part i is not,
    the model's law is (1 - sum g_i) P + sum g_i Q_i. From Q_i(S) <= e^e_i P(S) + d follows log(1 +
    sum g_i (e^e_i - 1)) at delta = d sum g_i; from P(S) <= e^e_i Q_i(S) + d follows no more than
    that in the other direction, for 1/x is convex. So every part is to be read at the same d =
    delta / sum g_i.
    """
    total = sum(share for share, _ in parts)
    check_fraction("the sum of the shares", total)
    own = [math.log(share) + epsilon for share, epsilon in parts if share > 0]
    rest = [math.log1p(-total)] if total < 1 else []
    return max(0.0, float(np.logaddexp.reduce([*rest, *own])))


def bayesian(epsilon: float, delta: float, gamma: float, delta2: float = 0.0) -> Guarantee:
    """Proposition 6 (delta2 = 0) and Theorem 8.3: secret drawn from mu, of which the policy misses
    a share gamma.

    `delta2`: probability under mu that policy and conservative policy both miss it.
    """
    check_fraction("delta", delta)
    check_fraction("delta2", delta2)
    return Guarantee(amplified(epsilon, gamma), min(1.0, gamma * delta + delta2))


def spend(delta: float, gamma: float, delta2: float = 0.0) -> float:
    """The delta at which to read the mechanism so that gamma * it + delta2 = `delta`: at most 1, 0
    if none is left.
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
    """Bayesian epsilon at total `delta`. divide: read the mechanism at (delta - delta2) / gamma,
    else at no more than delta.

    `epsilon_at`: the mechanism's epsilon as a function of its delta.
    """
    if delta2 > delta:
        return math.inf
    available = 1.0 if gamma == 0 else spend(delta, gamma, delta2)
    if (
        gamma == 0 or available >= 1
    ):  # nothing is missed, or missing altogether is no more likely than delta allows
        return 0.0
    if available == 0:
        return math.inf
    return amplified(epsilon_at(available if divide else min(delta, available)), gamma)


def caught_only(epsilon_at: Callable[[float], float], delta: float, gamma: float) -> float:
    """Bayesian epsilon at total `delta` where a caught secret costs the mechanism's epsilon and a
    missed one is not protected.

    What may go wrong for a share gamma of the secrets goes into delta: (1 - gamma) d + gamma =
    delta gives the d to read at.
    """
    check_fraction("gamma", gamma)
    return math.inf if delta <= gamma else epsilon_at((delta - gamma) / (1 - gamma))


def dedup(copies: Sequence[int], *, all_in_group: bool) -> int:
    """Proposition 7: size of the group after deduplication, from how many copies each distinct text
    has.

    Holds only if every copy is in the group; otherwise masking one copy brings back another, and
    each text may change two points.
    """
    return len(copies) if all_in_group else sum(min(2, count) for count in copies)


def theorem8_1(epsilon: float, delta: float, *, caught: bool, conservative: bool) -> Guarantee:
    """Theorem 8.1 for one secret. `conservative`: the conservative policy fires on its point where
    the policy misses it.
    """
    if not caught and not conservative:
        return NONE
    return redaction(epsilon, delta, caught=caught)


def theorem8_2(
    epsilon: float, delta: float, unique: int, missed: float, *, conservative: bool
) -> Guarantee:
    """Theorem 8.2 for `unique` secrets of which the policy misses a share: (g m e, g m exp(g m e)
    delta).
    """
    check_fraction("missed", missed)
    size = math.ceil(missed * unique - 1e-9)
    if size and not conservative:
        return NONE
    return Guarantee(*group_epsilon(epsilon, delta, size, paper=True))


def theorem8_3(epsilon: float, delta: float, gamma: float, delta2: float) -> Guarantee:
    """Theorem 8.3: recall 1 - gamma of the policy and 1 - delta2 of the conservative one, both
    under mu.
    """
    return bayesian(epsilon, delta, gamma, delta2)


def check_fraction(name: str, value: float) -> None:
    """ValueError unless a probability."""
    if not 0 <= value <= 1:
        raise ValueError(f"Expected {name} = {value} in [0, 1]")
