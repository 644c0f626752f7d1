"""Noise for a budget: the smallest noise multiplier whose enumerated updates stay within a target
epsilon (CRT A.3).
"""

import math

from confide.dp.accounting.price import RELATIONS, epsilon
from confide.errors import InputError
from confide.types import AnyRelease, Release, StateRelease, Step

SMALLEST = 1e-3
LARGEST = 1e6
RELATIVE = (
    1e-3  # the epsilon reached lies at most so far below the target (unless SMALLEST is enough)
)


def calibrate(
    target: float,
    delta: float,
    sample_rate: float,
    steps: int,
    relation: str = "replace_one",
    shown: int = 0,
    coordinates: int = 0,
) -> float:
    """Noise multiplier for `steps` noisy updates and `shown` releases that are not sampled.

    coordinates: numbers that each update adds discrete Gaussian noise to, 0 where it is Gaussian.

    InputError where no noise reaches the target or a value is out of range.

    Guarantees: the certificate's epsilon (PLD, same relation and delta) of exactly these updates is
    at most `target`.
    """
    check_ranges(target, delta, sample_rate, steps, relation)

    def spent(sigma: float) -> float:
        released = paid_for(
            sigma, sample_rate=sample_rate, steps=steps, shown=shown, coordinates=coordinates
        )
        return epsilon(released, delta, relation)

    low = high = 1.0
    while spent(high) > target:
        low = high
        high = 2 * high
        if high > LARGEST:
            raise InputError(
                f"cannot be reached at delta = {delta} by any noise",
                key="privacy.epsilon",
                value=target,
            )
    while low == high and high > SMALLEST:  # the start was enough: go down
        low, high = (low / 2, high) if spent(low / 2) > target else (low / 2, low / 2)
    if low == high:
        return high
    reached = spent(high)
    while reached < target * (1 - RELATIVE) and high - low > 1e-9 * high:
        middle = math.sqrt(low * high)
        if (value := spent(middle)) <= target:
            high = middle
            reached = value
        else:
            low = middle
    return high


def paid_for(
    noise_multiplier: float, *, sample_rate: float, steps: int, shown: int, coordinates: int
) -> list[AnyRelease]:
    """What a budget has to pay for, with this noise: arguments as of `calibrate`."""
    updates = Release(
        step=Step(view="redacted", pool="private", noisy=True),
        sample_rate=sample_rate,
        noise_multiplier=noise_multiplier,
        max_grad_norm=1.0,
        count=steps,
        discrete_coordinates=coordinates,
    )
    states = StateRelease(noise_multiplier=noise_multiplier, max_grad_norm=1.0, count=shown)
    return [updates, states]


def check_ranges(
    target: float, delta: float, sample_rate: float, steps: int, relation: str
) -> None:
    """InputError naming the first key whose value makes no sense."""
    if not 0 < target < math.inf:
        raise InputError("must be positive", key="privacy.epsilon", value=target)
    if not 0 < delta < 1:
        raise InputError("must lie between 0 and 1", key="privacy.delta", value=delta)
    if not 0 < sample_rate <= 1:
        raise InputError("must lie in (0, 1]", key="sample_rate", value=sample_rate)
    if steps < 1:
        raise InputError("no noisy updates to calibrate for", key="steps", value=steps)
    if relation not in RELATIONS:
        raise InputError(
            f"is not one of {', '.join(RELATIONS)}", key="privacy.relation", value=relation
        )
