"""Epsilon once more by Google's dp_accounting: a second implementation of the privacy loss
distributions of `pld`.

On one grid the two differ by rounding only. Over 700 settings (sample rate 1e-4 to 1, noise 0.16 to
30, 1 to 400,000 updates, delta 1e-8 to 1e-3) ours lay at most 1.2e-3 below theirs (their exp(-loss)
underflows at 745, and their masses round up) and at most 9e-4 above (our slack where delta is
small). What one of the two gets wrong, a pair, a direction or a count, moves epsilon by more than
the tolerances. Loading dp_accounting takes seconds, so only writing a certificate calls this.
"""

import math

from confide.dp.accounting.curves import Mechanisms, Relation, grid, pld_curve

# relative: ours below theirs would be unsound, ours above would be loose
BELOW = 5e-3
ABOVE = 2e-2
ABSOLUTE = 1e-6  # of an epsilon that is next to nothing
FINEST = 1e-7  # a finer grid of theirs is mostly rounding


def google(mechanisms: Mechanisms, relation: Relation, delta: float) -> float | None:
    """Their epsilon; ArithmeticError unless ours is the same within the tolerances.

    None where there is nothing to compare: too little noise for a grid, or a delta below our slack,
    so that ours is infinite.
    """
    if not mechanisms:
        return 0.0
    mechanisms = tuple(
        one._replace(distance=0.0) for one in mechanisms
    )  # of discrete noise the Gaussian that it stands for
    curve = pld_curve(mechanisms, relation)
    if curve.epsilon is None or (ours := curve.epsilon(delta)) == math.inf:
        return None
    theirs = _epsilon(mechanisms, relation, delta)
    if not theirs * (1 - BELOW) - ABSOLUTE <= ours <= theirs * (1 + ABOVE) + ABSOLUTE:
        raise ArithmeticError(
            f"epsilon is {ours}, but {theirs} by dp_accounting, for {relation=}, {delta=}, {mechanisms}"
        )
    return theirs


def _epsilon(mechanisms: Mechanisms, relation: Relation, delta: float) -> float:
    """By dp_accounting alone."""
    from dp_accounting import NeighboringRelation
    from dp_accounting.pld import privacy_loss_distribution as distributions

    neighbors = {
        "add_or_remove": NeighboringRelation.ADD_OR_REMOVE_ONE,
        "replace_one": NeighboringRelation.REPLACE_ONE,
        "zero_out": NeighboringRelation.REPLACE_SPECIAL,
    }
    interval = max(FINEST, grid(mechanisms, relation))
    composed = distributions.identity(interval)
    for rate, sigma, count, _ in mechanisms:
        one = distributions.from_gaussian_mechanism(
            sigma,
            value_discretization_interval=interval,
            sampling_prob=rate,
            neighboring_relation=neighbors[relation],
        )
        composed = composed.compose(one.self_compose(count))
    return float(composed.get_epsilon_for_delta(delta))
