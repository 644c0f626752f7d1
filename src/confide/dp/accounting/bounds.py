"""Bounds on probabilities from counts, one at a time and several that hold together."""


def clopper_pearson(events: float, trials: float, confidence: float = 0.95) -> float:
    """One-sided exact upper bound of a probability (Clopper and Pearson 1934); 1 without trials.

    Guarantees: at least the probability with chance `confidence`, whatever it is, if the trials are
    independent.
    """
    from scipy.special import (
        betaincinv,
    )  # the beta quantile, without the second that scipy.stats takes to load

    if not 0 <= events <= trials:
        raise ValueError(f"Expected 0 <= {events=} <= {trials=}")
    return 1.0 if events == trials else float(betaincinv(events + 1, trials - events, confidence))


def each_of(confidence: float, bounds: int) -> float:
    """The confidence of each of some bounds so that all of them hold together with `confidence`
    (Bonferroni).

    Guarantees: no independence is needed, so bounds of overlapping events, and of one sample, may
    be combined.
    """
    return 1 - (1 - confidence) / max(1, bounds)
