"""Dominating pairs of one Poisson-subsampled Gaussian update: losses, masses, outcomes of losses.

Outcomes x are in units of one clipped contribution, the noise has standard deviation s. P = sum
over j of w_j N(j, s2), where w_j is the probability that j of the group's records are drawn. Q =
N(0, s2), or P mirrored for the replacement of one record. The loss log P(x)/Q(x) rises with x.
Presence of one record is dominated by P against Q and Q against P (Zhu, Dong and Wang 2022), of a
group by the same with its weights (Ganesh 2024); for replacement this is taken from the literature,
not proved.
"""

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, ndtr, xlog1py, xlogy

REACH = 8.0  # standard deviations beyond the means, with 6e-16 of a Gaussian further out
LARGE = 600.0  # exp of more is close to overflow


class Pair(NamedTuple):
    """One update at a sample rate and a noise multiplier, for a group of records.

    replace: one record by another.
    """

    rate: float
    sigma: float
    group: int = 1
    replace: bool = False


def log_ways(count: float, chosen: np.ndarray) -> np.ndarray:
    """log of how many ways there are to choose so many (n,) of `count`."""
    return gammaln(count + 1) - gammaln(chosen + 1) - gammaln(count - chosen + 1)


def log_weights(pair: Pair) -> list[float]:
    """log probabilities that 0, 1, ..., group records are drawn."""
    drawn = np.arange(pair.group + 1)
    ways = log_ways(pair.group, drawn)
    return (ways + xlogy(drawn, pair.rate) + xlog1py(pair.group - drawn, -pair.rate)).tolist()


def log_ratio(pair: Pair, x: np.ndarray) -> np.ndarray:
    """log of P's density over that of N(0, s2), at outcomes (n,)."""
    total = np.full_like(x, -math.inf)
    for j, weight in enumerate(log_weights(pair)):
        total = np.logaddexp(total, weight + j * (2 * x - j) / (2 * pair.sigma**2))
    return total


def loss(pair: Pair, x: np.ndarray) -> np.ndarray:
    """log P/Q at outcomes (n,)."""
    return log_ratio(pair, x) - log_ratio(pair, -x) if pair.replace else log_ratio(pair, x)


def masses(pair: Pair, edges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What P and Q have between neighbouring edges (n + 1,).

    The first edge lies below and the last above all means.
    """
    if pair.replace:
        other = _masses(pair, -edges[::-1])[::-1]
    else:
        other = _masses(pair._replace(group=0), edges)
    return _masses(pair, edges), other


def _masses(pair: Pair, edges: np.ndarray) -> np.ndarray:
    """P's; by differences of the nearer tail, so that small ones are exact, too."""
    mass = np.zeros(len(edges) - 1)
    for j, weight in enumerate(log_weights(pair)):
        z = (edges - j) / pair.sigma
        tails = ndtr(-np.abs(z))
        between = np.abs(np.diff(tails))
        above = np.searchsorted(z, 0.0)  # the mean's own cell is what both tails leave
        between[above - 1] = 1 - tails[above - 1] - tails[above]
        mass += math.exp(weight) * between
    return mass


def outcomes(pair: Pair) -> tuple[float, float]:
    """Between which P and Q have all but about 1e-15 of their masses."""
    reach = REACH * pair.sigma
    return -pair.group * pair.replace - reach, pair.group + reach


@lru_cache(maxsize=64)
def scale(pair: Pair) -> tuple[float, float]:
    """Range of the losses, and their standard deviation under P (a few digits)."""
    x = np.linspace(*outcomes(pair), 2001)
    losses = loss(pair, x)
    mass = _masses(pair, x)
    middle = (losses[1:] + losses[:-1]) / 2
    return float(losses[-1] - losses[0]), math.sqrt(mass @ (middle - mass @ middle) ** 2)


def threshold(pair: Pair, losses: np.ndarray) -> np.ndarray:
    """The outcome at which each loss (n,) is reached; all must lie between those at `outcomes`."""
    if pair.group > 1:
        return _search(pair, losses)
    rate = pair.rate
    variance = pair.sigma**2
    with np.errstate(divide="ignore"):
        if not pair.replace:  # exp(loss) = 1 - q + q exp((2x - 1) / 2s2)
            rest = np.maximum(-1.0, -(1 - rate) * np.exp(np.minimum(-losses, LARGE)))
            return 0.5 + variance * (losses + np.log1p(rest) - math.log(rate))
        # a quadratic equation for exp(x/s2): x/s2 = loss/2 + asinh((1-q)/q exp(1/2s2)
        # sinh(loss/2)), here by its logarithm
        size = np.abs(losses)
        sinh = size / 2 + np.log(-np.expm1(-size)) - math.log(2)
        inner = (
            sinh
            + 1 / (2 * variance)
            + (math.log1p(-rate) - math.log(rate) if rate < 1 else -math.inf)
        )
        return variance * (
            losses / 2 + np.sign(losses) * np.logaddexp(inner, np.logaddexp(0, 2 * inner) / 2)
        )


def _search(pair: Pair, losses: np.ndarray) -> np.ndarray:
    """The thresholds of mixtures by Newton's method, kept within the cell of a table.

    It is quadratic, since the loss is smooth and convex.
    """
    x = np.linspace(*outcomes(pair), 4001)
    table = loss(pair, x)
    place = np.clip(np.searchsorted(table, losses), 1, len(x) - 1)
    thresholds = np.interp(losses, table, x)
    little = 1e-6 * (x[1] - x[0])
    for _ in range(6):
        value = loss(pair, thresholds)
        slope = np.maximum((loss(pair, thresholds + little) - value) / little, 1e-300)
        thresholds = np.clip(thresholds - (value - losses) / slope, x[place - 1], x[place])
    return thresholds
