"""Upper bounds on totals over a finite population, from points drawn in strata.

No distribution is assumed, so a point may hold many secrets or none, and secrets may come in
clusters.
"""

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

Histogram = Mapping[int, int]  # how many points have each value; those with 0 may be left out
HALVINGS = 60  # of an interval; what is left of it is below the precision of floats


class Stratum(NamedTuple):
    """A stratum of which some points were drawn, uniformly and without replacement.

    ranges: the largest value that each of its points can have, of all of them. values: those that
    the drawn points have.
    """

    points: int
    drawn: int
    ranges: Histogram
    values: Histogram


def total_upper(strata: Iterable[Stratum], confidence: float) -> float:
    """An upper bound on the sum of a value over all points of all strata.

    Guarantees: at least the sum with chance `confidence`, if strata and ranges, and how many points
    are drawn, do not depend on which are drawn.

    Proof. Stratum h has N points, of which n are drawn; x <= r is a point's value and its range.
    For b > 0 let c = b n / N, and z = min(x, c) / c, in [0, 1], of mean m over the stratum. For
    every t > 0 the sum Z of all drawn z has E exp(-tZ) <= prod_h (E exp(-tz))^n (draws without
    replacement: Hoeffding 1963, theorem 4) <= prod_h (1 - m + m exp(-t))^n (exp is convex)
    <= (1 - M + M exp(-t))^S, with S = sum_h n and M = sum_h n m / S (log is concave). By Markov's
    inequality, at the best t, Z / S <= q < M has a probability of at most exp(-S kl(q, M)): M is
    larger than `mean_upper` says with no more than 1 - confidence. Since n m b = n b / (N c)
    sum min(x, c) = sum min(x, c), the sum of x is at most S M b + sum max(0, r - c). The last sum
    is known; so is b, which is chosen by ranges and numbers alone, for the case that all drawn are
    0. A stratum that was drawn whole adds what it has, one that was not drawn at all its ranges.
    """
    strata = list(strata)
    whole = sum(total(stratum.values) for stratum in strata if stratum.drawn == stratum.points)
    largest = whole + sum(
        total(stratum.ranges) for stratum in strata if stratum.drawn < stratum.points
    )
    unknown = sum(
        total(stratum.ranges) for stratum in strata if stratum.drawn == 0 < stratum.points
    )
    partly = [stratum for stratum in strata if 0 < stratum.drawn < stratum.points]
    draws = sum(stratum.drawn for stratum in partly)
    if not draws:
        return float(largest)
    of_nothing = draws * mean_upper(0.0, draws, confidence)
    scales = {
        value * stratum.points / stratum.drawn
        for stratum in partly
        for value in stratum.ranges
        if value > 0
    }
    if not scales:
        return float(whole + unknown)
    scale = min(sorted(scales), key=lambda scale: scale * of_nothing + beyond(partly, scale))
    drawn_sum = sum(
        count * min(value, cut(stratum, scale)) / cut(stratum, scale)
        for stratum in partly
        for value, count in stratum.values.items()
    )
    partial = draws * scale * mean_upper(min(1.0, drawn_sum / draws), draws, confidence)
    return min(float(largest), whole + unknown + partial + beyond(partly, scale))


def cut(stratum: Stratum, scale: float) -> float:
    """The largest value that is weighed in a stratum: c of the proof."""
    return scale * stratum.drawn / stratum.points


def beyond(strata: Iterable[Stratum], scale: float) -> float:
    """What values may be, in all, beyond those that are weighed."""
    return sum(
        count * max(0.0, value - cut(stratum, scale))
        for stratum in strata
        for value, count in stratum.ranges.items()
    )


def mean_upper(mean: float, draws: int, confidence: float) -> float:
    """The largest M with draws * kl(mean, M) <= log(1 / (1 - confidence)), rounded up."""
    most = -math.log1p(-confidence) / draws
    low = mean
    high = 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if divergence(mean, middle) <= most:
            low = middle
        else:
            high = middle
    return high


def divergence(first: float, second: float) -> float:
    """The Kullback-Leibler divergence of two coins, in nats."""
    parts = ((first, second), (1 - first, 1 - second))
    if any(p > 0 and q <= 0 for p, q in parts):
        return math.inf
    return sum(p * math.log(p / q) for p, q in parts if p > 0)


def total(values: Histogram) -> int:
    """The sum of all values."""
    return sum(value * count for value, count in values.items())
