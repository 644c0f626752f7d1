"""Correlated noise: what updates cost whose noise later ones take back in part.

Z = C^-1 G is added to the sums of all updates, G independent noise of one deviation, C lower
triangular with the coefficients c along its diagonals, `bands` of them (Choquette-Choo et al. 2023,
"(Amplified) banded matrix factorization"). Whoever sees Y = X + Z sees C Y = C X + G: there a
contribution to update t stands in the rows t to t + bands - 1, with length |c| times its own. Units
are dealt into `separation` groups, once, and update t reads from group t mod separation alone. As
bands <= separation, contributions of one unit share no row. So for one unit the updates of its
group are Gaussian mechanisms of their own, with noise smaller by |c| and batches drawn anew for
each (there theorem 4; that each may depend on all outcomes before it: Denisov et al. 2022).

The first group costs most: it has as many updates as any other, and each has as many rows. Its last
one may have fewer rows than there are bands.
"""

import math
from collections.abc import Iterator

from confide.types import Correlation


def inverse_root(bands: int) -> tuple[float, ...]:
    """The first coefficients of 1 / sqrt(1 - x): 1, 1/2, 3/8, ...

    All of them are the best that diagonals can do for the largest error of a sum of updates, each
    unit read once (Fichtenberger et al. 2022, Dvijotham et al. 2024).
    """
    coefficients = [1.0]
    for place in range(1, bands):
        coefficients.append(coefficients[-1] * (2 * place - 1) / (2 * place))
    return tuple(coefficients)


def length(coefficients: tuple[float, ...]) -> float:
    """Of a column of C with these coefficients."""
    return math.sqrt(math.fsum(value * value for value in coefficients))


def blocks(correlation: Correlation, updates: int) -> Iterator[tuple[float, int]]:
    """How long a contribution is in C X, and how many of that length a unit of the first group has.

    updates: of the whole sequence so far.
    """
    whole, rows = divmod(updates, correlation.separation)
    if whole:
        yield length(correlation.coefficients), whole
    if rows:
        yield length(correlation.coefficients[:rows]), 1


def error_of_sums(correlation: Correlation, updates: int) -> float:
    """Root of the mean square of what noise of deviation 1 adds to the sum of the first 1, 2, ...
    `updates` updates.
    """
    weights: list[float] = []  # of C^-1, then of its sums
    for row in range(updates):
        taken = zip(correlation.coefficients[1:], reversed(weights), strict=False)
        weights.append(float(row == 0) - math.fsum(c * before for c, before in taken))
    squares = []
    total = 0.0
    reached = 0.0
    for weight in weights:
        total += weight
        reached += total * total
        squares.append(reached)
    return math.sqrt(math.fsum(squares) / max(1, updates))
