"""Shares of texts that come in clusters, and ratios of two such shares, with intervals.

A share: Clopper and Pearson's interval at the effective sample size, the size of a simple random
sample whose share varies as much, adjusted for the few clusters that the variance is estimated from
(Korn and Graubard 1998). Where fewer than five clusters have a flagged text, or fewer than five
have one that is not, that variance is as good as unknown, and each cluster counts as one text at
most: without this rule, intervals of 95 % covered rates of ten clusters 80 to 95 % of the time. A
ratio: the score interval of Koopman 1984 at the two effective sizes; it needs no continuity
correction, and its ends are 0 and infinity where a count is 0.
"""

from collections.abc import Sequence
from math import exp, inf, isfinite
from typing import NamedTuple

import numpy as np

from confide.attacks.statistics.metrics import TAILS, Z
from confide.dp.accounting.bisection import narrowed
from confide.dp.accounting.bounds import clopper_pearson

WIDEST = 200.0  # |log| of a ratio: no interval of counts reaches it
TELLING = 5  # clusters with a flagged text, and without: of fewer no variance is believed


class Share(NamedTuple):
    """A share of n with its two-sided interval."""

    flagged: int
    n: int
    effective: float  # the number of independent texts that would say as much
    rate: float
    low: float
    high: float


def share(
    flags: Sequence[bool] | np.ndarray,
    clusters: Sequence[object],
) -> Share:
    """Share of flagged texts (n,), n > 0, in clusters (n,), which are drawn independently."""
    n = len(flags)
    marks = np.asarray(flags, dtype=float)
    rate = marks.mean()
    effective = _effective(marks, list(clusters))
    low = 1 - clopper_pearson((1 - rate) * effective, effective, TAILS[1])
    high = clopper_pearson(rate * effective, effective, TAILS[1])
    return Share(int(marks.sum()), n=n, effective=effective, rate=float(rate), low=low, high=high)


def _effective(marks: np.ndarray, clusters: list[object]) -> float:
    """Effective sample size of marks (n,), at most n; at most the number of clusters where few of
    them show that anything varies.
    """
    from scipy.special import stdtrit

    number: dict[object, int] = {}
    places = [number.setdefault(cluster, len(number)) for cluster in clusters]
    n = len(marks)
    count = len(number)
    sizes = np.bincount(places)
    flagged = np.bincount(places, marks)
    telling = min((flagged > 0).sum(), (flagged < sizes).sum())
    if count == 1 or telling == 0:
        return float(count)
    rate = marks.mean()
    rest = flagged - rate * sizes  # beyond what sizes let expect
    variance = count / (count - 1) * (rest**2).sum() / n**2
    few = (stdtrit(n - 1, TAILS[1]) / stdtrit(count - 1, TAILS[1])) ** 2
    independent = rate * (1 - rate) / variance if variance > 0 else n
    effective = float(min(n, independent) * few)
    return effective if telling >= TELLING else min(effective, float(count))


def rated(
    name: str, flags: Sequence[bool] | np.ndarray, clusters: Sequence[object]
) -> dict[str, float]:
    """A share of texts as metrics."""
    of = share(flags, clusters)
    return {name: of.rate, f"{name}_low": of.low, f"{name}_high": of.high}


class Ratio(NamedTuple):
    """A ratio of shares with its two-sided interval.

    It is infinite where the second is 0, and not a number where both are.
    """

    value: float
    low: float
    high: float


def ratio(first: Share, second: Share) -> Ratio:
    """The first share over the second, as if they were independent.

    Guarantees: of texts from the same prompts, whose shares rise and fall together, the interval is
    if anything too wide.
    """
    x = first.rate * first.effective
    y = second.rate * second.effective
    return koopman(x, first.effective, y, second.effective)


def koopman(x: float, m: float, y: float, n: float) -> Ratio:
    """The ratio (x / m) / (y / n) of two binomial shares.

    The interval has all values that Pearson's chi-squared test does not refute.
    """
    bar = Z**2
    value = (x / m) / (y / n) if y else (inf if x else float("nan"))
    if not x and not y:
        return Ratio(value, 0.0, inf)

    def refuted(log: float) -> bool:
        return _chi_squared(exp(log), x, m, y, n) > bar

    def close(inside: float, outside: float) -> bool:
        return abs(inside - outside) < 1e-12

    centre = float(np.log(value)) if 0 < value < inf else (WIDEST if x else -WIDEST)
    low = 0.0 if not x else exp(narrowed(refuted, centre, -WIDEST, close=close)[1])
    high = inf if not y else exp(narrowed(refuted, centre, WIDEST, close=close)[1])
    return Ratio(value, low, high)


def _chi_squared(value: float, x: float, m: float, y: float, n: float) -> float:
    """Pearson's statistic of x of m and y of n if the ratio of the two probabilities is `value`.

    The probabilities are the likeliest ones with that ratio.
    """
    b = value * (m + y) + x + n
    both = value * (m + n) * (x + y)
    # the smaller root, without cancellation
    first = 2 * both / (b + np.sqrt(max(b * b - 4 * both, 0.0))) / (m + n)
    statistic = 0.0
    for count, size, p in ((x, m, first), (y, n, first / value)):
        gap = count - size * p
        variance = size * p * (1 - p)
        if abs(gap) > 1e-9 * size:
            statistic += gap * gap / variance if variance > 0 and isfinite(variance) else inf
    return statistic
