"""How well scores tell members from non-members, and intervals of 95 % for that.

Scores are oriented so that higher means "was in the training set". Shapes: m members, n
non-members.
"""

import math
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
from scipy.special import ndtri

from confide.dp.accounting.bisection import narrowed

LEVEL = 0.95  # of every interval and band
TAILS = ((1 - LEVEL) / 2, (1 + LEVEL) / 2)
Z = float(ndtri(TAILS[1]))
DRAWS = 4000  # of thresholds, for an interval
T = TypeVar("T")
# (member scores (m,), non-member scores (n,)) -> value
Metric = Callable[[np.ndarray, np.ndarray], float]


def auc(member: np.ndarray, other: np.ndarray) -> float:
    """Probability that a random member scores above a random non-member, ties counting one half."""
    others = np.sort(other)
    below = np.searchsorted(others, member)
    up_to = np.searchsorted(others, member, side="right")
    return float((below + up_to).sum() / (2 * len(member) * len(other)))


def balanced_accuracy(member: np.ndarray, other: np.ndarray) -> float:
    """Balanced accuracy when the m best scored are called members.

    With equal numbers this is the papers' rule (lower half by perplexity). Ties at the cut share
    it: the value is the expectation over random tie-breaking.
    """
    sides = (member, other)
    cut = np.sort(np.concatenate(sides))[-len(member)]
    above = np.array([(scores > cut).sum() for scores in sides])
    tied = np.array([(scores == cut).sum() for scores in sides])
    share = (len(member) - above.sum()) / tied.sum()
    true_positives, false_positives = (above + share * tied) / [len(member), len(other)]
    return float((true_positives + 1 - false_positives) / 2)


def calibrated_accuracy(member: np.ndarray, other: np.ndarray, rng: np.random.Generator) -> float:
    """Balanced accuracy on one random half with the other half's best threshold, both ways.

    Needs two of each; unlike `balanced_accuracy`, it knows nothing of those that it judges, and
    the direction is fixed.
    """
    inside = np.array_split(rng.permutation(member), 2)
    outside = np.array_split(rng.permutation(other), 2)
    rates = []
    for fitted, judged in ((1, 0), (0, 1)):
        bar = best_threshold(inside[fitted], outside[fitted])
        rates.append((inside[judged] > bar).mean() + (outside[judged] <= bar).mean())
    return float(np.mean(rates) / 2)


def ends(name: str, interval: Sequence[T]) -> dict[str, T]:
    """Both ends of an interval or band as metrics."""
    return {f"{name}_low": interval[0], f"{name}_high": interval[1]}


def hull(first: Sequence[float], second: Sequence[float]) -> tuple[float, float]:
    """The smallest interval in which two others lie."""
    return min(first[0], second[0]), max(first[1], second[1])


