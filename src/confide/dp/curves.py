"""Privacy curves of composed Poisson-subsampled Gaussian updates: log delta as a function of epsilon, never below the truth.

Three ways to the same curve: privacy loss distributions (Koskela et al. 2020, Doroshenko et al. 2022), Renyi divergences
(Mironov et al. 2019) and, where nothing is subsampled or the noise is tiny, the Gaussian mechanism in closed form (Balle and
Wang 2018). The pair of distributions is, with shift 1 = one clipped contribution and noise of standard deviation s:
add_or_remove and zero_out  (1-q)N(0,s2) + qN(1,s2)  against  N(0,s2), both directions;
replace_one                 (1-q)N(0,s2) + qN(1,s2)  against  (1-q)N(0,s2) + qN(-1,s2).
"""

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np
from dp_accounting import NeighboringRelation
from dp_accounting.pld import privacy_loss_distribution as distributions
from scipy.special import gammaln, log_ndtr, logsumexp
from scipy.stats import binom

Relation = Literal["add_or_remove", "replace_one", "zero_out"]
NEIGHBORS = {
    "add_or_remove": NeighboringRelation.ADD_OR_REMOVE_ONE,
    "replace_one": NeighboringRelation.REPLACE_ONE,
    "zero_out": NeighboringRelation.REPLACE_SPECIAL,  # contribution set to zero, batch normaliser public: the same pair
}
Conversion = Literal["improved", "classic"]

ORDERS = (*(1 + x / 10 for x in range(1, 100)), *range(11, 64), 128, 256, 512, 1024)
SPAN = 2000.0  # losses of one update beyond this: closed form instead of a grid
SLACK, SLACK_EACH = 1e-12, 1e-14  # added to a delta read off a grid, once and per update: rounding of the transforms
ROUNDING = 1e-12  # added to every log moment


class Curve(NamedTuple):
    """log delta as a function of epsilon, non-increasing; where there is a fast one, also epsilon as a function of delta."""

    log_delta: Callable[[float], float]
    epsilon: Callable[[float], float] | None = None


FREE = Curve(lambda _: -math.inf, lambda _: 0.0)  # nothing ran


class Mechanism(NamedTuple):
    """`count` updates at one sample rate and noise multiplier."""

    sample_rate: float
    noise_multiplier: float
    count: int


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
        return upper + math.log(-math.expm1(gap)) if gap < 0 else -math.inf

    return Curve(log_delta)


def unsampled_curve(mechanisms: Mechanisms, relation: Relation, group: int = 1) -> Curve:
    """As if every update saw every point: post-processing of it gives the subsampled pair, so it bounds that from above."""
    size = shift(relation, group)
    return gaussian_curve(math.sqrt(sum(count * (size / sigma) ** 2 for _, sigma, count in mechanisms)))


def pld_curve(mechanisms: Mechanisms, relation: Relation, group: int = 1, interval: float | None = None) -> Curve:
    """Privacy loss distributions on a grid that rounds pessimistically. `group` > 1 records: not for replace_one.

    Guarantees: an upper bound; for a group the mixture over how many of its records are drawn (Ganesh 2024).
    """
    if not mechanisms:
        return FREE
    size = shift(relation, group)
    if max(span(sigma, size) for _, sigma, _ in mechanisms) > SPAN:
        return unsampled_curve(mechanisms, relation, group)
    composed = compose(mechanisms, relation, group, interval or grid(mechanisms, relation, group))
    slack = SLACK + SLACK_EACH * sum(count for _, _, count in mechanisms)

    def log_delta(epsilon: float) -> float:
        return math.log(min(1.0, max(0.0, float(composed.get_delta_for_epsilon(epsilon))) + slack))

    def epsilon(delta: float) -> float:
        return float(composed.get_epsilon_for_delta(delta - slack)) if delta > slack else math.inf

    return Curve(log_delta, epsilon)


def compose(mechanisms: Mechanisms, relation: Relation, group: int, interval: float) -> distributions.PrivacyLossDistribution:
    """All updates on one grid; a coarser one where rounding has inflated the total mass (and with it every delta) by 5 %."""
    composed = distributions.identity(interval)
    for rate, sigma, count in mechanisms:
        composed = composed.compose(one_update(rate, sigma, relation, group, interval).self_compose(count))
    mass = float(composed.get_delta_for_epsilon(-1e9))  # at epsilon = -infinity, delta is the whole mass
    return composed if mass < 1.05 or interval > 1e-2 else compose(mechanisms, relation, group, 4 * interval)


