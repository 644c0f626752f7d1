"""Exposures of several secrets in a few numbers, beside what they would be by chance."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from confide.attacks.exposure.null import null_band, null_tail
from confide.attacks.statistics.metrics import TAILS

RESAMPLES = 2_000
STATISTICS: dict[str, Callable[[list[float]], Any]] = {
    "mean": np.mean,
    "median": np.median,
    "max": np.max,
}


def mean_interval(bits: list[float]) -> tuple[float, float]:
    """Two-sided percentile bootstrap interval of the mean.

    The resamples are the same in every run.
    """
    picks = np.random.default_rng(0).integers(len(bits), size=(RESAMPLES, len(bits)))
    low, high = np.quantile(np.asarray(bits)[picks].mean(1), TAILS)
    return float(low), float(high)


def null_of(statistic: str, value: float, count: int, most: float) -> dict[str, float]:
    """Mean, band and one-sided p-value of a statistic of `count` secrets that were never seen."""
    mean, low, high = null_band(statistic, count, most)
    return {
        f"null_{statistic}": mean,
        f"null_{statistic}_low": low,
        f"null_{statistic}_high": high,
        f"p_{statistic}": null_tail(statistic, count, value),
    }


def summary(bits: list[float], statistics: Iterable[str], most: float) -> dict[str, Any]:
    """Statistics of exposures of at most so many bits, each beside chance; the mean's interval."""
    low, high = mean_interval(bits)
    metrics = {"mean_low": low, "mean_high": high}
    for name in statistics:
        value = float(STATISTICS[name](bits))
        metrics |= {name: value} | null_of(name, value, len(bits), most)
    return metrics
