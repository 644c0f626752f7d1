"""Exposures of several secrets in a few numbers, beside what they would be by chance."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from confide.attacks.exposure.null import null_band, null_tail
from confide.attacks.statistics.metrics import TAILS, ends

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


def summary(bits: list[float], statistics: Iterable[str], most: float) -> dict[str, Any]:
    """Statistics of exposures of at most so many bits, each beside chance; the mean's interval."""
    metrics: dict[str, Any] = ends("mean", mean_interval(bits))
    for name in statistics:
        value = float(STATISTICS[name](bits))
        null_mean, *band = null_band(name, len(bits), most)
        metrics |= {name: value, f"p_{name}": null_tail(name, len(bits), value)}
        metrics |= {f"null_{name}": null_mean} | ends(f"null_{name}", band)
    return metrics
