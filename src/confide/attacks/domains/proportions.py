"""Shares of texts that come in clusters, and ratios of two such shares, with intervals.

A share: Clopper and Pearson's interval at the effective sample size, the size of a simple random
sample whose share varies as much, adjusted for the few clusters that the variance is estimated from
(Korn and Graubard 1998). Where fewer than five clusters have a flagged text, or fewer than five
have one that is not, that variance is as good as unknown, and each cluster counts as one text at
most: without this rule, intervals of 95 % covered rates of ten clusters 80 to 95 % of the time. A
ratio: the score interval of Koopman 1984 at the two effective sizes; it needs no continuity
correction, and its ends are 0 and infinity where a count is 0.
"""

from collections.abc import Callable, Sequence
from math import exp, inf, isfinite
from typing import NamedTuple

import numpy as np

from confide.dp.accounting.bounds import clopper_pearson

WIDEST = 200.0  # |log| of a ratio: no interval of counts reaches it
CONFIDENCE = 0.95  # of the intervals of attacks whose specification names none
TELLING = 5  # clusters with a flagged text, and without: of fewer no variance is believed
STEPS = 80  # halvings of the interval in which an end lies


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
    confidence: float,
) -> Share:
    """Share of flagged texts (n,), n > 0, in clusters (n,), which are drawn independently."""
    n = len(flags)
    marks = np.asarray(flags, dtype=float)
    rate = marks.mean()
    effective = _effective(marks, list(clusters), confidence)
    tail = (1 + confidence) / 2
    low = 1 - clopper_pearson((1 - rate) * effective, effective, tail)
    high = clopper_pearson(rate * effective, effective, tail)
    return Share(int(marks.sum()), n=n, effective=effective, rate=float(rate), low=low, high=high)


def _effective(marks: np.ndarray, clusters: list[object], confidence: float) -> float:
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
    tail = (1 + confidence) / 2
    few = (stdtrit(n - 1, tail) / stdtrit(count - 1, tail)) ** 2
    independent = rate * (1 - rate) / variance if variance > 0 else n
    effective = float(min(n, independent) * few)
    return effective if telling >= TELLING else min(effective, float(count))


def rated(
    name: str, flags: Sequence[bool] | np.ndarray, clusters: Sequence[object]
) -> dict[str, float]:
    """A share of texts as metrics with the usual confidence."""
    of = share(flags, clusters, CONFIDENCE)
    return {name: of.rate, f"{name}_low": of.low, f"{name}_high": of.high}


class Ratio(NamedTuple):
    """A ratio of shares with its two-sided interval.

    It is infinite where the second is 0, and not a number where both are.
    """

    value: float
    low: float
    high: float


def ratio(first: Share, second: Share, confidence: float) -> Ratio:
    """Share `one` over share `other`, as if they were independent.

    Guarantees: of texts from the same prompts, whose shares rise and fall together, the interval is
    if anything too wide.
    """
    x = first.rate * first.effective
    y = second.rate * second.effective
    return koopman(x, first.effective, y, second.effective, confidence)


def koopman(x: float, m: float, y: float, n: float, confidence: float) -> Ratio:
    """The ratio (x / m) / (y / n) of two binomial shares.

    The interval has all values that Pearson's chi-squared test does not refute.
    """
    from scipy.special import ndtri

    bar = float(ndtri((1 + confidence) / 2)) ** 2
    value = (x / m) / (y / n) if y else (inf if x else float("nan"))
    if not x and not y:
        return Ratio(value, 0.0, inf)

    def refuted(log: float) -> bool:
        return _chi_squared(exp(log), x, m, y, n) > bar

    centre = float(np.log(value)) if 0 < value < inf else (WIDEST if x else -WIDEST)
    low = 0.0 if not x else exp(_edge(refuted, centre, -WIDEST))
    high = inf if not y else exp(_edge(refuted, centre, WIDEST))
    return Ratio(value, low, high)


def _edge(refuted: Callable[[float], bool], inside: float, outside: float) -> float:
    """The point between one that is not refuted and one that is from which on points are."""
    for _ in range(STEPS):
        middle = (inside + outside) / 2
        if refuted(middle):
            outside = middle
        else:
            inside = middle
    return outside


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