def best_threshold(member: np.ndarray, other: np.ndarray) -> float:
    """Score above which to call members for the best balanced accuracy.

    It lies between two scores; of equally good thresholds it is the middle one.
    """
    values = np.unique(np.concatenate([member, other]))
    bars = np.concatenate([[-np.inf], (values[:-1] + values[1:]) / 2, [np.inf]])
    missed = np.searchsorted(np.sort(member), bars, side="right") / len(member)
    spared = np.searchsorted(np.sort(other), bars, side="right") / len(other)
    gain = spared - missed
    best = np.flatnonzero(gain >= gain.max() - 1e-12)
    return float(bars[best[len(best) // 2]])


def false_positives_allowed(n: int, fpr: float) -> int:
    """How many of n non-members may score above a threshold within a false positive rate."""
    return int(np.floor(fpr * n + 1e-9))


def tpr_at_fpr(member: np.ndarray, other: np.ndarray, fpr: float) -> float | None:
    """Largest true positive rate of a threshold whose false positive rate is at most `fpr`.

    Nothing is interpolated. None where n is too small for a single false positive to stay within
    `fpr`.
    """
    allowed = false_positives_allowed(len(other), fpr)
    if allowed < 1:
        return None
    # the strictest score that would already admit one false positive too many
    bar = np.sort(other)[-allowed - 1] if allowed < len(other) else -np.inf
    return float((member > bar).mean())


def tpr_interval(
    member: np.ndarray, other: np.ndarray, fpr: float, rng: np.random.Generator
) -> tuple[float, float] | None:
    """Two-sided interval of the true positive rate where the false positive rate is `fpr` in truth.

    Where that threshold lies is drawn anew each time, as well as who of the members is above it:
    how many of n non-members lie above it is binomial, and the share of all members above it is
    beta (Jeffreys) given those seen. Drawing from the scores alone would not do for few false
    positives: the threshold may lie beyond the largest score seen. None where n is too small for a
    single false positive to stay within `fpr`.
    Guarantees: covers in about 96 % of cases where ten or more false positives are allowed (95 %
    meant), and more below.
    """
    if false_positives_allowed(len(other), fpr) < 1:
        return None
    m = len(member)
    # members above the j-th largest non-member
    above = m - np.searchsorted(np.sort(member), np.sort(other)[::-1], side="right")
    hits = np.concatenate([[0], above, [m]])
    place = rng.binomial(len(other), fpr, size=DRAWS)
    # the threshold lies anywhere between two scores
    seen = rng.integers(hits[place], hits[place + 1] + 1)
    low, high = np.quantile(rng.beta(seen + 0.5, m - seen + 0.5), TAILS)
    return float(low), float(high)


def auc_interval(value: float, m: int, n: int) -> tuple[float, float]:
    """Two-sided interval of an AUC by its standard error at each end (Newcombe 2006, method 5).

    It is never empty, not even at 1.
    """
    return _smallest_auc(value, m, n), 1 - _smallest_auc(1 - value, m, n)


def _smallest_auc(value: float, m: int, n: int) -> float:
    """The smallest true AUC that a value could still have come from."""
    size = (m + n) / 2 - 1

    def possible(true: float) -> bool:
        spread = 1 + size * ((1 - true) / (2 - true) + true / (1 + true))
        variance = true * (1 - true) * spread / (m * n)
        return value - true <= Z * math.sqrt(variance)

    return narrowed(possible, 0.0, value, close=lambda low, high: high - low <= 1e-6)[0]


def share_interval(value: float, count: int) -> tuple[float, float]:
    """Two-sided interval of a share of `count` (Wilson 1927)."""
    middle = (value + Z**2 / (2 * count)) / (1 + Z**2 / count)
    half = Z * math.sqrt(value * (1 - value) / count + Z**2 / (4 * count**2)) / (1 + Z**2 / count)
    return max(0.0, middle - half), min(1.0, middle + half)


def bootstrap(
    metric: Metric,
    member: np.ndarray,
    other: np.ndarray,
    repeats: int,
    rng: np.random.Generator,
) -> tuple[float, float]:
    """Two-sided percentile interval of a metric; the two sides are resampled separately."""

    def resampled(scores: np.ndarray) -> np.ndarray:
        return scores[rng.integers(len(scores), size=len(scores))]

    values = [metric(resampled(member), resampled(other)) for _ in range(repeats)]
    low, high = np.quantile(values, TAILS)
    return float(low), float(high)


def auc_null(m: int, n: int) -> tuple[float, float]:
    """Two-sided band of the AUC of scores that know nothing.

    By the normal approximation of the Mann-Whitney statistic.
    """
    half = Z * np.sqrt((m + n + 1) / (12 * m * n))
    return float(max(0.0, 0.5 - half)), float(min(1.0, 0.5 + half))


def at_least(found: int, *, population: int, marked: int, drawn: int) -> float:
    """Chance that `drawn` of a population, without replacement, hold at least `found` marked."""
    from scipy.stats import hypergeom  # which takes more than a second to load

    return float(hypergeom(population, marked, drawn).sf(found - 1))


def accuracy_null(m: int, n: int) -> tuple[float, float]:
    """Two-sided band of `balanced_accuracy` of scores that know nothing.

    Exact: m are drawn of m + n without replacement.
    """
    from scipy.stats import hypergeom  # which takes more than a second to load

    hits = hypergeom(m + n, m, m).ppf(TAILS)
    low, high = (hits / m + 1 - (m - hits) / n) / 2
    return float(low), float(high)
