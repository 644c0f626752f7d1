"""Bounds on a probability from counts."""


def clopper_pearson(events: int, trials: int, confidence: float = 0.95) -> float:
    """One-sided exact upper bound of a probability (Clopper and Pearson 1934); 1 without trials.

    Guarantees: at least the probability with chance `confidence`, whatever it is, if the trials are independent.
    """
    from scipy.special import betaincinv  # the beta quantile, without the second that scipy.stats takes to load

    if not 0 <= events <= trials:
        raise ValueError(f"Expected 0 <= {events=} <= {trials=}")
    return 1.0 if events == trials else float(betaincinv(events + 1, trials - events, confidence))
