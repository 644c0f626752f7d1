"""How well scores tell members from non-members: AUC, balanced accuracy, true positives at few false ones, intervals.

Scores are oriented so that higher means "was in the training set". Shapes: m members, n non-members.
"""

from collections.abc import Callable

import numpy as np
from scipy.special import ndtri

Metric = Callable[[np.ndarray, np.ndarray], float]  # (member scores (m,), non-member scores (n,)) -> value


def auc(member: np.ndarray, other: np.ndarray) -> float:
    """Probability that a random member scores above a random non-member, ties counting one half."""
    others = np.sort(other)
    below, up_to = (np.searchsorted(others, member, side) for side in ("left", "right"))
    return float((below + up_to).sum() / (2 * len(member) * len(other)))


def balanced_accuracy(member: np.ndarray, other: np.ndarray) -> float:
    """Mean of true positive and true negative rate when as many as there are members, the best scored, are called members.

    With equal numbers this is the papers' rule (lower half by perplexity). Ties at the cut share it: the value is the
    expectation over random tie-breaking.
    """
    called = len(member)
    cut = np.sort(np.concatenate([member, other]))[-called]
    above, tied = [(scores > cut).sum() for scores in (member, other)], [(scores == cut).sum() for scores in (member, other)]
    share = (called - sum(above)) / sum(tied)
    rates = [(a + share * t) / len(scores) for a, t, scores in zip(above, tied, (member, other), strict=True)]
    return float((rates[0] + 1 - rates[1]) / 2)


def calibrated_accuracy(member: np.ndarray, other: np.ndarray, rng: np.random.Generator) -> float:
    """Balanced accuracy of the threshold that is best on one random half of each side, on the other half; mean of both ways.

    Needs two of each; unlike `balanced_accuracy`, it knows nothing of those that it judges, and the direction is fixed.
    """
    halves = list(zip(*(np.array_split(rng.permutation(scores), 2) for scores in (member, other)), strict=True))
    bars = [best_threshold(*half) for half in halves]
    rates = [(inside > bar).mean() + (outside <= bar).mean() for (inside, outside), bar in zip(halves, bars[::-1], strict=True)]
    return float(np.mean(rates) / 2)


def best_threshold(member: np.ndarray, other: np.ndarray) -> float:
    """Score above which to call members for the best balanced accuracy, between two scores; of equally good ones the middle."""
    values = np.unique(np.concatenate([member, other]))
    bars = np.concatenate([[-np.inf], (values[:-1] + values[1:]) / 2, [np.inf]])
    missed, spared = (np.searchsorted(np.sort(scores), bars, side="right") / len(scores) for scores in (member, other))
    gain = spared - missed
    best = np.flatnonzero(gain >= gain.max() - 1e-12)
    return float(bars[best[len(best) // 2]])


def tpr_at_fpr(member: np.ndarray, other: np.ndarray, fpr: float) -> float | None:
    """Largest true positive rate of a threshold whose false positive rate is at most `fpr`; no interpolation.

    None where n is too small for a single false positive to stay within `fpr`.
    """
    allowed = int(np.floor(fpr * len(other) + 1e-9))
    if allowed < 1:
        return None
    # the strictest score that would already admit one false positive too many
    bar = np.sort(other)[-allowed - 1] if allowed < len(other) else -np.inf
    return float((member > bar).mean())


def bootstrap(
    metric: Metric, member: np.ndarray, other: np.ndarray, repeats: int, rng: np.random.Generator, level: float = 0.95
) -> tuple[float, float]:
    """Two-sided percentile interval of a metric; members and non-members are resampled separately."""
    values = [
        metric(member[rng.integers(len(member), size=len(member))], other[rng.integers(len(other), size=len(other))])
        for _ in range(repeats)
    ]
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def auc_null(m: int, n: int, level: float = 0.95) -> tuple[float, float]:
    """Two-sided band of the AUC of scores that know nothing (normal approximation of the Mann-Whitney statistic)."""
    half = ndtri((1 + level) / 2) * np.sqrt((m + n + 1) / (12 * m * n))
    return float(max(0.0, 0.5 - half)), float(min(1.0, 0.5 + half))


def accuracy_null(m: int, n: int, level: float = 0.95) -> tuple[float, float]:
    """Two-sided band of `balanced_accuracy` of scores that know nothing: m drawn of m + n without replacement (exact)."""
    from scipy.stats import hypergeom  # which takes more than a second to load

    hits = hypergeom(m + n, m, m).ppf([(1 - level) / 2, (1 + level) / 2])
    low, high = (hits / m + 1 - (m - hits) / n) / 2
    return float(low), float(high)
