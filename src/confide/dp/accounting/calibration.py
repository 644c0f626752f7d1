"""Noise for a budget: the smallest whose enumerated updates stay within an epsilon (CRT A.3)."""

import math
from functools import cache
from typing import Any

from confide.dp.accounting.bisection import bracket, narrowed
from confide.dp.accounting.curves import Relation
from confide.dp.accounting.price import RELATIONS, epsilon
from confide.errors import InputError
from confide.types import AnyRelease, Correlation, Release, StateRelease, Step

SMALLEST = 1e-3
LARGEST = 1e6
# the epsilon reached lies at most so far below the target (unless SMALLEST is enough)
RELATIVE = 1e-3


def calibrate(
    target: float,
    delta: float,
    sample_rate: float,
    steps: int,
    relation: Relation = "replace_one",
    shown: int = 0,
    coordinates: int = 0,
    correlation: Correlation | None = None,
) -> float:
    """Noise multiplier for `steps` noisy updates and `shown` releases that are not sampled.

    coordinates: numbers that each update adds discrete Gaussian noise to, 0 where it is Gaussian.
    correlation: of the noise of the updates.

    InputError where no noise reaches the target or a value is out of range.

    Guarantees: the certificate's epsilon (PLD, same relation and delta) of exactly these updates is
    at most `target`.
    """
    check_ranges(target, delta, sample_rate, steps, relation)

    @cache
    def spent(sigma: float) -> float:
        released = paid_for(
            sigma,
            sample_rate=sample_rate,
            steps=steps,
            shown=shown,
            coordinates=coordinates,
            correlation=correlation,
        )
        return epsilon(released, delta, relation)

    def enough(sigma: float) -> bool:
        return spent(sigma) <= target

    def close(low: float, high: float) -> bool:
        return spent(high) >= target * (1 - RELATIVE) or high - low <= 1e-9 * high

    low, high = bracket(enough, most=LARGEST)
    if high > LARGEST:
        message = f"cannot be reached at delta = {delta} by any noise"
        raise InputError(message, key="privacy.epsilon", value=target)
    if not low:  # the start was enough: go down
        low = high / 2
        while enough(low):
            if low <= SMALLEST:
                return low
            high = low
            low = high / 2
    _, high = narrowed(enough, low, high, close=close, middle=lambda a, b: math.sqrt(a * b))
    return high


def updates(
    noise_multiplier: float,
    *,
    sample_rate: float,
    steps: int,
    coordinates: int = 0,
    correlation: Correlation | None = None,
) -> Release:
    """Noised updates, as a ledger has them."""
    return Release(
        step=Step(view="redacted", pool="private", noisy=True),
        sample_rate=sample_rate,
        noise_multiplier=noise_multiplier,
        max_grad_norm=1.0,
        count=steps,
        discrete_coordinates=coordinates,
        correlation=correlation,
    )


def paid_for(noise_multiplier: float, *, shown: int, **drawn: Any) -> list[AnyRelease]:
    """What a budget has to pay for, with this noise: arguments as of `updates` and `calibrate`."""
    states = StateRelease(noise_multiplier=noise_multiplier, max_grad_norm=1.0, count=shown)
    return [updates(noise_multiplier, **drawn), states]


def check_ranges(
    target: float, delta: float, sample_rate: float, steps: int, relation: str
) -> Relation:
    """The relation, where all is in range; InputError names the first key that makes no sense."""
    if not 0 < target < math.inf:
        raise InputError("must be positive", key="privacy.epsilon", value=target)
    if not 0 < delta < 1:
        raise InputError("must lie between 0 and 1", key="privacy.delta", value=delta)
    if not 0 < sample_rate <= 1:
        raise InputError("must lie in (0, 1]", key="sample_rate", value=sample_rate)
    if steps < 1:
        raise InputError("no noisy updates to calibrate for", key="steps", value=steps)
    for known in RELATIONS:
        if relation == known:
            return known
    message = f"is not one of {', '.join(RELATIONS)}"
    raise InputError(message, key="privacy.relation", value=relation)
