"""Exposure of secrets that a model never saw: exact tails, means and bands for several together.

Those are of the mean, the median and the maximum.
The rank of such a secret is uniform, its exposure exponential with rate ln 2: mean 1.44 bits; the
largest of ten has mean 4.23 bits, not 0.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import gammaincc

from confide.attacks.statistics.metrics import TAILS

BITS = 1 / math.log(2)  # mean exposure of one secret that was never seen


def _median_steps(count: int) -> np.ndarray:
    """Means of the independent exponentials whose sum is the median of `count` exposures.

    This is Renyi's representation.
    """
    odd = count % 2
    steps = BITS / np.arange(count, count // 2 - 1 + odd, -1)
    if not odd:
        steps[-1] /= 2  # the upper of the two middle ones counts half
    return steps


def _median_tail(count: int, bits: float) -> Any:
    from scipy.linalg import expm

    rates = 1 / _median_steps(count)
    return expm((np.diag(-rates) + np.diag(rates[:-1], 1)) * bits)[0].sum()


TAIL_OF: dict[str, Callable[[int, float], Any]] = {
    "mean": lambda count, bits: gammaincc(count, bits * count / BITS),
    "median": _median_tail,
    "max": lambda count, bits: -np.expm1(count * np.log1p(-(2.0**-bits))) if bits > 0 else 1.0,
}
MEAN_OF: dict[str, Callable[[int], float]] = {
    "mean": lambda count: BITS,
    "median": lambda count: float(_median_steps(count).sum()),
    "max": lambda count: BITS * sum(1 / i for i in range(1, count + 1)),
}


def null_tail(statistic: str, count: int, bits: float) -> float:
    """Probability that a statistic of `count` secrets never seen is at least so many bits.

    This is the one-sided p-value of a mean, median or max.
    """
    return float(TAIL_OF[statistic](count, bits))


def null_band(statistic: str, count: int, most: float = math.inf) -> tuple[float, float, float]:
    """Mean and two-sided band (low, high) of a statistic of `count` secrets never seen.

    In bits, cut at `most` = log2 |R|.
    """
    from scipy.optimize import brentq  # which every attack would load otherwise

    def quantile(tail: float) -> float:
        return brentq(lambda bits: null_tail(statistic, count, bits) - tail, 0, 100, xtol=1e-10)

    low = quantile(TAILS[1])
    high = quantile(TAILS[0])
    return min(MEAN_OF[statistic](count), most), min(low, most), min(high, most)
