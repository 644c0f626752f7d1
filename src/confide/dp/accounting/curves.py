"""Privacy curves of composed Poisson-subsampled Gaussian updates: log delta of epsilon.

None is ever below the truth. Three ways to the same curve: privacy loss distributions (`pld`:
Koskela et al. 2020, Doroshenko et al. 2022), Renyi divergences (Mironov et al. 2019) and, where
nothing is subsampled or the noise is tiny, the Gaussian mechanism in closed form (Balle and Wang
2018). The pair of distributions is, with shift 1 = one clipped contribution and noise of standard
deviation s: add_or_remove and zero_out  (1-q)N(0,s2) + qN(1,s2)  against  N(0,s2), both directions;
replace_one (1-q)N(0,s2) + qN(1,s2)  against  (1-q)N(0,s2) + qN(-1,s2).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np
from scipy.special import log_ndtr, logsumexp

from confide.dp.accounting import pairs, pld

# zero_out: contribution set to zero, batch normaliser public; the same pair as add_or_remove
Relation = Literal["add_or_remove", "replace_one", "zero_out"]
Conversion = Literal["improved", "classic"]

ORDERS = (*(1 + x / 10 for x in range(1, 100)), *range(11, 64), 128, 256, 512, 1024)
SPAN = 2000.0  # losses of one update beyond this: closed form instead of a grid
FINEST = 1e-12  # grid interval, for losses that floats cannot tell from 0
# of exp(epsilon) times a distance: where to look
SHARES = tuple(4.0**-place for place in range(1, 26))
ROUNDING = 1e-12  # added to every log moment


class Curve(NamedTuple):
    """log delta as a function of epsilon, non-increasing.

    Where there is a fast one, also epsilon as a function of delta.
    """

    log_delta: Callable[[float], float]
    epsilon: Callable[[float], float] | None = None


FREE = Curve(lambda _: -math.inf, lambda _: 0.0)  # nothing ran


@dataclass(frozen=True, slots=True)
class Mechanism:
    """So many updates at one sample rate and noise multiplier."""

    sample_rate: float
    noise_multiplier: float
    count: int
    # total variation, at most, of one update from what Gaussian noise would give
    distance: float = 0.0
    # records are dealt into groups that take turns, so that several need not meet in an update
    dealt: bool = False


Mechanisms = tuple[Mechanism, ...]


def shift(relation: Relation, group: int = 1) -> float:
    """How far the sum of one batch can move between neighbours, in units of max_grad_norm."""
    return group * (2.0 if relation == "replace_one" else 1.0)


def gaussian_curve(mu: float) -> Curve:
    """Gaussian mechanism with shift over noise = mu (Balle and Wang 2018, Theorem 8)."""

    def log_delta(epsilon: float) -> float:
        upper = float(log_ndtr(mu / 2 - epsilon / mu))
        if mu > 50:  # the difference below cancels; leaving out what it subtracts only raises delta
            return upper
        gap = epsilon + float(log_ndtr(-mu / 2 - epsilon / mu)) - upper
        # of a mu so small that rounding hides the difference the same holds
        return upper + math.log(-math.expm1(gap)) if gap < 0 else upper

    return Curve(log_delta)


def unsampled_curve(mechanisms: Mechanisms, relation: Relation, group: int = 1) -> Curve:
    """As if every update saw every point.

    Post-processing of it gives the subsampled pair, so it bounds that from above.
    """
    size = shift(relation, group)
    total = sum(
        mechanism.count * (size / mechanism.noise_multiplier) ** 2 for mechanism in mechanisms
    )
    return at_distance(gaussian_curve(math.sqrt(total)), mechanisms)


def at_distance(curve: Curve, mechanisms: Mechanisms) -> Curve:
    """The curve of updates, each within its `distance` of one that the given curve is of.

    All together are at most the sum t of the distances away, whatever is chosen in between (couple
    them update by update). An event of probability x has at most x + t under the other, on both
    sides, so that (e, d) becomes (e, d + (1 + exp(e)) t). What holds at an epsilon holds at a
    larger one, so where exp(e) t outgrows d, smaller epsilons are looked at, too.
    """
    total = sum(mechanism.count * mechanism.distance for mechanism in mechanisms)
    if total == 0:
        return curve
    lasts = {max(0.0, math.log(share / total)) for share in SHARES}

    def at(epsilon: float) -> float:
        added = math.log(total) + float(np.logaddexp(0.0, epsilon))
        return min(0.0, float(np.logaddexp(curve.log_delta(epsilon), added)))

    def log_delta(epsilon: float) -> float:
        return min(at(min(epsilon, last)) for last in lasts)

    return Curve(log_delta)


def pld_curve(
    mechanisms: Mechanisms, relation: Relation, group: int = 1, interval: float | None = None
) -> Curve:
    """Privacy loss distributions.

    interval: of the grid, if curves are to share one. group: records that change; of replace_one
    there is no group.
    Guarantees: an upper bound; for a group the mixture over how many of its records are drawn
    (Ganesh 2024).
    """
    if not mechanisms:
        return FREE
    if relation == "replace_one" and group > 1:
        raise ValueError("no dominating pair is known for replacing a group: go through zero_out")
    if group > 1 and any(mechanism.dealt for mechanism in mechanisms):
        raise ValueError("records of a group may be read in turns: go record by record")
    updates = [pair_of(mechanism, relation, group) for mechanism in mechanisms]
    if max(pairs.scale(pair)[0] for pair in updates) > SPAN:
        return unsampled_curve(mechanisms, relation, group)
    width = interval or grid(mechanisms, relation, group)
    counts = [mechanism.count for mechanism in mechanisms]
    directions = pld.both_ways(tuple(zip(updates, counts, strict=True)), width)
    slack = pld.SLACK + pld.SLACK_EACH * sum(counts)

    def log_delta(epsilon: float) -> float:
        return math.log(
            min(1.0, max(pld.delta_at(direction, epsilon) for direction in directions) + slack)
        )

    def epsilon(delta: float) -> float:
        if delta <= slack:
            return math.inf
        return max(pld.epsilon_at(direction, delta - slack) for direction in directions)

    return at_distance(Curve(log_delta, epsilon), mechanisms)


def pair_of(mechanism: Mechanism, relation: Relation, group: int) -> pairs.Pair:
    """The dominating pair of one update."""
    return pairs.Pair(
        mechanism.sample_rate, mechanism.noise_multiplier, group, relation == "replace_one"
    )


def grid(mechanisms: Mechanisms, relation: Relation, group: int = 1) -> float:
    """Grid interval.

    Rounding adds count * interval^2 / 6 to the variance of the total loss, and half of that to its
    mean. So between 1/200 and 1/20 of the spread of one loss: as fine as a curve of 30,000 points
    allows, and for no curve of more than a million, nor one update of more than 200,000 (a group's:
    10,000).
    """
    total = sum(mechanism.count for mechanism in mechanisms)
    scales = [pairs.scale(pair_of(mechanism, relation, group)) for mechanism in mechanisms]
    variance = sum(
        mechanism.count * spread**2
        for mechanism, (_, spread) in zip(mechanisms, scales, strict=True)
    )
    spread = math.sqrt(variance / total)
    whole = 16 * math.sqrt(variance)
    wanted = min(max(whole / 2**15, spread / 200), min(spread / 20, 0.05))
    most = 10_000 if group > 1 else 60_000 if total < 10_000 else 200_000
    return max(wanted, FINEST, whole / 2**20, max(width for width, _ in scales) / most)


def rdp_curve(
    mechanisms: Mechanisms, conversion: Conversion = "improved", orders: Sequence[float] = ORDERS
) -> Curve:
    """Renyi accounting of add_or_remove or zero_out.

    classic: rdp - log(delta) / (a - 1). improved: Canonne et al. 2020.
    """
    if not mechanisms:
        return FREE
    alphas = np.asarray(orders, float)
    divergence = sum(
        mechanism.count * renyi(mechanism.sample_rate, mechanism.noise_multiplier, tuple(orders))
        for mechanism in mechanisms
    )

    def log_delta(epsilon: float) -> float:
        exponents = (alphas - 1) * (divergence - epsilon)
        if conversion == "improved":
            exponents = exponents + (alphas - 1) * np.log1p(-1 / alphas) - np.log(alphas)
        return min(0.0, float(exponents.min()))

    return at_distance(Curve(log_delta), mechanisms)


@lru_cache(maxsize=64)
def renyi(rate: float, sigma: float, orders: tuple[float, ...]) -> np.ndarray:
    """Renyi divergence of one update, (orders,).

    The direction is that of the mixture against N(0, s2), which is the larger one.
    """
    alphas = np.asarray(orders, float)
    if rate == 1 or sigma < 0.02:  # tiny noise: the unsampled mechanism bounds it
        return alphas / (2 * sigma**2)
    moments = [
        integer_moment(rate, sigma, a) if a == int(a) else fractional_moment(rate, sigma, a)
        for a in alphas
    ]
    return (np.maximum(moments, 0) + ROUNDING) / (alphas - 1)


def integer_moment(rate: float, sigma: float, alpha: float) -> float:
    """log E[((1-q) + q e^{(2z-1)/2s2})^alpha] over z ~ N(0,s2) by the binomial theorem."""
    j = np.arange(int(alpha) + 1)
    return float(
        logsumexp(
            pairs.log_ways(alpha, j)
            + j * math.log(rate)
            + (alpha - j) * math.log1p(-rate)
            + j * (j - 1) / (2 * sigma**2)
        )
    )


def fractional_moment(rate: float, sigma: float, alpha: float) -> float:
    """log E[((1-q) + q e^{(2z-1)/2s2})^alpha] of any order, by the trapezoid rule.

    It converges exponentially for an analytic integrand.
    """
    width = min(sigma / 8, sigma**2 / 2)
    z = np.arange(-14 * sigma, alpha + 14 * sigma, width)
    ratio = np.logaddexp(math.log1p(-rate), math.log(rate) + (2 * z - 1) / (2 * sigma**2))
    density = -(z**2) / (2 * sigma**2) - math.log(sigma * math.sqrt(2 * math.pi))
    return float(logsumexp(alpha * ratio + density) + math.log(width))