def span(sigma: float, size: float) -> float:
    """Largest loss of one update but for a probability of about exp(-50)."""
    return 10 * size / sigma + (size / sigma) ** 2 / 2


def grid(mechanisms: Mechanisms, relation: Relation, group: int = 1) -> float:
    """Grid interval: rounding adds about count * interval * (mean absolute loss) to the variance of the total loss.

    So it must stay below the spread of one loss, q sqrt(exp(s2) - 1), and have 1,000 to 200,000 points (fewer for a group).
    """
    size, total = shift(relation, group), sum(count for _, _, count in mechanisms)
    spans = [(rate, span(sigma, size)) for rate, sigma, _ in mechanisms]
    widths = [math.log1p(rate * math.expm1(large)) if large < 600 else large for rate, large in spans]
    spreads = [rate * math.sqrt(math.expm1(min(600.0, (size / sigma) ** 2))) for rate, sigma, _ in mechanisms]
    wanted = max(1e-7, min(1e-3, 0.1 / math.sqrt(total), 0.3 * min(spreads), min(widths) / 1000))
    most = 10_000 if group > 1 else 60_000 if total < 10_000 else 200_000
    return max(wanted, max(widths) / most)


@lru_cache(maxsize=64)
def one_update(
    rate: float, sigma: float, relation: Relation, group: int, interval: float
) -> distributions.PrivacyLossDistribution:
    """Loss distribution of a single update."""
    if group == 1:
        return distributions.from_gaussian_mechanism(
            sigma, value_discretization_interval=interval, sampling_prob=rate, neighboring_relation=NEIGHBORS[relation]
        )
    if relation == "replace_one":
        raise ValueError("no dominating pair is known for replacing a group: go through zero_out")
    drawn = np.arange(group + 1)
    return distributions.from_mixture_gaussian_mechanism(
        sigma, drawn, binom.pmf(drawn, group, rate), value_discretization_interval=interval
    )


def rdp_curve(mechanisms: Mechanisms, conversion: Conversion = "improved", orders: Sequence[float] = ORDERS) -> Curve:
    """Renyi accounting of add_or_remove or zero_out. classic: rdp - log(delta)/(a-1); improved: Canonne et al. 2020."""
    if not mechanisms:
        return FREE
    alphas = np.asarray(orders, float)
    divergence = sum(count * renyi(rate, sigma, tuple(orders)) for rate, sigma, count in mechanisms)

    def log_delta(epsilon: float) -> float:
        exponents = (alphas - 1) * (divergence - epsilon)
        if conversion == "improved":
            exponents = exponents + (alphas - 1) * np.log1p(-1 / alphas) - np.log(alphas)
        return min(0.0, float(exponents.min()))

    return Curve(log_delta)


@lru_cache(maxsize=64)
def renyi(rate: float, sigma: float, orders: tuple[float, ...]) -> np.ndarray:
    """Renyi divergence of one update, (orders,): the direction mixture against N(0,s2), which is the larger one."""
    alphas = np.asarray(orders, float)
    if rate == 1 or sigma < 0.02:  # tiny noise: the unsampled mechanism bounds it
        return alphas / (2 * sigma**2)
    moments = [integer_moment(rate, sigma, a) if a == int(a) else fractional_moment(rate, sigma, a) for a in alphas]
    return (np.maximum(moments, 0) + ROUNDING) / (alphas - 1)


def integer_moment(rate: float, sigma: float, alpha: float) -> float:
    """log E[((1-q) + q e^{(2z-1)/2s2})^alpha] over z ~ N(0,s2) by the binomial theorem."""
    j = np.arange(int(alpha) + 1)
    choose = gammaln(alpha + 1) - gammaln(j + 1) - gammaln(alpha - j + 1)
    return float(logsumexp(choose + j * math.log(rate) + (alpha - j) * math.log1p(-rate) + j * (j - 1) / (2 * sigma**2)))


def fractional_moment(rate: float, sigma: float, alpha: float) -> float:
    """The same for any order by the trapezoid rule, which converges exponentially for an analytic integrand."""
    width = min(sigma / 8, sigma**2 / 2)
    z = np.arange(-14 * sigma, alpha + 14 * sigma, width)
    ratio = np.logaddexp(math.log1p(-rate), math.log(rate) + (2 * z - 1) / (2 * sigma**2))
    density = -(z**2) / (2 * sigma**2) - math.log(sigma * math.sqrt(2 * math.pi))
    return float(logsumexp(alpha * ratio + density) + math.log(width))
