"""Where a condition on one number begins to hold: doubling until it does, then halving the gap."""

import math
from collections.abc import Callable

Condition = Callable[[float], bool]


def bracket(holds: Condition, high: float = 1.0, most: float = math.inf) -> tuple[float, float]:
    """A number for which the condition fails, or 0, and a larger one for which it holds.

    The larger one is `high`, or `high` doubled as often as needed.

    At `most` it stops looking: there the second number need not meet the condition.
    """
    low = 0.0
    while high < most and not holds(high):
        low = high
        high = 2 * high
    return low, high


def narrowed(
    holds: Condition,
    low: float,
    high: float,
    *,
    close: Callable[[float, float], bool],
    middle: Callable[[float, float], float] = lambda low, high: (low + high) / 2,
) -> tuple[float, float]:
    """The bracket in which the condition begins to hold, halved until both of its ends are close.

    The condition fails at the lower end, or is taken to, and holds at the upper one.
    """
    while not close(low, high):
        between = middle(low, high)
        if holds(between):
            high = between
        else:
            low = between
    return low, high
