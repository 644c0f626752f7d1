"""What one run of training may tell of its coins if a claim is true that is made as a curve.

A certificate holds at every epsilon, with another delta each, and all of them together say more
than any single pair. They bound the trade-off curve f of each coin: whoever calls a share x of the
coins that fell one way wrongly, calls at least f(x) of those that fell the other way wrongly. From
f follows how many guesses of all coins can be right by more than luck (Mahloujifar, Melis and
Chaudhuri 2024, "Auditing f-differential privacy in one run", Algorithm 3). Nothing is assumed of
the noise.
"""

import math
from bisect import bisect_left, bisect_right
from typing import NamedTuple

from confide.dp.accounting.audit_bounds import refuted
from confide.dp.accounting.bisection import bracket, narrowed
from confide.dp.accounting.curves import Curve

Points = tuple[tuple[float, float], ...]  # (epsilon, delta) pairs, all of which are claimed
POINTS = 40  # of a curve, evenly from epsilon = 0
LEAST_DELTA = 1e-9  # at the last of them
# an epsilon beyond which a float cannot hold its slope: left out, so that the claim is weaker
STEEPEST = 600.0
TOLERANCE = 1e-4  # of an epsilon
NOTHING = 1e-9  # an epsilon below it is none
MOST = 1e9  # an epsilon beyond which nothing is looked for


class TradeOff(NamedTuple):
    """The inverse blow-up y -> f(1 - y) of the curve that some (epsilon, delta) pairs bound.

    It is convex and made of straight lines. Line i holds from starts[i] on. An event of probability
    y under one fall of a coin has at least this under the other.
    """

    starts: list[float]
    slopes: list[float]
    heights: list[float]  # where each line would meet y = 0

    def least(self, share: float) -> float:
        """The least probability of an event of probability `share` once one coin is turned over."""
        line = bisect_right(self.starts, share) - 1
        return max(0.0, self.heights[line] + self.slopes[line] * share)


def points_of(curve: Curve) -> Points:
    """A finite part of a privacy curve that stands for all of it.

    The epsilons go from 0 to that of a tiny delta.
    """
    from confide.dp.accounting.price import Bound, solve  # loads the accountants

    if curve.log_delta(0.0) == -math.inf:
        return ((0.0, 0.0),)
    top = solve(Bound(curve), LEAST_DELTA)
    if top == math.inf:
        return ()
    epsilons = [0.0]
    if top > 0:
        epsilons = [float(f"{top * place / (POINTS - 1):.6g}") for place in range(POINTS)]
    return tuple((epsilon, rounded_up(math.exp(curve.log_delta(epsilon)))) for epsilon in epsilons)


def rounded_up(delta: float) -> float:
    """Six digits, none of them below the value."""
    return min(1.0, float(f"{delta * (1 + 1e-5):.6g}"))


def family(points: Points, epsilon: float) -> Points:
    """The claim as it would be if its first pair had this epsilon instead.

    All epsilons are stretched alike, or moved up from 0. The larger the epsilon the weaker the
    claim; the claim itself is one of them.
    """
    certified = points[0][0]
    if certified < NOTHING:
        return tuple((value + epsilon, delta) for value, delta in points)
    return tuple((value * (epsilon / certified), delta) for value, delta in points)


def trade_off(points: Points) -> TradeOff:
    """The curve that all the pairs bound together, which is never more private than they are."""
    lines = [(0.0, 0.0)]  # slope, height
    for epsilon, delta in points:
        if epsilon <= STEEPEST and delta < 1:
            lines.append((math.exp(-epsilon), -delta * math.exp(-epsilon)))
            lines.append((math.exp(epsilon), 1 - delta - math.exp(epsilon)))
    best: list[tuple[float, float]] = []
    starts: list[float] = []
    for slope, height in sorted(set(lines)):
        while best:
            last_slope, last_height = best[-1]
            parallel = last_slope == slope  # the higher of two comes later
            start = -math.inf if parallel else (last_height - height) / (slope - last_slope)
            if start > starts[-1]:
                break
            best.pop()
            starts.pop()
        starts.append(start if best else -math.inf)
        best.append((slope, height))
    return TradeOff(starts, [slope for slope, _ in best], [height for _, height in best])


def epsilon_lower(
    points: Points, coins: int, guesses: int, correct: int, level: float = 0.05
) -> float:
    """The largest epsilon of the claim's `family` that the guesses refute; 0 if they refute none.

    At least the claim's own epsilon, that of the first pair, if the claim itself is refuted, else
    at most that.
    """

    def possible(epsilon: float) -> bool:
        stretched = trade_off(family(points, epsilon))
        return not refuted(stretched.least, coins, guesses, correct, level)

    certified = points[0][0]
    if possible(certified):
        ends = 0.0, certified
    else:
        low, high = bracket(possible, 2 * certified + 1, MOST)
        ends = max(low, certified), high
    low, _ = narrowed(
        possible, *ends, close=lambda low, high: high - low <= TOLERANCE * max(1.0, low)
    )
    return low


def fewest(claim: TradeOff, coins: int, guesses: int, level: float) -> int:
    """The smallest number of right guesses that refutes the claim.

    It is guesses + 1 if not even all of them do.
    """
    return bisect_left(
        range(guesses + 1),
        True,
        lo=1,
        key=lambda correct: refuted(claim.least, coins, guesses, correct, level),
    )
